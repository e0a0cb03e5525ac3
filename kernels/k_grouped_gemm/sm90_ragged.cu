/* k_grouped_gemm/sm90_ragged: weight gradients of groups of any size, without padding.
 *
 * d[e] (+)= a[rows of e]^T b[rows of e], bf16 to fp32. Groups cut the reduction dimension, so both
 * loads are ragged: the tensor maps end at the end of the group, and what lies behind it arrives as
 * zeros, whatever it holds (Triton's ragged_tma; RapidGEMM's Kgemm). A warpgroup holds a tile of
 * 128 by 192 sums; two take turns, so that one multiplies while the other stores, or adds to what
 * is there and was loaded meanwhile. Blocks work in pairs on two tiles below each other and share
 * the columns of b. Persistent; pairs take tiles from a shared counter, largest groups first.
 */
#include <cuda_runtime.h>
#include <string.h>

#include "kernels/device/early.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/wgmma.cuh"
#include "kernels/k_grouped_gemm/bf16.h"
#include "kernels/k_grouped_gemm/ragged_load.cuh"

enum {
    THREADS = 384,
    PRODUCER_REGISTERS = 40,
    CONSUMER_REGISTERS = 232,
    LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8 /* what __launch_bounds__ leaves a thread */
};
/* setmaxnreg.inc waits for registers that the block was launched with; beyond them it waits for
 * ever. */
static_assert(PRODUCER_REGISTERS * 128 + CONSUMER_REGISTERS * 256 <= LAUNCH_REGISTERS * THREADS,
              "roles take more registers than the block has");

/* Says to both blocks that a warpgroup has read a stage: one lane each of two warps. */
struct releaser {
    uint32_t first; /* barrier of stage 0; 0: this thread says nothing */

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

/* 16 rows of a stage; those of b lie in halves of 32 rows, panel after panel. */
template <int N, int C>
static __device__ __forceinline__ void multiply_step(float (&upper)[C], float (&lower)[C],
                                                     uint64_t a, uint64_t b, int step,
                                                     bool accumulate)
{
    b += step / 2 * (PANELS * HALF_BYTES >> 4) + step % 2 * 128;
    tl_wgmma_bf16<N, 1, 1>(upper, a + step * 128, b, accumulate);
    tl_wgmma_bf16<N, 1, 1>(lower, a + (PANEL_BYTES >> 4) + step * 128, b, accumulate);
}

/* upper, lower = 64 rows each of a^T b over the group's rows; one stage is multiplied while the
 * next is waited for. Of the last stage only the steps of 16 that hold rows. */
template <int N, int STAGES, int C>
static __device__ __forceinline__ void
multiply_tile(float (&upper)[C], float (&lower)[C], const shared_layout &shared, ring<STAGES> at,
              int k_blocks, int last_steps, const releaser &stages, uint64_t *next_turn)
{
    int previous = 0;
    for (int k = 0; k < k_blocks - 1; k++) {
        tl_mbarrier_wait(shared.full + at.slot, at.parity);
        const char *stage = shared.stages + at.slot * STAGE_BYTES;
        uint64_t a = tl_wgmma_desc_128b_mn(stage, PANEL_BYTES);
        uint64_t b = tl_wgmma_desc_128b_mn(stage + A_BYTES, HALF_BYTES);
        tl_wgmma_fence();
#pragma unroll
        for (int step = 0; step < BLOCK_K / 16; step++)
            multiply_step<N>(upper, lower, a, b, step, k > 0 || step > 0);
        tl_wgmma_commit();
        tl_wgmma_wait<1>(); /* the stage before is read */
        if (k > 0)
            stages.release(previous);
        previous = at.slot;
        at.next();
    }
    tl_mbarrier_wait(shared.full + at.slot, at.parity);
    const char *stage = shared.stages + at.slot * STAGE_BYTES;
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
    stages.release(at.slot);
}

/* Four neighbouring columns of 16, of which `acc` points to a row's as wgmma leaves them, or where
 * swapped `other` does: lanes in pairs exchange halves of two blocks of eight. */
static __device__ __forceinline__ float4 four_of(const float *acc, const float *other, bool swapped)
{
    bool odd = threadIdx.x % 2;
    float2 low = {swapped ? other[0] : acc[0], swapped ? other[1] : acc[1]};
    float2 high = {swapped ? other[4] : acc[4], swapped ? other[5] : acc[5]};
    float2 mine = odd ? high : low, sent = odd ? low : high;
    sent.x = __shfl_xor_sync(0xffffffffu, sent.x, 1);
    sent.y = __shfl_xor_sync(0xffffffffu, sent.y, 1);
    return odd ? make_float4(sent.x, sent.y, mine.x, mine.y)
               : make_float4(mine.x, mine.y, sent.x, sent.y);
}

/* The first of a thread's four columns, of 16, and its row, of 64 and with a second one 8 below. */
static __device__ __forceinline__ int my_column()
{
    return threadIdx.x % 2 * 8 + threadIdx.x % 4 / 2 * 4;
}

static __device__ __forceinline__ int my_row()
{
    return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
}

/* Four columns of a box of what is there, in the left or the right half of its columns. */
static __device__ __forceinline__ float4 sums_in(const char *box, int half, int eight)
{
    int row = my_row();
    uint32_t chunk = (uint32_t)((half * 4 + my_column() / 4) ^ row % 8);
    uint32_t address = tl_shared_address(box) + (row + eight) * 128 + chunk * 16;
    float4 value;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(address)
                 : "memory");
    return value;
}

