/* m_grouped_gemm/smxx_plain: the reference on the GPU, see kernels/device/plain_gemm.cuh.
 *
 * Blocks cut the rows of the tensor, not of a group: a block runs over k once for each group that
 * it has rows of, found by bisection in the offsets on the device.
 */
#include <cuda_runtime.h>

#include "kernels/device/group_offsets.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/plain_gemm.cuh"
#include "kernels/m_grouped_gemm/op.h"

struct m_product {
    tl_plain_operand a, b; /* b of the first group */
    void *d;
    enum tl_dtype d_dtype;
    double *magnitude; /* or NULL */
    const int *offsets;
    int64_t num_groups, m, n, k;
};

/* The group g of `row`: offsets[g] <= row < offsets[g + 1]. Both hold for the ends at the start and
 * stay true, whatever lies between. */
static __device__ int64_t group_of(const int *offsets, int64_t num_groups, int64_t row)
{
    int64_t low = 0, high = num_groups;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (offsets[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static __global__ void __launch_bounds__(TL_PLAIN_THREADS)
    m_plain_kernel(const __grid_constant__ m_product p, tl_fault_port fault)
{
    if (tl_group_offsets_refused(p.offsets, (int)p.num_groups, p.m, fault))
        return;
    int64_t column_tiles = (p.n + TL_PLAIN_COLUMNS - 1) / TL_PLAIN_COLUMNS;
    int64_t tile_row = blockIdx.x / column_tiles * TL_PLAIN_ROWS;
    int64_t tile_column = blockIdx.x % column_tiles * TL_PLAIN_COLUMNS;
    int64_t row = tile_row + threadIdx.x / TL_PLAIN_COLUMNS;
    int64_t column = tile_column + threadIdx.x % TL_PLAIN_COLUMNS;
    int64_t next = max(tile_row, (int64_t)p.offsets[0]);
    int64_t end = min(min(tile_row + TL_PLAIN_ROWS, p.m), (int64_t)p.offsets[p.num_groups]);
    while (next < end) {
        int64_t group = group_of(p.offsets, p.num_groups, next);
        int64_t group_end = min((int64_t)p.offsets[group + 1], end);
        bool mine = row >= next && row < group_end;
        tl_plain_operand b = p.b;
        b.first = group * p.n * p.k;
        tl_plain_sums sums = tl_plain_product(p.a, tile_row, b, tile_column, p.k, mine);
        if (mine && column < p.n) {
            tl_element_store(p.d, p.d_dtype, row * p.n + column, sums.product);
            if (p.magnitude)
                p.magnitude[row * p.n + column] = sums.magnitude;
        }
        next = group_end;
    }
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    const int64_t *dim = plan->problem.dim;
    int64_t m = dim[TL_M_GROUPED_M], n = dim[TL_M_GROUPED_N], k = dim[TL_M_GROUPED_K];
    const struct tl_tensor *a = &tensor[TL_M_GROUPED_A], *b = &tensor[TL_M_GROUPED_B];
    bool nt = (int)plan->problem.param[TL_M_GROUPED_LAYOUT] == TL_M_GROUPED_NT;
    int64_t blocks =
        (m + TL_PLAIN_ROWS - 1) / TL_PLAIN_ROWS * ((n + TL_PLAIN_COLUMNS - 1) / TL_PLAIN_COLUMNS);
    if (blocks == 0 || dim[TL_M_GROUPED_NUM_GROUPS] == 0)
        return TL_OK;
    if (blocks > INT32_MAX)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "m_grouped_gemm/smxx_plain: m %lld by n %lld needs more blocks than a grid "
                       "can have",
                       (long long)m, (long long)n);
    m_product p = {{a->data, a->dtype, 0, k, 1, m},
                   {b->data, b->dtype, 0, nt ? k : 1, nt ? 1 : n, n},
                   tensor[TL_M_GROUPED_D].data,
                   tensor[TL_M_GROUPED_D].dtype,
                   (double *)tensor[TL_M_GROUPED_MAGNITUDE].data,
                   (const int *)tensor[TL_M_GROUPED_OFFSETS].data,
                   dim[TL_M_GROUPED_NUM_GROUPS],
                   m,
                   n,
                   k};
    m_plain_kernel<<<(unsigned)blocks, TL_PLAIN_THREADS, 0, tl_cuda_stream(stream)>>>(
        p, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "m_plain_kernel");
}

extern "C" const struct tl_kernel tl_kernel_m_grouped_gemm_smxx_plain = {
    .operation = "m_grouped_gemm",
    .variant = "smxx_plain",
    .arch = "smxx",
    .summary = "The reference on the GPU: one thread an element, fp64 sums over k in order.",
    .launch = launch,
};
