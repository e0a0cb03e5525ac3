/* m_grouped_gemm/sm90_ragged: grouped GEMM over groups of any size, without padding.
 *
 * d[rows of e] = a[rows of e] b[e], bf16 with fp32 sums. The weights lie on wgmma's M side, 128 of
 * them a tile, and the tokens on its N side, where tiles come in steps of eight: a group is cut into
 * equal tiles of at most 160 tokens, and no more than seven rows of it are computed in vain. Two
 * warpgroups take turns with whole tiles, so that one multiplies while the other stores; blocks work
 * in pairs on two tiles of weights and share the tokens. Only the store is ragged: a tile may load
 * rows of the next group, and the tensor map drops them on the way out, since its bound lies at the
 * end of the tile (Triton's ragged_tma; RapidGEMM).
 */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "kernels/device/async.cuh"
#include "kernels/device/cluster.cuh"
#include "kernels/device/group_offsets.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/tensor_map.h"
#include "kernels/device/wgmma.cuh"
#include "kernels/device/wgmma_shapes.cuh"
#include "kernels/host/magnitude.h"
#include "kernels/m_grouped_gemm/op.h"

enum {
    UNIT = 8,        /* tokens: the step of wgmma's N side */
    MOST_UNITS = 20, /* of a tile; what the accumulators of a warpgroup hold */
    BLOCK_N = 128,   /* weights of a tile, twice wgmma's 64 */
    BLOCK_K = 64,
    MOST_STAGES = 6,
    CLUSTER = 2,
    THREADS = 384,
    WEIGHT_BYTES = BLOCK_N * BLOCK_K * 2,
    UNIT_BYTES = UNIT * BLOCK_K * 2,
    STAGE_BYTES = WEIGHT_BYTES + MOST_UNITS * UNIT_BYTES,
    STORE_TOKENS = 32, /* a store box: 32 tokens by 64 weights */
    STORE_BYTES = STORE_TOKENS * 64 * 2,
    PRODUCER_REGISTERS = 40,
    CONSUMER_REGISTERS = 232,
    LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8, /* what __launch_bounds__ leaves a thread */
    SHARED_BYTES = 1024 + MOST_STAGES * STAGE_BYTES + 2 * STORE_BYTES
};
/* setmaxnreg.inc waits for registers that the block was launched with; beyond them it waits for
 * ever. */
static_assert(PRODUCER_REGISTERS * 128 + CONSUMER_REGISTERS * 256 <= LAUNCH_REGISTERS * THREADS,
              "roles take more registers than the block has");
static_assert(SHARED_BYTES + 1024 <= 227 * 1024, "tiles and staging exceed shared memory");

/* What the host says. */
struct settings {
    int num_groups, m, n, k_blocks;
    int stages;
    int turns;     /* warpgroups that multiply */
    int multicast; /* blocks that a load of tokens serves: 1 or 2 */
    int step;      /* units that a group's last tile is rounded up to */
    int band;      /* token tiles that meet a tile of weights before the next one does */
};

/* One tile of the output, of both blocks of a cluster. */
struct tile {
    int group; /* NO_TILE: there is none left */
    int group_begin, group_rows;
    int row, units; /* its first token in the group, and its height; the last unit may be partial */
    int column;     /* of the first block */
};
static const int NO_TILE = -1;

/* Finds tiles by their number: groups in order, in each bands of `band` token tiles, in each band
 * column by column. Numbers may only grow. */
struct tile_walk {
    const int *offsets;
    int num_groups, columns, step, band, group, begin, end, units, splits, passed;

    __device__ tile_walk(const int *offsets_, const settings &set)
        : offsets(offsets_), num_groups(set.num_groups),
          columns((set.n + CLUSTER * BLOCK_N - 1) / (CLUSTER * BLOCK_N)), step(set.step),
          band(set.band), group(-1), begin(0), end(offsets_[0]), units(0), splits(0), passed(0)
    {
    }

