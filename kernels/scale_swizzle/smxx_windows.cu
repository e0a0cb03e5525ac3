/* scale_swizzle/smxx_windows: m_groups by windows of the input's rows, so that loads wait for no
 * group ends.
 *
 * In a group that begins anywhere, a thread's rows, TL_SCALE_RUNS apart, fall on one run of tiles,
 * four to a tile; but which of them is a tile's first depends on the group. So a thread holds three
 * rows more than its window has, and knows a tile's four rows wherever the first one lies. A window
 * writes those tiles of a run whose first row it has; the last ones of a group may have theirs past
 * its end, less than TL_SCALE_RUNS rows past.
 */
#include <cuda_runtime.h>

#include "kernels/device/group_ends.cuh"
#include "kernels/device/load.cuh"
#include "kernels/scale_swizzle/launch.h"

enum { MOST_THREADS = 512, MOST_BLOCKS_Y = 65535, VECTOR = 16, WORDS = VECTOR / 4 };
enum { SHORT_ROW = 128, FEW_ROWS = 32768 }; /* where the plan chooses otherwise */

extern __shared__ int group_table[];

/* Where a thread's first row lies in a group, or before it, and what is left from there on. */
struct place {
    int block, run; /* run `run` of block `block`, which are TL_SCALE_RUNS rows each */
    int left;       /* rows of the group */
    bool stores;    /* whether the thread's columns are some of the rows' */
};

/* The tiles whose first rows are SKIP, SKIP + 4, ... of the thread's, of which `target` is the
 * first one's run. */
template <int TILES, int SKIP>
static __device__ __forceinline__ void store_tiles(const uint32_t (&word)[4 * TILES + 3][WORDS],
                                                   const place &at, int64_t tile_bytes,
                                                   uint8_t *blocked)
{
    uint8_t *target = blocked + (at.block + SKIP) / TL_SCALE_RUN_ROWS * tile_bytes;
#pragma unroll
    for (int i = SKIP; i < SKIP + 4 * TILES; i += TL_SCALE_RUN_ROWS, target += tile_bytes) {
        uint32_t kept[TL_SCALE_RUN_ROWS][WORDS];
#pragma unroll
        for (int q = 0; q < TL_SCALE_RUN_ROWS; q++)
#pragma unroll
            for (int w = 0; w < WORDS; w++)
                kept[q][w] = (i + q) * TL_SCALE_RUNS < at.left ? word[i + q][w] : 0;
        if (!at.stores || at.block + i < 0 || i * TL_SCALE_RUNS >= at.left + at.run)
            continue;
#pragma unroll
        for (int w = 0; w < WORDS; w++)
            *(uint4 *)(target + w * TL_SCALE_TILE_BYTES) =
                make_uint4(kept[0][w], kept[1][w], kept[2][w], kept[3][w]);
    }
}

/* LANES lanes take vectors side by side of a row, the others those of other rows. Blocks lie along
 * a row in y, and in x along units: what a warp takes of a window, TL_SCALE_RUNS / LANES runs. */
template <int LANES, int TILES, class Groups>
static __global__ void __launch_bounds__(MOST_THREADS)
    windows_kernel(const __grid_constant__ tl_scale_problem p, tl_fault_port fault)
{
    const int WINDOW = TILES * TL_SCALE_TILE_ROWS, HELD = 4 * TILES + 3;
    int lane = (int)threadIdx.x, unit = (int)(blockIdx.x * blockDim.z + threadIdx.z);
    int piece = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    int column = (piece * LANES + lane % LANES) * VECTOR;
    int first = unit / LANES * WINDOW;
    int row = first + unit % LANES * (TL_SCALE_RUNS / LANES) + lane / LANES;
    const uint8_t *address = p.scales + (int64_t)row * p.columns + column;
    bool inside = column < p.columns;
    uint32_t word[HELD][WORDS] = {};
    Groups groups;
#pragma unroll
    for (int i = 0; i < HELD; i++)
        tl_load_constant<256>(word[i], address + (int64_t)i * TL_SCALE_RUNS * p.columns,
                              inside && row + i * TL_SCALE_RUNS < p.rows);
    if (groups.open(p.ends, p.num_groups, p.rows, group_table, fault))
        return;
    int64_t tile_bytes = (int64_t)p.columns * TL_SCALE_TILE_ROWS;
    groups.seek(first - (TL_SCALE_RUNS - 1));
    for (; groups.group < p.num_groups && groups.begin < first + WINDOW; groups.next()) {
        int from = row - groups.begin, run = from & (TL_SCALE_RUNS - 1);
        place at = {(from - run) / TL_SCALE_RUNS, run, groups.end - row, inside};
        uint8_t *blocked = p.blocked + groups.units_before * tile_bytes +
                           column * (TL_SCALE_TILE_BYTES / TL_SCALE_TILE_COLUMNS) +
                           run * TL_SCALE_RUN_BYTES;
        int skip = -at.block & (TL_SCALE_RUN_ROWS - 1);
        if (skip == 0)
            store_tiles<TILES, 0>(word, at, tile_bytes, blocked);
        else if (skip == 1)
            store_tiles<TILES, 1>(word, at, tile_bytes, blocked);
        else if (skip == 2)
            store_tiles<TILES, 2>(word, at, tile_bytes, blocked);
        else
            store_tiles<TILES, 3>(word, at, tile_bytes, blocked);
        __syncwarp();
    }
}

