/* scale_swizzle/smxx_naive: K groups as one would write them down first, and as torchao's Triton
 * kernel has them: a block for each row tile and group, which loops over the group's column tiles.
 * A thread moves a byte at a time; few groups are few blocks.
 */
#include <cuda_runtime.h>

#include "kernels/scale_swizzle/words.cuh"

enum { MOST_THREADS = 512 };

static __global__ void __launch_bounds__(MOST_THREADS)
    naive_kernel(const __grid_constant__ tl_scale_problem p, tl_fault_port fault)
{
    int group = (int)blockIdx.x, row_tile = tl_scale_block_down();
    if (tl_group_ends_refused(p.ends, p.num_groups, p.columns, fault) || row_tile >= p.row_tiles)
        return;
    int64_t columns_before = 0;
    int begin = 0, end = __ldg(p.ends);
    for (int g = 1; g <= group; g++) {
        columns_before += tl_scale_padded_columns(end - begin);
        begin = end;
        end = __ldg(p.ends + g);
    }
    int tiles = (end - begin + TL_SCALE_TILE_COLUMNS - 1) / TL_SCALE_TILE_COLUMNS;
    uint8_t *base = p.blocked + columns_before * p.row_tiles * TL_SCALE_TILE_ROWS +
                    (int64_t)row_tile * tiles * TL_SCALE_TILE_BYTES;
    for (int tile = 0; tile < tiles; tile++)
        for (int i = (int)threadIdx.x; i < TL_SCALE_TILE_BYTES; i += (int)blockDim.x) {
            int row = row_tile * TL_SCALE_TILE_ROWS + i % 16 / 4 * TL_SCALE_RUNS + i / 16;
            int column = begin + tile * TL_SCALE_TILE_COLUMNS + i % 4;
            bool inside = row < p.rows && column < end;
            base[(int64_t)tile * TL_SCALE_TILE_BYTES + i] =
                inside ? __ldg(p.scales + (int64_t)row * p.columns + column) : 0;
        }
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    tl_scale_problem p = tl_scale_problem_of(plan, args);
    size_t shared = tl_scale_held_bytes(plan);
    if (tl_scale_is_empty(p))
        return TL_OK;
    TL_TRY(tl_scale_allow_shared(plan, (const void *)naive_kernel, shared));
    naive_kernel<<<tl_scale_grid(p.num_groups, p.row_tiles), (unsigned)plan->tunable[0], shared,
                   tl_cuda_stream(stream)>>>(p, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "naive_kernel");
}

static const int block_threads[] = {128, 256, 512, 0};

extern "C" const struct tl_kernel tl_kernel_scale_swizzle_smxx_naive = {
    .operation = "scale_swizzle",
    .variant = "smxx_naive",
    .arch = "smxx",
    .summary = "K groups: a block for each row tile and group, byte by byte, tile after tile.",
    .tunables = {{"block_threads", 512, block_threads}, TL_SCALE_HELD_SHARED},
    .legal = tl_scale_legal_k_groups,
    .launch = launch,
};
