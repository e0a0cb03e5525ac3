/* cuBLASLt, opened when first needed: matrix products in its column-major terms.
 *
 * d[rows, cols] = beta d + op(a) op(b), with a being [rows, depth] or, transposed, [depth, rows],
 * and b being [depth, cols] or, transposed, [cols, depth]; all column-major with leading dimensions
 * of their own. Sums are in fp32. bf16 inputs give bf16 or fp32; fp32 inputs are rounded to TF32
 * and give fp32.
 */
#ifndef TL_DEVICE_CUBLASLT_H
#define TL_DEVICE_CUBLASLT_H

#include "core/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_cublaslt_product {
    int64_t rows, cols, depth; /* at least 1 */
    bool transpose_a, transpose_b;
    int64_t lda, ldb, ldd; /* elements from one column to the next */
    enum tl_dtype in, out;
};

/* An algorithm as the library describes it, for the product that it was found for. */
struct tl_cublaslt_algo {
    uint64_t data[8];
};

#define TL_CUBLASLT_ALIGNMENT 16 /* bytes; algorithms may rely on it for every pointer */

/* Fills `algos` with up to `capacity` algorithms for the product that need at most that workspace,
 * what the library thinks fastest first. TL_ERR_UNSUPPORTED without the library, TL_ERR_ILLEGAL
 * where it knows none. */
enum tl_status tl_cublaslt_find(struct tl_device *device, const struct tl_cublaslt_product *product,
                                size_t workspace_bytes, struct tl_cublaslt_algo *algos,
                                int capacity, int *count);

/* Enqueues it. Descriptors are made for the call, which costs about a microsecond, and nothing is
 * kept. TL_ERR_ILLEGAL for a pointer that is not aligned. */
enum tl_status tl_cublaslt_run(struct tl_device *device, const struct tl_cublaslt_product *product,
                               const struct tl_cublaslt_algo *algo, const void *a, const void *b,
                               void *d, float beta, void *workspace, size_t workspace_bytes,
                               struct tl_stream *stream);

/* The same for a loop of products that differ in rows, cols and depth only: descriptors are made
 * once. A call that was opened is closed; a zeroed one may be. */
struct tl_cublaslt_call {
    struct tl_device *device;
    struct tl_cublaslt_product product; /* of the next run */
    void *handle, *desc, *a, *b, *d;
};
enum tl_status tl_cublaslt_open(struct tl_device *device, const struct tl_cublaslt_product *product,
                                struct tl_cublaslt_call *out);
enum tl_status tl_cublaslt_resize(struct tl_cublaslt_call *call, int64_t rows, int64_t cols,
                                  int64_t depth);
/* TL_ERR_ILLEGAL where the algorithm cannot do these sizes: it is only sure to do those that it was
 * found for. */
enum tl_status tl_cublaslt_run_open(const struct tl_cublaslt_call *call,
                                    const struct tl_cublaslt_algo *algo, const void *a,
                                    const void *b, void *d, float beta, void *workspace,
                                    size_t workspace_bytes, struct tl_stream *stream);
void tl_cublaslt_close(struct tl_cublaslt_call *call);

/* "130100" for 13.1.0 and the file it came from, for provenance; "" before the first use. */
const char *tl_cublaslt_version(void);

#ifdef __cplusplus
}
#endif
#endif
