/* scale_unswizzle/smxx_plain: the way back, a thread for each four columns of a row of the input's
 * own grid, byte by byte through the formula of the layout. A warp takes 128 bytes of a row.
 */
#include <cuda_runtime.h>

#include "kernels/scale_swizzle/row_tiles.cuh"
#include "kernels/scale_swizzle/words.cuh"

enum { THREADS = 256, ROWS = THREADS / 32, SPAN = 128 };

extern __shared__ int group_table[];

/* scales [all_rows, columns] is what this kernel writes. */
struct back_problem {
    tl_scale_problem p;
    uint8_t *scales;
    int64_t all_rows; /* of all slices */
};

template <class Groups>
static __global__ void __launch_bounds__(THREADS)
    back_k_groups_kernel(const __grid_constant__ back_problem b, tl_fault_port fault)
{
    Groups groups;
    int first = (int)blockIdx.x * SPAN, column = first + (int)threadIdx.x * 4;
    if (groups.open(b.p.ends, b.p.num_groups, b.p.columns, group_table, fault))
        return;
    for (int64_t row = (int64_t)blockIdx.y * ROWS + threadIdx.y; row < b.all_rows;
         row += (int64_t)gridDim.y * ROWS)
        for (groups.seek(first); groups.group < b.p.num_groups && groups.begin < first + SPAN;
             groups.next()) {
            const uint8_t *base = b.p.blocked + (int64_t)groups.units_before * b.p.row_tiles *
                                                    TL_SCALE_TILE_BYTES;
            int size = groups.end - groups.begin;
            for (int c = max(column, groups.begin); c < min(column + 4, groups.end); c++)
                b.scales[row * b.p.columns + c] = base[tl_scale_at(row, c - groups.begin, size)];
        }
}

/* Groups that leave columns whole begin at row tiles of the output, rows of one together. */
template <class Groups>
static __global__ void __launch_bounds__(THREADS)
    back_rows_kernel(const __grid_constant__ back_problem b, tl_fault_port fault)
{
    Groups groups;
    int columns = b.p.columns, column = (int)(blockIdx.x * SPAN + threadIdx.x * 4);
    int64_t tile_bytes = (columns + 3) / 4 * (int64_t)TL_SCALE_TILE_BYTES; /* of a row of tiles */
    if (groups.open(b.p.ends, b.p.num_groups, b.p.rows, group_table, fault))
        return;
    for (int64_t row = (int64_t)blockIdx.y * ROWS + threadIdx.y; row < b.all_rows;
         row += (int64_t)gridDim.y * ROWS) {
        groups.seek((int)row);
        if (groups.group >= b.p.num_groups)
            return;
        const uint8_t *base = b.p.blocked + groups.units_before * tile_bytes;
        for (int c = column; c < min(column + 4, columns); c++)
            b.scales[row * columns + c] = base[tl_scale_at(row - groups.begin, c, columns)];
    }
}

/* The same where every slice of `rows` rows is a group; one slice is the dense grouping. */
static __global__ void __launch_bounds__(THREADS)
    back_slices_kernel(const __grid_constant__ back_problem b)
{
    int columns = b.p.columns, column = (int)(blockIdx.x * SPAN + threadIdx.x * 4);
    int64_t slice_bytes = tl_scale_padded_rows(b.p.rows) * tl_scale_padded_columns(columns);
    for (int64_t row = (int64_t)blockIdx.y * ROWS + threadIdx.y; row < b.all_rows;
         row += (int64_t)gridDim.y * ROWS) {
        int64_t slice = row / b.p.rows;
        const uint8_t *base = b.p.blocked + slice * slice_bytes;
        for (int c = column; c < min(column + 4, columns); c++)
            b.scales[row * columns + c] = base[tl_scale_at(row - slice * b.p.rows, c, columns)];
    }
}

typedef tl_few_groups<TL_SCALE_TILE_ROWS> few_m;
typedef tl_many_groups<TL_SCALE_TILE_ROWS> many_m;

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    tl_scale_problem p = tl_scale_problem_of(plan, args);
    int grouping = (int)plan->problem.param[TL_SCALE_GROUPING];
    bool many = p.num_groups > TL_FEW_GROUPS;
    back_problem b = {p, (uint8_t *)args->tensor[TL_SCALE_SCALES].data,
                      tl_scale_row_problem_of(p).all_rows};
    size_t shared = p.ends && many ? tl_scale_many::shared_bytes(p.num_groups) : 0;
    int64_t down = (b.all_rows + ROWS - 1) / ROWS;
    dim3 grid((unsigned)((p.columns + SPAN - 1) / SPAN),
              (unsigned)(down < TL_SCALE_MOST_BLOCKS_Y ? down : (int64_t)TL_SCALE_MOST_BLOCKS_Y));
    dim3 block(32, ROWS);
    cudaStream_t native = tl_cuda_stream(stream);
    tl_fault_port fault = tl_cuda_fault(plan);
    void (*kernel)(back_problem, tl_fault_port) =
        grouping == TL_SCALE_K_GROUPS
            ? (many ? back_k_groups_kernel<tl_scale_many> : back_k_groups_kernel<tl_scale_few>)
            : (many ? back_rows_kernel<many_m> : back_rows_kernel<few_m>);
    if (p.rows == 0 || p.columns == 0 || (grouping != TL_SCALE_DENSE && p.num_groups == 0))
        return TL_OK;
    TL_TRY(tl_scale_allow_shared(plan, (const void *)kernel, shared));
    if (p.ends)
        kernel<<<grid, block, shared, native>>>(b, fault);
    else
        back_slices_kernel<<<grid, block, 0, native>>>(b);
    return TL_CUDA_LAUNCHED(plan, "back_kernel");
}

extern "C" const struct tl_kernel tl_kernel_scale_unswizzle_smxx_plain = {
    .operation = "scale_unswizzle",
    .variant = "smxx_plain",
    .arch = "smxx",
    .summary = "The reference on the GPU: four bytes of a row a thread, by the layout's formula.",
    .legal = tl_scale_legal,
    .launch = launch,
};
