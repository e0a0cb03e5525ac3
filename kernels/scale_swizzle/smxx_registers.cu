/* scale_swizzle/smxx_registers: 16-byte loads and stores, the transpose in registers.cuh.
 *
 * K groups: the grid runs over windows of the input, which are aligned whatever the groups are, so
 * that loads do not wait for the table of groups; each window goes to the groups that it meets. A
 * warp takes pieces of ROW_BYTES of 512 / ROW_BYTES runs, so that loads and stores fill sectors.
 * All other groupings: the grid runs over row tiles of the output, whose place does not depend on
 * the groups, and only m_groups look up where their rows are.
 */
#include <type_traits>

#include <cuda_runtime.h>

#include "kernels/device/group_ends.cuh"
#include "kernels/scale_swizzle/launch.h"
#include "kernels/scale_swizzle/registers.cuh"
#include "kernels/scale_swizzle/row_tiles.cuh"

enum { MOST_THREADS = 512, MOST_BLOCKS_Y = 65535 };
/* Where the plan chooses otherwise: of K groups, and of M groups. */
enum { FEW_ROWS = 2048, FEW_COLUMNS = 512, FEW_GROUPED_ROWS = 32768 };

extern __shared__ int group_table[];

/* --- k_groups -------------------------------------------------------------------------------- */

/* LANES lanes take pieces side by side of a row, the others do so for other runs. Units of the grid
 * are the runs of a warp, LANES to a row of tiles. The word after a row's last piece is loaded where
 * a group needs it; of rows that are not ALIGNED, always. `pairs`: two groups that meet in a piece
 * share its stores. What can be known without the rows is, before they are waited for. */
template <int WORDS, int LANES, bool ALIGNED, int PREFETCH, class Groups>
static __global__ void __launch_bounds__(MOST_THREADS)
    k_groups_kernel(const __grid_constant__ tl_scale_problem p, bool pairs, tl_fault_port fault)
{
    const int VECTOR = 4 * WORDS, SPAN = LANES * VECTOR, SLACK = ALIGNED ? 0 : VECTOR - 1;
    unsigned lane = threadIdx.x;
    unsigned unit = (blockIdx.z * gridDim.y + blockIdx.y) * blockDim.z + threadIdx.z;
    int column = (int)(blockIdx.x * blockDim.y + threadIdx.y) * SPAN;
    int row_tile = (int)(unit / LANES), l = (int)(unit % LANES * (32 / LANES) + lane / LANES);
    int row = row_tile * TL_SCALE_TILE_ROWS;
    bool last = lane % LANES == LANES - 1;
    tl_scale_source source = {p.scales, p.scales + (int64_t)p.rows * p.columns,
                              p.scales + (int64_t)row * p.columns, p.columns, p.rows - row};
    tl_scale_window<WORDS> window;
    Groups groups;
    tl_scale_load<WORDS, ALIGNED, PREFETCH>(window, source, l,
                                            column + (int)(lane % LANES) * VECTOR);
    if (!ALIGNED)
        tl_scale_load_next<WORDS, ALIGNED>(window, source, l, last);
    if (groups.open(p.ends, p.num_groups, p.columns, group_table, fault))
        return;
    if (row_tile >= p.row_tiles || column >= p.columns + SLACK)
        return;
    groups.seek(column - SLACK);
    if (groups.group >= p.num_groups)
        return;
    bool whole = groups.begin <= column - SLACK && groups.end >= column + SPAN + 4;
    bool meets = groups.end < column + SPAN;
    bool follows = !ALIGNED || meets || groups.begin % 4 != 0;
    if (ALIGNED && follows)
        tl_scale_load_next<WORDS, ALIGNED>(window, source, l, last);
    tl_scale_part<WORDS> first = tl_scale_group_part(window, groups, p, row_tile, l);
    tl_scale_part<WORDS> second = first;
    second.columns = 0;
    if (meets && pairs) {
        groups.next();
        if (groups.group < p.num_groups)
            second = tl_scale_group_part(window, groups, p, row_tile, l);
    }
    if (follows)
        tl_scale_pass_next(window, last);
    if (whole)
        tl_scale_store<WORDS, true, true>(window, first);
    else
        tl_scale_store_two(window, first, second);
    for (groups.next(); groups.group < p.num_groups && groups.begin < column + SPAN; groups.next())
        tl_scale_store<WORDS, false, true>(
            window, tl_scale_group_part(window, groups, p, row_tile, l));
}

