/* scale_swizzle/sm90_bulk: groupings that leave columns whole, loaded by bulk copies.
 *
 * The rows of a row tile are one piece of memory, and its tiles are another: blocks fill the GPU
 * once and take row tiles in turns, each loaded by one instruction, several in flight. Eight lanes
 * read 16 bytes each of as many rows and vectors side by side that they meet no bank twice: rows of
 * k vectors begin k apart modulo 8, so gcd(k, 8) vectors of a row are followed by the next row's.
 */
#include <cuda_runtime.h>

#include "kernels/device/async.cuh"
#include "kernels/scale_swizzle/registers.cuh"
#include "kernels/scale_swizzle/row_tiles.cuh"

enum {
    MOST_THREADS = 512,
    MOST_STAGES = 8,
    VECTOR = 16,
    MOST_COLUMNS = 512,
    MOST_SHARED = 227 * 1024,
    ASK_AHEAD = 2,
};

extern __shared__ __align__(128) uint8_t stages[];

struct stage_control {
    uint64_t full[MOST_STAGES];
    int rows[MOST_STAGES]; /* of the row tile in the stage, 0 past the last one */
};

/* Asks for a row tile. For one whole warp. */
template <class Groups>
static __device__ __forceinline__ void load_rows(const tl_scale_row_problem &r, Groups &groups,
                                                 int tile, int stage, stage_control *control)
{
    int columns = r.p.columns;
    tl_scale_rows rows;
    if (!tl_scale_find_rows(r, groups, tile, &rows))
        rows.count = 0;
    rows.count = min(rows.count, (int)TL_SCALE_TILE_ROWS);
    if (threadIdx.x == 0) {
        control->rows[stage] = rows.count;
        tl_mbarrier_expect(control->full + stage, (uint32_t)(rows.count * columns));
        if (rows.count > 0)
            tl_bulk_load(stages + stage * TL_SCALE_TILE_ROWS * columns,
                         r.p.scales + rows.first * columns, (uint32_t)(rows.count * columns),
                         control->full + stage);
    }
    __syncwarp();
}

/* Before the ends are known, and with them where a row tile begins: asks L2 for the rows that would
 * be the block's first ones if no group had padding. For one thread. */
static __device__ __forceinline__ void ask_ahead(const tl_scale_row_problem &r, int num_stages)
{
    int64_t bytes = (int64_t)TL_SCALE_TILE_ROWS * r.p.columns, total = r.all_rows * r.p.columns;
    for (int stage = 0; stage < num_stages; stage++) {
        int64_t first = ((int64_t)stage * gridDim.x + blockIdx.x) * bytes;
        if (first < total)
            tl_bulk_ask_l2(r.p.scales + first, (uint32_t)min(bytes, total - first));
    }
}

/* LANES vectors of 32 / LANES runs at a time. */
template <int LANES>
static __device__ __forceinline__ void write_rows(const tl_scale_row_problem &r,
                                                  const uint8_t *stage, int rows, int tile)
{
    int columns = r.p.columns, chunks = columns / (VECTOR * LANES), lane = (int)threadIdx.x;
    uint8_t *target = r.p.blocked + (int64_t)tile * columns * TL_SCALE_TILE_ROWS;
    for (int piece = (int)threadIdx.y; piece < chunks * LANES; piece += (int)blockDim.y) {
        int part = piece / chunks, vector = (piece - part * chunks) * LANES + lane % LANES;
        int run = part * (32 / LANES) + lane / LANES;
        tl_scale_window<4> window;
        window.column = 0;
#pragma unroll
        for (int q = 0; q < TL_SCALE_RUN_ROWS; q++) {
            int row = q * TL_SCALE_RUNS + run;
            uint32_t value[4] = {};
            if (row < rows)
                tl_load_shared(value, stage + row * columns + vector * VECTOR);
#pragma unroll
            for (int i = 0; i < 4; i++)
                window.word[q][i] = value[i];
        }
        uint8_t *first =
            target + vector * (VECTOR * TL_SCALE_TILE_ROWS) + run * TL_SCALE_RUN_BYTES;
        tl_scale_store<4, true, false>(window, tl_scale_part_of(window, first, 0, columns));
    }
}

template <int LANES, class Groups>
static __global__ void __launch_bounds__(MOST_THREADS)
    bulk_kernel(const __grid_constant__ tl_scale_row_problem r, int num_stages, bool ahead,
                tl_fault_port fault)
{
    int stage_bytes = TL_SCALE_TILE_ROWS * r.p.columns, step = (int)gridDim.x;
    stage_control *control = (stage_control *)(stages + num_stages * stage_bytes);
    Groups groups;
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        if (ahead)
            ask_ahead(r, num_stages);
        for (int stage = 0; stage < num_stages; stage++)
            tl_mbarrier_init(control->full + stage, 1);
        tl_mbarrier_init_fence();
    }
    __syncthreads();
    if (groups.open(r.p.ends, r.p.num_groups, r.p.rows, (int *)(control + 1), fault))
        return;
    if (threadIdx.y == 0)
        for (int stage = 0; stage < num_stages; stage++)
            if ((int)blockIdx.x + stage * step < r.tiles)
                load_rows(r, groups, (int)blockIdx.x + stage * step, stage, control);
    int stage = 0;
    uint32_t parity = 0;
    for (int tile = (int)blockIdx.x; tile < r.tiles; tile += step) {
        tl_mbarrier_wait(control->full + stage, parity);
        int rows = control->rows[stage];
        if (rows > 0)
            write_rows<LANES>(r, stages + stage * stage_bytes, rows, tile);
        __syncthreads();
        if (threadIdx.y == 0 && tile + num_stages * step < r.tiles)
            load_rows(r, groups, tile + num_stages * step, stage, control);
        if (++stage == num_stages) {
            stage = 0;
            parity ^= 1;
        }
    }
}

