/* scale_swizzle/sm90_tma: K groups, loaded by TMA with several boxes in flight.
 *
 * Blocks fill the GPU once and take boxes of 128 rows by SPAN + 16 bytes in turns, aligned whatever
 * the groups are, since TMA takes no other. The 16 bytes are those that a shifted group reaches
 * into, and make rows in shared memory an odd number of 16 bytes long, so that a warp that reads 16
 * bytes of 32 rows meets no bank twice. Then the transpose in registers, and stores of whole tiles.
 */
#include <cuda_runtime.h>

#include "kernels/device/async.cuh"
#include "kernels/device/tensor_map.h"
#include "kernels/scale_swizzle/registers.cuh"
#include "kernels/scale_swizzle/words.cuh"

enum { MOST_THREADS = 256, MOST_STAGES = 12, VECTOR = 16 };

/* Of a launch: boxes side by side in a row of tiles, and all of them. */
struct boxes {
    int across, count, stages;
};

extern __shared__ __align__(128) uint8_t stages[];

template <int SPAN> static __host__ __device__ constexpr int stage_bytes()
{
    return TL_SCALE_TILE_ROWS * (SPAN + VECTOR);
}

/* Asks for the box, where there is one. For one thread. */
template <int SPAN>
static __device__ __forceinline__ void load_box(const CUtensorMap *map, const boxes &all, int box,
                                                int stage, uint64_t *full)
{
    int row_tile = box / all.across, across = box - row_tile * all.across;
    if (box >= all.count)
        return;
    tl_mbarrier_expect(full + stage, stage_bytes<SPAN>());
    tl_tma_load_2d(stages + stage * stage_bytes<SPAN>(), map, full + stage, across * SPAN,
                   row_tile * TL_SCALE_TILE_ROWS);
}

/* The window of 16 columns from vector `vector` of the box on, run by lane. */
template <int SPAN>
static __device__ __forceinline__ void read_window(tl_scale_window<4> &window, const uint8_t *box,
                                                   int vector)
{
#pragma unroll
    for (int q = 0; q < TL_SCALE_RUN_ROWS; q++) {
        uint32_t own[4], next[4];
        const uint8_t *row = box + (q * TL_SCALE_RUNS + threadIdx.x) * (SPAN + VECTOR);
        tl_load_shared(own, row + vector * VECTOR);
        tl_load_shared(next, row + (vector + 1) * VECTOR);
#pragma unroll
        for (int i = 0; i < 4; i++)
            window.word[q][i] = own[i];
        window.word[q][4] = next[0];
    }
}

template <int SPAN, class Groups>
static __device__ __forceinline__ void write_box(const tl_scale_problem &p, Groups &groups,
                                                 const uint8_t *box, int row_tile, int column)
{
    for (int vector = (int)threadIdx.y; vector < SPAN / VECTOR; vector += (int)blockDim.y) {
        tl_scale_window<4> window;
        window.column = column + vector * VECTOR;
        read_window<SPAN>(window, box, vector);
        for (groups.seek(window.column);
             groups.group < p.num_groups && groups.begin < window.column + VECTOR; groups.next()) {
            tl_scale_part<4> part =
                tl_scale_group_part(window, groups, p, row_tile, (int)threadIdx.x);
            if (groups.begin <= window.column && groups.end >= window.column + VECTOR + 4)
                tl_scale_store<4, true, true>(window, part);
            else
                tl_scale_store<4, false, true>(window, part);
        }
    }
}

template <int SPAN, class Groups>
static __global__ void __launch_bounds__(MOST_THREADS)
    tma_kernel(const __grid_constant__ CUtensorMap map, const __grid_constant__ tl_scale_problem p,
               const __grid_constant__ boxes all, tl_fault_port fault)
{
    uint64_t *full = (uint64_t *)(stages + all.stages * stage_bytes<SPAN>());
    int *table = (int *)(full + MOST_STAGES);
    bool first = threadIdx.x == 0 && threadIdx.y == 0;
    int step = (int)gridDim.x;
    Groups groups;
    if (first) {
        for (int stage = 0; stage < all.stages; stage++)
            tl_mbarrier_init(full + stage, 1);
        tl_mbarrier_init_fence();
        for (int stage = 0; stage < all.stages; stage++)
            load_box<SPAN>(&map, all, (int)blockIdx.x + stage * step, stage, full);
    }
    __syncthreads();
    bool bad = groups.open(p.ends, p.num_groups, p.columns, table, fault);
    int stage = 0;
    uint32_t parity = 0;
    for (int box = (int)blockIdx.x; box < all.count; box += step) {
        tl_mbarrier_wait(full + stage, parity);
        if (bad) { /* what is under way must arrive before the block leaves */
            if (++stage == all.stages)
                return;
            continue;
        }
        int row_tile = box / all.across;
        write_box<SPAN>(p, groups, stages + stage * stage_bytes<SPAN>(), row_tile,
                        (box - row_tile * all.across) * SPAN);
        __syncthreads();
        if (first)
            load_box<SPAN>(&map, all, box + all.stages * step, stage, full);
        if (++stage == all.stages) {
            stage = 0;
            parity ^= 1;
        }
    }
}

