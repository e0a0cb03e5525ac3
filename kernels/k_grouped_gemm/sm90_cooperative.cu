/* k_grouped_gemm/sm90_cooperative: what sm90_ragged is held against: two warpgroups share a tile.
 *
 * d[e] (+)= a[rows of e]^T b[rows of e], bf16 to fp32. The same ragged loads. Persistent: one block
 * an SM, a producer thread that takes tiles from a shared counter, largest groups first, and two
 * consumer warpgroups. Tiles of 32768 elements by 64 rows, four stages; sums leave through two
 * small buffers a warpgroup while the next tile is loaded and multiplied (fewer stages leave room
 * for more of them: with two, a whole tile is staged). A group without rows is one k-block of zeros
 * at beta 0, and nothing at beta 1.
 */
#include <cuda_runtime.h>
#include <string.h>

#include "kernels/device/async_ragged.cuh"
#include "kernels/device/early.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/sums_box.cuh"
#include "kernels/device/tensor_map.h"
#include "kernels/device/wgmma.cuh"
#include "kernels/k_grouped_gemm/bf16.h"
#include "kernels/k_grouped_gemm/order.cuh"
#include "kernels/k_grouped_gemm/cooperative_tile.cuh"

/* --- the producer ----------------------------------------------------------------------------- */

/* PANELS panels of 64 columns by 64 rows of a group, from its row `row` on. */
template <int PANELS>
static __device__ void load_panels(char *to, const CUtensorMap *map, uint64_t *full, bool in_one,
                                   int column, int row, const work &w)
{
    int y = TL_RAGGED_ROWS - w.rows + row, z = w.begin + w.rows;
    if (in_one) {
        tl_tma_load_5d(to, map, full, 0, y, z, TL_RAGGED_ROWS, column / 64);
    } else {
#pragma unroll
        for (int panel = 0; panel < PANELS; panel++)
            tl_tma_load_4d(to + panel * PANEL_BYTES, map, full, column + panel * 64, y, z,
                           TL_RAGGED_ROWS);
    }
}

/* The tile of d in four stages, panel after panel of 32 columns. */
template <class S>
static __device__ void load_sums(const shared_layout &shared, ring<S::STAGES> &at, const tile &t,
                                 const CUtensorMap *map_d, bool elected)
{
    const int row_boxes = S::BLOCK_M / 64, boxes = SUMS_BYTES / BOX_BYTES;
    for (int first = 0; first < 2 * BOXES; first += boxes, at.advance()) {
        uint64_t *full = shared.full + at.stage;
        tl_mbarrier_wait(shared.empty + at.stage, at.parity ^ 1);
        if (elected)
            tl_mbarrier_expect(full, SUMS_BYTES);
#pragma unroll
        for (int i = 0; elected && i < boxes; i++) {
            int panel = first / row_boxes + i / row_boxes, row_box = i % row_boxes;
            tl_tma_load_3d(shared.stage(at.stage) + i * BOX_BYTES, map_d, full,
                           t.column + panel * BOX_COLUMNS, t.row + row_box * 64, t.group);
        }
        __syncwarp();
    }
}

/* What there is to do in a tile of a group. */
template <class S> static __device__ tile tile_of(const problem &p, const work &w, int index)
{
    tile t;
    t.group = w.group;
    place<S>(t, p, index);
    t.k_blocks = max(1, (w.rows + BLOCK_K - 1) / BLOCK_K);
    t.last_steps = max(1, (w.rows - (t.k_blocks - 1) * BLOCK_K + 15) / 16);
    t.how = !p.beta ? STORE : w.rows < p.load_below ? LOAD_ADD : REDUCE;
    return t;
}

/* A warp, of which one lane loads. Takes tiles from the counter that all blocks share, so that
 * blocks end together whatever the groups' sizes are. The next number is asked for while the
 * present tile loads. */