    __device__ bool find(int number, tile &out)
    {
        while (number - passed >= splits * columns) {
            passed += splits * columns;
            if (++group >= num_groups)
                return false;
            begin = end;
            end = __ldg(offsets + group + 1);
            units = (end - begin + step * UNIT - 1) / (step * UNIT) * step;
            splits = (units + MOST_UNITS / step * step - 1) / (MOST_UNITS / step * step);
        }
        int index = number - passed;
        int band_start = index / (band * columns) * band, in_band = index - band_start * columns;
        int height = min(band, splits - band_start), split = band_start + in_band % height;
        int least = units / step / splits * step; /* `larger` tiles have a step more */
        int larger = units / step % splits;
        out.group = group;
        out.group_begin = begin;
        out.group_rows = end - begin;
        out.row = (split * least + min(split, larger) * step) * UNIT;
        out.units = least + (split < larger ? step : 0);
        out.column = in_band / height * CLUSTER * BLOCK_N;
        return true;
    }
};

/* Tiles on their way from the producer to the consumers: a tile takes a stage or more, so that at
 * most MOST_STAGES of them are ahead of the slower consumer, and two that say that there is no more. */
enum { TILE_SLOTS = 16 };
static_assert((int)TILE_SLOTS >= (int)MOST_STAGES + 3, "a tile could be overwritten before it is read");

struct shared_layout {
    char *stages, *store; /* a stage: 128 weights, then the tokens, 64 of k each */
    uint64_t *full, *empty, *tile_full, *number_full;
    tile *tiles;
    int *numbers; /* of tiles, sent by the first block of the cluster to the second */
};

/* Which stage of the ring, and the parity of its phase. */
struct ring {
    int stages, stage = 0;
    uint32_t parity = 0;

    __device__ explicit ring(int stages_) : stages(stages_)
    {
    }

    __device__ void next()
    {
        if (++stage == stages) {
            stage = 0;
            parity ^= 1;
        }
    }

    __device__ void skip(int count)
    {
        int to = stage + count;
        parity ^= to / stages & 1;
        stage = to % stages;
    }
};

/* Loads of many small boxes are slow, those of both blocks above all: there is a map for each
 * number of units that a block may load for both. */
struct maps {
    CUtensorMap weights, d, tokens[MOST_UNITS / CLUSTER];
};

/* One k-block of a tile: the weights of this block, and its half of the tokens for both blocks; or
 * both halves for itself. */
template <bool W_MN>
static __device__ __forceinline__ void load_stage(char *stage, uint64_t *full, const maps &map,
                                                  int k, int column, int row, const tile &t,
                                                  int rank, bool multicast)
{
    tl_mbarrier_expect(full, WEIGHT_BYTES + t.units * UNIT_BYTES);
    if (W_MN) {
        tl_tma_load_3d(stage, &map.weights, full, column, k, t.group);
        tl_tma_load_3d(stage + WEIGHT_BYTES / 2, &map.weights, full, column + 64, k, t.group);
    } else {
        tl_tma_load_3d(stage, &map.weights, full, k, column, t.group);
    }
    int half = (t.units + 1) / 2, first = rank ? half : 0, units = rank ? t.units - half : half;
    char *tokens = stage + WEIGHT_BYTES;
    if (!multicast) {
        tl_tma_load_2d(tokens, &map.tokens[half - 1], full, k, row);
        first = half;
        units = t.units - half;
    }
    if (units == 0)
        return;
    const CUtensorMap *map_tokens = &map.tokens[units - 1];
    tokens += first * UNIT_BYTES;
    if (multicast)
        tl_tma_multicast_2d(tokens, map_tokens, full, k, row + first * UNIT, (1 << CLUSTER) - 1);
    else
        tl_tma_load_2d(tokens, map_tokens, full, k, row + first * UNIT);
}

/* A warp. Takes tiles from the counter that all clusters share, so that they end together whatever
 * the groups' sizes are, and loads them. The first block of a cluster asks for the next number while
 * the present tile loads, and tells the second. */
