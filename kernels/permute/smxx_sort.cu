/* The index of a permutation on the GPU: a stable counting sort in two launches, with no step on
 * the host.
 *
 * Slots are cut into chunks, one a block. The first kernel counts each chunk's slots of each
 * expert. In the second each block adds up all counts, which are few and in L2, to where its own
 * slots of each expert begin, and places them: within a warp by a match, warps after one another.
 * Sums of integers in any order are the same. Experts out of range are counted as one expert more,
 * so that every block of the second kernel sees them before it writes.
 */
#include <cuda_runtime.h>

#include "kernels/device/fault.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/vectors.h"
#include "kernels/permute/op.h"

enum {
    THREADS = 1024,      /* and slots that a block places at a time */
    MOST_CHUNKS = 128,   /* blocks, so that their counts stay few */
    MOST_EXPERTS = 1024, /* one a thread */
};

struct index_args {
    const int *experts;
    int *counts; /* [chunks, num_experts + 1], in the workspace */
    int *group_offsets, *row_slots, *slot_rows, *row_experts;
    int num_slots, chunk_slots, chunks, num_experts, rows, align;
    tl_fault_port port;
};

/* The column of an expert in the counts. */
static __device__ __forceinline__ int column_of(const index_args &args, int expert)
{
    return expert >= 0 && expert < args.num_experts ? expert : args.num_experts;
}

static __global__ void __launch_bounds__(THREADS) count_kernel(index_args args)
{
    __shared__ int count[MOST_EXPERTS + 1];
    int width = args.num_experts + 1, begin = (int)blockIdx.x * args.chunk_slots;
    int end = min(begin + args.chunk_slots, args.num_slots);
    for (int e = (int)threadIdx.x; e < width; e += THREADS)
        count[e] = 0;
    __syncthreads();
    for (int slot = begin + (int)threadIdx.x; slot < end; slot += THREADS)
        atomicAdd(&count[column_of(args, __ldg(args.experts + slot))], 1);
    __syncthreads();
    for (int e = (int)threadIdx.x; e < width; e += THREADS)
        args.counts[(int64_t)blockIdx.x * width + e] = count[e];
}

/* Slots of each expert, in all chunks and in those before the block's. */
static __device__ __forceinline__ void add_counts(const index_args &args, int *total, int *before)
{
    int width = args.num_experts + 1, all = args.chunks * width, mine = (int)blockIdx.x * width;
    for (int e = (int)threadIdx.x; e < width; e += THREADS)
        total[e] = before[e] = 0;
    __syncthreads();
#pragma unroll 8
    for (int i = (int)threadIdx.x; i < all; i += THREADS) {
        int count = __ldg(args.counts + i), e = i % width;
        if (count > 0)
            atomicAdd(&total[e], count);
        if (count > 0 && i < mine)
            atomicAdd(&before[e], count);
    }
    __syncthreads();
}

/* Sums of the threads' values up to and with their own. */
static __device__ __forceinline__ int64_t block_scan(int64_t value, int64_t (&sums)[32])
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        int64_t other = __shfl_up_sync(~0u, value, step);
        value += lane >= step ? other : 0;
    }
    if (lane == 31)
        sums[warp] = value;
    __syncthreads();
    for (int w = 0; w < warp; w++)
        value += sums[w];
    return value;
}

/* Leaves the first expert that is out of range. */
static __device__ __noinline__ void report_expert(const index_args &args)
{
    tl_fault found = {};
    int slot = 0;
    while (column_of(args, args.experts[slot]) < args.num_experts)
        slot++;
    found.kind = PERMUTE_INDEX_BAD_EXPERT;
    found.position = slot;
    found.value[0] = args.experts[slot];
    found.value[2] = args.num_experts;
    tl_fault_leave(found, args.port);
}

static __device__ __noinline__ void report_rows(const index_args &args, int64_t end)
{
    tl_fault found = {};
    found.kind = PERMUTE_INDEX_TOO_FEW_ROWS;
    found.value[0] = end;
    found.value[1] = args.align;
    found.value[2] = args.rows;
    tl_fault_leave(found, args.port);
}

/* Places the slots of the block's chunk; next[e] is the row of its next slot of expert e. */
static __device__ __forceinline__ void place_slots(const index_args &args, int *next)
{
    int thread = (int)threadIdx.x, lane = thread % 32, warp = thread / 32;
    int begin = (int)blockIdx.x * args.chunk_slots;
    int end = min(begin + args.chunk_slots, args.num_slots);
    for (int first = begin; first < end; first += THREADS) {
        int slot = first + thread, row = 0;
        int expert = slot < end ? __ldg(args.experts + slot) : -1;
        unsigned alike = __match_any_sync(~0u, expert), below = alike & ((1u << lane) - 1);
        int warps = (min(end - first, (int)THREADS) + 31) / 32;
        for (int w = 0; w < warps; w++) {
            if (w == warp && expert >= 0)
                row = next[expert] + __popc(below);
            __syncwarp();
            if (w == warp && expert >= 0 && below == 0)
                next[expert] += __popc(alike);
            __syncthreads();
        }
        if (expert < 0)
            continue;
        args.slot_rows[slot] = row;
        args.row_slots[row] = slot;
        args.row_experts[row] = expert;
    }
}

