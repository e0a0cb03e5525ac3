/* See cublaslt.h. The library's types are declared by hand, so that building needs neither its
 * headers nor its half a gigabyte; tests/kernels/test_cublaslt.c holds them against the header
 * where there is one. */
#if TL_CUDA
#include "cublaslt.h"
#include "cublaslt_abi.h"

#include "core/cuda_error.h"
#include "core/dynlib.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEVICES = 32, MAX_FOUND = 16 };

static struct {
    int (*create)(void **handle);
    size_t (*version)(void);
    const char *(*status_name)(int status);
    int (*matmul)(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                  const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                  void *d, void *d_layout, const struct tl_cublaslt_algo *algo, void *workspace,
                  size_t workspace_bytes, void *stream);
    int (*heuristic)(void *handle, void *desc, void *a_layout, void *b_layout, void *c_layout,
                     void *d_layout, void *preference, int requested,
                     struct cublaslt_heuristic *results, int *returned);
    int (*desc_create)(void **desc, int compute_type, int scale_type);
    int (*desc_destroy)(void *desc);
    int (*desc_set)(void *desc, int attribute, const void *value, size_t size);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
    int (*layout_destroy)(void *layout);
    int (*layout_set)(void *layout, int attribute, const void *value, size_t size);
    int (*preference_create)(void **preference);
    int (*preference_destroy)(void *preference);
    int (*preference_set)(void *preference, int attribute, const void *value, size_t size);
} lt;

#define LT(member, function) {function, offsetof(__typeof__(lt), member), false}

static const struct tl_dynlib_symbol symbols[] = {
    LT(create, "cublasLtCreate"),
    LT(version, "cublasLtGetVersion"),
    LT(status_name, "cublasLtGetStatusName"),
    LT(matmul, "cublasLtMatmul"),
    LT(heuristic, "cublasLtMatmulAlgoGetHeuristic"),
    LT(desc_create, "cublasLtMatmulDescCreate"),
    LT(desc_destroy, "cublasLtMatmulDescDestroy"),
    LT(desc_set, "cublasLtMatmulDescSetAttribute"),
    LT(layout_create, "cublasLtMatrixLayoutCreate"),
    LT(layout_destroy, "cublasLtMatrixLayoutDestroy"),
    LT(layout_set, "cublasLtMatrixLayoutSetAttribute"),
    LT(preference_create, "cublasLtMatmulPreferenceCreate"),
    LT(preference_destroy, "cublasLtMatmulPreferenceDestroy"),
    LT(preference_set, "cublasLtMatmulPreferenceSetAttribute"),
    {NULL, 0, false},
};

static struct tl_dynlib library;
static void *handles[MAX_DEVICES]; /* one for each GPU, made by its first use */

/* A failed call of the library. */
static enum tl_status fail(const struct tl_device *device,
                           const struct tl_cublaslt_product *product, const char *what, int result)
{
    cudaGetLastError();
    return TL_FAIL(result == CUBLASLT_NOT_SUPPORTED ? TL_ERR_ILLEGAL : TL_ERR_DEVICE,
                   "%s: cuBLASLt: %s, %s to %s, %lld x %lld x %lld: %s", device->name, what,
                   tl_dtype_name(product->in), tl_dtype_name(product->out),
                   (long long)product->rows, (long long)product->cols, (long long)product->depth,
                   lt.status_name(result));
}

static enum tl_status library_open(struct tl_device *device, void **handle)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so", NULL};
    static bool ready;
    if (!ready) {
        TL_TRY(tl_dynlib_open(&library, "cuBLASLt", names,
                              "install cuBLAS of CUDA 13 (the wheel nvidia-cublas)"));
        TL_TRY(tl_dynlib_resolve(&library, &lt, symbols));
        ready = true;
    }
    if (device->index >= MAX_DEVICES)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "%s: cuBLASLt is used on the first %d GPUs only",
                       device->name, MAX_DEVICES);
    TL_TRY(device->api->use(device));
    if (!handles[device->index]) {
        int result = lt.create(&handles[device->index]);
        if (result != 0) {
            handles[device->index] = NULL;
            cudaGetLastError();
            return TL_FAIL(TL_ERR_DEVICE, "%s: cuBLASLt (%s) does not start: %s", device->name,
                           library.path, lt.status_name(result));
        }
    }
    *handle = handles[device->index];
    return TL_OK;
}

