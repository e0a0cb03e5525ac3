/* k_grouped_gemm/smxx_plain: the reference on the GPU, see kernels/device/plain_gemm.cuh.
 *
 * A block owns its elements of one group and sums over the rows of that group.
 */
#include <cuda_runtime.h>

#include "kernels/device/group_offsets.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/plain_gemm.cuh"
#include "kernels/k_grouped_gemm/op.h"

struct k_product {
    tl_plain_operand a, b; /* of the first row */
    void *d;
    enum tl_dtype d_dtype;
    double *magnitude; /* or NULL */
    const int *offsets;
    int64_t num_groups, m, n, k;
    bool accumulate;
};

static __global__ void __launch_bounds__(TL_PLAIN_THREADS)
    k_plain_kernel(const __grid_constant__ k_product p, tl_fault_port fault)
{
    if (tl_group_offsets_refused(p.offsets, (int)p.num_groups, p.k, fault))
        return;
    int64_t column_tiles = (p.n + TL_PLAIN_COLUMNS - 1) / TL_PLAIN_COLUMNS;
    int64_t row_tiles = (p.m + TL_PLAIN_ROWS - 1) / TL_PLAIN_ROWS;
    int64_t group = blockIdx.x / (row_tiles * column_tiles);
    int64_t tile_row = blockIdx.x / column_tiles % row_tiles * TL_PLAIN_ROWS;
    int64_t tile_column = blockIdx.x % column_tiles * TL_PLAIN_COLUMNS;
    int64_t row = tile_row + threadIdx.x / TL_PLAIN_COLUMNS;
    int64_t column = tile_column + threadIdx.x % TL_PLAIN_COLUMNS;
    int64_t begin = max((int64_t)p.offsets[group], (int64_t)0);
    int64_t end = min((int64_t)p.offsets[group + 1], p.k);
    tl_plain_operand a = p.a, b = p.b;
    a.first = begin * p.m;
    b.first = begin * p.n;
    tl_plain_sums sums = tl_plain_product(a, tile_row, b, tile_column, end - begin, row < p.m);
    if (row >= p.m || column >= p.n)
        return;
    int64_t at = (group * p.m + row) * p.n + column;
    double before = p.accumulate ? tl_element_load(p.d, p.d_dtype, at) : 0;
    /* As on the CPU, a sum of 0 leaves d as it is, even a -0. */
    if (!p.accumulate || sums.product != 0)
        tl_element_store(p.d, p.d_dtype, at, before + sums.product);
    if (p.magnitude)
        p.magnitude[at] = fabs(before) + sums.magnitude;
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    const int64_t *dim = plan->problem.dim;
    int64_t m = dim[TL_K_GROUPED_M], n = dim[TL_K_GROUPED_N];
    const struct tl_tensor *a = &tensor[TL_K_GROUPED_A], *b = &tensor[TL_K_GROUPED_B];
    int64_t blocks = dim[TL_K_GROUPED_NUM_GROUPS] * ((m + TL_PLAIN_ROWS - 1) / TL_PLAIN_ROWS) *
                     ((n + TL_PLAIN_COLUMNS - 1) / TL_PLAIN_COLUMNS);
    if (blocks == 0)
        return TL_OK;
    if (blocks > INT32_MAX)
        return TL_FAIL(
            TL_ERR_ILLEGAL,
            "k_grouped_gemm/smxx_plain: %lld groups of m %lld by n %lld need more blocks "
            "than a grid can have",
            (long long)dim[TL_K_GROUPED_NUM_GROUPS], (long long)m, (long long)n);
    k_product p = {{a->data, a->dtype, 0, 1, m, m},
                   {b->data, b->dtype, 0, 1, n, n},
                   tensor[TL_K_GROUPED_D].data,
                   tensor[TL_K_GROUPED_D].dtype,
                   (double *)tensor[TL_K_GROUPED_MAGNITUDE].data,
                   (const int *)tensor[TL_K_GROUPED_OFFSETS].data,
                   dim[TL_K_GROUPED_NUM_GROUPS],
                   m,
                   n,
                   dim[TL_K_GROUPED_K],
                   plan->problem.param[TL_K_GROUPED_BETA] != 0};
    k_plain_kernel<<<(unsigned)blocks, TL_PLAIN_THREADS, 0, tl_cuda_stream(stream)>>>(
        p, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "k_plain_kernel");
}

extern "C" const struct tl_kernel tl_kernel_k_grouped_gemm_smxx_plain = {
    .operation = "k_grouped_gemm",
    .variant = "smxx_plain",
    .arch = "smxx",
    .summary = "The reference on the GPU: one thread an element, fp64 sums over rows in order.",
    .launch = launch,
};