typedef void (*kernel_fn)(tl_scale_row_problem, int, bool, tl_fault_port);

template <class Groups> static kernel_fn choose(int vectors)
{
    return vectors % 8 == 0   ? bulk_kernel<8, Groups>
           : vectors % 4 == 0 ? bulk_kernel<4, Groups>
           : vectors % 2 == 0 ? bulk_kernel<2, Groups>
                              : bulk_kernel<1, Groups>;
}

enum { BLOCK_THREADS, NUM_STAGES, BLOCKS, AHEAD };

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    tl_scale_problem p = tl_scale_problem_of(plan, args);
    const int *tunable = plan->tunable;
    bool dense = (int)plan->problem.param[TL_SCALE_GROUPING] == TL_SCALE_DENSE;
    bool many = p.ends && p.num_groups > TL_FEW_GROUPS;
    int num_stages = tunable[NUM_STAGES], vectors = p.columns / VECTOR;
    kernel_fn kernel = !p.ends ? choose<tl_scale_no_groups>(vectors)
                       : many  ? choose<tl_many_groups<TL_SCALE_TILE_ROWS>>(vectors)
                               : choose<tl_few_groups<TL_SCALE_TILE_ROWS>>(vectors);
    size_t shared = (size_t)num_stages * TL_SCALE_TILE_ROWS * p.columns + sizeof(stage_control);
    if (many)
        shared += tl_many_groups<TL_SCALE_TILE_ROWS>::shared_bytes(p.num_groups);
    if (p.rows == 0 || p.columns == 0 || (!dense && p.num_groups == 0))
        return TL_OK;
    if ((uintptr_t)p.scales % VECTOR != 0)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "scale_swizzle/sm90_bulk: 'scales' at %p must be aligned to %d bytes",
                       (const void *)p.scales, (int)VECTOR);
    if (shared > MOST_SHARED)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "scale_swizzle/sm90_bulk: num_stages %d of %d columns takes %zu bytes of "
                       "shared memory, more than a block can have",
                       num_stages, p.columns, shared);
    TL_TRY(tl_scale_check_aligned(plan, p.blocked));
    TL_TRY(tl_scale_allow_shared(plan, (const void *)kernel, shared));
    tl_scale_row_problem r = tl_scale_row_problem_of(p);
    int most = plan->device->multiprocessors * tunable[BLOCKS];
    kernel<<<(unsigned)(r.tiles < most ? r.tiles : most),
             dim3(32, (unsigned)tunable[BLOCK_THREADS] / 32), shared, tl_cuda_stream(stream)>>>(
        r, num_stages, p.ends && tunable[AHEAD] == ASK_AHEAD, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "bulk_kernel");
}

static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t columns = problem->dim[TL_SCALE_COLUMNS];
    if ((int)problem->param[TL_SCALE_GROUPING] == TL_SCALE_K_GROUPS)
        return TL_FAIL(TL_ERR_ILLEGAL, "scale_swizzle/sm90_bulk: k_groups cut the rows; use "
                                       "smxx_registers");
    if (columns % VECTOR != 0 || columns > MOST_COLUMNS)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "scale_swizzle/sm90_bulk: rows of %lld bytes are no multiple of %d up to "
                       "%d; use smxx_registers",
                       (long long)columns, (int)VECTOR, (int)MOST_COLUMNS);
    return tl_scale_legal(problem);
}

/* Four row tiles in flight a block, and up to three blocks: more of either gains nothing on an
 * H200. Where that is more shared memory than there is, fewer blocks, then fewer stages. */
static enum tl_status plan_tunables(struct tl_plan *plan)
{
    const int64_t *dim = plan->problem.dim;
    int64_t stage = TL_SCALE_TILE_ROWS * dim[TL_SCALE_COLUMNS], fixed = sizeof(stage_control);
    if (plan->problem.present[TL_SCALE_GROUP_ENDS] && dim[TL_SCALE_NUM_GROUPS] > TL_FEW_GROUPS)
        fixed += (int64_t)tl_many_groups<TL_SCALE_TILE_ROWS>::shared_bytes(
            (int)dim[TL_SCALE_NUM_GROUPS]);
    int stages = 4;
    while (stages > 1 && stages * stage + fixed > MOST_SHARED)
        stages--;
    int64_t fit = (MOST_SHARED + 1024) / (stages * stage + fixed + 1024);
    plan->tunable[NUM_STAGES] = stages;
    plan->tunable[BLOCKS] = (int)(fit > 3 ? 3 : fit > 1 ? fit : 1);
    return TL_OK;
}

static const int block_threads[] = {64, 128, 256, 448, 512, 0};
static const int num_stages[] = {1, 2, 3, 4, 6, MOST_STAGES, 0};
static const int blocks_per_multiprocessor[] = {1, 2, 3, 4, 6, 8, 0}, ahead[] = {1, ASK_AHEAD, 0};

extern "C" const struct tl_kernel tl_kernel_scale_swizzle_sm90_bulk = {
    .operation = "scale_swizzle",
    .variant = "sm90_bulk",
    .arch = "sm90",
    .summary = "All but K groups: row tiles by bulk copies, several in flight, registers "
               "transpose.",
    .tunables = {{"block_threads", 256, block_threads},
                 {"num_stages", 3, num_stages},
                 {"blocks_per_multiprocessor", 2, blocks_per_multiprocessor},
                 {"ahead", 1, ahead}},
    .legal = legal,
    .plan = plan_tunables,
    .launch = launch,
};