typedef void (*kernel_fn)(tl_scale_problem, bool, tl_fault_port);
typedef tl_few_groups<TL_SCALE_TILE_COLUMNS> few_k;
typedef tl_many_groups<TL_SCALE_TILE_COLUMNS> many_k;

/* What a launch takes from the plan's tunables and the problem. */
struct choice {
    int threads, row_bytes, load_bytes, column_warps;
    bool prefetch, pairs, aligned, many;
    size_t shared_bytes;
};

template <int LANES> static kernel_fn k_groups_of(bool prefetch)
{
    return prefetch ? k_groups_kernel<4, LANES, true, 256, few_k>
                    : k_groups_kernel<4, LANES, true, 0, few_k>;
}

/* Sets what is not there: 8-byte loads and the general kernels come in one width, without hints. */
static kernel_fn k_groups_choose(struct choice *c)
{
    if (!c->aligned || c->many) {
        c->row_bytes = 64;
        if (!c->aligned)
            return c->many ? k_groups_kernel<4, 4, false, 0, many_k>
                           : k_groups_kernel<4, 4, false, 0, few_k>;
        return k_groups_kernel<4, 4, true, 0, many_k>;
    }
    if (c->load_bytes == 8) {
        c->row_bytes = 64;
        return k_groups_kernel<2, 8, true, 0, few_k>;
    }
    c->row_bytes = c->row_bytes < 64 ? 64 : c->row_bytes;
    return c->row_bytes == 64    ? k_groups_of<4>(c->prefetch)
           : c->row_bytes == 128 ? k_groups_of<8>(c->prefetch)
                                 : k_groups_of<16>(c->prefetch);
}

/* --- other groupings ------------------------------------------------------------------------- */

/* Before the ends are known, and with them where a row tile begins: asks L2 for the rows that would
 * be the item's if no group had padding. All items together ask for all rows. Has no branch, since
 * the ends would be loaded after it. */
static __device__ __forceinline__ void ask_ahead(const tl_scale_row_problem &r, unsigned item,
                                                 unsigned bytes)
{
    const unsigned SECTOR = 32, LANES = 32, MOST_BYTES = 2048;
    const uint8_t *end = r.p.scales + r.all_rows * r.p.columns;
#pragma unroll
    for (unsigned at = 0; at < MOST_BYTES; at += LANES * SECTOR) {
        unsigned own = at + threadIdx.x * SECTOR;
        const uint8_t *address = r.p.scales + (uint64_t)item * bytes + own;
        uint32_t wanted = own < bytes && address < end;
        asm volatile("{.reg .pred wanted;\n"
                     "setp.ne.u32 wanted, %1, 0;\n"
                     "@wanted prefetch.global.L2 [%0];}" ::"l"(address),
                     "r"(wanted)
                     : "memory");
    }
}

/* A warp's items are numbered along rows first, then runs, then row tiles. `ahead`: bytes of an
 * item to ask for ahead, or 0. */
template <int LANES, bool ALIGNED, class Groups>
static __global__ void __launch_bounds__(MOST_THREADS)
    rows_kernel(const __grid_constant__ tl_scale_row_problem r, unsigned chunks, unsigned ahead,
                tl_fault_port fault)
{
    const int WORDS = 4, VECTOR = 4 * WORDS, SPAN = LANES * VECTOR;
    const bool HAS_ENDS = !std::is_same<Groups, tl_scale_no_groups>::value;
    unsigned lane = threadIdx.x;
    unsigned item = blockIdx.x * blockDim.y + threadIdx.y, rest = item / chunks;
    int column = (int)(item - rest * chunks) * SPAN + (int)(lane % LANES) * VECTOR;
    int l = (int)(rest % LANES * (32 / LANES) + lane / LANES), tile = (int)(rest / LANES);
    int columns = r.p.columns;
    tl_scale_rows rows;
    tl_scale_window<WORDS> window;
    Groups groups;
    if (HAS_ENDS)
        ask_ahead(r, item, ahead);
    if (groups.open(r.p.ends, r.p.num_groups, r.p.rows, group_table, fault))
        return;
    if (!tl_scale_find_rows(r, groups, tile, &rows))
        return;
    tl_scale_source source = {r.p.scales, r.p.scales + r.all_rows * columns,
                              r.p.scales + rows.first * columns, columns, rows.count};
    uint8_t *run = r.p.blocked + l * TL_SCALE_RUN_BYTES +
                   (int64_t)tile * ((columns + 3) / 4) * TL_SCALE_TILE_BYTES;
    tl_scale_load<WORDS, ALIGNED, 256>(window, source, l, column);
    tl_scale_part<WORDS> part = tl_scale_part_of(window, run, 0, columns);
    if (!ALIGNED) {
        bool last = lane % LANES == LANES - 1;
        tl_scale_load_next<WORDS, ALIGNED>(window, source, l, last);
        tl_scale_pass_next(window, last);
        tl_scale_store<WORDS, false, true>(window, part);
    } else if (column < columns) {
        tl_scale_store<WORDS, true, false>(window, part);
    }
}

