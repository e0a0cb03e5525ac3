/* k_grouped_gemm/sm90_turns: weight gradients of groups of any size, without padding.
 *
 * d[e] (+)= a[rows of e]^T b[rows of e], bf16 to fp32. Groups cut the reduction dimension, so both
 * loads are ragged: the tensor maps end at the end of the group, and what lies behind it arrives as
 * zeros, whatever it holds (Triton's ragged_tma; RapidGEMM's Kgemm). Tiles of 128 by 192 sums, which
 * one warpgroup holds: two take turns, so that one multiplies while the other stores, or adds to what
 * is there. Blocks work in pairs on two tiles below each other and share the columns of b. Persistent;
 * pairs take tiles from a shared counter, largest groups first. A group without rows is one k-block
 * of zeros at beta 0, and nothing at beta 1.
 */
#include <cuda_runtime.h>
#include <string.h>

#include "kernels/device/async_ragged.cuh"
#include "kernels/device/cluster.cuh"
#include "kernels/device/early.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/tensor_map.h"
#include "kernels/device/wgmma.cuh"
#include "kernels/k_grouped_gemm/bf16.h"
#include "kernels/k_grouped_gemm/order.cuh"

enum {
    THREADS = 384,
    CLUSTER = 2,
    BLOCK_M = 128,
    PANELS = 3, /* of 64 columns */
    BLOCK_N = PANELS * 64,
    BLOCK_K = 64,
    PANEL_BYTES = 64 * BLOCK_K * 2,
    A_BYTES = 2 * PANEL_BYTES,
    HALF_BYTES = PANEL_BYTES / 2, /* of a panel: 32 rows, what each block loads for both */
    B_BYTES = PANELS * PANEL_BYTES,
    STAGE_BYTES = A_BYTES + B_BYTES,
    STAGES = 5,
    BOX_BYTES = 64 * 32 * 4, /* of d: 64 rows by 32 columns */
    BOXES = 3,               /* of d that are on their way */
    TILE_SLOTS = 3,
    PRODUCER_REGISTERS = 40,
    CONSUMER_REGISTERS = 232,
    LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8
};
static_assert(PRODUCER_REGISTERS * 128 + CONSUMER_REGISTERS * 256 <= LAUNCH_REGISTERS * THREADS,
              "roles take more registers than the block has");

template <bool ADD> struct shared_of {
    static const int BYTES = 1024 + STAGES * STAGE_BYTES + (ADD ? BOXES * BOX_BYTES : 0);
    static_assert(BYTES + 1536 <= 227 * 1024, "stages exceed shared memory");
};

struct ring {
    int stage;
    uint32_t parity;

    __device__ explicit ring(int before = 0) : stage(before % STAGES), parity(before / STAGES & 1)
    {
    }