template <bool W_MN>
static __device__ void produce(const shared_layout &shared, const int *offsets, const maps &map,
                               int *counter, const settings &set)
{
    int rank = tl_uniform(tl_cluster_rank()), number = (int)blockIdx.x / CLUSTER, i = 0;
    bool first_lane = threadIdx.x % 32 == 0, elected = tl_elect();
    int send_at = min(2, set.k_blocks - 1);
    tile_walk walk(offsets, set);
    tile t;
    ring at(set.stages);
    for (; walk.find(number, t); i++) {
        int slot = i % TILE_SLOTS, next = 0;
        if (first_lane) {
            shared.tiles[slot] = t;
            tl_mbarrier_arrive(shared.tile_full + slot);
            if (rank == 0)
                next = (int)gridDim.x / CLUSTER + atomicAdd(counter, 1);
        }
        t.group = tl_uniform(t.group);
        t.units = tl_uniform(t.units);
        int column = tl_uniform(t.column) + rank * BLOCK_N, row = tl_uniform(t.group_begin + t.row);
        for (int k = 0; k < set.k_blocks; k++, at.next()) {
            tl_mbarrier_wait(shared.empty + at.stage, at.parity ^ 1);
            if (elected)
                load_stage<W_MN>(shared.stages + at.stage * STAGE_BYTES, shared.full + at.stage,
                                 map, k * BLOCK_K, column, row, t, rank, set.multicast > 1);
            if (k == send_at && rank == 0 && first_lane)
                tl_cluster_send(tl_cluster_address(shared.numbers + slot, 1), next,
                                tl_cluster_address(shared.number_full + slot, 1));
        }
        if (rank == 1) {
            if (first_lane)
                tl_mbarrier_expect(shared.number_full + slot, sizeof(int));
            tl_mbarrier_wait(shared.number_full + slot, i / TILE_SLOTS & 1);
            next = *(volatile int *)(shared.numbers + slot);
        }
        number = tl_uniform(next);
    }
    for (int last = i + set.turns; first_lane && i < last; i++) { /* one for each consumer */
        shared.tiles[i % TILE_SLOTS].group = NO_TILE;
        tl_mbarrier_arrive(shared.tile_full + i % TILE_SLOTS);
    }
}

/* Says that a warpgroup has read a stage: to its own block, and to the one that loads for it. For
 * one thread; `peer` is 0 where there is none. */
static __device__ __forceinline__ void release(const shared_layout &shared, uint32_t peer, int stage)
{
    tl_mbarrier_arrive(shared.empty + stage);
    if (peer)
        tl_mbarrier_arrive_cluster(peer + stage * (uint32_t)sizeof(uint64_t));
}

/* upper, lower = 64 weights each by N tokens, over all of k; one stage is multiplied while the next
 * is waited for. */
template <int N, bool W_MN, int C>
static __device__ __forceinline__ void multiply_tile(float (&upper)[C], float (&lower)[C],
                                                     const shared_layout &shared, ring at,
                                                     int k_blocks, bool leader, uint32_t peer)
{
    const int step = W_MN ? 16 * 128 >> 4 : 32 >> 4; /* 16 of k further, in a descriptor's units */
    int previous = 0;
    for (int k = 0; k < k_blocks; k++) {
        tl_mbarrier_wait(shared.full + at.stage, at.parity);
        const char *weights = shared.stages + at.stage * STAGE_BYTES;
        uint64_t w0 = W_MN ? tl_wgmma_desc_128b_mn(weights, WEIGHT_BYTES / 2)
                           : tl_wgmma_desc_128b(weights);
        uint64_t w1 = w0 + (WEIGHT_BYTES / 2 >> 4);
        uint64_t tokens = tl_wgmma_desc_128b(weights + WEIGHT_BYTES);
        tl_wgmma_fence();
#pragma unroll
        for (int i = 0; i < BLOCK_K / 16; i++) {
            tl_wgmma_bf16<N, W_MN>(upper, w0 + step * i, tokens + 2 * i, k > 0 || i > 0);
            tl_wgmma_bf16<N, W_MN>(lower, w1 + step * i, tokens + 2 * i, k > 0 || i > 0);
        }
        tl_wgmma_commit();
        tl_wgmma_wait<1>(); /* the stage before is read */
        if (leader && k > 0)
            release(shared, peer, previous);
        previous = at.stage;
        at.next();
    }
    tl_wgmma_wait<0>();
    if (leader)
        release(shared, peer, previous);
}

