/* m_grouped_gemm/sm90_padded: grouped GEMM over groups padded to 128 rows (DeepGEMM's contiguous
 * layout), bf16 with fp32 sums.
 *
 * A tile of 128 rows has one expert, that of its first row in row_experts; tiles of none are
 * skipped. Persistent blocks take tiles in a fixed order; a producer thread loads with plain TMA
 * maps, two consumer warpgroups take 64 rows each; 128 x 256 x 64 tiles, four stages. With
 * multicast 2, blocks work in pairs on two token tiles below each other and each loads half of the
 * weights for both, unless the tiles belong to two experts; then each loads its own.
 */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "kernels/device/async.cuh"
#include "kernels/device/cluster.cuh"
#include "kernels/device/group_offsets.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/tensor_map.h"
#include "kernels/device/vectors.h"
#include "kernels/device/wgmma.cuh"
#include "kernels/host/magnitude.h"
#include "kernels/m_grouped_gemm/op.h"

enum {
    BLOCK_M = 128,
    BLOCK_N = 256,
    BLOCK_K = 64,
    STAGES = 4,
    THREADS = 384,
    BAND = 8, /* token tiles that share their weight tiles in L2 */
    A_BYTES = BLOCK_M * BLOCK_K * 2,
    B_BYTES = BLOCK_N * BLOCK_K * 2,
    PANEL_BYTES = 64 * BLOCK_K * 2, /* 64 columns of MN-major weights */
    STORE_BYTES = 64 * 64 * 2,      /* a store box: 64 rows by 64 columns */
    STORE_BUFFERS = 2,              /* of each consumer warpgroup */
    PRODUCER_REGISTERS = 56,
    CONSUMER_REGISTERS = 224,
    LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8, /* what __launch_bounds__ leaves a thread */
    SHARED_BYTES = 1024 + STAGES * (A_BYTES + B_BYTES) + 2 * STORE_BUFFERS * STORE_BYTES
};
/* setmaxnreg.inc waits for registers that the block was launched with; beyond them it waits for
 * ever. */
static_assert(PRODUCER_REGISTERS * 128 + CONSUMER_REGISTERS * 256 <= LAUNCH_REGISTERS * THREADS,
              "roles take more registers than the block has");
static_assert(SHARED_BYTES + 1024 <= 227 * 1024, "tiles and staging exceed shared memory");

/* What the producer tells the consumers of a tile. */
struct tile {
    int row; /* NO_TILE: there is none left */
    int column;
    bool stored; /* false where only the peer has a tile */
};
static const int NO_TILE = -1;

/* Tiles on their way: a tile takes a stage or more, so that at most STAGES of them are ahead of the
 * slowest consumer. */
enum { TILE_SLOTS = 8 };
static_assert((int)TILE_SLOTS > (int)STAGES, "a tile could be overwritten before it is read");

struct shared_layout {
    char *a, *b, *store;
    uint64_t *full, *empty;
    tile *tiles;
};

struct sizes {
    int m, n, k_blocks, num_groups;
};

/* Which stage of the ring, and the parity of its phase. */
struct ring {
    int stage = 0;
    uint32_t parity = 0;