template <class S>
static __device__ void produce(const shared_layout &shared, const problem &p, schedule *todo,
                               const CUtensorMap *map_a, const CUtensorMap *map_b,
                               const CUtensorMap *map_d)
{
    bool first_lane = threadIdx.x % 32 == 0, elected = tl_elect();
    ring<S::STAGES> at;
    int slot = 0, total = tl_uniform(todo->groups) * p.tiles;
    for (int number = (int)blockIdx.x, next = 0; number < total; number = tl_uniform(next)) {
        if (first_lane)
            next = (int)gridDim.x + atomicAdd(&todo->next, 1);
        work w = work_at(todo, number / p.tiles);
        w = {tl_uniform(w.group), tl_uniform(w.begin), tl_uniform(w.rows), 0};
        if (p.beta && w.rows == 0)
            continue;
        tile t = tile_of<S>(p, w, number % p.tiles);
        for (int k = 0; k < t.k_blocks; k++, at.advance()) {
            char *a = shared.stage(at.stage), *b = a + S::A_PANELS * PANEL_BYTES;
            uint64_t *full = shared.full + at.stage;
            tl_mbarrier_wait(shared.empty + at.stage, at.parity ^ 1);
            if (elected) {
                if (k == 0)
                    shared.tiles[slot] = t;
                tl_mbarrier_expect(full, STAGE_BYTES);
                load_panels<S::A_PANELS>(a, map_a, full, p.panels_in_one, t.row, k * BLOCK_K, w);
                load_panels<S::B_PANELS>(b, map_b, full, p.panels_in_one, t.column, k * BLOCK_K, w);
            }
            __syncwarp(); /* no lane falls a ring behind */
        }
        if (t.how == LOAD_ADD)
            load_sums<S>(shared, at, t, map_d, elected);
        slot = (slot + 1) % TILE_SLOTS;
    }
    tl_mbarrier_wait(shared.empty + at.stage, at.parity ^ 1);
    if (elected) {
        shared.tiles[slot].group = NO_TILE;
        tl_mbarrier_arrive(shared.full + at.stage);
    }
}

/* --- the consumers ---------------------------------------------------------------------------- */

template <class S>
static __device__ __forceinline__ void multiply_step(float (&acc)[S::PARTS][S::SUMS], uint64_t a,
                                                     uint64_t b, int step, bool accumulate)
{
#pragma unroll
    for (int part = 0; part < S::PARTS; part++)
        tl_wgmma_bf16<S::BLOCK_N, 1, 1>(acc[part], a + part * (PANEL_BYTES >> 4) + step * 128,
                                        b + step * 128, accumulate);
}

/* acc = a^T b over the group's rows, one wgmma group in flight while the next stage is waited for.
 * Of the last stage only the steps of 16 that hold rows. */
template <class S>
static __device__ __forceinline__ void
multiply_tile(float (&acc)[S::PARTS][S::SUMS], const shared_layout &shared, ring<S::STAGES> &at,
              const tile &t, int warpgroup, bool leader)
{
    const int b_offset = S::A_PANELS * PANEL_BYTES;
    int a_offset = warpgroup * S::PARTS * PANEL_BYTES, previous = 0;
    for (int k = 0; k < t.k_blocks - 1; k++) {
        tl_mbarrier_wait(shared.full + at.stage, at.parity);
        const char *stage = shared.stage(at.stage);
        uint64_t a = tl_wgmma_desc_128b_mn(stage + a_offset, PANEL_BYTES);
        uint64_t b = tl_wgmma_desc_128b_mn(stage + b_offset, PANEL_BYTES);
        tl_wgmma_fence();
#pragma unroll
        for (int step = 0; step < BLOCK_K / 16; step++)
            multiply_step<S>(acc, a, b, step, k > 0 || step > 0);
        tl_wgmma_commit();
        tl_wgmma_wait<1>(); /* the stage before is read */
        if (leader && k > 0)
            tl_mbarrier_arrive(shared.empty + previous);
        previous = at.stage;
        at.advance();
    }
    tl_mbarrier_wait(shared.full + at.stage, at.parity);
    const char *stage = shared.stage(at.stage);
    uint64_t a = tl_wgmma_desc_128b_mn(stage + a_offset, PANEL_BYTES);
    uint64_t b = tl_wgmma_desc_128b_mn(stage + b_offset, PANEL_BYTES);
#pragma unroll 1
    for (int step = 0; step < t.last_steps; step++) {
        tl_wgmma_fence();
        multiply_step<S>(acc, a, b, step, t.k_blocks > 1 || step > 0);
        tl_wgmma_commit();
    }
    tl_wgmma_wait<0>();
    if (leader) {
        if (t.k_blocks > 1)
            tl_mbarrier_arrive(shared.empty + previous);
        tl_mbarrier_arrive(shared.empty + at.stage);
    }
    at.advance();
}