/* 64 weights by the tokens of a tile to bf16, transposed through swizzled boxes, and out. The other
 * warpgroup multiplies meanwhile, so nobody waits for the one buffer. */
static __device__ __forceinline__ void store_half(const float (&acc)[MOST_UNITS * 4], char *store,
                                                  const CUtensorMap *map_d, const tile &t,
                                                  int column, int n, int barrier)
{
    int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
    int tokens = t.units * UNIT, bound = min(t.group_rows, t.row + tokens);
#pragma unroll
    for (int first = 0; first < MOST_UNITS * UNIT; first += STORE_TOKENS) {
        if (first >= tokens)
            break;
        if (thread == 0)
            tl_tma_store_wait_read<0>();
        tl_named_barrier(barrier, 128);
#pragma unroll
        for (int j = 0; j < STORE_TOKENS; j += 16) {
            uint32_t packed[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int at = (first + j) / 2 + i * 2;
                __nv_bfloat162 two = __floats2bfloat162_rn(acc[at], acc[at + 1]);
                packed[i] = *(uint32_t *)&two;
            }
            /* Tiles in stmatrix order: weights 0-7 and 8-15 of the warp's by eight tokens, then by
             * the next eight. */
            int token = j + lane / 16 * 8 + lane % 8, chunk = warp * 2 + lane / 8 % 2;
            tl_stmatrix_x4_transposed(store + token * 128 + ((chunk ^ (token % 8)) * 16), packed[0],
                                      packed[1], packed[2], packed[3]);
        }
        tl_fence_async_shared();
        tl_named_barrier(barrier, 128);
        if (thread == 0) {
            if (column < n)
                tl_tma_store_4d(map_d, store, column, TL_RAGGED_ROWS - bound + t.row + first,
                                t.group_begin + bound, TL_RAGGED_ROWS);
            tl_tma_store_commit();
        }
    }
}

/* A warpgroup: every other tile, so that one warpgroup stores while the other multiplies. */
template <bool W_MN>
static __device__ void consume(const shared_layout &shared, const CUtensorMap *map_d,
                               const settings &set, int warpgroup)
{
    bool leader = threadIdx.x % 128 == 0;
    int rank = tl_cluster_rank(), k_blocks = set.k_blocks;
    uint32_t peer = set.multicast > 1 ? tl_cluster_address(shared.empty, rank ^ 1) : 0;
    char *store = shared.store + warpgroup * STORE_BYTES;
    float upper[MOST_UNITS * 4], lower[MOST_UNITS * 4];
    ring at(set.stages);
    at.skip(warpgroup * k_blocks);
    for (int i = warpgroup;; i += set.turns, at.skip(set.turns * k_blocks)) {
        tl_mbarrier_wait(shared.tile_full + i % TILE_SLOTS, i / TILE_SLOTS & 1);
        tile t = shared.tiles[i % TILE_SLOTS];
        if (t.group == NO_TILE)
            break;
        switch (tl_uniform(t.units)) { /* outside of the loop over k, where wgmma stays in flight */
#define UNITS(u)                                                                               \
    case u:                                                                                    \
        multiply_tile<u * UNIT, W_MN>(upper, lower, shared, at, k_blocks, leader, peer); \
        break;
            UNITS(1) UNITS(2) UNITS(3) UNITS(4) UNITS(5) UNITS(6) UNITS(7) UNITS(8) UNITS(9)
            UNITS(10) UNITS(11) UNITS(12) UNITS(13) UNITS(14) UNITS(15) UNITS(16) UNITS(17)
            UNITS(18) UNITS(19) UNITS(20)
#undef UNITS
        }
        int column = t.column + rank * BLOCK_N;
        store_half(upper, store, map_d, t, column, set.n, 1 + warpgroup);
        store_half(lower, store, map_d, t, column + 64, set.n, 1 + warpgroup);
    }
    if (leader)
        tl_tma_store_wait_all();
}