enum { BLOCK_THREADS, BOX_COLUMNS, NUM_STAGES, BLOCKS };

typedef void (*kernel_fn)(CUtensorMap, tl_scale_problem, boxes, tl_fault_port);

template <int SPAN> static kernel_fn choose(bool many)
{
    return many ? tma_kernel<SPAN, tl_scale_many> : tma_kernel<SPAN, tl_scale_few>;
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    tl_scale_problem p = tl_scale_problem_of(plan, args);
    const int *tunable = plan->tunable;
    int span = tunable[BOX_COLUMNS];
    bool many = p.num_groups > TL_FEW_GROUPS, narrow = span == 64;
    kernel_fn kernel = narrow ? choose<64>(many) : choose<128>(many);
    boxes all = {(p.columns + span - 1) / span, 0, tunable[NUM_STAGES]};
    size_t shared = (size_t)all.stages * (narrow ? stage_bytes<64>() : stage_bytes<128>()) +
                    MOST_STAGES * sizeof(uint64_t) +
                    (many ? tl_scale_many::shared_bytes(p.num_groups) : 0);
    CUtensorMap map;
    all.count = all.across * p.row_tiles;
    if (tl_scale_is_empty(p))
        return TL_OK;
    if (shared > 227 * 1024)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "scale_swizzle/sm90_tma: num_stages %d with box_columns %d takes %zu bytes "
                       "of shared memory, more than a block can have",
                       all.stages, span, shared);
    TL_TRY(tl_scale_check_aligned(plan, p.blocked));
    TL_TRY(tl_tensor_map_2d(&map, &args->tensor[TL_SCALE_SCALES], p.columns, p.rows, span + VECTOR,
                            TL_SCALE_TILE_ROWS));
    TL_TRY(tl_scale_allow_shared(plan, (const void *)kernel, shared));
    int most = plan->device->multiprocessors * tunable[BLOCKS];
    unsigned blocks = (unsigned)(all.count < most ? all.count : most);
    kernel<<<blocks, dim3(32, (unsigned)tunable[BLOCK_THREADS] / 32), shared,
             tl_cuda_stream(stream)>>>(map, p, all, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "tma_kernel");
}

static enum tl_status legal(const struct tl_problem *problem)
{
    TL_TRY(tl_scale_legal_k_groups(problem));
    if (problem->dim[TL_SCALE_COLUMNS] % VECTOR != 0)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "scale_swizzle/sm90_tma: rows of %lld bytes are no multiple of %d, as TMA "
                       "needs; use smxx_registers",
                       (long long)problem->dim[TL_SCALE_COLUMNS], (int)VECTOR);
    return TL_OK;
}

static const int block_threads[] = {64, 128, 256, 0}, box_columns[] = {64, 128, 0};
static const int num_stages[] = {1, 2, 3, 4, 6, 8, MOST_STAGES, 0};
static const int blocks_per_multiprocessor[] = {1, 2, 3, 4, 5, 6, 8, 0};

extern "C" const struct tl_kernel tl_kernel_scale_swizzle_sm90_tma = {
    .operation = "scale_swizzle",
    .variant = "sm90_tma",
    .arch = "sm90",
    .summary = "K groups: boxes by TMA, several in flight, transposed in registers.",
    .tunables = {{"block_threads", 128, block_threads},
                 {"box_columns", 128, box_columns},
                 {"num_stages", 2, num_stages},
                 {"blocks_per_multiprocessor", 4, blocks_per_multiprocessor}},
    .legal = legal,
    .launch = launch,
};