/* A warpgroup's share of a tile out, box after box. Stores run on while the next tile is
 * multiplied. ADD: the tile of d follows in the ring. */
template <class S, bool ADD>
static __device__ __forceinline__ void
store_tile(const float (&acc)[S::PARTS][S::SUMS], const shared_layout &shared, ring<S::STAGES> &at,
           const CUtensorMap *map_d, const tile &t, const problem &p, int warpgroup, bool leader)
{
    char *store = shared.store + warpgroup * S::STORE_BUFFERS * BOX_BYTES;
#pragma unroll
    for (int box = 0; box < BOXES; box++) {
        const int panel = box / S::PARTS, part = box % S::PARTS;
        char *buffer = store + (box % S::STORE_BUFFERS) * BOX_BYTES;
        if (leader)
            tl_tma_store_wait_read<S::STORE_BUFFERS - 1>();
        tl_named_barrier(1 + warpgroup, 128);
        if (ADD && box % 2 == 0)
            tl_mbarrier_wait(shared.full + at.stage, at.parity);
        /* A stage has two panels of two boxes, or one of four. */
        int in_stage = panel % (2 / S::PARTS) * 2 * S::PARTS + warpgroup * S::PARTS + part;
        tl_sums_to_box<ADD>(tl_shared_address(buffer),
                            tl_shared_address(shared.stage(at.stage) + in_stage * BOX_BYTES),
                            &acc[part][panel * (BOX_COLUMNS / 2)]);
        tl_fence_async_shared();
        tl_named_barrier(1 + warpgroup, 128);
        int row = t.row + (warpgroup * S::PARTS + part) * 64,
            column = t.column + panel * BOX_COLUMNS;
        if (leader && row < p.m && column < p.n) {
            if (t.how == REDUCE)
                tl_tma_add_3d(map_d, buffer, column, row, t.group);
            else
                tl_tma_store_3d(map_d, buffer, column, row, t.group);
        }
        if (leader)
            tl_tma_store_commit();
        if (ADD && box % 2 == 1) {
            if (leader)
                tl_mbarrier_arrive(shared.empty + at.stage);
            at.advance();
        }
    }
}

/* A warp's share of a tile out in rows of up to 1 KB, each warp at its own pace. Over what is there
 * only. */
template <class S>
static __device__ __forceinline__ void
store_rows(const float (&acc)[S::PARTS][S::SUMS], const shared_layout &shared,
           const CUtensorMap *map_d, const tile &t, const problem &p, int warp, bool elected)
{
    const int parts = S::BLOCK_N / WIDE_COLUMNS;
    char *buffer = shared.store + warp * WIDE_BYTES;
#pragma unroll
    for (int box = 0; box < 2 * parts; box++) {
        const int half = box / parts, part = box % parts;
        int row = t.row + warp * 16 + half * WIDE_ROWS, column = t.column + part * WIDE_COLUMNS;
        if (elected)
            tl_tma_store_wait_read<0>();
        __syncwarp();
        tl_sums_to_rows(tl_shared_address(buffer), &acc[0][part * (WIDE_COLUMNS / 2)], half);
        tl_fence_async_shared();
        __syncwarp();
        if (elected && row < p.m && column < p.n)
            tl_tma_store_4d(map_d, buffer, 0, column / BOX_COLUMNS, row, t.group);
        if (elected)
            tl_tma_store_commit();
    }
}