template <bool W_MN>
static __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    ragged_kernel(const __grid_constant__ maps map, const int *offsets, int *counter, settings set,
                  tl_fault_port fault)
{
    extern __shared__ char raw[];
    __shared__ uint64_t full[MOST_STAGES], empty[MOST_STAGES], tile_full[TILE_SLOTS], number_full[TILE_SLOTS];
    __shared__ tile tiles[TILE_SLOTS];
    __shared__ int numbers[TILE_SLOTS];
    char *base = (char *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023);
    shared_layout shared = {base,      base + MOST_STAGES * STAGE_BYTES, full, empty, tile_full,
                            number_full, tiles, numbers};
    int warp = tl_uniform((int)threadIdx.x / 32);
    if (threadIdx.x == 0) {
        tl_prefetch_map(&map.weights);
        tl_prefetch_map(&map.d);
        for (int i = 0; i < MOST_STAGES; i++) {
            tl_mbarrier_init(full + i, 1);
            tl_mbarrier_init(empty + i, set.multicast);
        }
        for (int i = 0; i < TILE_SLOTS; i++) {
            tl_mbarrier_init(tile_full + i, 1);
            tl_mbarrier_init(number_full + i, 1);
        }
        tl_mbarrier_init_fence();
    }
    /* Before the roles part: the producer's walk over bad offsets might take hours, and later the
     * others would be waiting for each other. Both blocks of a cluster come to the same answer. */
    if (tl_group_offsets_refused(offsets, set.num_groups, set.m, fault))
        return;
    tl_cluster_sync();
    if (warp >= 8) {
        tl_registers_shrink<PRODUCER_REGISTERS>();
        if (warp == 8)
            produce<W_MN>(shared, offsets, map, counter, set);
    } else {
        tl_registers_grow<CONSUMER_REGISTERS>();
        if (warp / 4 < set.turns)
            consume<W_MN>(shared, &map.d, set, warp / 4);
    }
    __syncwarp();
    tl_cluster_sync();
}

static enum tl_status legal(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    TL_TRY(tl_magnitude_refuse(problem, "sm90_ragged"));
    for (int i = 0; i < 3; i++)
        if (problem->dtype[i] != TL_BF16)
            return TL_FAIL(TL_ERR_ILLEGAL, "m_grouped_gemm/sm90_ragged: '%s' is %s; it takes bf16",
                           problem->operation->args[i].name, tl_dtype_name(problem->dtype[i]));
    if (dim[TL_M_GROUPED_N] % 8 != 0 || dim[TL_M_GROUPED_K] % 8 != 0)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "m_grouped_gemm/sm90_ragged: n = %lld and k = %lld must be "
                       "multiples of 8 (16-byte rows)",
                       (long long)dim[TL_M_GROUPED_N], (long long)dim[TL_M_GROUPED_K]);
    if (dim[TL_M_GROUPED_K] == 0)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "m_grouped_gemm/sm90_ragged: k is 0; there is nothing to sum");
    if (dim[TL_M_GROUPED_M] > TL_RAGGED_ROWS)
        return TL_FAIL(TL_ERR_ILLEGAL, "m_grouped_gemm/sm90_ragged: %lld rows are more than 2^30",
                       (long long)dim[TL_M_GROUPED_M]);
    int64_t splits = dim[TL_M_GROUPED_M] / (MOST_UNITS * UNIT) + dim[TL_M_GROUPED_NUM_GROUPS];
    int64_t columns = dim[TL_M_GROUPED_N] / (CLUSTER * BLOCK_N) + 1;
    if (splits > INT32_MAX / 2 / columns)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "m_grouped_gemm/sm90_ragged: %lld rows in %lld groups by n = %lld make more "
                       "than 2^30 tiles",
                       (long long)dim[TL_M_GROUPED_M], (long long)dim[TL_M_GROUPED_NUM_GROUPS],
                       (long long)dim[TL_M_GROUPED_N]);
    return TL_OK;
}

/* What gemm_ladder and raster take away again: stages that load ahead; warpgroups that multiply in
 * turn; blocks that a load of tokens serves; tokens that a group's tail is rounded up to; token
 * tiles that meet a tile of weights before the next one does. */