    __device__ void next()
    {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

struct problem {
    float *d;
    int m, n, beta;
    int in_one; /* the maps of a and b have panels as a dimension */
    int row_pairs, tiles;
};

struct tile {
    int group; /* NO_TILE: there is none left */
    int begin, rows;
    int row, column, panels;
    int k_blocks, last_steps;
    int first_box; /* of d, modulo twice BOXES */
    int before;    /* k-blocks of earlier tiles, modulo twice STAGES */
};
static const int NO_TILE = -1;

struct shared_layout {
    char *stages, *old;
    uint64_t *full, *free, *old_full, *old_free, *old_turn, *tile_full, *tile_read, *number_full, *turn;
    tile *tiles;
    int *numbers;
};

static __device__ __forceinline__ tile take_tile(const shared_layout &shared, int i)
{
    int slot = i % TILE_SLOTS;
    tile t;
    tl_mbarrier_wait(shared.tile_full + slot, i / TILE_SLOTS & 1);
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        t = shared.tiles[slot];
        tl_mbarrier_arrive(shared.tile_read + slot);
    }
    t.group = tl_uniform(t.group);
    t.begin = tl_uniform(t.begin);
    t.rows = tl_uniform(t.rows);
    t.row = tl_uniform(t.row);
    t.column = tl_uniform(t.column);
    t.panels = tl_uniform(t.panels);
    t.k_blocks = tl_uniform(t.k_blocks);
    t.last_steps = tl_uniform(t.last_steps);
    t.before = tl_uniform(t.before);
    return t;
}

static __device__ bool tile_of(const problem &p, const schedule *todo, int total, int number,
                               int rank, int &before, int &box, tile &t)
{
    if (number >= total)
        return false;
    work w = work_at(todo, number / p.tiles);
    int index = number % p.tiles;
    t.group = w.group;
    t.begin = w.begin;
    t.rows = w.rows;
    t.row = (index % p.row_pairs * CLUSTER + rank) * BLOCK_M;
    t.column = index / p.row_pairs * BLOCK_N;
    t.panels = min((int)PANELS, (p.n - t.column + 63) / 64);
    t.k_blocks = (w.rows + BLOCK_K - 1) / BLOCK_K;
    if (w.rows == 0 && !p.beta)
        t.k_blocks = 1;
    t.last_steps = max(1, (w.rows - (t.k_blocks - 1) * BLOCK_K + 15) / 16);
    t.before = before;
    before = (before + t.k_blocks) % (2 * STAGES);
    t.first_box = box;
    box = (box + (t.k_blocks > 0 ? t.panels * 4 : 0)) % (2 * BOXES);
    return true;
}

static __device__ void choose_tiles(const shared_layout &shared, schedule *todo, const problem &p)
{
    int rank = tl_cluster_rank(), clusters = (int)gridDim.x / CLUSTER;
    int number = (int)blockIdx.x / CLUSTER, total = todo->groups * p.tiles;
    int before = 0, box = 0;
    bool more = true;
    for (int i = 0, last = -1; i != last; i++) {
        int slot = i % TILE_SLOTS;
        uint32_t parity = i / TILE_SLOTS & 1;
        tl_mbarrier_wait(shared.tile_read + slot, parity ^ 1);
        if (i > 0 && more && rank == 0) {
            number = clusters + atomicAdd(&todo->next, 1);
            tl_cluster_send(tl_cluster_address(shared.numbers + slot, 1), number,
                            tl_cluster_address(shared.number_full + slot, 1));
        } else if (i > 0 && more) {
            tl_mbarrier_expect(shared.number_full + slot, sizeof(int));
            tl_mbarrier_wait(shared.number_full + slot, parity ^ (slot == 0));
            number = *(volatile int *)(shared.numbers + slot);
        }
        if (rank > 0 && more)
            tl_mbarrier_arrive_cluster(tl_cluster_address(shared.tile_read + slot, 0));
        tile t;
        if (more && !tile_of(p, todo, total, number, rank, before, box, t)) {
            more = false;
            last = i + 2;
        }
        if (!more)
            t.group = NO_TILE;
        shared.tiles[slot] = t;
        tl_mbarrier_arrive(shared.tile_full + slot);
    }
}

static __device__ void load_a(const shared_layout &shared, const CUtensorMap *map, const problem &p)
{
    bool elected = tl_elect();
    ring at;
    for (int i = 0;; i++) {
        tile t = take_tile(shared, i);
        if (t.group == NO_TILE)
            break;
        int y = TL_RAGGED_ROWS - t.rows, z = t.begin + t.rows;
        for (int k = 0; k < t.k_blocks; k++, at.next()) {
            char *to = shared.stages + at.stage * STAGE_BYTES;
            uint64_t *full = shared.full + at.stage;
            tl_mbarrier_wait(shared.free + at.stage, at.parity ^ 1);
            __syncwarp();
            if (!elected)
                continue;
            tl_mbarrier_expect(full, A_BYTES);
            if (p.in_one) {
                tl_tma_load_5d(to, map, full, 0, y + k * BLOCK_K, z, TL_RAGGED_ROWS, t.row / 64);
            } else {
                tl_tma_load_4d(to, map, full, t.row, y + k * BLOCK_K, z, TL_RAGGED_ROWS);
                tl_tma_load_4d(to + PANEL_BYTES, map, full, t.row + 64, y + k * BLOCK_K, z,
                               TL_RAGGED_ROWS);
            }
        }
    }
}

/* A warp: what is there, 32 columns at a time, their upper 64 rows before the lower. */
static __device__ void load_old(const shared_layout &shared, const CUtensorMap *map)
{
    bool elected = tl_elect();
    int slot = 0;
    uint32_t parity = 0;
    for (int i = 0;; i++) {
        tile t = take_tile(shared, i);
        if (t.group == NO_TILE)
            break;
        int boxes = t.k_blocks > 0 ? t.panels * 4 : 0;
        for (int box = 0; box < boxes; box++) {
            uint64_t *full = shared.old_full + slot;
            tl_mbarrier_wait(shared.old_free + slot, parity ^ 1);
            __syncwarp();
            if (elected) {
                tl_mbarrier_expect(full, BOX_BYTES);
                tl_tma_load_3d(shared.old + slot * BOX_BYTES, map, full, t.column + box / 2 * 32,
                               t.row + box % 2 * 64, t.group);
            }
            if (++slot == BOXES) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
}

static __device__ __forceinline__ void
multicast_4d(void *shared, const CUtensorMap *map, uint64_t *barrier, int x, int y, int z, int w)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(
                     tl_shared_address(shared)),
                 "l"(map), "r"(tl_shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w),
                 "h"((uint16_t)3)
                 : "memory");
}

static __device__ __forceinline__ void multicast_5d(void *shared, const CUtensorMap *map,
                                                    uint64_t *barrier, int x, int y, int z, int w,
                                                    int v)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(
                     tl_shared_address(shared)),
                 "l"(map), "r"(tl_shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v),
                 "h"((uint16_t)3)
                 : "memory");
}