template <class S>
static __device__ void consume(const shared_layout &shared, const problem &p,
                               const CUtensorMap *map_d, int warp)
{
    int warpgroup = warp / 4;
    bool elected = tl_elect(), leader = warp % 4 == 0 && elected;
    float acc[S::PARTS][S::SUMS];
    ring<S::STAGES> at;
    for (int slot = 0;; slot = (slot + 1) % TILE_SLOTS) {
        tl_mbarrier_wait(shared.full + at.stage, at.parity); /* the tile's first stage brings it */
        tile t = shared.tiles[slot];
        if (t.group == NO_TILE)
            break;
        t.group = tl_uniform(t.group), t.row = tl_uniform(t.row), t.column = tl_uniform(t.column);
        multiply_tile<S>(acc, shared, at, t, warpgroup, leader);
        if (S::WIDE)
            store_rows<S>(acc, shared, map_d, t, p, warp, elected);
        else if (t.how == LOAD_ADD)
            store_tile<S, true>(acc, shared, at, map_d, t, p, warpgroup, leader);
        else
            store_tile<S, false>(acc, shared, at, map_d, t, p, warpgroup, leader);
    }
    if (S::WIDE ? elected : leader)
        tl_tma_store_wait_all();
}

struct maps {
    CUtensorMap a, b, d;
};

template <class S>
static __global__ void __launch_bounds__(THREADS, 1)
    cooperative_kernel(const __grid_constant__ maps map, schedule *todo, problem p)
{
    extern __shared__ char raw[];
    __shared__ uint64_t full[S::STAGES], empty[S::STAGES];
    __shared__ tile tiles[TILE_SLOTS];
    char *base = (char *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023);
    shared_layout shared = {base, base + S::STAGES * STAGE_BYTES, full, empty, tiles};
    int warp = tl_uniform((int)threadIdx.x / 32);
    if (threadIdx.x == 0) {
        tl_prefetch_map(&map.a);
        tl_prefetch_map(&map.b);
        tl_prefetch_map(&map.d);
        for (int i = 0; i < S::STAGES; i++) {
            tl_mbarrier_init(full + i, 1);
            tl_mbarrier_init(empty + i, 2);
        }
        tl_mbarrier_init_fence();
    }
    cudaGridDependencySynchronize(); /* the order, and all that was before it */
    __syncthreads();
    if (warp >= 8) {
        tl_registers_shrink<PRODUCER_REGISTERS>();
        if (warp == 8)
            produce<S>(shared, p, todo, &map.a, &map.b, &map.d);
    } else {
        tl_registers_grow<CONSUMER_REGISTERS>();
        consume<S>(shared, p, &map.d, warp);
    }
}

/* --- the host's side -------------------------------------------------------------------------- */

enum { LOAD_BELOW, BLOCK_N, STAGES, STORE_COLUMNS };

static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t rows = problem->dim[TL_K_GROUPED_K];
    TL_TRY(k_grouped_legal_bf16(problem, "sm90_cooperative"));
    if (rows > TL_RAGGED_ROWS)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "k_grouped_gemm/sm90_cooperative: %lld rows are more than 2^30",
                       (long long)rows);
    return TL_OK;
}

static struct problem problem_of(const struct tl_plan *plan, int block_n)
{
    int64_t m = plan->problem.dim[TL_K_GROUPED_M], n = plan->problem.dim[TL_K_GROUPED_N];
    struct problem p;
    p.m = (int)m;
    p.n = (int)n;
    p.beta = plan->problem.param[TL_K_GROUPED_BETA] != 0;
    p.load_below = plan->tunable[LOAD_BELOW];
    p.panels_in_one = m % 64 == 0 && n % 64 == 0;
    p.row_tiles = (int)((m + TILE / block_n - 1) / (TILE / block_n));
    p.tiles = p.row_tiles * (int)((n + block_n - 1) / block_n);
    return p;
}