/* Where a thread's sums go, and how much is left from there to the end of the matrix. */
struct place {
    float *d;
    int columns, rows;
    int panels; /* of the tile */

    __device__ place(const problem &p, volatile const tile *t)
    {
        int row = t->row + my_row(), column = t->column + my_column();
        d = p.d + ((int64_t)t->group * p.m + row) * p.n + column;
        columns = p.n - column;
        rows = p.m - row;
        panels = t->panels;
    }
};

/* 64 rows by 32 columns after another. Where d is added to, odd rows take the halves of the columns
 * in the other order, so that eight lanes meet all banks. */
template <way WAY, int C>
static __device__ __forceinline__ void store_tile(const float (&upper)[C], const float (&lower)[C],
                                                  const shared_layout &shared, const place &to,
                                                  int64_t n, ring<room<WAY>::BOXES> at,
                                                  uint64_t *next_turn)
{
    const bool ADDS = room<WAY>::ADDS, swapped = ADDS && my_row() % 2;
#pragma unroll
    for (int box = 0; box < PANELS * 4; box++) {
        if (box >= to.panels * 4)
            break;
        const char *sums = shared.boxes + at.slot * BOX_BYTES;
        const float *acc = (box % 2 ? lower : upper) + box / 2 * (BOX_COLUMNS / 2);
        if (ADDS) {
            tl_mbarrier_wait(shared.box_full + at.slot, at.parity);
            if (box == to.panels * 4 - 1 && threadIdx.x % 128 == 0)
                tl_mbarrier_arrive(next_turn);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int eight = i % 2 * 8, part = i / 2 * 8 + i % 2 * 2, other = part ^ 8;
            int half = swapped ? 1 - i / 2 : i / 2;
            int down = box % 2 * 64 + eight, right = box / 2 * BOX_COLUMNS + half * 16;
            float4 sum = four_of(acc + part, acc + other, swapped);
            if (ADDS) {
                float4 was = sums_in(sums, half, eight);
                sum = {sum.x + was.x, sum.y + was.y, sum.z + was.z, sum.w + was.w};
            }
            if (right < to.columns && down < to.rows)
                *(float4 *)(to.d + down * n + right) = sum;
        }
        if (ADDS) {
            __syncwarp();
            if (threadIdx.x % 32 == 0)
                tl_mbarrier_arrive(shared.box_free + at.slot);
            at.next();
        }
    }
}

/* A warpgroup: every other tile, so that one stores while the other multiplies. It waits for its
 * turn until the other has seen all stages of the tile before, and all boxes: a barrier that is two
 * phases behind looks like one that is done. */