static int layout(void **out, enum tl_dtype dtype, const uint64_t size[2], int64_t ld)
{
    return lt.layout_create(out, dtype == TL_BF16 ? CUBLASLT_BF16 : CUBLASLT_FP32, size[0], size[1],
                            ld);
}

/* Rows and columns as they are stored. */
struct stored {
    uint64_t a[2], b[2], d[2];
};

static struct stored stored_of(const struct tl_cublaslt_product *product)
{
    uint64_t m = (uint64_t)product->rows, n = (uint64_t)product->cols, k = (uint64_t)product->depth;
    bool ta = product->transpose_a, tb = product->transpose_b;
    return (struct stored){{ta ? k : m, ta ? m : k}, {tb ? n : k, tb ? k : n}, {m, n}};
}

/* The descriptors of `call->product`; it may fail half-way. */
static int describe(struct tl_cublaslt_call *call)
{
    const struct tl_cublaslt_product *product = &call->product;
    struct stored size = stored_of(product);
    int compute = product->in == TL_FP32 ? CUBLASLT_COMPUTE_TF32 : CUBLASLT_COMPUTE_FP32;
    int32_t op_a = product->transpose_a ? CUBLASLT_TRANSPOSED : CUBLASLT_PLAIN;
    int32_t op_b = product->transpose_b ? CUBLASLT_TRANSPOSED : CUBLASLT_PLAIN;
    int result = lt.desc_create(&call->desc, compute, CUBLASLT_FP32);
    if (result == 0)
        result = lt.desc_set(call->desc, CUBLASLT_DESC_TRANSA, &op_a, sizeof op_a);
    if (result == 0)
        result = lt.desc_set(call->desc, CUBLASLT_DESC_TRANSB, &op_b, sizeof op_b);
    if (result == 0)
        result = layout(&call->a, product->in, size.a, product->lda);
    if (result == 0)
        result = layout(&call->b, product->in, size.b, product->ldb);
    if (result == 0)
        result = layout(&call->d, product->out, size.d, product->ldd);
    return result;
}

void tl_cublaslt_close(struct tl_cublaslt_call *call)
{
    if (call->desc)
        lt.desc_destroy(call->desc);
    if (call->a)
        lt.layout_destroy(call->a);
    if (call->b)
        lt.layout_destroy(call->b);
    if (call->d)
        lt.layout_destroy(call->d);
    memset(call, 0, sizeof *call);
}

enum tl_status tl_cublaslt_open(struct tl_device *device, const struct tl_cublaslt_product *product,
                                struct tl_cublaslt_call *out)
{
    memset(out, 0, sizeof *out);
    TL_TRY(library_open(device, &out->handle));
    out->device = device;
    out->product = *product;
    int result = describe(out);
    if (result == 0)
        return TL_OK;
    tl_cublaslt_close(out);
    return fail(device, product, "no description", result);
}

/* A preference for algorithms within the workspace and our alignment. */
static int prefer(size_t workspace_bytes, void **out)
{
    uint64_t most = workspace_bytes;
    uint32_t alignment = TL_CUBLASLT_ALIGNMENT;
    int result = lt.preference_create(out);
    if (result == 0)
        result = lt.preference_set(*out, CUBLASLT_PREF_WORKSPACE, &most, sizeof most);
    for (int i = CUBLASLT_PREF_ALIGNMENT_A; i <= CUBLASLT_PREF_ALIGNMENT_D && result == 0; i++)
        result = lt.preference_set(*out, i, &alignment, sizeof alignment);
    return result;
}

