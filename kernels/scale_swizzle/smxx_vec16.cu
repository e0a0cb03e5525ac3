/* scale_swizzle/smxx_vec16: K groups with 16-byte stores. A thread gathers the four words of a run,
 * so that a warp writes a whole tile in a row; its loads are still 4 bytes of rows apart.
 */
#include <cuda_runtime.h>

#include "kernels/scale_swizzle/words.cuh"

enum { MOST_THREADS = 512 };

extern __shared__ int group_table[];

template <class Groups>
static __global__ void __launch_bounds__(MOST_THREADS)
    vec16_kernel(const __grid_constant__ tl_scale_problem p, int tiles_per_block,
                 tl_fault_port fault)
{
    Groups groups;
    tl_scale_tile tile;
    int run = (int)threadIdx.x, row_tile = tl_scale_block_down();
    int row = row_tile * TL_SCALE_TILE_ROWS + run;
    if (groups.open(p.ends, p.num_groups, p.columns, group_table, fault) ||
        row_tile >= p.row_tiles)
        return;
    for (int i = (int)threadIdx.y; i < tiles_per_block; i += (int)blockDim.y) {
        uint32_t word[TL_SCALE_RUN_ROWS];
        if (!tl_scale_find_tile(p, groups, (int)blockIdx.x * tiles_per_block + i, &tile))
            return;
#pragma unroll
        for (int q = 0; q < TL_SCALE_RUN_ROWS; q++)
            word[q] = tl_scale_word(p, row + q * TL_SCALE_RUNS, tile.column, tile.left);
        uint8_t *at = tl_scale_tile_at(p, tile, row_tile) + run * TL_SCALE_RUN_BYTES;
        *(uint4 *)at = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    tl_scale_problem p = tl_scale_problem_of(plan, args);
    bool many = p.num_groups > TL_FEW_GROUPS;
    unsigned threads = (unsigned)plan->tunable[0];
    int per_block = plan->tunable[1];
    size_t table = many ? tl_scale_many::shared_bytes(p.num_groups) : 0;
    size_t shared = tl_scale_held_bytes(plan) + table;
    void (*kernel)(tl_scale_problem, int, tl_fault_port) =
        many ? vec16_kernel<tl_scale_many> : vec16_kernel<tl_scale_few>;
    if (tl_scale_is_empty(p))
        return TL_OK;
    TL_TRY(tl_scale_check_aligned(plan, p.blocked));
    TL_TRY(tl_scale_allow_shared(plan, (const void *)kernel, shared));
    dim3 grid = tl_scale_grid((tl_scale_most_tiles(p) + per_block - 1) / per_block, p.row_tiles);
    kernel<<<grid, dim3(TL_SCALE_RUNS, threads / TL_SCALE_RUNS), shared, tl_cuda_stream(stream)>>>(
        p, per_block, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "vec16_kernel");
}

static const int block_threads[] = {64, 128, 256, 512, 0};
static const int tiles_per_block[] = {2, 4, 8, 16, 32, 64, 0};

extern "C" const struct tl_kernel tl_kernel_scale_swizzle_smxx_vec16 = {
    .operation = "scale_swizzle",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "K groups: a thread for each run of 16 bytes, gathered from four rows by words.",
    .tunables = {{"block_threads", 256, block_threads},
                 {"tiles_per_block", 16, tiles_per_block},
                 TL_SCALE_HELD_SHARED},
    .legal = tl_scale_legal_k_groups,
    .launch = launch,
};
