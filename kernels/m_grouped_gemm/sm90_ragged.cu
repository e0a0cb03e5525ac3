/* m_grouped_gemm/sm90_ragged: grouped GEMM over groups of any size, without padding.
 *
 * d[rows of e] = a[rows of e] b[e], bf16 with fp32 sums. The weights lie on wgmma's M side, 128 of
 * them a tile, and the tokens on its N side, where tiles come in steps of eight: a group is cut
 * into equal tiles of at most 160 tokens, and no more than seven rows of it are computed in vain.
 * Two warpgroups take turns with whole tiles, so that one multiplies while the other stores; blocks
 * work in pairs and share the tokens, or the weights (ragged_tiles.cuh). Only the store is ragged:
 * a tile may load rows of the next group, and the tensor map drops them on the way out, since its
 * bound lies at the end of the tile (Triton's ragged_tma; RapidGEMM).
 */
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <string.h>

#include "kernels/device/async.cuh"
#include "kernels/device/group_offsets.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/tensor_map.h"
#include "kernels/device/vectors.h"
#include "kernels/device/wgmma.cuh"
#include "kernels/host/magnitude.h"
#include "kernels/m_grouped_gemm/op.h"
#include "kernels/m_grouped_gemm/ragged_load.cuh"

enum {
    THREADS = 384,
    STORE_TOKENS = 32, /* a store box: 32 tokens by 64 weights */
    STORE_BYTES = STORE_TOKENS * 64 * 2,
    PRODUCER_REGISTERS = 40,
    CONSUMER_REGISTERS = 232,
    LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8, /* what __launch_bounds__ leaves a thread */
    SHARED_BYTES = MOST_STAGES * STAGE_BYTES + 2 * STORE_BYTES
};
/* setmaxnreg.inc waits for registers that the block was launched with; beyond them it waits for
 * ever. */
static_assert(PRODUCER_REGISTERS * 128 + CONSUMER_REGISTERS * 256 <= LAUNCH_REGISTERS * THREADS,
              "roles take more registers than the block has");
static_assert(SHARED_BYTES + 1024 <= 227 * 1024, "tiles and staging exceed shared memory");

/* Says that a warpgroup has read a stage: one lane each of three warps tells those who load for
 * this block, and for both in this block and in the other. */
struct releaser {
    uint32_t first; /* barrier of stage 0; 0: this thread says nothing */

    __device__ releaser(const shared_layout &shared, int multicast)
    {
        int rank = tl_cluster_rank(), warp = (int)threadIdx.x % 128 / 32;
        first = 0;
        if (threadIdx.x % 32 == 0 && warp < 1 + multicast)
            first = tl_cluster_address(warp == 0 ? shared.free : shared.all_free,
                                       warp == 2 ? rank ^ 1 : rank);
    }

    __device__ void release(int stage) const
    {
        if (first)
            tl_mbarrier_arrive_cluster(first + stage * (uint32_t)sizeof(uint64_t));
    }
};

/* upper, lower = 64 weights each by N tokens, over all of k; one stage is multiplied while the next
 * is waited for. `turn`: to wait for, with its parity, or NULL; the wait lies here, so that the code
 * behind it has arrived. The other warpgroup may begin when all stages have been seen, with two of
 * them still to be multiplied. */
template <int N, bool W_MN, int C>
static __device__ __forceinline__ void multiply_tile(float (&upper)[C], float (&lower)[C],
                                                     const shared_layout &shared, ring at,
                                                     int k_blocks, const releaser &stages,
                                                     uint64_t *turn, uint32_t parity,
                                                     uint64_t *next_turn)
{
    const int step = W_MN ? 16 * 128 >> 4 : 32 >> 4; /* 16 of k further, in a descriptor's units */
    int previous = 0;
    if (turn)
        tl_mbarrier_wait(turn, parity);
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
        if (k == k_blocks - 1 && threadIdx.x % 128 == 0)
            tl_mbarrier_arrive(next_turn);
        tl_wgmma_wait<1>(); /* the stage before is read */
        if (k > 0)
            stages.release(previous);
        previous = at.stage;
        at.next();
    }
    tl_wgmma_wait<0>();
    stages.release(previous);
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

/* A warpgroup: every other tile, so that one warpgroup stores while the other multiplies. It waits
 * for its turn until the other has seen all stages of the tile before: a barrier that is two phases
 * behind looks like one that is done. */