typedef void (*rows_fn)(tl_scale_row_problem, unsigned, unsigned, tl_fault_port);

template <class Groups> static rows_fn rows_choose(struct choice *c)
{
    if (!c->aligned) {
        c->row_bytes = 64;
        return rows_kernel<4, false, Groups>;
    }
    c->row_bytes = c->row_bytes > 128 ? 128 : c->row_bytes;
    return c->row_bytes == 32   ? rows_kernel<2, true, Groups>
           : c->row_bytes == 64 ? rows_kernel<4, true, Groups>
                                : rows_kernel<8, true, Groups>;
}

/* --- launches -------------------------------------------------------------------------------- */

enum { BLOCK_THREADS, ROW_BYTES, LOAD_BYTES, COLUMN_WARPS, PREFETCH_BYTES, GROUPS_A_STORE };

static size_t shared_bytes_of(const tl_scale_problem &p, const struct choice &c)
{
    size_t table = 0;
    if (c.many)
        table = many_k::shared_bytes(p.num_groups);
    return c.shared_bytes + table;
}

static enum tl_status launch_k_groups(const struct tl_plan *plan, const tl_scale_problem &p,
                                      struct choice c, cudaStream_t stream)
{
    kernel_fn kernel = k_groups_choose(&c);
    int64_t slack = c.aligned ? 0 : 15, warps = c.threads / 32;
    int64_t pieces = (p.columns + slack + c.row_bytes - 1) / c.row_bytes;
    int64_t across = c.column_warps < warps ? c.column_warps : warps, down = warps / across;
    int64_t units = (int64_t)p.row_tiles * (c.row_bytes / c.load_bytes);
    int64_t y = (units + down - 1) / down, z = (y + MOST_BLOCKS_Y - 1) / MOST_BLOCKS_Y;
    dim3 block(32, (unsigned)across, (unsigned)down);
    dim3 grid((unsigned)((pieces + across - 1) / across),
              (unsigned)((y + z - 1) / z), (unsigned)z);
    size_t shared = shared_bytes_of(p, c);
    TL_TRY(tl_scale_allow_shared(plan, (const void *)kernel, shared));
    kernel<<<grid, block, shared, stream>>>(p, c.pairs, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "k_groups_kernel");
}

