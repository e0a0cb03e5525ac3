/* k_grouped_gemm/sm90_padded: weight gradients of groups padded to 128 rows, as DeepGEMM does them.
 *
 * d[e] += a[rows of e]^T b[rows of e], bf16 to fp32, always added: the caller zeroes d first where
 * it wants beta 0, and the pad rows of both operands. Plain two-dimensional maps, since no block of
 * 64 rows crosses a group; a fixed share of the tiles for each block; 128x192x64 tiles, three
 * stages, each multiplied to its end before it is given back; a whole tile of sums is staged in
 * shared memory and added by one TMA instruction while the next tile is multiplied. The host must
 * know the counts. No clusters: DeepGEMM uses them up to four groups only, where it has a bug.
 */
#include <cuda_runtime.h>

#include "kernels/device/async_ragged.cuh"
#include "kernels/device/group_offsets.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/sums_box.cuh"
#include "kernels/device/tensor_map.h"
#include "kernels/device/wgmma.cuh"
#include "kernels/host/counts.h"
#include "kernels/k_grouped_gemm/bf16.h"

enum {
    BLOCK_M = 128,
    BLOCK_N = 192,
    BLOCK_K = 64,
    STAGES = 3,
    THREADS = 384,
    BAND = 8,                  /* row tiles that share their column tiles in L2 */
    PANEL_BYTES = 64 * 64 * 2, /* 64 columns by 64 rows */
    A_PANELS = BLOCK_M / 64,
    B_PANELS = BLOCK_N / 64,
    STAGE_BYTES = (A_PANELS + B_PANELS) * PANEL_BYTES,
    SUMS_BYTES = BLOCK_M * BLOCK_N * 4,
    PRODUCER_REGISTERS = 48,
    CONSUMER_REGISTERS = 224,
    LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8, /* what __launch_bounds__ leaves a thread */
    SHARED_BYTES = 1024 + STAGES * STAGE_BYTES + SUMS_BYTES
};
/* setmaxnreg.inc waits for registers that the block was launched with; beyond them it waits for
 * ever. */
static_assert(PRODUCER_REGISTERS * 128 + CONSUMER_REGISTERS * 256 <= LAUNCH_REGISTERS * THREADS,
              "roles take more registers than the block has");
static_assert(SHARED_BYTES + 1024 <= 227 * 1024, "tiles and staging exceed shared memory");

/* One tile of the output, and the rows that it sums over. */
struct tile {
    int group, row, column, begin, k_blocks;
};

/* Finds tiles by their number: groups that have rows in order, in each bands of BAND row tiles, in
 * each column by column. Numbers may only grow. Every role walks for itself. */
struct tile_walk {
    const int *offsets;
    int num_groups, row_tiles, tiles, group, begin, end, passed;

    __device__ tile_walk(const int *offsets_, int num_groups_, int m, int n)
        : offsets(offsets_), num_groups(num_groups_), row_tiles((m + BLOCK_M - 1) / BLOCK_M),
          tiles(row_tiles * ((n + BLOCK_N - 1) / BLOCK_N)), group(-1), begin(0), end(0), passed(0)
    {
    }

    __device__ bool find(int number, tile &out)
    {
        while (group < 0 || end == begin || number - passed >= tiles) {
            if (end > begin)
                passed += tiles;
            if (++group >= num_groups)
                return false;
            begin = end;
            end = __ldg(offsets + group + 1);
        }
        int index = number - passed, band_tiles = BAND * (tiles / row_tiles);
        int band = index / band_tiles, in_band = index - band * band_tiles;
        int height = min((int)BAND, row_tiles - band * BAND);
        out.group = group;
        out.row = (band * BAND + in_band % height) * BLOCK_M;
        out.column = in_band / height * BLOCK_N;
        out.begin = begin;
        out.k_blocks = (end - begin) / BLOCK_K;
        return true;
    }
};