template <way WAY>
static __device__ void consume(const shared_layout &shared, const problem &p, int warpgroup)
{
    const bool ADDS = room<WAY>::ADDS;
    releaser stages(shared);
    uint64_t *next_turn = shared.turn + (warpgroup ^ 1);
    uint64_t *next_box = shared.box_turn + (warpgroup ^ 1);
    bool leader = threadIdx.x % 128 == 0;
    float upper[BLOCK_N / 2], lower[BLOCK_N / 2];
    for (int i = warpgroup;; i += 2) {
        int slot = i % TILE_SLOTS;
        volatile const tile *t = shared.tiles + slot;
        tl_mbarrier_wait(shared.tile_full + slot, i / TILE_SLOTS & 1);
        if (tl_uniform(t->group) == NO_TILE)
            break;
        int k_blocks = tl_uniform(t->k_blocks), last_steps = tl_uniform(t->last_steps);
        ring<room<WAY>::STAGES> at(tl_uniform(t->stages_before));
        if (i > 0)
            tl_mbarrier_wait(shared.turn + warpgroup, (i - 1) / 2 & 1);
        switch (k_blocks > 0 ? tl_uniform(t->panels) : 0) { /* outside of the loop over k */
        case 0:
            if (leader)
                tl_mbarrier_arrive(next_turn);
            break;
#define WIDTH(panels)                                                                             \
    case panels:                                                                                  \
        multiply_tile<panels * 64>(upper, lower, shared, at, k_blocks, last_steps, stages,        \
                                   next_turn);                                                    \
        break;
            WIDTH(1) WIDTH(2) WIDTH(3)
#undef WIDTH
        }
        place to(p, t);
        ring<room<WAY>::BOXES> boxes(t->boxes_before);
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            tl_mbarrier_arrive(shared.tile_read + slot);
        if (ADDS && i > 0)
            tl_mbarrier_wait(shared.box_turn + warpgroup, (i - 1) / 2 & 1);
        if (k_blocks > 0)
            store_tile<WAY>(upper, lower, shared, to, p.n, boxes, next_box);
        else if (leader)
            tl_mbarrier_arrive(next_box);
    }
}

struct maps {
    CUtensorMap a, b, d;
};

template <way WAY>
static __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    ragged_kernel(const __grid_constant__ maps map, schedule *todo, problem p)
{
    const bool ADDS = room<WAY>::ADDS;
    const int STAGES = room<WAY>::STAGES, BOXES = room<WAY>::BOXES;
    extern __shared__ char raw[];
    __shared__ uint64_t full[MOST_STAGES], free[MOST_STAGES], turn[2];
    __shared__ uint64_t box_full[MOST_BOXES], box_free[MOST_BOXES], box_turn[2];
    __shared__ uint64_t tile_full[TILE_SLOTS], tile_read[TILE_SLOTS], number_full[TILE_SLOTS];
    __shared__ tile tiles[TILE_SLOTS];
    __shared__ int numbers[TILE_SLOTS];
    /* At the same offset in both blocks, since loads for both use it. */
    char *stages = raw + (1024 - tl_shared_address(raw) % 1024) % 1024;
    shared_layout shared = {
        stages,    stages + STAGES * STAGE_BYTES, full,        free, box_full, box_free,
        tile_full, tile_read,                     number_full, turn, box_turn, tiles,
        numbers};
    int warp = tl_uniform((int)threadIdx.x / 32);
    if (threadIdx.x == 0) {
        tl_prefetch_map(&map.a);
        tl_prefetch_map(&map.b);
        for (int i = 0; i < STAGES; i++) {
            tl_mbarrier_init(full + i, 2);
            tl_mbarrier_init(free + i, CLUSTER);
        }
        for (int i = 0; i < BOXES; i++) {
            tl_mbarrier_init(box_full + i, 1);
            tl_mbarrier_init(box_free + i, 4);
        }
        for (int i = 0; i < 2; i++) {
            tl_mbarrier_init(turn + i, 1);
            tl_mbarrier_init(box_turn + i, 1);
        }
        for (int i = 0; i < TILE_SLOTS; i++) {
            tl_mbarrier_init(tile_full + i, 1);
            /* two or three loading warps, four of a warpgroup; in the first block the second's */
            tl_mbarrier_init(tile_read + i, 6 + ADDS + (tl_cluster_rank() == 0 ? CLUSTER - 1 : 0));
            tl_mbarrier_init(number_full + i, 1);
        }
        tl_mbarrier_init_fence();
    }
    cudaGridDependencySynchronize(); /* the order, and all that was before it */
    tl_cluster_sync();
    if (warp >= 8) {
        tl_registers_shrink<PRODUCER_REGISTERS>();
        if (warp == 8)
            load_a<WAY>(shared, &map.a, p);
        else if (warp == 9)
            load_b<WAY>(shared, &map.b, p);
        else if (warp == 11 && ADDS)
            load_sums<WAY>(shared, &map.d);
        else if (threadIdx.x == 10 * 32)
            choose_tiles<WAY>(shared, todo, p);
    } else {
        tl_registers_grow<CONSUMER_REGISTERS>();
        consume<WAY>(shared, p, warp / 4);
    }
    __syncwarp();
    tl_cluster_sync();
}

/* --- the host's side -------------------------------------------------------------------------- */

