/* CUPTI as a library opened at run time: functions, error messages with remedies, and the CUDA
 * context that its calls need. For core/cupti_host.c, profiler.c, activity.c and pmsampling.c only.
 *
 * Each of these files lists the functions it calls in a macro `FUNCTIONS(X)` and gets a table `api`
 * of the same names by TL_CUPTI_TABLE; tl_cupti_open fills it.
 */
#ifndef TL_CUPTI_H
#define TL_CUPTI_H

#include <cuda.h>
#include <cupti_result.h>

#include "device.h"
#include "dynlib.h"
#include "status.h"

#define TL_CUPTI_FIELD(name) __typeof__(name) *name;
#define TL_CUPTI_SYMBOL(name) TL_SYMBOL(struct api_table, name, #name),
#define TL_CUPTI_TABLE(FUNCTIONS)                                          \
    static struct api_table {                                              \
        FUNCTIONS(TL_CUPTI_FIELD)                                          \
    } api;                                                                 \
    static const struct tl_dynlib_symbol api_symbols[] = {                 \
        FUNCTIONS(TL_CUPTI_SYMBOL){NULL, 0, false}}

/* Opens libcupti once a process and fills `table`. TL_ERR_UNSUPPORTED where it is missing or too
 * old; each call looks every symbol up, so callers ask once. */
enum tl_status tl_cupti_open(void *table, const struct tl_dynlib_symbol *symbols);

/* The status for a CUPTI code: what `call` was for, the code by name, and the remedy where one is
 * known. The machine's refusals are TL_ERR_UNSUPPORTED, the rest TL_ERR_DEVICE. */
enum tl_status tl_cupti_failed(CUptiResult code, const char *call, const char *file, int line);

#define TL_CUPTI_TRY(call, params)                                                 \
    do {                                                                           \
        CUptiResult code_ = api.call(params);                                      \
        if (code_ != CUPTI_SUCCESS)                                                \
            return tl_cupti_failed(code_, #call, __FILE__, __LINE__);              \
    } while (0)

/* Makes the context that the CUDA runtime uses for the device current on this thread. CUPTI's
 * profiler starts only after this. TL_ERR_UNSUPPORTED for a device that is no CUDA GPU. */
enum tl_status tl_cupti_context(const struct tl_device *device, CUcontext *out);

/* Waits for everything launched in the current context. */
enum tl_status tl_cupti_synchronize(void);

#endif