typedef void (*kernel_fn)(tl_scale_problem, tl_fault_port);

template <class Groups, int TILES> static kernel_fn choose(int lanes)
{
    return lanes == 2 ? windows_kernel<2, TILES, Groups> : windows_kernel<4, TILES, Groups>;
}

template <class Groups> static kernel_fn choose(int lanes, int tiles)
{
    return tiles == 1 ? choose<Groups, 1>(lanes) : choose<Groups, 2>(lanes);
}

enum { BLOCK_THREADS, ROW_BYTES, WINDOW_TILES };

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    typedef tl_many_groups<TL_SCALE_TILE_ROWS> many_groups;
    typedef tl_few_groups<TL_SCALE_TILE_ROWS> few_groups;
    tl_scale_problem p = tl_scale_problem_of(plan, args);
    const int *tunable = plan->tunable;
    int lanes = tunable[ROW_BYTES] / VECTOR, tiles = tunable[WINDOW_TILES];
    int64_t warps = tunable[BLOCK_THREADS] / 32, window = (int64_t)tiles * TL_SCALE_TILE_ROWS;
    bool many = p.num_groups > TL_FEW_GROUPS;
    kernel_fn kernel = many ? choose<many_groups>(lanes, tiles) : choose<few_groups>(lanes, tiles);
    size_t shared = many ? many_groups::shared_bytes(p.num_groups) : 0;
    int64_t pieces = (p.columns + tunable[ROW_BYTES] - 1) / tunable[ROW_BYTES];
    int64_t across = pieces < warps ? pieces : warps, down = warps / across;
    int64_t units = (p.rows + TL_SCALE_RUNS - 1 + window - 1) / window * lanes;
    if (p.rows == 0 || p.columns == 0 || p.num_groups == 0)
        return TL_OK;
    if ((uintptr_t)p.scales % VECTOR != 0)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "scale_swizzle/smxx_windows: 'scales' at %p must be aligned to %d bytes",
                       (const void *)p.scales, (int)VECTOR);
    TL_TRY(tl_scale_check_aligned(plan, p.blocked));
    TL_TRY(tl_scale_allow_shared(plan, (const void *)kernel, shared));
    dim3 grid((unsigned)((units + down - 1) / down), (unsigned)((pieces + across - 1) / across));
    kernel<<<grid, dim3(32, (unsigned)across, (unsigned)down), shared, tl_cuda_stream(stream)>>>(
        p, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "windows_kernel");
}

static enum tl_status legal(const struct tl_problem *problem)
{
    const int64_t most_columns = (int64_t)MOST_BLOCKS_Y * 2 * VECTOR;
    int64_t columns = problem->dim[TL_SCALE_COLUMNS];
    if ((int)problem->param[TL_SCALE_GROUPING] != TL_SCALE_M_GROUPS)
        return TL_FAIL(TL_ERR_ILLEGAL, "scale_swizzle/smxx_windows: only rows of m_groups begin "
                                       "anywhere; use smxx_registers");
    if (columns % VECTOR != 0 || columns > most_columns)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "scale_swizzle/smxx_windows: rows of %lld bytes are no multiple of %d up to "
                       "%lld; use smxx_registers",
                       (long long)columns, (int)VECTOR, (long long)most_columns);
    return tl_scale_legal_table(problem);
}

/* As measured on an H200: short pieces where rows are short, whose stores fill more of a line, and
 * more windows, though of more rows that are loaded twice, where there are few. */
static enum tl_status plan_tunables(struct tl_plan *plan)
{
    const int64_t *dim = plan->problem.dim;
    plan->tunable[ROW_BYTES] = dim[TL_SCALE_COLUMNS] > SHORT_ROW ? 64 : 32;
    plan->tunable[WINDOW_TILES] = dim[TL_SCALE_ROWS] <= FEW_ROWS ? 1 : 2;
    return TL_OK;
}

static const int block_threads[] = {64, 128, 256, 512, 0}, row_bytes[] = {32, 64, 0};
static const int window_tiles[] = {1, 2, 0};

extern "C" const struct tl_kernel tl_kernel_scale_swizzle_smxx_windows = {
    .operation = "scale_swizzle",
    .variant = "smxx_windows",
    .arch = "smxx",
    .summary = "M groups: windows of rows, loaded before the group ends are known.",
    .tunables = {{"block_threads", 256, block_threads},
                 {"row_bytes", 64, row_bytes},
                 {"window_tiles", 2, window_tiles}},
    .legal = legal,
    .plan = plan_tunables,
    .launch = launch,
};