template <bool W_MN>
static __device__ void consume(const shared_layout &shared, const CUtensorMap *map_d,
                               const settings &set, int warpgroup)
{
    int k_blocks = set.k_blocks;
    char *store = shared.store + warpgroup * STORE_BYTES;
    releaser stages(shared, set.multicast);
    uint64_t *next_turn = shared.turn + (warpgroup ^ 1);
    float upper[MOST_UNITS * 4], lower[MOST_UNITS * 4];
    ring at(set.stages);
    at.skip(warpgroup * k_blocks);
    for (int i = warpgroup;; i += set.turns, at.skip(set.turns * k_blocks)) {
        tile t = take_tile(shared, i);
        if (t.group == NO_TILE)
            break;
        uint64_t *turn = set.turns > 1 && i > 0 ? shared.turn + warpgroup : NULL;
        uint32_t parity = (i - 1) / 2 & 1;
        switch (t.units) { /* outside of the loop over k, where wgmma stays in flight */
#define UNITS(u)                                                                               \
    case u:                                                                                    \
        multiply_tile<u * UNIT, W_MN>(upper, lower, shared, at, k_blocks, stages, turn, parity, \
                                      next_turn);                                              \
        break;
            UNITS(1) UNITS(2) UNITS(3) UNITS(4) UNITS(5) UNITS(6) UNITS(7) UNITS(8) UNITS(9)
            UNITS(10) UNITS(11) UNITS(12) UNITS(13) UNITS(14) UNITS(15) UNITS(16) UNITS(17)
            UNITS(18) UNITS(19) UNITS(20)
#undef UNITS
        }
        store_half(upper, store, map_d, t, t.column, set.n, 1 + warpgroup);
        store_half(lower, store, map_d, t, t.column + 64, set.n, 1 + warpgroup);
    }
    if (threadIdx.x % 128 == 0)
        tl_tma_store_wait_all();
}

template <bool W_MN>
static __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    ragged_kernel(const __grid_constant__ maps map, const int *offsets, int *counters, settings set,
                  tl_fault_port fault)
{
    extern __shared__ __align__(1024) char shared_memory[];
    __shared__ uint64_t full[MOST_STAGES], free[MOST_STAGES], all_free[MOST_STAGES];
    __shared__ uint64_t tile_full[TILE_SLOTS], tile_read[TILE_SLOTS], number_full[TILE_SLOTS];
    __shared__ uint64_t turn[2];
    __shared__ tile tiles[TILE_SLOTS];
    __shared__ int numbers[TILE_SLOTS];
    char *store = shared_memory + MOST_STAGES * STAGE_BYTES;
    shared_layout shared = {shared_memory, store,     full,        free, all_free, tile_full,
                            tile_read,     number_full, turn, tiles, numbers};
    int warp = tl_uniform((int)threadIdx.x / 32);
    if (threadIdx.x == 0) {
        tl_prefetch_map(W_MN ? &map.half_weights : &map.weights);
        tl_prefetch_map(&map.d);
        for (int i = 0; i < MOST_STAGES; i++) {
            tl_mbarrier_init(full + i, 2);
            tl_mbarrier_init(free + i, 1);
            tl_mbarrier_init(all_free + i, set.multicast);
        }
        for (int i = 0; i < 2; i++)
            tl_mbarrier_init(turn + i, 1);
        for (int i = 0; i < TILE_SLOTS; i++) {
            tl_mbarrier_init(tile_full + i, 1);
            /* two loading warps, four of a warpgroup; in the first block also the second's */
            tl_mbarrier_init(tile_read + i, 6 + (tl_cluster_rank() == 0 ? CLUSTER - 1 : 0));
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
            load_weights<W_MN>(shared, &map.weights, &map.half_weights, set);
        else if (warp == 9)
            load_tokens(shared, map.tokens, set);
        else if (threadIdx.x == 10 * 32)
            schedule(shared, offsets, counters, set);
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
    TL_TRY(tl_vectors_small(problem, "sm90_ragged"));
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
    int64_t columns = dim[TL_M_GROUPED_N] / BLOCK_N + 1;
    if (splits > INT32_MAX / 2 / columns)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "m_grouped_gemm/sm90_ragged: %lld rows in %lld groups by n = %lld make more "
                       "than 2^30 tiles",
                       (long long)dim[TL_M_GROUPED_M], (long long)dim[TL_M_GROUPED_NUM_GROUPS],
                       (long long)dim[TL_M_GROUPED_N]);
    return TL_OK;
}

/* What gemm_ladder and raster take away again: stages that load ahead; warpgroups that multiply in
 * turn; blocks that a load serves; tokens that a group's tail is rounded up to; token tiles that
 * meet a tile of weights before the next one does; token tiles that a pair of blocks may have. */
enum { STAGES, TURNS, MULTICAST, TAIL, BAND, STACK };
static const int stage_choices[] = {2, 3, 4, 5, 6, 0}, pair_choices[] = {1, 2, 0};
static const int tail_choices[] = {8, 16, 32, 64, 128, 0}, band_choices[] = {1, 2, 4, 8, 16, 0};

/* In the plan's scratch: the maps of the tensors that it is bound to. */
struct bound {
    const void *a, *b, *d;
    uint64_t maps[sizeof(maps) / sizeof(uint64_t)];
};
static_assert(sizeof(bound) <= sizeof(((tl_plan *)0)->scratch), "the maps fit into a plan");

static bool is_nn(const struct tl_plan *plan)
{
    return (int)plan->problem.param[TL_M_GROUPED_LAYOUT] == TL_M_GROUPED_NN;
}

static bool is_empty(const struct tl_plan *plan)
{
    const int64_t *dim = plan->problem.dim;
    return dim[TL_M_GROUPED_M] == 0 || dim[TL_M_GROUPED_N] == 0 ||
           dim[TL_M_GROUPED_NUM_GROUPS] == 0;
}

static enum tl_status make_maps(const struct tl_plan *plan, const struct tl_args *args, maps *out)
{
    const int64_t *dim = plan->problem.dim;
    int64_t m = dim[TL_M_GROUPED_M], n = dim[TL_M_GROUPED_N], k = dim[TL_M_GROUPED_K];
    int64_t groups = dim[TL_M_GROUPED_NUM_GROUPS];
    const struct tl_tensor *a = &args->tensor[TL_M_GROUPED_A], *b = &args->tensor[TL_M_GROUPED_B];
    int64_t columns = is_nn(plan) ? n : k, rows = is_nn(plan) ? k : n;
    TL_TRY(tl_tensor_map_3d(&out->weights, b, columns, rows, groups, 64,
                            is_nn(plan) ? 64 : BLOCK_N));
    TL_TRY(tl_tensor_map_3d(&out->half_weights, b, columns, rows, groups, 64, 64));
    for (int units = 1; units <= MOST_UNITS / CLUSTER; units++)
        TL_TRY(tl_tensor_map_2d(&out->tokens[units - 1], a, k, m, BLOCK_K, units * UNIT));
    return tl_tensor_map_ragged(&out->d, &args->tensor[TL_M_GROUPED_D], n, 64, STORE_TOKENS);
}

/* Allows the kernel its shared memory; once for a plan, since it costs half a microsecond. */
static enum tl_status allow_shared(const struct tl_plan *plan)
{
    const void *kernel = is_nn(plan) ? (const void *)ragged_kernel<true>
                                     : (const void *)ragged_kernel<false>;
    return TL_CUDA_STATUS(plan, "shared memory of ragged_kernel",
                          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               SHARED_BYTES));
}