static __device__ void load_b(const shared_layout &shared, const CUtensorMap *map, const problem &p)
{
    bool elected = tl_elect();
    int rank = tl_uniform(tl_cluster_rank());
    ring at;
    for (int i = 0;; i++) {
        tile t = take_tile(shared, i);
        if (t.group == NO_TILE)
            break;
        int y = TL_RAGGED_ROWS - t.rows + rank * 32, z = t.begin + t.rows;
        for (int k = 0; k < t.k_blocks; k++, at.next()) {
            char *to = shared.stages + at.stage * STAGE_BYTES + A_BYTES + rank * PANELS * HALF_BYTES;
            uint64_t *full = shared.full + at.stage;
            tl_mbarrier_wait(shared.free + at.stage, at.parity ^ 1);
            __syncwarp();
            if (!elected)
                continue;
            tl_mbarrier_expect(full, B_BYTES);
            if (p.in_one) {
                multicast_5d(to, map, full, 0, y + k * BLOCK_K, z, TL_RAGGED_ROWS, t.column / 64);
            } else {
                for (int panel = 0; panel < PANELS; panel++)
                    multicast_4d(to + panel * HALF_BYTES, map, full, t.column + panel * 64,
                                 y + k * BLOCK_K, z, TL_RAGGED_ROWS);
            }
        }
    }
}

struct releaser {
    uint32_t first;

    __device__ explicit releaser(const shared_layout &shared)
    {
        int warp = (int)threadIdx.x % 128 / 32;
        first = 0;
        if (threadIdx.x % 32 == 0 && warp < CLUSTER)
            first = tl_cluster_address(shared.free, tl_cluster_rank() ^ warp);
    }

    __device__ void release(int stage) const
    {
        if (first)
            tl_mbarrier_arrive_cluster(first + stage * (uint32_t)sizeof(uint64_t));
    }
};