enum tl_status tl_cublaslt_find(struct tl_device *device, const struct tl_cublaslt_product *product,
                                size_t workspace_bytes, struct tl_cublaslt_algo *algos,
                                int capacity, int *count)
{
    struct cublaslt_heuristic found[MAX_FOUND];
    struct tl_cublaslt_call call;
    void *preference = NULL;
    int returned = 0;
    *count = 0;
    memset(found, 0, sizeof found);
    TL_TRY(tl_cublaslt_open(device, product, &call));
    int result = prefer(workspace_bytes, &preference);
    if (result == 0)
        result = lt.heuristic(call.handle, call.desc, call.a, call.b, call.d, call.d, preference,
                              capacity < MAX_FOUND ? capacity : MAX_FOUND, found, &returned);
    tl_cublaslt_close(&call);
    if (preference)
        lt.preference_destroy(preference);
    if (result != 0)
        return fail(device, product, "no algorithm", result);
    for (int i = 0; i < returned; i++)
        if (found[i].state == 0 && found[i].workspace_bytes <= workspace_bytes)
            algos[(*count)++] = found[i].algo;
    return *count ? TL_OK : fail(device, product, "no algorithm", CUBLASLT_NOT_SUPPORTED);
}

enum tl_status tl_cublaslt_resize(struct tl_cublaslt_call *call, int64_t rows, int64_t cols,
                                  int64_t depth)
{
    call->product.rows = rows, call->product.cols = cols, call->product.depth = depth;
    struct stored size = stored_of(&call->product);
    void *layouts[] = {call->a, call->b, call->d};
    const uint64_t *sizes[] = {size.a, size.b, size.d};
    int result = 0;
    for (int i = 0; i < 6 && result == 0; i++)
        result = lt.layout_set(layouts[i / 2], i % 2 ? CUBLASLT_LAYOUT_COLS : CUBLASLT_LAYOUT_ROWS,
                               &sizes[i / 2][i % 2], sizeof(uint64_t));
    return result == 0 ? TL_OK : fail(call->device, &call->product, "new sizes", result);
}

enum tl_status tl_cublaslt_run_open(const struct tl_cublaslt_call *call,
                                    const struct tl_cublaslt_algo *algo, const void *a,
                                    const void *b, void *d, float beta, void *workspace,
                                    size_t workspace_bytes, struct tl_stream *stream)
{
    static const float one = 1;
    uintptr_t bits = (uintptr_t)a | (uintptr_t)b | (uintptr_t)d;
    if (bits % TL_CUBLASLT_ALIGNMENT)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "cuBLASLt: operands at %p, %p, %p must be aligned to %d bytes", a, b, d,
                       TL_CUBLASLT_ALIGNMENT);
    int result = lt.matmul(call->handle, call->desc, &one, a, call->a, b, call->b, &beta, d,
                           call->d, d, call->d, algo, workspace, workspace_bytes, stream->native);
    return result == 0 ? TL_OK : fail(call->device, &call->product, "launch", result);
}

enum tl_status tl_cublaslt_run(struct tl_device *device, const struct tl_cublaslt_product *product,
                               const struct tl_cublaslt_algo *algo, const void *a, const void *b,
                               void *d, float beta, void *workspace, size_t workspace_bytes,
                               struct tl_stream *stream)
{
    struct tl_cublaslt_call call;
    TL_TRY(tl_cublaslt_open(device, product, &call));
    enum tl_status status = tl_cublaslt_run_open(&call, algo, a, b, d, beta, workspace,
                                                 workspace_bytes, stream);
    tl_cublaslt_close(&call);
    return status;
}

const char *tl_cublaslt_version(void)
{
    static char text[600];
    if (library.handle && lt.version)
        snprintf(text, sizeof text, "%zu (%s)", lt.version(), library.path);
    return text;
}
#endif