/* The map of an operand with boxes of 64 rows, and as many panels as a tile has or one. */
static enum tl_status map_operand(CUtensorMap *map, const struct tl_tensor *tensor, int64_t columns,
                                  bool panels_in_one, int panels)
{
    return panels_in_one ? tl_tensor_map_ragged_panels(map, tensor, columns, BLOCK_K, panels)
                         : tl_tensor_map_ragged(map, tensor, columns, 64, BLOCK_K);
}

/* Makes the maps and allows the kernel its shared memory. */
template <class S>
static enum tl_status prepare(const struct tl_plan *plan, const struct tl_args *args, maps *out)
{
    const struct tl_tensor *tensor = args->tensor;
    int64_t num_groups = plan->problem.dim[TL_K_GROUPED_NUM_GROUPS];
    problem p = problem_of(plan, S::BLOCK_N);
    TL_TRY(map_operand(&out->a, &tensor[TL_K_GROUPED_A], p.m, p.panels_in_one, S::A_PANELS));
    TL_TRY(map_operand(&out->b, &tensor[TL_K_GROUPED_B], p.n, p.panels_in_one, S::B_PANELS));
    TL_TRY(S::WIDE ? tl_tensor_map_3d_panels(&out->d, &tensor[TL_K_GROUPED_D], p.n, p.m, num_groups,
                                             WIDE_COLUMNS / BOX_COLUMNS, WIDE_ROWS)
                   : tl_tensor_map_3d(&out->d, &tensor[TL_K_GROUPED_D], p.n, p.m, num_groups,
                                      BOX_COLUMNS, 64));
    return TL_CUDA_STATUS(plan, "shared memory of cooperative_kernel",
                          cudaFuncSetAttribute(cooperative_kernel<S>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               S::SHARED_BYTES));
}

template <class S>
static enum tl_status launch_kernel(const struct tl_plan *plan, const struct tl_args *args,
                                    const maps &map, struct tl_stream *stream)
{
    int64_t num_groups = plan->problem.dim[TL_K_GROUPED_NUM_GROUPS];
    schedule *todo = (schedule *)args->workspace;
    problem p = problem_of(plan, S::BLOCK_N);
    order_kernel<<<1, ORDER_THREADS, 0, tl_cuda_stream(stream)>>>(
        (const int *)args->tensor[TL_K_GROUPED_OFFSETS].data, (int)num_groups,
        plan->problem.dim[TL_K_GROUPED_K], p.beta, todo, tl_cuda_fault(plan));
    TL_TRY(TL_CUDA_LAUNCHED(plan, "order_kernel"));
    return TL_CUDA_STATUS(plan, "cooperative_kernel",
                          tl_cuda_launch_early(cooperative_kernel<S>,
                                               (unsigned)plan->device->multiprocessors, THREADS,
                                               S::SHARED_BYTES, tl_cuda_stream(stream), map, todo,
                                               p));
}

/* One of the kernels. */
struct way {
    enum tl_status (*prepare)(const struct tl_plan *, const struct tl_args *, maps *);
    enum tl_status (*launch)(const struct tl_plan *, const struct tl_args *, const maps &,
                             struct tl_stream *);
};
template <class S> static const way way_of = {prepare<S>, launch_kernel<S>};

static const way *choose(const struct tl_plan *plan)
{
    if (plan->tunable[BLOCK_N] == 128)
        return &way_of<shape<128, 4>>;
    switch (plan->tunable[STAGES]) {
    case 2: return &way_of<shape<256, 2>>;
    case 3: return &way_of<shape<256, 3>>;
    default: break;
    }
    if (plan->tunable[STORE_COLUMNS] == WIDE_COLUMNS &&
        plan->problem.dim[TL_K_GROUPED_N] % BOX_COLUMNS == 0 &&
        plan->problem.param[TL_K_GROUPED_BETA] == 0)
        return &way_of<shape<256, 4, true>>;
    return &way_of<shape<256, 4>>;
}

