/* probe_store/sm90_tma: what the copy engine writes in a stream, as an epilogue does that is
 * nothing else: boxes of 8 KB out of shared memory, by default 64 rows by 32 columns, one swizzle
 * span wide. Tiles of 128 by 256 go to blocks in turn.
 */
#include <cuda_runtime.h>

#include "kernels/device/async_ragged.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/tensor_map.h"
#include "kernels/device/wgmma.cuh"
#include "kernels/probe/op.h"

enum { TILE_ROWS = 128, TILE_COLUMNS = 256, BOX = 2048, THREADS = 128 };

static __global__ void __launch_bounds__(THREADS)
    store_kernel(const __grid_constant__ CUtensorMap map, float value, int rows, int columns,
                 int box_columns, int64_t tiles)
{
    __shared__ alignas(1024) float box[BOX];
    int row_tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    int column_tiles = (columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
    for (int i = threadIdx.x; i < BOX; i += THREADS)
        box[i] = value;
    tl_fence_async_shared();
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int column = (int)(tile % column_tiles) * TILE_COLUMNS;
        int row = (int)(tile / column_tiles % row_tiles) * TILE_ROWS;
        int slice = (int)(tile / column_tiles / row_tiles);
        for (int x = column; x < min(column + (int)TILE_COLUMNS, columns); x += box_columns)
            for (int y = row; y < min(row + (int)TILE_ROWS, rows); y += BOX / box_columns)
                tl_tma_store_3d(&map, box, x, y, slice);
        tl_tma_store_commit();
        tl_tma_store_wait_read<1>();
    }
    tl_tma_store_wait_all();
}

static enum tl_status store_launch(const struct tl_plan *plan, const struct tl_args *args,
                                   struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    int64_t rows = dim[TL_PROBE_STORE_ROWS], columns = dim[TL_PROBE_STORE_COLUMNS];
    int64_t tiles = dim[TL_PROBE_STORE_DEPTH] * ((rows + TILE_ROWS - 1) / TILE_ROWS) *
                    ((columns + TILE_COLUMNS - 1) / TILE_COLUMNS);
    int box_columns = plan->tunable[0];
    CUtensorMap map;
    if (tiles == 0)
        return TL_OK;
    TL_TRY(tl_tensor_map_3d(&map, &args->tensor[TL_PROBE_STORE_DST], columns, rows,
                            dim[TL_PROBE_STORE_DEPTH], box_columns, BOX / box_columns));
    store_kernel<<<(unsigned)plan->device->multiprocessors, THREADS, 0, tl_cuda_stream(stream)>>>(
        map, (float)plan->problem.param[TL_PROBE_STORE_VALUE], (int)rows, (int)columns, box_columns,
        tiles);
    return TL_CUDA_LAUNCHED(plan, "store_kernel");
}

static const int box_columns_choices[] = {32, 64, 128, 256, 0};

extern "C" const struct tl_kernel tl_kernel_probe_store_sm90_tma = {
    .operation = "probe_store",
    .variant = "sm90_tma",
    .arch = "sm90",
    .summary = "TMA stores of 8 KB boxes, one block an SM.",
    .tunables = {{"box_columns", 32, box_columns_choices}},
    .launch = store_launch,
};