template <int N, int C>
static __device__ __forceinline__ void multiply_step(float (&upper)[C], float (&lower)[C], uint64_t a,
                                                     uint64_t b, int step, bool accumulate)
{
    uint64_t b_step = b + (step / 2) * (PANELS * HALF_BYTES >> 4) + (step % 2) * 128;
    tl_wgmma_bf16<N, 1, 1>(upper, a + step * 128, b_step, accumulate);
    tl_wgmma_bf16<N, 1, 1>(lower, a + (PANEL_BYTES >> 4) + step * 128, b_step, accumulate);
}

template <int N, int C>
static __device__ __forceinline__ void multiply_tile(float (&upper)[C], float (&lower)[C],
                                                     const shared_layout &shared, ring at,
                                                     int k_blocks, int last_steps,
                                                     const releaser &stages, uint64_t *next_turn)
{
    int previous = 0;
    for (int k = 0; k < k_blocks - 1; k++) {
        tl_mbarrier_wait(shared.full + at.stage, at.parity);
        const char *stage = shared.stages + at.stage * STAGE_BYTES;
        uint64_t a = tl_wgmma_desc_128b_mn(stage, PANEL_BYTES);
        uint64_t b = tl_wgmma_desc_128b_mn(stage + A_BYTES, HALF_BYTES);
        tl_wgmma_fence();
#pragma unroll
        for (int step = 0; step < BLOCK_K / 16; step++)
            multiply_step<N>(upper, lower, a, b, step, k > 0 || step > 0);
        tl_wgmma_commit();
        tl_wgmma_wait<1>();
        if (k > 0)
            stages.release(previous);
        previous = at.stage;
        at.next();
    }
    tl_mbarrier_wait(shared.full + at.stage, at.parity);
    const char *stage = shared.stages + at.stage * STAGE_BYTES;
    uint64_t a = tl_wgmma_desc_128b_mn(stage, PANEL_BYTES);
    uint64_t b = tl_wgmma_desc_128b_mn(stage + A_BYTES, HALF_BYTES);
#pragma unroll 1
    for (int step = 0; step < last_steps; step++) {
        tl_wgmma_fence();
        multiply_step<N>(upper, lower, a, b, step, k_blocks > 1 || step > 0);
        tl_wgmma_commit();
    }
    if (threadIdx.x % 128 == 0)
        tl_mbarrier_arrive(next_turn);
    tl_wgmma_wait<0>();
    if (k_blocks > 1)
        stages.release(previous);
    stages.release(at.stage);
}

/* Four neighbouring columns of 16: lanes in pairs exchange halves of two blocks of eight. */
static __device__ __forceinline__ float4 four_of(const float *acc)
{
    bool odd = threadIdx.x % 2;
    float2 low = {acc[0], acc[1]}, high = {acc[4], acc[5]};
    float2 mine = odd ? high : low, other = odd ? low : high;
    other.x = __shfl_xor_sync(0xffffffffu, other.x, 1);
    other.y = __shfl_xor_sync(0xffffffffu, other.y, 1);
    return odd ? make_float4(other.x, other.y, mine.x, mine.y)
               : make_float4(mine.x, mine.y, other.x, other.y);
}

/* Where a thread's sums go: in four rows, 8, 64 and 72 apart. */
struct place {
    float *d;
    int columns, rows; /* from its own on, to the end of the matrix */
    int panels;        /* of the tile */

    __device__ place(const problem &p, volatile const tile *t)
    {
        int thread = threadIdx.x % 128, lane = thread % 32;
        int row = t->row + thread / 32 * 16 + lane / 4;
        int inner = lane % 2 * 8 + lane % 4 / 2 * 4, column = t->column + inner;
        d = p.d + ((int64_t)t->group * p.m + row) * p.n + column;
        columns = p.n - column;
        panels = t->panels;
        rows = p.m - row;
    }
};