static enum tl_status bind(struct tl_plan *plan, const struct tl_args *args)
{
    bound *kept = (bound *)plan->scratch;
    maps map;
    kept->a = NULL;
    if (is_empty(plan))
        return TL_OK;
    TL_TRY(allow_shared(plan));
    TL_TRY(make_maps(plan, args, &map));
    memcpy(kept->maps, &map, sizeof map);
    kept->b = args->tensor[TL_M_GROUPED_B].data;
    kept->d = args->tensor[TL_M_GROUPED_D].data;
    kept->a = args->tensor[TL_M_GROUPED_A].data;
    return TL_OK;
}

static enum tl_status find_maps(const struct tl_plan *plan, const struct tl_args *args, maps *out)
{
    const bound *kept = (const bound *)plan->scratch;
    if (kept->a && kept->a == args->tensor[TL_M_GROUPED_A].data &&
        kept->b == args->tensor[TL_M_GROUPED_B].data &&
        kept->d == args->tensor[TL_M_GROUPED_D].data) {
        memcpy(out, kept->maps, sizeof *out);
        return TL_OK;
    }
    TL_TRY(allow_shared(plan));
    return make_maps(plan, args, out);
}

static size_t workspace(const struct tl_plan *plan)
{
    (void)plan;
    return 2 * sizeof(int); /* tiles that were given out, clusters that are done */
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    const int *tunable = plan->tunable;
    if (is_empty(plan))
        return TL_OK;
    maps map;
    TL_TRY(find_maps(plan, args, &map));
    settings set = {(int)dim[TL_M_GROUPED_NUM_GROUPS],
                    (int)dim[TL_M_GROUPED_M],
                    (int)dim[TL_M_GROUPED_N],
                    (int)((dim[TL_M_GROUPED_K] + BLOCK_K - 1) / BLOCK_K),
                    tunable[STAGES],
                    tunable[TURNS],
                    tunable[MULTICAST],
                    tunable[TAIL] / UNIT,
                    tunable[BAND],
                    tunable[STACK]};
    unsigned grid = (unsigned)plan->device->multiprocessors / CLUSTER * CLUSTER;
    const int *offsets = (const int *)args->tensor[TL_M_GROUPED_OFFSETS].data;
    int *counters = (int *)args->workspace;
    cudaStream_t native = tl_cuda_stream(stream);
    if (is_nn(plan))
        ragged_kernel<true><<<grid, THREADS, SHARED_BYTES, native>>>(map, offsets, counters, set,
                                                                     tl_cuda_fault(plan));
    else
        ragged_kernel<false><<<grid, THREADS, SHARED_BYTES, native>>>(map, offsets, counters, set,
                                                                      tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "ragged_kernel");
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
                 [BAND] = {"band", 8, band_choices},
                 [STACK] = {"stack", 2, pair_choices}},
    .legal = legal,
    .workspace = workspace,
    .bind = bind,
    .launch = launch,
};
