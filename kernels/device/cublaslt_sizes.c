/* See cublaslt_sizes.h. */
#if TL_CUDA
#include "cublaslt_sizes.h"

/* In eighths of the mean. */
static const int eighths[TL_CUBLASLT_SIZES - 1] = {1, 2, 4, 6, 8, 9, 10, 12, 16, 32};

static void set_size(struct tl_cublaslt_product *product, int which, int64_t size)
{
    if (which == TL_CUBLASLT_COLS)
        product->cols = size;
    else
        product->depth = size;
}

enum tl_status tl_cublaslt_sizes_find(struct tl_device *device, struct tl_cublaslt_product product,
                                      enum tl_cublaslt_size which, int64_t total, int64_t groups,
                                      size_t workspace_bytes, struct tl_cublaslt_sizes *out)
{
    int64_t mean = (total + groups - 1) / groups, before = 0;
    out->which = which;
    out->count = 0;
    for (int i = 0; i < TL_CUBLASLT_SIZES; i++) {
        bool last = i == TL_CUBLASLT_SIZES - 1;
        int64_t size = last ? total : (mean * eighths[i] + 63) / 64 * 8; /* multiples of 8 */
        int found = 0;
        if (size > total || size <= before)
            continue;
        set_size(&product, which, size);
        TL_TRY(tl_cublaslt_find(device, &product, workspace_bytes, &out->algos[out->count], 1,
                                &found));
        before = out->size[out->count++] = (int32_t)size;
    }
    return TL_OK;
}

enum tl_status tl_cublaslt_sizes_run(const struct tl_cublaslt_sizes *sizes,
                                     struct tl_cublaslt_call *call, int64_t size, const void *a,
                                     const void *b, void *d, float beta, void *workspace,
                                     size_t workspace_bytes, struct tl_stream *stream)
{
    struct tl_cublaslt_algo exact;
    int next = 0, found = 0;
    while (sizes->size[next] < size)
        next++;
    set_size(&call->product, sizes->which, size);
    TL_TRY(tl_cublaslt_resize(call, call->product.rows, call->product.cols, call->product.depth));
    enum tl_status status = tl_cublaslt_run_open(call, &sizes->algos[next], a, b, d, beta,
                                                 workspace, workspace_bytes, stream);
    if (status != TL_ERR_ILLEGAL || size == sizes->size[next])
        return status;
    TL_TRY(tl_cublaslt_find(call->device, &call->product, workspace_bytes, &exact, 1, &found));
    return tl_cublaslt_run_open(call, &exact, a, b, d, beta, workspace, workspace_bytes, stream);
}
#endif