static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t rows = problem->dim[TL_K_GROUPED_K];
    int64_t row_pairs = problem->dim[TL_K_GROUPED_M] / (CLUSTER * BLOCK_M) + 1;
    int64_t tiles = row_pairs * (problem->dim[TL_K_GROUPED_N] / BLOCK_N + 1);
    TL_TRY(k_grouped_legal_bf16(problem, "sm90_ragged"));
    if (rows > TL_RAGGED_ROWS)
        return TL_FAIL(TL_ERR_ILLEGAL, "k_grouped_gemm/sm90_ragged: %lld rows are more than 2^30",
                       (long long)rows);
    if (problem->dim[TL_K_GROUPED_NUM_GROUPS] > INT32_MAX / 2 / tiles)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "k_grouped_gemm/sm90_ragged: %lld groups of %lld by %lld make more than "
                       "2^30 tiles",
                       (long long)problem->dim[TL_K_GROUPED_NUM_GROUPS],
                       (long long)problem->dim[TL_K_GROUPED_M],
                       (long long)problem->dim[TL_K_GROUPED_N]);
    return TL_OK;
}

static bool adds(const struct tl_plan *plan)
{
    return plan->problem.param[TL_K_GROUPED_BETA] != 0;
}

enum { ADD_STAGES };

static way way_of(const struct tl_plan *plan)
{
    return !adds(plan) ? WRITE
           : plan->tunable[ADD_STAGES] == room<ADD_FEW>::STAGES ? ADD_FEW
                                                                : ADD_MANY;
}

typedef void (*kernel_fn)(maps, schedule *, problem);

static kernel_fn kernel_of(way w, int *shared_bytes)
{
    *shared_bytes = w == WRITE     ? room<WRITE>::BYTES
                    : w == ADD_FEW ? room<ADD_FEW>::BYTES
                                   : room<ADD_MANY>::BYTES;
    return w == WRITE     ? ragged_kernel<WRITE>
           : w == ADD_FEW ? ragged_kernel<ADD_FEW>
                          : ragged_kernel<ADD_MANY>;
}

static bool is_empty(const struct tl_plan *plan, const struct tl_args *args)
{
    return tl_tensor_bytes(&args->tensor[TL_K_GROUPED_D]) == 0 ||
           plan->problem.dim[TL_K_GROUPED_K] == 0;
}

static struct problem problem_of(const struct tl_plan *plan, const struct tl_args *args)
{
    struct problem p;
    p.d = (float *)args->tensor[TL_K_GROUPED_D].data;
    p.m = (int)plan->problem.dim[TL_K_GROUPED_M];
    p.n = (int)plan->problem.dim[TL_K_GROUPED_N];
    p.beta = adds(plan);
    p.panels_in_one = p.m % 64 == 0 && p.n % 64 == 0;
    p.row_pairs = (p.m + CLUSTER * BLOCK_M - 1) / (CLUSTER * BLOCK_M);
    p.tiles = p.row_pairs * ((p.n + BLOCK_N - 1) / BLOCK_N);
    return p;
}

/* Boxes of `rows` rows and of `panels` panels where a load takes them all, or of one. */
static enum tl_status map_operand(CUtensorMap *map, const struct tl_tensor *tensor, int64_t columns,
                                  bool in_one, int rows, int panels)
{
    return in_one ? tl_tensor_map_ragged_panels(map, tensor, columns, rows, panels)
                  : tl_tensor_map_ragged(map, tensor, columns, 64, rows);
}

/* Makes the maps and allows the kernel its shared memory. */
static enum tl_status prepare(const struct tl_plan *plan, const struct tl_args *args, maps *out)
{
    const struct tl_tensor *tensor = args->tensor;
    struct problem p = problem_of(plan, args);
    TL_TRY(map_operand(&out->a, &tensor[TL_K_GROUPED_A], p.m, p.panels_in_one, BLOCK_K,
                       BLOCK_M / 64));
    TL_TRY(map_operand(&out->b, &tensor[TL_K_GROUPED_B], p.n, p.panels_in_one, BLOCK_K / CLUSTER,
                       PANELS));
    TL_TRY(tl_tensor_map_3d(&out->d, &tensor[TL_K_GROUPED_D], p.n, p.m,
                            plan->problem.dim[TL_K_GROUPED_NUM_GROUPS], BOX_COLUMNS, 64));
    int shared_bytes;
    kernel_fn kernel = kernel_of(way_of(plan), &shared_bytes);
    return TL_CUDA_STATUS(plan, "shared memory of ragged_kernel",
                          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               shared_bytes));
}

/* In the plan's scratch: what was prepared for the tensors that it is bound to. */
struct bound {
    const void *a, *b, *d;
    uint64_t maps[sizeof(maps) / sizeof(uint64_t)];
};
static_assert(sizeof(bound) <= sizeof(((tl_plan *)0)->scratch), "the maps fit into a plan");

