/* Shared libraries that may be absent: the driver's, CUPTI, NVML, cuBLASLt, cuDNN.
 *
 * They are opened when first needed and never linked, so that one binary starts on every machine.
 * What is missing gives TL_ERR_UNSUPPORTED, with the names and folders that were tried and the
 * remedy. A library's functions are resolved into a table of pointers, described by a list.
 *
 * Looked for, in this order: the folders of TILELAB_LIBRARY_PATH (separated by ':'), the plain
 * name (LD_LIBRARY_PATH and the system's folders), lib64, lib and extras/CUPTI/lib64 of CUDA_HOME
 * and of /usr/local/cuda, the driver's folder of container images (/usr/local/nvidia/lib64), and
 * the toolkit that `make toolkit` puts beside the binary.
 */
#ifndef TL_DYNLIB_H
#define TL_DYNLIB_H

#include <stdbool.h>
#include <stddef.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_dynlib {
    const char *title; /* as messages call it: "NVML" */
    void *handle;      /* NULL while it is not open */
    char path[512];    /* what was opened; a plain name where the system's search found it */
};

/* A function's name, and where its pointer stands in the table. */
struct tl_dynlib_symbol {
    const char *name; /* NULL ends the list */
    size_t offset;
    bool optional; /* absent: the pointer becomes NULL */
};

#define TL_SYMBOL(table, member, function) {function, offsetof(table, member), false}
#define TL_SYMBOL_OPTIONAL(table, member, function) {function, offsetof(table, member), true}

/* Opens the first of `names` ("libx.so.13", "libx.so"; ends with NULL) that can be found, each name
 * in all folders before the next one. `remedy` ends the message of a failure, e.g. "install the
 * NVIDIA driver". TL_OK at once where `library` is open. */
enum tl_status tl_dynlib_open(struct tl_dynlib *library, const char *title,
                              const char *const *names, const char *remedy);

/* Fills `table`; TL_ERR_UNSUPPORTED names the first function that the library does not have. */
enum tl_status tl_dynlib_resolve(const struct tl_dynlib *library, void *table,
                                 const struct tl_dynlib_symbol *symbols);

/* Idempotent. Pointers resolved from it are dead afterwards. */
void tl_dynlib_close(struct tl_dynlib *library);

#ifdef __cplusplus
}
#endif
#endif
