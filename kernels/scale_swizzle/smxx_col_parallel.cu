/* scale_swizzle/smxx_col_parallel: K groups in parallel over rows and columns. A thread moves a
 * word, four columns of one row, so that neighbours read rows apart and write 16 bytes apart.
 */
#include <cuda_runtime.h>

#include "kernels/scale_swizzle/words.cuh"

enum { MOST_THREADS = 512 };

extern __shared__ int group_table[];

template <class Groups>
static __global__ void __launch_bounds__(MOST_THREADS)
    col_parallel_kernel(const __grid_constant__ tl_scale_problem p, int tiles_per_block,
                        tl_fault_port fault)
{
    Groups groups;
    tl_scale_tile tile;
    int row_in_tile = (int)threadIdx.x, row_tile = tl_scale_block_down();
    int row = row_tile * TL_SCALE_TILE_ROWS + row_in_tile;
    int at = row_in_tile % TL_SCALE_RUNS * TL_SCALE_RUN_BYTES + row_in_tile / TL_SCALE_RUNS * 4;
    if (groups.open(p.ends, p.num_groups, p.columns, group_table, fault) ||
        row_tile >= p.row_tiles)
        return;
    for (int i = (int)threadIdx.y; i < tiles_per_block; i += (int)blockDim.y) {
        if (!tl_scale_find_tile(p, groups, (int)blockIdx.x * tiles_per_block + i, &tile))
            return;
        *(uint32_t *)(tl_scale_tile_at(p, tile, row_tile) + at) =
            tl_scale_word(p, row, tile.column, tile.left);
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
        many ? col_parallel_kernel<tl_scale_many> : col_parallel_kernel<tl_scale_few>;
    if (tl_scale_is_empty(p))
        return TL_OK;
    TL_TRY(tl_scale_check_aligned(plan, p.blocked));
    TL_TRY(tl_scale_allow_shared(plan, (const void *)kernel, shared));
    dim3 grid = tl_scale_grid((tl_scale_most_tiles(p) + per_block - 1) / per_block, p.row_tiles);
    kernel<<<grid, dim3(TL_SCALE_TILE_ROWS, threads / TL_SCALE_TILE_ROWS), shared,
             tl_cuda_stream(stream)>>>(p, per_block, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "col_parallel_kernel");
}

static const int block_threads[] = {128, 256, 512, 0};
static const int tiles_per_block[] = {1, 2, 4, 8, 16, 32, 0};

extern "C" const struct tl_kernel tl_kernel_scale_swizzle_smxx_col_parallel = {
    .operation = "scale_swizzle",
    .variant = "smxx_col_parallel",
    .arch = "smxx",
    .summary = "K groups: a thread for each row and column tile, 4-byte loads and stores.",
    .tunables = {{"block_threads", 256, block_threads},
                 {"tiles_per_block", 4, tiles_per_block},
                 TL_SCALE_HELD_SHARED},
    .legal = tl_scale_legal_k_groups,
    .launch = launch,
};