static enum tl_status bind(struct tl_plan *plan, const struct tl_args *args)
{
    bound *kept = (bound *)plan->scratch;
    maps map;
    kept->a = NULL;
    if (is_empty(plan, args))
        return TL_OK;
    TL_TRY(prepare(plan, args, &map));
    memcpy(kept->maps, &map, sizeof map);
    kept->b = args->tensor[TL_K_GROUPED_B].data;
    kept->d = args->tensor[TL_K_GROUPED_D].data;
    kept->a = args->tensor[TL_K_GROUPED_A].data;
    return TL_OK;
}

static enum tl_status find_maps(const struct tl_plan *plan, const struct tl_args *args, maps *out)
{
    const bound *kept = (const bound *)plan->scratch;
    if (!kept->a || kept->a != args->tensor[TL_K_GROUPED_A].data ||
        kept->b != args->tensor[TL_K_GROUPED_B].data ||
        kept->d != args->tensor[TL_K_GROUPED_D].data)
        return prepare(plan, args, out);
    memcpy(out, kept->maps, sizeof *out);
    return TL_OK;
}

static size_t workspace(const struct tl_plan *plan)
{
    return schedule_bytes(plan->problem.dim[TL_K_GROUPED_NUM_GROUPS]);
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const struct tl_tensor *d = &args->tensor[TL_K_GROUPED_D];
    cudaStream_t native = tl_cuda_stream(stream);
    if (is_empty(plan, args)) { /* sums of nothing */
        if (tl_tensor_bytes(d) == 0 || adds(plan))
            return TL_OK;
        return TL_CUDA_STATUS(plan, "zeroing d",
                              cudaMemsetAsync(d->data, 0, tl_tensor_bytes(d), native));
    }
    maps map;
    TL_TRY(find_maps(plan, args, &map));
    schedule *todo = (schedule *)args->workspace;
    struct problem p = problem_of(plan, args);
    order_kernel<<<1, ORDER_THREADS, 0, native>>>(
        (const int *)args->tensor[TL_K_GROUPED_OFFSETS].data,
        (int)plan->problem.dim[TL_K_GROUPED_NUM_GROUPS], plan->problem.dim[TL_K_GROUPED_K], p.beta,
        todo, tl_cuda_fault(plan));
    TL_TRY(TL_CUDA_LAUNCHED(plan, "order_kernel"));
    unsigned blocks = (unsigned)plan->device->multiprocessors / CLUSTER * CLUSTER;
    int shared_bytes;
    kernel_fn kernel = kernel_of(way_of(plan), &shared_bytes);
    return TL_CUDA_STATUS(plan, "ragged_kernel",
                          tl_cuda_launch_early(kernel, blocks, THREADS, shared_bytes, native, map,
                                               todo, p));
}

/* Where d is added to, as measured on an H200: a tile that takes more stages of operands than it has
 * boxes of d is multiplied for long enough that they come in time, and gains by a stage more; of
 * short ones, d is what they wait for. */
enum { LONG_ROWS = (4 * PANELS + 1) * BLOCK_K }; /* of a group, on average */

static enum tl_status plan_tunables(struct tl_plan *plan)
{
    const int64_t *dim = plan->problem.dim;
    bool lasting = dim[TL_K_GROUPED_K] >= LONG_ROWS * dim[TL_K_GROUPED_NUM_GROUPS];
    plan->tunable[ADD_STAGES] = lasting ? room<ADD_FEW>::STAGES : room<ADD_MANY>::STAGES;
    return TL_OK;
}

/* Stages of operands where d is added to: they leave room for 8 boxes of d, or for 3. */
static const int add_stages[] = {room<ADD_MANY>::STAGES, room<ADD_FEW>::STAGES, 0};

extern "C" const struct tl_kernel tl_kernel_k_grouped_gemm_sm90_ragged = {
    .operation = "k_grouped_gemm",
    .variant = "sm90_ragged",
    .arch = "sm90",
    .summary = "Ragged TMA loads of both operands, 128x192 tiles, warpgroups in turn, pairs of "
               "blocks, largest groups first; beta 1 by loading d (RapidGEMM, Triton's "
               "ragged_tma).",
    .dtypes = TL_DTYPE_BIT(TL_BF16) | TL_DTYPE_BIT(TL_FP32),
    .tunables = {{"add_stages", room<ADD_MANY>::STAGES, add_stages}},
    .legal = legal,
    .plan = plan_tunables,
    .workspace = workspace,
    .bind = bind,
    .launch = launch,
};