/* Where a thread's four columns of the first 16 lie in a box. */
static __device__ __forceinline__ uint32_t old_at(uint32_t box, int half)
{
    int thread = threadIdx.x % 128, lane = thread % 32;
    int row = thread / 32 * 16 + lane / 4;
    int quad = half * 4 + lane % 2 * 2 + lane % 4 / 2; /* of four columns */
    return box + row * 128 + (quad ^ row % 8) * 16;
}

static __device__ __forceinline__ float4 shared_load(uint32_t address)
{
    float4 value;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(address)
                 : "memory");
    return value;
}

/* Box after box of 64 rows by 32 columns. */
template <bool ADD, int C>
static __device__ __forceinline__ void store_tile(const float (&upper)[C], const float (&lower)[C],
                                                  const shared_layout &shared, const place &to,
                                                  const problem &p, int first_box,
                                                  uint64_t *next_turn)
{
    int slot = first_box % BOXES;
    uint32_t parity = first_box / BOXES & 1;
#pragma unroll
    for (int box = 0; box < PANELS * 4; box++) {
        if (box >= to.panels * 4)
            break;
        uint32_t old = 0;
        if (ADD) {
            tl_mbarrier_wait(shared.old_full + slot, parity);
            old = tl_shared_address(shared.old) + slot * BOX_BYTES;
            if (box == to.panels * 4 - 1 && threadIdx.x % 128 == 0)
                tl_mbarrier_arrive(next_turn);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int down = box % 2 * 64 + i % 2 * 8, right = box / 2 * 32 + i / 2 * 16;
            float4 sum = four_of((box % 2 ? lower : upper) + box / 2 * 16 + i / 2 * 8 + i % 2 * 2);
            if (ADD) {
                float4 was = shared_load(old_at(old, i / 2) + i % 2 * 8 * 128);
                sum = {sum.x + was.x, sum.y + was.y, sum.z + was.z, sum.w + was.w};
            }
            float4 *at = (float4 *)(to.d + down * (int64_t)p.n + right);
            if (right < to.columns && down < to.rows)
                *at = sum;
        }
        if (ADD) {
            __syncwarp();
            if (threadIdx.x % 32 == 0)
                tl_mbarrier_arrive(shared.old_free + slot);
            if (++slot == BOXES) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
}

template <bool ADD>
static __device__ void consume(const shared_layout &shared, const problem &p, int warpgroup)
{
    releaser stages(shared);
    uint64_t *next_turn = shared.turn + (warpgroup ^ 1);
    float upper[BLOCK_N / 2], lower[BLOCK_N / 2];
    for (int i = warpgroup;; i += 2) {
        int slot = i % TILE_SLOTS;
        volatile const tile *chosen = shared.tiles + slot;
        tl_mbarrier_wait(shared.tile_full + slot, i / TILE_SLOTS & 1);
        if (tl_uniform(chosen->group) == NO_TILE)
            break;
        int k_blocks = tl_uniform(chosen->k_blocks);
        if (i > 0)
            tl_mbarrier_wait(shared.turn + warpgroup, (i - 1) / 2 & 1);
        if (k_blocks == 0) {
            if (threadIdx.x % 128 == 0)
                tl_mbarrier_arrive(next_turn);
        } else {
            ring at(tl_uniform(chosen->before));
            int last_steps = tl_uniform(chosen->last_steps);
            switch (tl_uniform(chosen->panels)) {
            case 1:
                multiply_tile<64>(upper, lower, shared, at, k_blocks, last_steps, stages, next_turn);
                break;
            case 2:
                multiply_tile<128>(upper, lower, shared, at, k_blocks, last_steps, stages, next_turn);
                break;
            default:
                multiply_tile<192>(upper, lower, shared, at, k_blocks, last_steps, stages, next_turn);
                break;
            }
        }
        place to(p, chosen);
        int first_box = chosen->first_box;
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            tl_mbarrier_arrive(shared.tile_read + slot);
        if (ADD && i > 0)
            tl_mbarrier_wait(shared.old_turn + warpgroup, (i - 1) / 2 & 1);
        uint64_t *next_old = shared.old_turn + (warpgroup ^ 1);
        if (k_blocks > 0)
            store_tile<ADD>(upper, lower, shared, to, p, first_box, next_old);
        else if (ADD && threadIdx.x % 128 == 0)
            tl_mbarrier_arrive(next_old);
    }
}

struct maps {
    CUtensorMap a, b, d;
};

template <bool ADD>
static __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    turns_kernel(const __grid_constant__ maps map, schedule *todo, problem p)
{
    extern __shared__ char raw[];
    __shared__ uint64_t full[STAGES], free[STAGES];
    __shared__ uint64_t old_full[BOXES], old_free[BOXES], old_turn[2];
    __shared__ uint64_t tile_full[TILE_SLOTS], tile_read[TILE_SLOTS], number_full[TILE_SLOTS];
    __shared__ uint64_t turn[2];
    __shared__ tile tiles[TILE_SLOTS];
    __shared__ int numbers[TILE_SLOTS];
    /* The same offset in both blocks, since loads for both use it. */
    char *base = raw + ((1024 - tl_shared_address(raw) % 1024) % 1024);
    shared_layout shared = {base,     base + STAGES * STAGE_BYTES, full,      free,        old_full,
                            old_free, old_turn,                    tile_full, tile_read,   number_full,
                            turn,     tiles,                       numbers};
    int warp = tl_uniform((int)threadIdx.x / 32);
    if (threadIdx.x == 0) {
        tl_prefetch_map(&map.a);
        tl_prefetch_map(&map.b);
        for (int i = 0; i < STAGES; i++) {
            tl_mbarrier_init(full + i, 2);
            tl_mbarrier_init(free + i, CLUSTER);
        }
        for (int i = 0; i < BOXES; i++) {
            tl_mbarrier_init(old_full + i, 1);
            tl_mbarrier_init(old_free + i, 4);
        }
        for (int i = 0; i < 2; i++) {
            tl_mbarrier_init(turn + i, 1);
            tl_mbarrier_init(old_turn + i, 1);
        }
        for (int i = 0; i < TILE_SLOTS; i++) {
            tl_mbarrier_init(tile_full + i, 1);
            tl_mbarrier_init(tile_read + i, 6 + ADD + (tl_cluster_rank() == 0 ? CLUSTER - 1 : 0));
            tl_mbarrier_init(number_full + i, 1);
        }
        tl_mbarrier_init_fence();
    }
    cudaGridDependencySynchronize(); /* the order, and all that was before it */
    __syncthreads();
    tl_cluster_sync();
    if (warp >= 8) {
        tl_registers_shrink<PRODUCER_REGISTERS>();
        if (warp == 8)
            load_a(shared, &map.a, p);
        else if (warp == 9)
            load_b(shared, &map.b, p);
        else if (ADD && warp == 11)
            load_old(shared, &map.d);
        else if (threadIdx.x == 10 * 32)
            choose_tiles(shared, todo, p);
    } else {
        tl_registers_grow<CONSUMER_REGISTERS>();
        consume<ADD>(shared, p, warp / 4);
    }
    __syncwarp();
    tl_cluster_sync();
}

/* --- the host's side -------------------------------------------------------------------------- */

static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t rows = problem->dim[TL_K_GROUPED_K];
    TL_TRY(k_grouped_legal_bf16(problem, "sm90_turns"));
    if (rows > TL_RAGGED_ROWS)
        return TL_FAIL(TL_ERR_ILLEGAL, "k_grouped_gemm/sm90_turns: %lld rows are more than 2^30",
                       (long long)rows);
    return TL_OK;
}

static bool panels_in_one(const struct tl_plan *plan)
{
    return plan->problem.dim[TL_K_GROUPED_M] % 64 == 0 && plan->problem.dim[TL_K_GROUPED_N] % 64 == 0;
}

static enum tl_status make_maps(const struct tl_plan *plan, const struct tl_args *args, maps *out)
{
    const struct tl_tensor *a = &args->tensor[TL_K_GROUPED_A], *b = &args->tensor[TL_K_GROUPED_B];
    int64_t m = plan->problem.dim[TL_K_GROUPED_M], n = plan->problem.dim[TL_K_GROUPED_N];
    TL_TRY(tl_tensor_map_3d(&out->d, &args->tensor[TL_K_GROUPED_D], n, m,
                            plan->problem.dim[TL_K_GROUPED_NUM_GROUPS], 32, 64));
    if (panels_in_one(plan)) {
        TL_TRY(tl_tensor_map_ragged_panels(&out->a, a, m, BLOCK_K, BLOCK_M / 64));
        return tl_tensor_map_ragged_panels(&out->b, b, n, BLOCK_K / CLUSTER, PANELS);
    }
    TL_TRY(tl_tensor_map_ragged(&out->a, a, m, 64, BLOCK_K));
    return tl_tensor_map_ragged(&out->b, b, n, 64, BLOCK_K / CLUSTER);
}

static size_t workspace(const struct tl_plan *plan)
{
    return schedule_bytes(plan->problem.dim[TL_K_GROUPED_NUM_GROUPS]);
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    const struct tl_tensor *d = &args->tensor[TL_K_GROUPED_D];
    bool beta = plan->problem.param[TL_K_GROUPED_BETA] != 0;
    if (tl_tensor_bytes(d) == 0 || (dim[TL_K_GROUPED_K] == 0 && beta))
        return TL_OK;
    if (dim[TL_K_GROUPED_K] == 0)
        return TL_CUDA_STATUS(
            plan, "zeroing d",
            cudaMemsetAsync(d->data, 0, tl_tensor_bytes(d), tl_cuda_stream(stream)));
    maps map;
    problem p;
    schedule *todo = (schedule *)args->workspace;
    TL_TRY(make_maps(plan, args, &map));
    p.d = (float *)d->data;
    p.m = (int)dim[TL_K_GROUPED_M];
    p.n = (int)dim[TL_K_GROUPED_N];
    p.beta = beta;
    p.in_one = panels_in_one(plan);
    p.row_pairs = (p.m + CLUSTER * BLOCK_M - 1) / (CLUSTER * BLOCK_M);
    p.tiles = p.row_pairs * ((p.n + BLOCK_N - 1) / BLOCK_N);
    void (*kernel)(maps, schedule *, problem) = beta ? turns_kernel<true> : turns_kernel<false>;
    int bytes = beta ? shared_of<true>::BYTES : shared_of<false>::BYTES;
    TL_TRY(TL_CUDA_STATUS(
        plan, "shared memory of turns_kernel",
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)));
    order_kernel<<<1, ORDER_THREADS, 0, tl_cuda_stream(stream)>>>(
        (const int *)args->tensor[TL_K_GROUPED_OFFSETS].data, (int)dim[TL_K_GROUPED_NUM_GROUPS],
        dim[TL_K_GROUPED_K], beta, todo, tl_cuda_fault(plan));
    TL_TRY(TL_CUDA_LAUNCHED(plan, "order_kernel"));
    return TL_CUDA_STATUS(
        plan, "turns_kernel",
        tl_cuda_launch_early(kernel, (unsigned)plan->device->multiprocessors / CLUSTER * CLUSTER,
                             THREADS, (size_t)bytes, tl_cuda_stream(stream), map, todo, p));
}

extern "C" const struct tl_kernel tl_kernel_k_grouped_gemm_sm90_turns = {
    .operation = "k_grouped_gemm",
    .variant = "sm90_turns",
    .arch = "sm90",
    .summary = "Ragged TMA loads of both operands, warpgroups in turn.",
    .dtypes = TL_DTYPE_BIT(TL_BF16) | TL_DTYPE_BIT(TL_FP32),
    .legal = legal,
    .workspace = workspace,
    .launch = launch,
};
