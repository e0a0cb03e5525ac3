/* Padding on the GPU: pad_index in one launch without a scan, and rows moved 16 bytes at a time.
 *
 * A warp moves pieces of ROWS rows by 512 bytes, one load a lane and row in flight before the first
 * store. Pieces are numbered along the rows first, so that warps next to each other stay near each
 * other in memory, and blocks that fill the GPU once take them in turns.
 */
#include <cuda_runtime.h>

#include "kernels/device/launch.h"
#include "kernels/device/vectors.h"
#include "kernels/pad/op.h"

enum {
    THREADS = 256,
    BLOCKS_PER_SM = 4, /* 64 KiB of loads in flight */
    ROWS = 4,
    VECTOR = 16, /* bytes */
};

/* --- pad_index ------------------------------------------------------------------------------- */

/* The rows of group g, 0 where offsets decrease, and those rows rounded up. */
static __device__ int64_t group_rows(const int *offsets, int g)
{
    return max((int64_t)__ldg(offsets + g + 1) - __ldg(offsets + g), (int64_t)0);
}

static __device__ int64_t padded_rows(const int *offsets, int g, int align)
{
    return (group_rows(offsets, g) + align - 1) / align * align;
}

/* Sums of a block's threads, for all of them. */
static __device__ int64_t block_sum(int64_t value)
{
    __shared__ int64_t partial[THREADS / 32];
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(~0u, value, step);
    __syncthreads(); /* the sums before are read */
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int warp = 0; warp < THREADS / 32; warp++)
        value += partial[warp];
    return value;
}

/* Block g adds up the groups before its own, which is cheaper than a second launch for as many
 * groups as a GPU holds experts; all blocks share the rows past the last group. */
static __global__ void __launch_bounds__(THREADS)
    index_kernel(const int *offsets, int *padded_offsets, int *row_experts, int num_groups,
                 int rows, int align)
{
    int g = (int)blockIdx.x;
    int64_t before = 0, all = 0;
    for (int i = (int)threadIdx.x; i < num_groups; i += THREADS) {
        int64_t padded = padded_rows(offsets, i, align);
        all += padded;
        before += i < g ? padded : 0;
    }
    int64_t begin = block_sum(before), end = block_sum(all), last = min(end, (int64_t)rows);
    if (g < num_groups) {
        int64_t filled = begin + group_rows(offsets, g);
        int64_t stop = min(begin + padded_rows(offsets, g, align), (int64_t)rows);
        for (int64_t r = begin + threadIdx.x; r < stop; r += THREADS)
            row_experts[r] = r < filled ? g : -1;
    }
    if (threadIdx.x == 0 && g < num_groups)
        padded_offsets[g] = (int)min(begin, (int64_t)INT32_MAX);
    if (threadIdx.x == 0 && g == 0)
        padded_offsets[num_groups] = (int)min(end, (int64_t)INT32_MAX);
    for (int64_t r = last + (int64_t)g * THREADS + threadIdx.x; r < rows;
         r += (int64_t)gridDim.x * THREADS)
        row_experts[r] = -1;
}

static enum tl_status launch_index(const struct tl_plan *plan, const struct tl_args *args,
                                   struct tl_stream *stream)
{
    int64_t num_groups = plan->problem.dim[PAD_INDEX_DIM_NUM_GROUPS];
    unsigned blocks = (unsigned)(num_groups > 0 ? num_groups : 1);
    index_kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(
        (const int *)args->tensor[PAD_INDEX_GROUP_OFFSETS].data,
        (int *)args->tensor[PAD_INDEX_PADDED_OFFSETS].data,
        (int *)args->tensor[PAD_INDEX_ROW_EXPERTS].data, (int)num_groups,
        (int)plan->problem.dim[PAD_INDEX_DIM_PADDED_M],
        (int)plan->problem.param[PAD_INDEX_PARAM_ALIGN]);
    return TL_CUDA_LAUNCHED(plan, "index_kernel");
}

static enum tl_status index_legal(const struct tl_problem *problem)
{
    if (problem->dim[PAD_INDEX_DIM_NUM_GROUPS] >= INT32_MAX)
        return TL_FAIL(TL_ERR_ILLEGAL, "pad_index/smxx_vec16: %lld groups are too many",
                       (long long)problem->dim[PAD_INDEX_DIM_NUM_GROUPS]);
    return TL_OK;
}

/* --- pad_rows, unpad_rows -------------------------------------------------------------------- */

/* The tensor on one side of a move. */
struct side {
    const int *offsets;
    int rows;
};

/* The row of `from` that belongs at row r of `to`, -1 where there is none. The last group that
 * starts at r or before holds it, so that of empty groups none is taken for it. */
static __device__ int source_row(const side &from, const side &to, int num_groups, int r)
{
    int low = 0, high = num_groups - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (__ldg(to.offsets + middle) <= r)
            low = middle;
        else
            high = middle - 1;
    }
    int begin = __ldg(from.offsets + low), end = min(__ldg(from.offsets + low + 1), from.rows);
    int64_t row = (int64_t)begin + r - __ldg(to.offsets + low);
    return row >= max(begin, 0) && row < end ? (int)row : -1;
}

