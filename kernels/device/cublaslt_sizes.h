/* Algorithms for a loop of cuBLASLt products that differ in one size.
 *
 * An algorithm depends on the size, and asking for one takes the host longer than a product takes
 * the GPU. So a few sizes around the mean are asked for ahead, and a product takes the algorithm of
 * the next size above its own.
 */
#ifndef TL_DEVICE_CUBLASLT_SIZES_H
#define TL_DEVICE_CUBLASLT_SIZES_H

#include "cublaslt.h"

enum tl_cublaslt_size { TL_CUBLASLT_COLS, TL_CUBLASLT_DEPTH };

#define TL_CUBLASLT_SIZES 11

struct tl_cublaslt_sizes {
    int32_t which, count;
    int32_t size[TL_CUBLASLT_SIZES]; /* ascending; the last is `total` */
    struct tl_cublaslt_algo algos[TL_CUBLASLT_SIZES];
};

/* For `groups` products whose size `which` adds up to `total`, at least 1. */
enum tl_status tl_cublaslt_sizes_find(struct tl_device *device, struct tl_cublaslt_product product,
                                      enum tl_cublaslt_size which, int64_t total, int64_t groups,
                                      size_t workspace_bytes, struct tl_cublaslt_sizes *out);

/* Enqueues the product of `size`, at most `total`. The library is asked where the algorithm cannot
 * do less than what it was found for. */
enum tl_status tl_cublaslt_sizes_run(const struct tl_cublaslt_sizes *sizes,
                                     struct tl_cublaslt_call *call, int64_t size, const void *a,
                                     const void *b, void *d, float beta, void *workspace,
                                     size_t workspace_bytes, struct tl_stream *stream);

#endif