static __device__ __forceinline__ void clear_row(const index_args &args, int64_t row)
{
    args.row_slots[row] = -1;
    args.row_experts[row] = -1;
}

static __global__ void __launch_bounds__(THREADS) place_kernel(index_args args)
{
    __shared__ int total[MOST_EXPERTS + 1], next[MOST_EXPERTS + 1], start[MOST_EXPERTS + 1];
    __shared__ int64_t sums[32];
    int thread = (int)threadIdx.x, block = (int)blockIdx.x;
    add_counts(args, total, next);
    if (total[args.num_experts] > 0) {
        if (thread == 0 && block == 0)
            report_expert(args);
        return;
    }
    int64_t aligned = 0, end = 0;
    if (thread < args.num_experts)
        aligned = ((int64_t)total[thread] + args.align - 1) / args.align * args.align;
    int64_t past = block_scan(aligned, sums);
    for (int w = 0; w < 32; w++)
        end += sums[w];
    if (end > args.rows) {
        if (thread == 0 && block == 0)
            report_rows(args, end);
        return;
    }
    if (thread < args.num_experts) {
        start[thread] = (int)(past - aligned);
        next[thread] += start[thread];
    }
    if (thread == 0)
        start[args.num_experts] = (int)end;
    __syncthreads();
    for (int e = thread; block == 0 && e <= args.num_experts; e += THREADS)
        args.group_offsets[e] = start[e];
    for (int e = block; e < args.num_experts; e += (int)gridDim.x)
        for (int row = start[e] + total[e] + thread; row < start[e + 1]; row += THREADS)
            clear_row(args, row);
    for (int64_t row = end + (int64_t)block * THREADS + thread; row < args.rows;
         row += (int64_t)gridDim.x * THREADS)
        clear_row(args, row);
    place_slots(args, next);
}

/* Slots of a chunk, a multiple of what a block places at a time, and how many chunks there are. */
static int64_t chunk_slots_of(const struct tl_problem *problem, int64_t *chunks)
{
    int64_t slots =
        problem->dim[PERMUTE_INDEX_DIM_TOKENS] * problem->dim[PERMUTE_INDEX_DIM_TOP_K];
    int64_t turns = (slots + THREADS * MOST_CHUNKS - 1) / (THREADS * MOST_CHUNKS);
    int64_t size = THREADS * (turns > 0 ? turns : 1);
    *chunks = (slots + size - 1) / size;
    return size;
}

static size_t workspace(const struct tl_plan *plan)
{
    int64_t chunks;
    chunk_slots_of(&plan->problem, &chunks);
    return (size_t)chunks * (size_t)(plan->problem.dim[PERMUTE_INDEX_DIM_NUM_EXPERTS] + 1) *
           sizeof(int);
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    const int64_t *dim = plan->problem.dim;
    int64_t chunks, chunk_slots = chunk_slots_of(&plan->problem, &chunks);
    index_args kernel_args = {(const int *)tensor[PERMUTE_INDEX_EXPERTS].data,
                              (int *)args->workspace,
                              (int *)tensor[PERMUTE_INDEX_GROUP_OFFSETS].data,
                              (int *)tensor[PERMUTE_INDEX_ROW_SLOTS].data,
                              (int *)tensor[PERMUTE_INDEX_SLOT_ROWS].data,
                              (int *)tensor[PERMUTE_INDEX_ROW_EXPERTS].data,
                              (int)(dim[PERMUTE_INDEX_DIM_TOKENS] * dim[PERMUTE_INDEX_DIM_TOP_K]),
                              (int)chunk_slots,
                              (int)chunks,
                              (int)dim[PERMUTE_INDEX_DIM_NUM_EXPERTS],
                              (int)dim[PERMUTE_INDEX_DIM_ROWS],
                              (int)plan->problem.param[PERMUTE_INDEX_PARAM_ALIGN],
                              tl_cuda_fault(plan)};
    unsigned blocks = (unsigned)chunks;
    if (blocks > 0) {
        count_kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
        TL_TRY(TL_CUDA_LAUNCHED(plan, "count_kernel"));
    }
    blocks = blocks > 0 ? blocks : 1;
    place_kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "place_kernel");
}

static enum tl_status legal(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    int64_t num_experts = dim[PERMUTE_INDEX_DIM_NUM_EXPERTS];
    if (num_experts > MOST_EXPERTS)
        return TL_FAIL(TL_ERR_ILLEGAL, "permute_index/smxx_sort: %lld experts, but the most is %d",
                       (long long)num_experts, (int)MOST_EXPERTS);
    int64_t most_tokens = (INT32_MAX - (1 << 20)) / (dim[PERMUTE_INDEX_DIM_TOP_K] + 1);
    if (dim[PERMUTE_INDEX_DIM_TOKENS] > most_tokens)
        return TL_FAIL(TL_ERR_ILLEGAL, "permute_index/smxx_sort: %lld tokens have too many slots",
                       (long long)dim[PERMUTE_INDEX_DIM_TOKENS]);
    return tl_vectors_small(problem, "smxx_sort");
}

extern "C" const struct tl_kernel tl_kernel_permute_index_smxx_sort = {
    .operation = "permute_index",
    .variant = "smxx_sort",
    .arch = "smxx",
    .summary = "Stable counting sort: chunks counted by a block each, then placed in order.",
    .legal = legal,
    .workspace = workspace,
    .launch = launch,
};