static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    move_kernel(const uint4 *__restrict__ x, uint4 *__restrict__ y, side from, side to,
                int num_groups, int row_vectors)
{
    int lane = threadIdx.x % 32, slices = (row_vectors + 31) / 32;
    int rows = min(__ldg(to.offsets + num_groups), to.rows);
    /* Fits, as rows do: a piece with all its lanes in use is 2 KiB of memory. */
    int pieces = (rows + ROWS - 1) / ROWS * slices;
    int warps = (int)gridDim.x * (THREADS / 32);
    for (int piece = (int)(blockIdx.x * THREADS + threadIdx.x) / 32; piece < pieces;
         piece += warps) {
        int batch = piece / slices, first = batch * ROWS;
        int vector = (piece - batch * slices) * 32 + lane;
        int mine = source_row(from, to, num_groups, first + lane % ROWS);
        uint4 value[ROWS];
        int row[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            row[i] = __shfl_sync(~0u, mine, i);
        if (vector >= row_vectors)
            continue;
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (row[i] >= 0)
                value[i] = __ldcs(x + (int64_t)row[i] * row_vectors + vector);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (first + i < rows)
                __stcs(y + (int64_t)(first + i) * row_vectors + vector,
                       row[i] >= 0 ? value[i] : make_uint4(0, 0, 0, 0));
    }
}

static enum tl_status move_rows(const struct tl_plan *plan, const struct tl_args *args,
                                const struct side &from, const struct side &to,
                                struct tl_stream *stream)
{
    int64_t row_bytes =
        plan->problem.dim[PAD_DIM_D] * (int64_t)tl_dtype_size(plan->problem.dtype[PAD_X]);
    const void *x = args->tensor[PAD_X].data;
    void *y = args->tensor[PAD_Y].data;
    if (to.rows == 0 || row_bytes == 0 || plan->problem.dim[PAD_DIM_NUM_GROUPS] == 0)
        return TL_OK;
    if (((uintptr_t)x | (uintptr_t)y) % VECTOR != 0)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s/smxx_vec16: 'x' at %p and 'y' at %p must be aligned to %d bytes",
                       plan->problem.operation->name, x, y, (int)VECTOR);
    unsigned blocks = (unsigned)plan->device->multiprocessors * BLOCKS_PER_SM;
    move_kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(
        (const uint4 *)x, (uint4 *)y, from, to, (int)plan->problem.dim[PAD_DIM_NUM_GROUPS],
        (int)(row_bytes / VECTOR));
    return TL_CUDA_LAUNCHED(plan, "move_kernel");
}

static struct side grouped_side(const struct tl_plan *plan, const struct tl_args *args)
{
    return {(const int *)args->tensor[PAD_GROUP_OFFSETS].data, (int)plan->problem.dim[PAD_DIM_M]};
}

static struct side padded_side(const struct tl_plan *plan, const struct tl_args *args)
{
    return {(const int *)args->tensor[PAD_PADDED_OFFSETS].data,
            (int)plan->problem.dim[PAD_DIM_PADDED_M]};
}

static enum tl_status launch_pad(const struct tl_plan *plan, const struct tl_args *args,
                                 struct tl_stream *stream)
{
    return move_rows(plan, args, grouped_side(plan, args), padded_side(plan, args), stream);
}

static enum tl_status launch_unpad(const struct tl_plan *plan, const struct tl_args *args,
                                   struct tl_stream *stream)
{
    return move_rows(plan, args, padded_side(plan, args), grouped_side(plan, args), stream);
}

static enum tl_status move_legal(const struct tl_problem *problem)
{
    const char *operation = problem->operation->name;
    int64_t d = problem->dim[PAD_DIM_D];
    int64_t row_bytes = d * (int64_t)tl_dtype_size(problem->dtype[PAD_X]);
    if (row_bytes % VECTOR != 0)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "%s/smxx_vec16: rows of d = %lld in %s take %lld bytes, no multiple of %d; "
                       "make d a multiple of %d",
                       operation, (long long)d, tl_dtype_name(problem->dtype[PAD_X]),
                       (long long)row_bytes, (int)VECTOR,
                       (int)(VECTOR / tl_dtype_size(problem->dtype[PAD_X])));
    return tl_vectors_small(problem, "smxx_vec16");
}

extern "C" const struct tl_kernel tl_kernel_pad_index_smxx_vec16 = {
    .operation = "pad_index",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "A block for each group, which adds up the groups before it.",
    .legal = index_legal,
    .launch = launch_index,
};

extern "C" const struct tl_kernel tl_kernel_pad_rows_smxx_vec16 = {
    .operation = "pad_rows",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "16-byte streaming loads and stores, four rows in flight a warp.",
    .legal = move_legal,
    .launch = launch_pad,
};

extern "C" const struct tl_kernel tl_kernel_unpad_rows_smxx_vec16 = {
    .operation = "unpad_rows",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "16-byte streaming loads and stores, four rows in flight a warp.",
    .legal = move_legal,
    .launch = launch_unpad,
};
