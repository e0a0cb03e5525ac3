/* Permutation of rows on the GPU: a token's row is read once and written to all of its copies, or
 * gathered from them; see kernels/device/rows.cuh. Pad rows are found by their index and zeroed by
 * the same launch. Rows in fp32 may be bf16 in the experts' layout.
 */
#include "kernels/device/launch.h"
#include "kernels/device/rows.cuh"
#include "kernels/device/vectors.h"
#include "kernels/permute/op.h"

enum {
    BLOCKS_PER_SM = 4,
    SLICES = 4, /* of 32 accesses, that a warp reads before it writes */
};

struct scatter_args {
    const void *x;
    const int *row_slots, *slot_rows, *group_offsets;
    void *y;
    int tokens, top_k, d, rows, num_experts;
};

template <typename TOKEN, typename ROW, int N>
static __device__ __forceinline__ void scatter(const scatter_args &args, int token, int first_slice)
{
    int lane = (int)threadIdx.x % 32;
    const TOKEN *x = (const TOKEN *)args.x + (int64_t)token * args.d;
    tl_vector<TOKEN, N> value[SLICES];
    int rows = tl_slot_row(args.slot_rows, token, args.top_k, 0, args.rows);
#pragma unroll
    for (int i = 0; i < SLICES; i++) {
        int column = ((first_slice + i) * 32 + lane) * N;
        if (column < args.d)
            value[i] = tl_vector_load<TOKEN, N>(x + column);
    }
    for (int first = 0; first < args.top_k; first += TL_ROWS_SLOTS) {
        if (first > 0)
            rows = tl_slot_row(args.slot_rows, token, args.top_k, first, args.rows);
#pragma unroll
        for (int j = 0; j < TL_ROWS_SLOTS; j++) {
            int row = __shfl_sync(~0u, rows, j);
            if (row < 0)
                continue;
#pragma unroll
            for (int i = 0; i < SLICES; i++) {
                int column = ((first_slice + i) * 32 + lane) * N;
                if (column < args.d)
                    tl_vector_store((ROW *)args.y + (int64_t)row * args.d + column,
                                    tl_vector_convert<ROW>(value[i]));
            }
        }
    }
}

template <typename TOKEN, typename ROW>
static __global__ void __launch_bounds__(TL_ROWS_THREADS, BLOCKS_PER_SM)
    scatter_kernel(scatter_args args)
{
    constexpr int N = tl_vector_width<TOKEN, ROW>();
    int parts = (args.d / N + 32 * SLICES - 1) / (32 * SLICES);
    int pieces = args.tokens * parts;
    int used = tl_rows_used(args.group_offsets, args.num_experts, args.rows);
    int batches = (used + 31) / 32;
    for (int piece = tl_warp(); piece < pieces + batches; piece += tl_warps()) {
        if (piece < pieces)
            scatter<TOKEN, ROW, N>(args, piece / parts, piece % parts * SLICES);
        else
            tl_zero_pad_rows<ROW, N>((ROW *)args.y, args.row_slots, (piece - pieces) * 32, used,
                                     args.d);
    }
}

static enum tl_status launch_permute(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    const int64_t *dim = plan->problem.dim;
    TL_TRY(tl_vectors_aligned(plan, args, 1u << PERMUTE_X | 1u << PERMUTE_Y));
    if (dim[PERMUTE_DIM_D] == 0 || dim[PERMUTE_DIM_ROWS] == 0)
        return TL_OK;
    scatter_args kernel_args = {tensor[PERMUTE_X].data,
                                (const int *)tensor[PERMUTE_ROW_SLOTS].data,
                                (const int *)tensor[PERMUTE_SLOT_ROWS].data,
                                (const int *)tensor[PERMUTE_GROUP_OFFSETS].data,
                                tensor[PERMUTE_Y].data,
                                (int)dim[PERMUTE_DIM_TOKENS],
                                (int)dim[PERMUTE_DIM_TOP_K],
                                (int)dim[PERMUTE_DIM_D],
                                (int)dim[PERMUTE_DIM_ROWS],
                                (int)dim[PERMUTE_DIM_NUM_EXPERTS]};
    auto kernel = scatter_kernel<__nv_bfloat16, __nv_bfloat16>;
    if (plan->problem.dtype[PERMUTE_Y] == TL_FP32)
        kernel = scatter_kernel<float, float>;
    else if (plan->problem.dtype[PERMUTE_X] == TL_FP32)
        kernel = scatter_kernel<float, __nv_bfloat16>;
    unsigned blocks = (unsigned)plan->device->multiprocessors * BLOCKS_PER_SM;
    kernel<<<blocks, TL_ROWS_THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "scatter_kernel");
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    const int64_t *dim = plan->problem.dim;
    float beta = (float)plan->problem.param[PERMUTE_BACKWARD_PARAM_BETA];
    void *dx = tensor[PERMUTE_BACKWARD_DX].data;
    TL_TRY(tl_vectors_aligned(plan, args, 1u << PERMUTE_BACKWARD_DY | 1u << PERMUTE_BACKWARD_DX));
    if (dim[PERMUTE_DIM_D] == 0 || dim[PERMUTE_DIM_TOKENS] == 0)
        return TL_OK;
    tl_gather_args kernel_args = {tensor[PERMUTE_BACKWARD_DY].data,
                                  (const int *)tensor[PERMUTE_BACKWARD_SLOT_ROWS].data,
                                  nullptr,
                                  beta != 0 ? dx : nullptr,
                                  dx,
                                  (int)dim[PERMUTE_DIM_TOKENS],
                                  (int)dim[PERMUTE_DIM_TOP_K],
                                  (int)dim[PERMUTE_DIM_D],
                                  (int)dim[PERMUTE_DIM_ROWS],
                                  beta};
    auto kernel = tl_gather_kernel<__nv_bfloat16, __nv_bfloat16>;
    if (plan->problem.dtype[PERMUTE_BACKWARD_DY] == TL_FP32)
        kernel = tl_gather_kernel<float, float>;
    else if (plan->problem.dtype[PERMUTE_BACKWARD_DX] == TL_FP32)
        kernel = tl_gather_kernel<float, __nv_bfloat16>;
    unsigned blocks = (unsigned)plan->device->multiprocessors * TL_ROWS_BLOCKS_PER_SM;
    kernel<<<blocks, TL_ROWS_THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "tl_gather_kernel");
}

/* The wider type decides how many elements an access moves: that of the tokens. */
static enum tl_status legal(const struct tl_problem *problem, int tokens)
{
    const int64_t *dim = problem->dim;
    TL_TRY(tl_vectors_legal(problem, "smxx_vec16", "d", dim[PERMUTE_DIM_D],
                            problem->dtype[tokens]));
    return tl_vectors_small(problem, "smxx_vec16");
}

static enum tl_status permute_legal(const struct tl_problem *problem)
{
    return legal(problem, PERMUTE_X);
}

static enum tl_status backward_legal(const struct tl_problem *problem)
{
    return legal(problem, PERMUTE_BACKWARD_DX);
}

extern "C" const struct tl_kernel tl_kernel_permute_smxx_vec16 = {
    .operation = "permute",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "Each token's row is read once and written to all its copies, 16 bytes a lane.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = permute_legal,
    .launch = launch_permute,
};

extern "C" const struct tl_kernel tl_kernel_permute_backward_smxx_vec16 = {
    .operation = "permute_backward",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "Each token adds up its rows in fp32, eight in flight a lane.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = backward_legal,
    .launch = launch_backward,
};