struct shared_layout {
    char *stages, *sums;
    uint64_t *full, *empty;
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

/* A warp, of which one lane loads. */
static __device__ void produce(const shared_layout &shared, tile_walk walk,
                               const CUtensorMap *map_a, const CUtensorMap *map_b)
{
    bool elected = tl_elect();
    ring at;
    tile t;
    for (int number = (int)blockIdx.x; walk.find(number, t); number += (int)gridDim.x) {
        int begin = tl_uniform(t.begin), k_blocks = tl_uniform(t.k_blocks);
        int m = tl_uniform(t.row), n = tl_uniform(t.column);
        for (int k = 0; k < k_blocks; k++, at.advance()) {
            char *stage = shared.stages + at.stage * STAGE_BYTES;
            uint64_t *full = shared.full + at.stage;
            int row = begin + k * BLOCK_K;
            tl_mbarrier_wait(shared.empty + at.stage, at.parity ^ 1);
            if (elected)
                tl_mbarrier_expect(full, STAGE_BYTES);
#pragma unroll
            for (int i = 0; elected && i < A_PANELS; i++)
                tl_tma_load_2d(stage + i * PANEL_BYTES, map_a, full, m + i * 64, row);
#pragma unroll
            for (int i = 0; elected && i < B_PANELS; i++)
                tl_tma_load_2d(stage + (A_PANELS + i) * PANEL_BYTES, map_b, full, n + i * 64, row);
            __syncwarp(); /* no lane falls a ring behind */
        }
    }
}

/* acc = a^T b over the group's rows. */
static __device__ __forceinline__ void multiply_tile(float (&acc)[BLOCK_N / 2],
                                                     const shared_layout &shared, ring &at,
                                                     int k_blocks, int warpgroup, bool leader)
{
    for (int k = 0; k < k_blocks; k++, at.advance()) {
        tl_mbarrier_wait(shared.full + at.stage, at.parity);
        const char *stage = shared.stages + at.stage * STAGE_BYTES;
        uint64_t a = tl_wgmma_desc_128b_mn(stage + warpgroup * PANEL_BYTES, PANEL_BYTES);
        uint64_t b = tl_wgmma_desc_128b_mn(stage + A_PANELS * PANEL_BYTES, PANEL_BYTES);
        tl_wgmma_fence();
#pragma unroll
        for (int step = 0; step < BLOCK_K / 16; step++)
            tl_wgmma_bf16<BLOCK_N, 1, 1>(acc, a + step * 128, b + step * 128, k > 0 || step > 0);
        tl_wgmma_commit();
        tl_wgmma_wait<0>();
        if (leader)
            tl_mbarrier_arrive(shared.empty + at.stage);
    }
}

/* The sums of a warpgroup, 64 rows by BLOCK_N columns, row-major. */
static __device__ __forceinline__ void stage_sums(const float (&acc)[BLOCK_N / 2], uint32_t to)
{
    int thread = threadIdx.x % 128, lane = thread % 32;
    uint32_t at = to + (thread / 32 * 16 + lane / 4) * BLOCK_N * 4 + lane % 4 * 8;
#pragma unroll
    for (int i = 0; i < BLOCK_N / 8; i++) {
        tl_shared_store(at + i * 32, {acc[4 * i], acc[4 * i + 1]});
        tl_shared_store(at + i * 32 + 8 * BLOCK_N * 4, {acc[4 * i + 2], acc[4 * i + 3]});
    }
}

static __device__ void consume(const shared_layout &shared, tile_walk walk,
                               const CUtensorMap *map_d, int warpgroup)
{
    const uint32_t sums = tl_shared_address(shared.sums) + warpgroup * (SUMS_BYTES / 2);
    bool leader = threadIdx.x % 128 == 0;
    bool first = tl_uniform((int)threadIdx.x / 32) == 0 && tl_elect();
    float acc[BLOCK_N / 2];
    ring at;
    tile t;
    for (int number = (int)blockIdx.x; walk.find(number, t); number += (int)gridDim.x) {
        multiply_tile(acc, shared, at, t.k_blocks, warpgroup, leader);
        if (first)
            tl_tma_store_wait_read<0>();
        tl_named_barrier(1, 256);
        stage_sums(acc, sums);
        tl_fence_async_shared();
        tl_named_barrier(1, 256);
        if (first) {
            tl_tma_add_3d(map_d, shared.sums, t.column, t.row, t.group);
            tl_tma_store_commit();
        }
    }
    if (first)
        tl_tma_store_wait_all();
}

static __global__ void __launch_bounds__(THREADS, 1)
    padded_kernel(const __grid_constant__ CUtensorMap map_a,
                  const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_d, const int *offsets, int num_groups,
                  int m, int n, int k, tl_fault_port fault)
{
    extern __shared__ char raw[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    char *base = (char *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023);
    shared_layout shared = {base, base + STAGES * STAGE_BYTES, full, empty};
    int warp = tl_uniform((int)threadIdx.x / 32);
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
    /* Also the barrier that shows the mbarriers to all. */
    if (tl_group_offsets_refused(offsets, num_groups, k, fault, true))
        return;
    tile_walk walk(offsets, num_groups, m, n);
    if (warp >= 8) {
        tl_registers_shrink<PRODUCER_REGISTERS>();
        if (warp == 8)
            produce(shared, walk, &map_a, &map_b);
    } else {
        tl_registers_grow<CONSUMER_REGISTERS>();
        consume(shared, walk, &map_d, warp / 4);
    }
}

/* --- the host's side -------------------------------------------------------------------------- */

static enum tl_status legal(const struct tl_problem *problem)
{
    TL_TRY(k_grouped_legal_bf16(problem, "sm90_padded"));
    if (problem->param[TL_K_GROUPED_BETA] == 0)
        return TL_FAIL(TL_ERR_ILLEGAL, "k_grouped_gemm/sm90_padded: beta is 0, and it always adds "
                                       "to 'd'; fill 'd' with zeros and give beta 1");
    return tl_counts_require(problem, "sm90_padded", "the host checks the rows of each group");
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    const struct tl_tensor *tensor = args->tensor;
    int64_t m = dim[TL_K_GROUPED_M], n = dim[TL_K_GROUPED_N], k = dim[TL_K_GROUPED_K], rows;
    int64_t num_groups = dim[TL_K_GROUPED_NUM_GROUPS];
    CUtensorMap map_a, map_b, map_d;
    TL_TRY(tl_counts_sum(plan, &tensor[TL_K_GROUPED_COUNTS], k, TL_GROUP_ALIGNMENT, &rows));
    if (rows == 0 || m == 0 || n == 0)
        return TL_OK;
    TL_TRY(tl_tensor_map_2d(&map_a, &tensor[TL_K_GROUPED_A], m, k, 64, BLOCK_K));
    TL_TRY(tl_tensor_map_2d(&map_b, &tensor[TL_K_GROUPED_B], n, k, 64, BLOCK_K));
    TL_TRY(tl_tensor_map_3d(&map_d, &tensor[TL_K_GROUPED_D], n, m, num_groups, BLOCK_N, BLOCK_M));
    TL_TRY(TL_CUDA_STATUS(plan, "shared memory of padded_kernel",
                          cudaFuncSetAttribute(padded_kernel,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               SHARED_BYTES)));
    padded_kernel<<<(unsigned)plan->device->multiprocessors, THREADS, SHARED_BYTES,
                    tl_cuda_stream(stream)>>>(
        map_a, map_b, map_d, (const int *)tensor[TL_K_GROUPED_OFFSETS].data, (int)num_groups,
        (int)m, (int)n, (int)k, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "padded_kernel");
}

extern "C" const struct tl_kernel tl_kernel_k_grouped_gemm_sm90_padded = {
    .operation = "k_grouped_gemm",
    .variant = "sm90_padded",
    .arch = "sm90",
    .summary = "Groups padded to 128 rows, 128x192x64 tiles, always added to d by TMA; the host "
               "knows the counts (DeepGEMM).",
    .dtypes = TL_DTYPE_BIT(TL_BF16) | TL_DTYPE_BIT(TL_FP32),
    .legal = legal,
    .launch = launch,
};
