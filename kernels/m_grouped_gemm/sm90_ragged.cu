/* m_grouped_gemm/sm90_ragged: grouped GEMM over groups of any size, without padding.
 *
 * d[rows of e] = a[rows of e] b[e], bf16 with fp32 sums. Persistent: one block an SM, a producer
 * thread that takes tiles from a shared counter and loads them with TMA, and two consumer
 * warpgroups of 64 rows each; 128 x 256 x 64 tiles, four stages. Only the store is ragged: a tile
 * may load rows of the next group, and the tensor map drops them on the way out, since its bound
 * lies at the end of the group (Triton's ragged_tma; RapidGEMM). A tail of 64 rows or fewer costs
 * half a tile: the second warpgroup and its half of the load are skipped.
 */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "kernels/device/async.cuh"
#include "kernels/device/group_offsets.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/tensor_map.h"
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
    STORE_BYTES = 64 * 64 * 2, /* a store box: 64 rows by 64 columns */
    STORE_BUFFERS = 2,         /* of each consumer warpgroup */
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

/* One tile of the output. */
struct tile {
    int group;          /* NO_TILE: there is none left */
    int row, rows_left; /* its first row in the group, and how many from there to the group's end */
    int column;
    int group_end; /* in the tensor */
    int group_rows;
};
static const int NO_TILE = -1;

/* Finds tiles by their number: groups in order, in each bands of BAND token tiles, in each band
 * column by column. Numbers may only grow. */
struct tile_walk {
    const int *offsets;
    int num_groups, column_tiles, group, begin, end, tiles, passed;

    __device__ tile_walk(const int *offsets_, int num_groups_, int n)
        : offsets(offsets_), num_groups(num_groups_), column_tiles((n + BLOCK_N - 1) / BLOCK_N),
          group(-1), begin(0), end(offsets_[0]), tiles(0), passed(0)
    {
    }

    __device__ bool find(int number, tile &out)
    {
        while (number - passed >= tiles) {
            passed += tiles;
            if (++group >= num_groups)
                return false;
            begin = end;
            end = __ldg(offsets + group + 1);
            tiles = (end - begin + BLOCK_M - 1) / BLOCK_M * column_tiles;
        }
        int row_tiles = tiles / column_tiles, index = number - passed;
        int band = index / (BAND * column_tiles), in_band = index - band * BAND * column_tiles;
        int height = min(BAND, row_tiles - band * BAND);
        int row_tile = band * BAND + in_band % height;
        out.group = group;
        out.row = row_tile * BLOCK_M;
        out.column = in_band / height * BLOCK_N;
        out.group_rows = end - begin;
        out.rows_left = out.group_rows - out.row;
        out.group_end = end;
        return true;
    }
};

/* Tiles on their way from the producer to the consumers: a tile takes a stage or more, so that at
 * most STAGES of them are ahead of the slower consumer. */
enum { TILE_SLOTS = 8 };
static_assert((int)TILE_SLOTS > (int)STAGES, "a tile could be overwritten before it is read");