static enum tl_status launch_rows(const struct tl_plan *plan, const tl_scale_problem &p,
                                  struct choice c, cudaStream_t stream)
{
    rows_fn kernel = !p.ends  ? rows_choose<tl_scale_no_groups>(&c)
                     : c.many ? rows_choose<tl_many_groups<TL_SCALE_TILE_ROWS>>(&c)
                              : rows_choose<tl_few_groups<TL_SCALE_TILE_ROWS>>(&c);
    tl_scale_row_problem r = tl_scale_row_problem_of(p);
    int64_t slack = c.aligned ? 0 : 15, warps = c.threads / 32;
    unsigned chunks = (unsigned)((p.columns + slack + c.row_bytes - 1) / c.row_bytes);
    int64_t per_tile = (int64_t)chunks * (c.row_bytes / 16), items = r.tiles * per_tile;
    int64_t tile_bytes = TL_SCALE_TILE_ROWS * (int64_t)p.columns;
    unsigned share = (unsigned)((tile_bytes + per_tile - 1) / per_tile);
    int64_t blocks = (items + warps - 1) / warps;
    size_t shared = shared_bytes_of(p, c);
    if (items > INT32_MAX - 65536)
        return TL_FAIL(TL_ERR_ILLEGAL, "%s/%s: %lld pieces are more than a grid can have",
                       plan->kernel->operation, plan->kernel->variant, (long long)items);
    TL_TRY(tl_scale_allow_shared(plan, (const void *)kernel, shared));
    kernel<<<(unsigned)blocks, dim3(32, (unsigned)warps), shared, stream>>>(
        r, chunks, c.prefetch ? share : 0, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "rows_kernel");
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    tl_scale_problem p = tl_scale_problem_of(plan, args);
    int grouping = (int)plan->problem.param[TL_SCALE_GROUPING];
    const int *tunable = plan->tunable;
    struct choice c = {tunable[BLOCK_THREADS],         tunable[ROW_BYTES],
                       tunable[LOAD_BYTES],            tunable[COLUMN_WARPS],
                       tunable[PREFETCH_BYTES] == 256, tunable[GROUPS_A_STORE] == 2,
                       false,                          p.num_groups > TL_FEW_GROUPS && p.ends,
                       tl_scale_held_bytes(plan)};
    c.aligned = (uintptr_t)p.scales % 16 == 0 && p.columns % 16 == 0;
    if (p.rows == 0 || p.columns == 0 || (grouping != TL_SCALE_DENSE && p.num_groups == 0))
        return TL_OK;
    TL_TRY(tl_scale_check_aligned(plan, p.blocked));
    if (grouping != TL_SCALE_K_GROUPS) {
        c.load_bytes = 16;
        return launch_rows(plan, p, c, tl_cuda_stream(stream));
    }
    return launch_k_groups(plan, p, c, tl_cuda_stream(stream));
}

/* As measured on an H200. K groups: small blocks, which begin work sooner, whose warps lie side by
 * side and share lines of rows; two by two where rows or columns are few, so that as many rows of
 * blocks come in a wave. Other groupings: pieces that divide the rows leave no lane idle. */
static enum tl_status plan_tunables(struct tl_plan *plan)
{
    const int64_t *dim = plan->problem.dim;
    int64_t rows = dim[TL_SCALE_ROWS], columns = dim[TL_SCALE_COLUMNS];
    if ((int)plan->problem.param[TL_SCALE_GROUPING] == TL_SCALE_K_GROUPS) {
        plan->tunable[BLOCK_THREADS] = 128;
        plan->tunable[COLUMN_WARPS] = rows <= FEW_ROWS || columns <= FEW_COLUMNS ? 2 : 4;
    } else {
        bool few = plan->problem.present[TL_SCALE_GROUP_ENDS] && rows <= FEW_GROUPED_ROWS;
        plan->tunable[BLOCK_THREADS] = few ? 128 : 256;
        plan->tunable[ROW_BYTES] = columns % 64 == 0 && columns > 64 ? 64 : 32;
    }
    return TL_OK;
}

/* prefetch_bytes: what L2 may fetch around a load; where groups have ends and leave columns whole,
 * 256 stands for asking it ahead. */
static const int block_threads[] = {64, 128, 256, 512, 0}, row_bytes[] = {32, 64, 128, 256, 0};
static const int load_bytes[] = {8, 16, 0}, column_warps[] = {1, 2, 4, 8, 16, 0};
static const int prefetch_bytes[] = {32, 256, 0};
static const int groups_a_store[] = {1, 2, 0};

extern "C" const struct tl_kernel tl_kernel_scale_swizzle_smxx_registers = {
    .operation = "scale_swizzle",
    .variant = "smxx_registers",
    .arch = "smxx",
    .summary = "16-byte loads of four rows 32 apart, whose words become 16-byte stores.",
    .tunables = {{"block_threads", 256, block_threads},
                 {"row_bytes", 64, row_bytes},
                 {"load_bytes", 16, load_bytes},
                 {"column_warps", 2, column_warps},
                 {"prefetch_bytes", 256, prefetch_bytes},
                 {"groups_a_store", 2, groups_a_store},
                 TL_SCALE_HELD_SHARED},
    .legal = tl_scale_legal_table,
    .plan = plan_tunables,
    .launch = launch,
};