    __device__ void advance()
    {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

/* Finds tiles by number for a cluster: bands of BAND token tiles, in each band column by column,
 * CLUSTER token tiles at a time. All blocks of a cluster see the same tiles and experts, so that
 * they decide alike what to skip and what to share. */
template <int CLUSTER> struct tile_walk {
    const int *row_experts;
    int num_groups, row_tiles, column_tiles, rank;

    __device__ tile_walk(const int *row_experts_, const int *offsets, const sizes &size)
        : row_experts(row_experts_), num_groups(size.num_groups),
          row_tiles(min(max(__ldg(offsets + size.num_groups), 0), size.m) / BLOCK_M),
          column_tiles((size.n + BLOCK_N - 1) / BLOCK_N),
          rank(CLUSTER == 1 ? 0 : tl_cluster_rank())
    {
    }

    __device__ int count() const
    {
        return (row_tiles + CLUSTER - 1) / CLUSTER * column_tiles;
    }

    __device__ int expert(int row_tile) const
    {
        return row_tile < row_tiles ? __ldg(row_experts + (int64_t)row_tile * BLOCK_M) : -1;
    }

    struct found {
        int row_tile, column, expert, peer_expert;
    };

    __device__ found find(int number) const
    {
        const int height_full = BAND / CLUSTER;
        int rows = (row_tiles + CLUSTER - 1) / CLUSTER;
        int band = number / (height_full * column_tiles);
        int in_band = number - band * height_full * column_tiles;
        int height = min(height_full, rows - band * height_full);
        found out;
        out.row_tile = (band * height_full + in_band % height) * CLUSTER + rank;
        out.column = in_band / height * BLOCK_N;
        out.expert = expert(out.row_tile);
        out.peer_expert = CLUSTER == 1 ? -1 : expert(out.row_tile ^ 1);
        return out;
    }
};

/* The weights of a stage, 256 columns by 64 of k; `both`: half of them, for both blocks. */
template <bool B_MN, int CLUSTER>
static __device__ void load_weights(char *b, const CUtensorMap *map, uint64_t *full, int column,
                                    int k, int expert, bool both, int rank)
{
    const int parts = B_MN ? BLOCK_N / 64 : CLUSTER, width = BLOCK_N / parts;
    const int part_bytes = B_BYTES / parts;
#pragma unroll
    for (int part = 0; part < parts; part++) {
        int x = B_MN ? column + part * width : k, y = B_MN ? k : column + part * width;
        char *to = b + part * part_bytes;
        if (CLUSTER == 1 || !both)
            tl_tma_load_3d(to, map, full, x, y, expert);
        else if (part / (parts / CLUSTER) == rank)
            tl_tma_multicast_3d(to, map, full, x, y, expert, (1 << CLUSTER) - 1);
    }
}

/* Loads tiles. Blocks of a cluster stay in step, stage by stage: where only one of the pair has a
 * tile, the other loads the same and lets it go. The experts of a tile are asked for while the
 * one before it loads. */
template <bool B_MN, int CLUSTER>
static __device__ void produce(const shared_layout &shared, const tile_walk<CLUSTER> &walk,
                               const CUtensorMap *map_a, const CUtensorMap *map_b, int k_blocks)
{
    ring at;
    int slot = 0, count = walk.count(), step = (int)gridDim.x / CLUSTER;
    int number = (int)blockIdx.x / CLUSTER;
    typename tile_walk<CLUSTER>::found ahead = {};
    if (number < count)
        ahead = walk.find(number);
    for (; number < count; number += step) {
        typename tile_walk<CLUSTER>::found now = ahead;
        if (number + step < count)
            ahead = walk.find(number + step);
        bool own = (unsigned)now.expert < (unsigned)walk.num_groups;
        bool peer = CLUSTER > 1 && (unsigned)now.peer_expert < (unsigned)walk.num_groups;
        if (!own && !peer)
            continue;
        int expert = own ? now.expert : now.peer_expert;
        bool both = CLUSTER > 1 && (!own || !peer || now.expert == now.peer_expert);
        int row = (own ? now.row_tile : now.row_tile ^ 1) * BLOCK_M;
        for (int k = 0; k < k_blocks; k++) {
            uint64_t *full = shared.full + at.stage;
            tl_mbarrier_wait(shared.empty + at.stage, at.parity ^ 1);
            if (k == 0)
                shared.tiles[slot] = {row, now.column, own};
            tl_mbarrier_expect(full, A_BYTES + B_BYTES);
            tl_tma_load_2d(shared.a + at.stage * A_BYTES, map_a, full, k * BLOCK_K, row);
            load_weights<B_MN, CLUSTER>(shared.b + at.stage * B_BYTES, map_b, full, now.column,
                                        k * BLOCK_K, expert, both, walk.rank);
            at.advance();
        }
        slot = (slot + 1) % TILE_SLOTS;
    }
    tl_mbarrier_wait(shared.empty + at.stage, at.parity ^ 1);
    shared.tiles[slot].row = NO_TILE;
    tl_mbarrier_arrive(shared.full + at.stage);
}

/* Says that this warpgroup has read a stage, to the producers of all blocks that write to it: a
 * thread for each. */
template <int CLUSTER> struct releaser {
    bool speaks;
    uint64_t *own;
    uint32_t first;

    __device__ releaser(uint64_t *empty)
        : speaks(threadIdx.x % 128 < CLUSTER), own(empty),
          first(CLUSTER == 1 ? 0 : tl_cluster_address(empty, threadIdx.x % CLUSTER))
    {
    }

    __device__ void release(int stage) const
    {
        if (speaks && CLUSTER == 1)
            tl_mbarrier_arrive(own + stage);
        else if (speaks)
            tl_mbarrier_arrive_cluster(first + stage * (uint32_t)sizeof(uint64_t));
    }
};

/* acc = a b over all of k, one wgmma group in flight while the next stage is waited for. */
template <bool B_MN, int CLUSTER>
static __device__ __forceinline__ void multiply_tile(float (&acc)[128], const shared_layout &shared,
                                                     const releaser<CLUSTER> &stages, ring &at,
                                                     int k_blocks, int warpgroup)
{
    int previous = 0;
    for (int k = 0; k < k_blocks; k++) {
        tl_mbarrier_wait(shared.full + at.stage, at.parity);
        uint64_t a = tl_wgmma_desc_128b(shared.a + at.stage * A_BYTES + warpgroup * (A_BYTES / 2));
        const char *b_shared = shared.b + at.stage * B_BYTES;
        uint64_t b = B_MN ? tl_wgmma_desc_128b_mn(b_shared, PANEL_BYTES)
                          : tl_wgmma_desc_128b(b_shared);
        tl_wgmma_fence();
#pragma unroll
        for (int i = 0; i < BLOCK_K / 16; i++)
            tl_wgmma_bf16<BLOCK_N, 0, B_MN>(acc, a + 2 * i, b + (B_MN ? 128 : 2) * i,
                                            k > 0 || i > 0);
        tl_wgmma_commit();
        tl_wgmma_wait<1>(); /* the stage before is read */
        if (k > 0)
            stages.release(previous);
        previous = at.stage;
        at.advance();
    }
    tl_wgmma_wait<0>();
    stages.release(previous);
}

/* 64 rows by 256 columns of sums to bf16, through two swizzled boxes of 64 columns, and out. Stores
 * run on while the next tile is multiplied. */
static __device__ void store_tile(const float (&acc)[128], char *store, const CUtensorMap *map_d,
                                  int row, int column, int warpgroup, int n)
{
    int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
    int r = warp * 16 + lane % 16, chunk_side = lane / 16;
#pragma unroll
    for (int box = 0; box < BLOCK_N / 64; box++) {
        char *buffer = store + (box % STORE_BUFFERS) * STORE_BYTES;
        if (thread == 0)
            tl_tma_store_wait_read<STORE_BUFFERS - 1>();
        tl_named_barrier(1 + warpgroup, 128);
#pragma unroll
        for (int pair = 0; pair < 4; pair++) { /* 16 columns at a time */
            uint32_t packed[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int at = box * 32 + pair * 8 + i * 2;
                __nv_bfloat162 two = __floats2bfloat162_rn(acc[at], acc[at + 1]);
                packed[i] = *(uint32_t *)&two;
            }
            /* Tiles in stmatrix order: rows 0-7 and 8-15 of the left 8 columns, then the right. */
            int chunk = pair * 2 + chunk_side;
            tl_stmatrix_x4(buffer + r * 128 + ((chunk ^ (r % 8)) * 16), packed[0], packed[1],
                           packed[2], packed[3]);
        }
        tl_fence_async_shared();
        tl_named_barrier(1 + warpgroup, 128);
        if (thread == 0 && column + box * 64 < n)
            tl_tma_store_2d(map_d, buffer, column + box * 64, row);
        if (thread == 0)
            tl_tma_store_commit();
    }
}

template <bool B_MN, int CLUSTER>
static __device__ void consume(const shared_layout &shared, const CUtensorMap *map_d, int k_blocks,
                               int n, int warpgroup)
{
    char *store = shared.store + warpgroup * STORE_BUFFERS * STORE_BYTES;
    releaser<CLUSTER> stages(shared.empty);
    float acc[128];
    ring at;
    for (int slot = 0;; slot = (slot + 1) % TILE_SLOTS) {
        tl_mbarrier_wait(shared.full + at.stage, at.parity); /* the tile's first stage brings it */
        tile t = shared.tiles[slot];
        if (t.row == NO_TILE)
            break;
        multiply_tile<B_MN, CLUSTER>(acc, shared, stages, at, k_blocks, warpgroup);
        if (t.stored)
            store_tile(acc, store, map_d, t.row + warpgroup * 64, t.column, warpgroup, n);
        else
            tl_named_barrier(1 + warpgroup, 128); /* keeps its warps within a tile */
    }
    if (threadIdx.x % 128 == 0)
        tl_tma_store_wait_all();
}

template <bool B_MN, int CLUSTER>
static __global__ void __launch_bounds__(THREADS, 1)
    padded_kernel(const __grid_constant__ CUtensorMap map_a,
                  const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_d, const int *row_experts,
                  const int *offsets, sizes size, tl_fault_port fault)
{
    extern __shared__ char raw[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    __shared__ tile tiles[TILE_SLOTS];
    char *base = (char *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023);
    shared_layout shared = {
        base, base + STAGES * A_BYTES, base + STAGES * (A_BYTES + B_BYTES), full, empty, tiles};
    int warpgroup = tl_uniform((int)threadIdx.x / 128);
    if (threadIdx.x == 0) {
        tl_prefetch_map(&map_a);
        tl_prefetch_map(&map_b);
        tl_prefetch_map(&map_d);
        for (int i = 0; i < STAGES; i++) {
            tl_mbarrier_init(full + i, 1);
            tl_mbarrier_init(empty + i, 2 * CLUSTER); /* warpgroups that read, in all blocks */
        }
        tl_mbarrier_init_fence();
    }
    /* Also the barrier that shows all threads the mbarriers; blocks of a cluster answer alike. */
    if (tl_group_offsets_refused(offsets, size.num_groups, size.m, fault, true))
        return;
    if (CLUSTER > 1)
        tl_cluster_sync();
    if (warpgroup == 2) {
        tl_registers_shrink<PRODUCER_REGISTERS>();
        if (threadIdx.x == 2 * 128)
            produce<B_MN, CLUSTER>(shared, tile_walk<CLUSTER>(row_experts, offsets, size), &map_a,
                                   &map_b, size.k_blocks);
    } else {
        tl_registers_grow<CONSUMER_REGISTERS>();
        consume<B_MN, CLUSTER>(shared, &map_d, size.k_blocks, size.n, warpgroup);
    }
    __syncwarp();
    if (CLUSTER > 1)
        tl_cluster_sync(); /* the peer's arrivals and loads */
}

static enum tl_status legal(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    TL_TRY(tl_magnitude_refuse(problem, "sm90_padded"));
    for (int i = 0; i < 3; i++)
        if (problem->dtype[i] != TL_BF16)
            return TL_FAIL(TL_ERR_ILLEGAL, "m_grouped_gemm/sm90_padded: '%s' is %s; it takes bf16",
                           problem->operation->args[i].name, tl_dtype_name(problem->dtype[i]));
    if (!problem->present[TL_M_GROUPED_ROW_EXPERTS])
        return TL_FAIL(TL_ERR_ILLEGAL, "m_grouped_gemm/sm90_padded: needs 'row_experts', the "
                                       "expert of each row; pad_index gives it");
    if (dim[TL_M_GROUPED_N] % 8 != 0 || dim[TL_M_GROUPED_K] % 8 != 0)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "m_grouped_gemm/sm90_padded: n = %lld and k = %lld must be "
                       "multiples of 8 (16-byte rows)",
                       (long long)dim[TL_M_GROUPED_N], (long long)dim[TL_M_GROUPED_K]);
    if (dim[TL_M_GROUPED_K] == 0)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "m_grouped_gemm/sm90_padded: k is 0; there is nothing to sum");
    return tl_vectors_small(problem, "sm90_padded");
}

/* A block an SM, in whole clusters; fewer where there are fewer tiles. */
template <int CLUSTER> static unsigned grid_size(const struct tl_plan *plan)
{
    const int64_t *dim = plan->problem.dim;
    int64_t rows = (dim[TL_M_GROUPED_M] / BLOCK_M + CLUSTER - 1) / CLUSTER;
    int64_t clusters = rows * ((dim[TL_M_GROUPED_N] + BLOCK_N - 1) / BLOCK_N);
    int64_t most = plan->device->multiprocessors / CLUSTER;
    return (unsigned)((clusters < most ? clusters : most) * CLUSTER);
}

template <bool B_MN, int CLUSTER>
static enum tl_status launch_kernel(const struct tl_plan *plan, const struct tl_args *args,
                                    struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    int64_t m = dim[TL_M_GROUPED_M], n = dim[TL_M_GROUPED_N], k = dim[TL_M_GROUPED_K];
    int64_t groups = dim[TL_M_GROUPED_NUM_GROUPS];
    CUtensorMap map_a, map_b, map_d;
    TL_TRY(tl_tensor_map_2d(&map_a, &args->tensor[TL_M_GROUPED_A], k, m, BLOCK_K, BLOCK_M));
    if (B_MN)
        TL_TRY(tl_tensor_map_3d(&map_b, &args->tensor[TL_M_GROUPED_B], n, k, groups, 64, BLOCK_K));
    else
        TL_TRY(tl_tensor_map_3d(&map_b, &args->tensor[TL_M_GROUPED_B], k, n, groups, BLOCK_K,
                                BLOCK_N / CLUSTER));
    TL_TRY(tl_tensor_map_2d(&map_d, &args->tensor[TL_M_GROUPED_D], n, m, 64, 64));
    TL_TRY(TL_CUDA_STATUS(plan, "shared memory of padded_kernel",
                          cudaFuncSetAttribute(padded_kernel<B_MN, CLUSTER>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               SHARED_BYTES)));
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {CLUSTER, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(grid_size<CLUSTER>(plan));
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = SHARED_BYTES;
    config.stream = tl_cuda_stream(stream);
    config.attrs = &cluster;
    config.numAttrs = CLUSTER > 1;
    sizes size = {(int)m, (int)n, (int)((k + BLOCK_K - 1) / BLOCK_K), (int)groups};
    return TL_CUDA_STATUS(
        plan, "padded_kernel",
        cudaLaunchKernelEx(&config, padded_kernel<B_MN, CLUSTER>, map_a, map_b, map_d,
                           (const int *)args->tensor[TL_M_GROUPED_ROW_EXPERTS].data,
                           (const int *)args->tensor[TL_M_GROUPED_OFFSETS].data, size,
                           tl_cuda_fault(plan)));
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    bool b_mn = (int)plan->problem.param[TL_M_GROUPED_LAYOUT] == TL_M_GROUPED_NN;
    bool pairs = plan->tunable[0] == 2;
    if (dim[TL_M_GROUPED_M] < BLOCK_M || dim[TL_M_GROUPED_N] == 0 ||
        dim[TL_M_GROUPED_NUM_GROUPS] == 0)
        return TL_OK;
    if (b_mn)
        return pairs ? launch_kernel<true, 2>(plan, args, stream)
                     : launch_kernel<true, 1>(plan, args, stream);
    return pairs ? launch_kernel<false, 2>(plan, args, stream)
                 : launch_kernel<false, 1>(plan, args, stream);
}

/* Blocks that a weight tile is loaded for at once. */
static const int multicast_choices[] = {1, 2, 0};

extern "C" const struct tl_kernel tl_kernel_m_grouped_gemm_sm90_padded = {
    .operation = "m_grouped_gemm",
    .variant = "sm90_padded",
    .arch = "sm90",
    .summary = "Groups padded to 128 rows, expert by row, 128x256x64 tiles, weights multicast to "
               "pairs of token tiles (DeepGEMM).",
    .dtypes = TL_DTYPE_BIT(TL_BF16),
    .tunables = {{.name = "multicast", .fallback = 1, .choices = multicast_choices}},
    .legal = legal,
    .launch = launch,
};