struct shared_layout {
    char *a, *b, *store;
    uint64_t *full, *empty;
    tile *tiles;
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

/* Takes tiles from the counter that all blocks share, so that blocks end together whatever the
 * groups' sizes are, and loads them. The next number is asked for while the present tile loads. */
template <bool B_MN>
static __device__ void produce(const shared_layout &shared, tile_walk walk,
                               const CUtensorMap *map_a, const CUtensorMap *map_b, int *counter,
                               int k_blocks)
{
    ring at;
    tile t;
    int number = (int)blockIdx.x, slot = 0;
    while (walk.find(number, t)) {
        number = (int)gridDim.x + atomicAdd(counter, 1);
        bool half = t.rows_left <= 64;
        int row = t.group_end - t.group_rows + t.row;
        for (int k = 0; k < k_blocks; k++) {
            char *a = shared.a + at.stage * A_BYTES, *b = shared.b + at.stage * B_BYTES;
            uint64_t *full = shared.full + at.stage;
            tl_mbarrier_wait(shared.empty + at.stage, at.parity ^ 1);
            if (k == 0)
                shared.tiles[slot] = t;
            tl_mbarrier_expect(full, (half ? A_BYTES / 2 : A_BYTES) + B_BYTES);
            tl_tma_load_2d(a, map_a, full, k * BLOCK_K, row);
            if (!half)
                tl_tma_load_2d(a + A_BYTES / 2, map_a, full, k * BLOCK_K, row + 64);
            if (B_MN) {
#pragma unroll
                for (int panel = 0; panel < BLOCK_N / 64; panel++)
                    tl_tma_load_3d(b + panel * 64 * 128, map_b, full, t.column + panel * 64,
                                   k * BLOCK_K, t.group);
            } else {
                tl_tma_load_3d(b, map_b, full, k * BLOCK_K, t.column, t.group);
            }
            at.advance();
        }
        slot = (slot + 1) % TILE_SLOTS;
    }
    tl_mbarrier_wait(shared.empty + at.stage, at.parity ^ 1);
    shared.tiles[slot].group = NO_TILE;
    tl_mbarrier_arrive(shared.full + at.stage);
}

/* 64 rows by 256 columns of sums to bf16, through two swizzled boxes of 64 columns, and out. Stores
 * run on while the next tile is multiplied. */
static __device__ void store_tile(const float (&acc)[128], char *store, const CUtensorMap *map_d,
                                  const tile &t, int row, int warpgroup, int n)
{
    int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
    int matrix_row = lane % 16, chunk_side = lane / 16;
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
            int r = warp * 16 + matrix_row, chunk = pair * 2 + chunk_side;
            tl_stmatrix_x4(buffer + r * 128 + ((chunk ^ (r % 8)) * 16), packed[0], packed[1],
                           packed[2], packed[3]);
        }
        tl_fence_async_shared();
        tl_named_barrier(1 + warpgroup, 128);
        if (thread == 0 && t.column + box * 64 < n) {
            tl_tma_store_4d(map_d, buffer, t.column + box * 64, TL_RAGGED_ROWS - t.group_rows + row,
                            t.group_end, TL_RAGGED_ROWS);
        }
        if (thread == 0)
            tl_tma_store_commit();
    }
}

/* Lets the stages of a tile pass that this warpgroup has no rows in. */
static __device__ void skip_tile(const shared_layout &shared, ring &at, int k_blocks, bool leader)
{
    for (int k = 0; k < k_blocks; k++, at.advance()) {
        tl_mbarrier_wait(shared.full + at.stage, at.parity);
        if (leader)
            tl_mbarrier_arrive(shared.empty + at.stage);
    }
}

/* acc = a b over all of k, one wgmma group in flight while the next stage is waited for. */
template <bool B_MN>
static __device__ __forceinline__ void multiply_tile(float (&acc)[128], const shared_layout &shared,
                                                     ring &at, int k_blocks, int warpgroup,
                                                     bool leader)
{
    int previous = 0;
    for (int k = 0; k < k_blocks; k++) {
        tl_mbarrier_wait(shared.full + at.stage, at.parity);
        uint64_t a = tl_wgmma_desc_128b(shared.a + at.stage * A_BYTES + warpgroup * (A_BYTES / 2));
        const char *b_shared = shared.b + at.stage * B_BYTES;
        uint64_t b =
            B_MN ? tl_wgmma_desc_128b_mn(b_shared, 64 * 128) : tl_wgmma_desc_128b(b_shared);
        tl_wgmma_fence();
#pragma unroll
        for (int i = 0; i < BLOCK_K / 16; i++)
            tl_wgmma_m64n256k16_bf16<B_MN>(acc, a + 2 * i, b + (B_MN ? 128 : 2) * i,
                                           k > 0 || i > 0);
        tl_wgmma_commit();
        tl_wgmma_wait<1>(); /* the stage before is read */
        if (leader && k > 0)
            tl_mbarrier_arrive(shared.empty + previous);
        previous = at.stage;
        at.advance();
    }
    tl_wgmma_wait<0>();
    if (leader)
        tl_mbarrier_arrive(shared.empty + previous);
}

template <bool B_MN>
static __device__ void consume(const shared_layout &shared, const CUtensorMap *map_d, int k_blocks,
                               int n, int warpgroup)
{
    bool leader = threadIdx.x % 128 == 0;
    char *store = shared.store + warpgroup * STORE_BUFFERS * STORE_BYTES;
    float acc[128];
    ring at;
    for (int slot = 0;; slot = (slot + 1) % TILE_SLOTS) {
        tl_mbarrier_wait(shared.full + at.stage, at.parity); /* the tile's first stage brings it */
        tile t = shared.tiles[slot];
        if (t.group == NO_TILE)
            break;
        if (t.rows_left <= warpgroup * 64) {
            skip_tile(shared, at, k_blocks, leader);
            continue;
        }
        multiply_tile<B_MN>(acc, shared, at, k_blocks, warpgroup, leader);
        store_tile(acc, store, map_d, t, t.row + warpgroup * 64, warpgroup, n);
    }
    if (leader)
        tl_tma_store_wait_all();
}