/* In the plan's scratch: what was prepared for the tensors that it is bound to. */
struct bound {
    const way *chosen;
    const void *a, *b, *d;
    uint64_t maps[sizeof(maps) / sizeof(uint64_t)];
};
static_assert(sizeof(bound) <= sizeof(((tl_plan *)0)->scratch), "the maps fit into a plan");

static bool is_empty(const struct tl_plan *plan, const struct tl_args *args)
{
    return tl_tensor_bytes(&args->tensor[TL_K_GROUPED_D]) == 0 ||
           plan->problem.dim[TL_K_GROUPED_K] == 0;
}

static enum tl_status bind(struct tl_plan *plan, const struct tl_args *args)
{
    bound *kept = (bound *)plan->scratch;
    maps map;
    kept->chosen = NULL;
    if (is_empty(plan, args))
        return TL_OK;
    TL_TRY(choose(plan)->prepare(plan, args, &map));
    memcpy(kept->maps, &map, sizeof map);
    kept->a = args->tensor[TL_K_GROUPED_A].data;
    kept->b = args->tensor[TL_K_GROUPED_B].data;
    kept->d = args->tensor[TL_K_GROUPED_D].data;
    kept->chosen = choose(plan);
    return TL_OK;
}

static size_t workspace(const struct tl_plan *plan)
{
    return schedule_bytes(plan->problem.dim[TL_K_GROUPED_NUM_GROUPS]);
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor, *d = &tensor[TL_K_GROUPED_D];
    if (is_empty(plan, args)) { /* sums of nothing */
        bool nothing = tl_tensor_bytes(d) == 0 || plan->problem.param[TL_K_GROUPED_BETA] != 0;
        return nothing ? TL_OK
                       : TL_CUDA_STATUS(plan, "zeroing d",
                                        cudaMemsetAsync(d->data, 0, tl_tensor_bytes(d),
                                                        tl_cuda_stream(stream)));
    }
    const bound *kept = (const bound *)plan->scratch;
    const way *chosen = choose(plan);
    maps map;
    if (kept->chosen == chosen && kept->a == tensor[TL_K_GROUPED_A].data &&
        kept->b == tensor[TL_K_GROUPED_B].data && kept->d == d->data)
        memcpy(&map, kept->maps, sizeof map);
    else
        TL_TRY(chosen->prepare(plan, args, &map));
    return chosen->launch(plan, args, map, stream);
}

/* Loading was faster than adding by TMA with 1024 rows a group, 3 to 5 %, and with 256, by 40 %. */
static const int load_below[] = {2048, 1, 256, 512, 1024, 4096, 1 << 30, 0};
static const int block_n[] = {256, 128, 0};
static const int stages[] = {4, 3, 2, 0};        /* of 128x256 tiles */
static const int store_columns[] = {32, 128, 0}; /* of 128x256 tiles in four stages, at beta 0 */

extern "C" const struct tl_kernel tl_kernel_k_grouped_gemm_sm90_cooperative = {
    .operation = "k_grouped_gemm",
    .variant = "sm90_cooperative",
    .arch = "sm90",
    .summary = "Ragged TMA loads of both operands, 128x256x64 tiles of two warpgroups, largest "
               "groups first; beta 1 by loading d, for large groups by TMA sums.",
    .dtypes = TL_DTYPE_BIT(TL_BF16) | TL_DTYPE_BIT(TL_FP32),
    .tunables = {{"load_below", 2048, load_below},
                 {"block_n", 256, block_n},
                 {"stages", 4, stages},
                 {"store_columns", 32, store_columns}},
    .legal = legal,
    .workspace = workspace,
    .bind = bind,
    .launch = launch,
};