enum { STAGES, TURNS, MULTICAST, TAIL, BAND };
static const int stage_choices[] = {2, 3, 4, 5, 6, 0}, pair_choices[] = {1, 2, 0};
static const int tail_choices[] = {8, 16, 32, 64, 128, 0}, band_choices[] = {1, 2, 4, 8, 16, 0};

template <bool W_MN>
static enum tl_status launch_kernel(const struct tl_plan *plan, const struct tl_args *args,
                                    struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    int64_t m = dim[TL_M_GROUPED_M], n = dim[TL_M_GROUPED_N], k = dim[TL_M_GROUPED_K];
    int64_t groups = dim[TL_M_GROUPED_NUM_GROUPS];
    const struct tl_tensor *a = &args->tensor[TL_M_GROUPED_A], *b = &args->tensor[TL_M_GROUPED_B];
    maps map;
    if (W_MN)
        TL_TRY(tl_tensor_map_3d(&map.weights, b, n, k, groups, 64, BLOCK_K));
    else
        TL_TRY(tl_tensor_map_3d(&map.weights, b, k, n, groups, BLOCK_K, BLOCK_N));
    for (int units = 1; units <= MOST_UNITS / CLUSTER; units++)
        TL_TRY(tl_tensor_map_2d(&map.tokens[units - 1], a, k, m, BLOCK_K, units * UNIT));
    TL_TRY(tl_tensor_map_ragged(&map.d, &args->tensor[TL_M_GROUPED_D], n, 64, STORE_TOKENS));
    TL_TRY(TL_CUDA_STATUS(plan, "shared memory of ragged_kernel",
                          cudaFuncSetAttribute(ragged_kernel<W_MN>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               SHARED_BYTES)));
    TL_TRY(
        TL_CUDA_STATUS(plan, "memset of the tile counter",
                       cudaMemsetAsync(args->workspace, 0, sizeof(int), tl_cuda_stream(stream))));
    const int *tunable = plan->tunable;
    settings set = {(int)groups, (int)m, (int)n, (int)((k + BLOCK_K - 1) / BLOCK_K), tunable[STAGES],
                    tunable[TURNS], tunable[MULTICAST], tunable[TAIL] / UNIT, tunable[BAND]};
    ragged_kernel<W_MN><<<(unsigned)plan->device->multiprocessors / CLUSTER * CLUSTER, THREADS,
                          SHARED_BYTES, tl_cuda_stream(stream)>>>(
        map, (const int *)args->tensor[TL_M_GROUPED_OFFSETS].data, (int *)args->workspace, set,
        tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "ragged_kernel");
}

static size_t workspace(const struct tl_plan *plan)
{
    (void)plan;
    return sizeof(int); /* the tile counter */
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    if (dim[TL_M_GROUPED_M] == 0 || dim[TL_M_GROUPED_N] == 0 || dim[TL_M_GROUPED_NUM_GROUPS] == 0)
        return TL_OK;
    if ((int)plan->problem.param[TL_M_GROUPED_LAYOUT] == TL_M_GROUPED_NT)
        return launch_kernel<false>(plan, args, stream);
    return launch_kernel<true>(plan, args, stream);
}

extern "C" const struct tl_kernel tl_kernel_m_grouped_gemm_sm90_ragged = {
    .operation = "m_grouped_gemm",
    .variant = "sm90_ragged",
    .arch = "sm90",
    .summary = "Ragged TMA stores, tokens in steps of 8, warpgroups in turn, pairs of blocks "
               "(RapidGEMM, Triton's ragged_tma).",
    .dtypes = TL_DTYPE_BIT(TL_BF16),
    .tunables = {[STAGES] = {"stages", 6, stage_choices},
                 [TURNS] = {"turns", 2, pair_choices},
                 [MULTICAST] = {"multicast", 2, pair_choices},
                 [TAIL] = {"tail", 8, tail_choices},
                 [BAND] = {"band", 8, band_choices}},
    .legal = legal,
    .workspace = workspace,
    .launch = launch,
};