template <bool B_MN>
static __global__ void __launch_bounds__(THREADS, 1)
    ragged_kernel(const __grid_constant__ CUtensorMap map_a,
                  const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_d, const int *offsets, int *counter,
                  int num_groups, int m, int n, int k, tl_fault_port fault)
{
    extern __shared__ char raw[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    __shared__ tile tiles[TILE_SLOTS];
    char *base = (char *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023);
    shared_layout shared = {
        base, base + STAGES * A_BYTES, base + STAGES * (A_BYTES + B_BYTES), full, empty, tiles};
    int warpgroup = threadIdx.x / 128, k_blocks = (k + BLOCK_K - 1) / BLOCK_K;
    if (threadIdx.x == 0) {
        tl_prefetch_map(&map_a);
        tl_prefetch_map(&map_b);
        tl_prefetch_map(&map_d);
        for (int i = 0; i < STAGES; i++) {
            tl_mbarrier_init(full + i, 1);
            tl_mbarrier_init(empty + i, 2);
        }
        tl_mbarrier_init_fence();
    }
    /* Before the roles part: the producer's walk over bad offsets might take hours, and later the
     * others would be waiting for each other. Also the barrier that shows them the mbarriers. */
    if (tl_group_offsets_refused(offsets, num_groups, m, fault))
        return;
    if (warpgroup == 2) {
        tl_registers_shrink<PRODUCER_REGISTERS>();
        if (threadIdx.x == 2 * 128)
            produce<B_MN>(shared, tile_walk(offsets, num_groups, n), &map_a, &map_b, counter,
                          k_blocks);
    } else {
        tl_registers_grow<CONSUMER_REGISTERS>();
        consume<B_MN>(shared, &map_d, k_blocks, n, warpgroup);
    }
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
    return TL_OK;
}

template <bool B_MN>
static enum tl_status launch_kernel(const struct tl_plan *plan, const struct tl_args *args,
                                    struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    int64_t m = dim[TL_M_GROUPED_M], n = dim[TL_M_GROUPED_N], k = dim[TL_M_GROUPED_K];
    int64_t groups = dim[TL_M_GROUPED_NUM_GROUPS];
    CUtensorMap map_a, map_b, map_d;
    TL_TRY(tl_tensor_map_2d(&map_a, &args->tensor[TL_M_GROUPED_A], k, m, BLOCK_K, 64));
    if (B_MN)
        TL_TRY(tl_tensor_map_3d(&map_b, &args->tensor[TL_M_GROUPED_B], n, k, groups, 64, BLOCK_K));
    else
        TL_TRY(tl_tensor_map_3d(&map_b, &args->tensor[TL_M_GROUPED_B], k, n, groups, BLOCK_K,
                                BLOCK_N));
    TL_TRY(tl_tensor_map_ragged(&map_d, &args->tensor[TL_M_GROUPED_D], n, 64, 64));
    TL_TRY(TL_CUDA_STATUS(plan, "shared memory of ragged_kernel",
                          cudaFuncSetAttribute(ragged_kernel<B_MN>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               SHARED_BYTES)));
    TL_TRY(
        TL_CUDA_STATUS(plan, "memset of the tile counter",
                       cudaMemsetAsync(args->workspace, 0, sizeof(int), tl_cuda_stream(stream))));
    ragged_kernel<B_MN><<<(unsigned)plan->device->multiprocessors, THREADS, SHARED_BYTES,
                          tl_cuda_stream(stream)>>>(
        map_a, map_b, map_d, (const int *)args->tensor[TL_M_GROUPED_OFFSETS].data,
        (int *)args->workspace, (int)groups, (int)m, (int)n, (int)k, tl_cuda_fault(plan));
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
    .summary = "Ragged TMA stores, 128x256x64 tiles, half tiles for tails (RapidGEMM, Triton's "
               "ragged_tma).",
    .dtypes = TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .workspace = workspace,
    .launch = launch,
};
