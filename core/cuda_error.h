/* CUDA's errors as statuses: what was done, with what, the error's name and text, and a remedy
 * where one is known. Used by the CUDA back end and by launchers of CUDA kernels; plain C and C++.
 */
#ifndef TL_CUDA_ERROR_H
#define TL_CUDA_ERROR_H

#include "device.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Records "<device>: <what>: <name> (<text>); <remedy>" and returns TL_ERR_MEMORY, with the memory
 * that is free, TL_ERR_UNSUPPORTED for what this machine or build lacks, or TL_ERR_DEVICE. Clears
 * the runtime's last error, so that the next call does not see it again. `error` is a cudaError_t;
 * `device` may be NULL. After a fault of a kernel the message names the plan launched last. */
enum tl_status tl_cuda_error_set(int error, const struct tl_device *device, const char *file,
                                 int line, const char *fmt, ...) TL_PRINTF(5, 6);

#define TL_CUDA_FAIL(error, device, ...) \
    tl_cuda_error_set((int)(error), (device), __FILE__, __LINE__, __VA_ARGS__)

/* Returns unless the runtime's call succeeds; only in functions that own nothing. */
#define TL_CUDA_TRY(call, device, ...)                                       \
    do {                                                                     \
        int tl_cuda_try_error_ = (int)(call);                                \
        if (tl_cuda_try_error_ != 0)                                         \
            return TL_CUDA_FAIL(tl_cuda_try_error_, (device), __VA_ARGS__);  \
    } while (0)

#define TL_CUDA_GO(label, call, device, ...)                                     \
    do {                                                                         \
        int tl_cuda_go_error_ = (int)(call);                                     \
        status = TL_OK;                                                          \
        if (tl_cuda_go_error_ != 0) {                                            \
            status = TL_CUDA_FAIL(tl_cuda_go_error_, (device), __VA_ARGS__);     \
            goto label;                                                          \
        }                                                                        \
    } while (0)

/* Why this machine has no usable NVIDIA GPU, and the remedy; "" where it has one. */
const char *tl_cuda_absent(void);

#ifdef __cplusplus
}
#endif
#endif
