/* Weighted combination on the GPU; see kernels/device/rows.cuh.
 *
 * Backward, a warp takes a token: its row of dy is read once for all of its slots, and each slot's
 * row of x is read and its row of dx written in the same place, so that dx may be x itself. The
 * dot products are sums of a lane's columns in order, then over the lanes. A slot is taken to sit
 * in the row that slot_rows says; row_slots only tells the pad rows.
 */
#include "kernels/combine/op.h"
#include "kernels/device/launch.h"
#include "kernels/device/rows.cuh"
#include "kernels/device/vectors.h"

enum { BACKWARD_BLOCKS_PER_SM = 2 };

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    const int64_t *dim = plan->problem.dim;
    TL_TRY(tl_vectors_aligned(plan, args,
                              1u << COMBINE_X | 1u << COMBINE_SHARED | 1u << COMBINE_Y));
    if (dim[COMBINE_DIM_D] == 0 || dim[COMBINE_DIM_TOKENS] == 0)
        return TL_OK;
    tl_gather_args kernel_args = {tensor[COMBINE_X].data,
                                  (const int *)tensor[COMBINE_SLOT_ROWS].data,
                                  (const float *)tensor[COMBINE_WEIGHTS].data,
                                  tensor[COMBINE_SHARED].data,
                                  tensor[COMBINE_Y].data,
                                  (int)dim[COMBINE_DIM_TOKENS],
                                  (int)dim[COMBINE_DIM_TOP_K],
                                  (int)dim[COMBINE_DIM_D],
                                  (int)dim[COMBINE_DIM_ROWS],
                                  1};
    auto kernel = tl_gather_kernel<__nv_bfloat16, __nv_bfloat16>;
    if (plan->problem.dtype[COMBINE_X] == TL_FP32)
        kernel = tl_gather_kernel<float, float>;
    else if (plan->problem.dtype[COMBINE_Y] == TL_FP32)
        kernel = tl_gather_kernel<float, __nv_bfloat16>;
    unsigned blocks = (unsigned)plan->device->multiprocessors * TL_ROWS_BLOCKS_PER_SM;
    kernel<<<blocks, TL_ROWS_THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "tl_gather_kernel");
}

/* --- combine_backward ------------------------------------------------------------------------ */

struct backward_args {
    const void *dy, *x;
    const int *row_slots, *slot_rows, *group_offsets;
    const float *weights;
    void *dx;
    float *dweights;
    int tokens, top_k, d, rows, num_experts;
};

/* Slots first to first + TL_ROWS_SLOTS - 1 of a token. */
template <typename TOKEN, typename ROW, int N>
static __device__ __forceinline__ void backward_slots(const backward_args &args, int token,
                                                      int first)
{
    int lane = (int)threadIdx.x % 32, step = 32 * N;
    int64_t slot = (int64_t)token * args.top_k + first + lane;
    int rows = tl_slot_row(args.slot_rows, token, args.top_k, first, args.rows);
    float weights = rows >= 0 ? __ldg(args.weights + slot) : 0, dot[TL_ROWS_SLOTS];
    const TOKEN *dy = (const TOKEN *)args.dy + (int64_t)token * args.d;
#pragma unroll
    for (int j = 0; j < TL_ROWS_SLOTS; j++)
        dot[j] = 0;

    for (int column = lane * N; column - lane * N < args.d; column += step) {
        bool inside = column < args.d;
        tl_vector<TOKEN, N> raw_grad = inside ? tl_vector_load<TOKEN, N>(dy + column)
                                              : tl_vector_zero<TOKEN, N>();
        tl_vector<ROW, N> value[TL_ROWS_SLOTS];
        float grad[N];
#pragma unroll
        for (int j = 0; j < TL_ROWS_SLOTS; j++) {
            int row = __shfl_sync(~0u, rows, j);
            value[j] = inside && row >= 0
                           ? tl_vector_load<ROW, N>((const ROW *)args.x +
                                                    (int64_t)row * args.d + column)
                           : tl_vector_zero<ROW, N>();
        }
        tl_vector_widen(raw_grad, grad);
#pragma unroll
        for (int j = 0; j < TL_ROWS_SLOTS; j++) {
            int row = __shfl_sync(~0u, rows, j);
            float weight = __shfl_sync(~0u, weights, j), out[N];
            tl_vector_widen(value[j], out);
#pragma unroll
            for (int c = 0; c < N; c++) {
                dot[j] += grad[c] * out[c];
                out[c] = weight * grad[c];
            }
            if (inside && row >= 0)
                tl_vector_store((ROW *)args.dx + (int64_t)row * args.d + column,
                                tl_vector_narrow<ROW, N>(out));
        }
    }
    float mine = 0;
#pragma unroll
    for (int j = 0; j < TL_ROWS_SLOTS; j++) {
        float sum = tl_warp_sum(dot[j]);
        mine = lane == j ? sum : mine;
    }
    if (lane < TL_ROWS_SLOTS && first + lane < args.top_k)
        args.dweights[slot] = mine;
}

template <typename TOKEN, typename ROW>
static __global__ void __launch_bounds__(TL_ROWS_THREADS, BACKWARD_BLOCKS_PER_SM)
    backward_kernel(backward_args args)
{
    constexpr int N = tl_vector_width<TOKEN, ROW>();
    int used = tl_rows_used(args.group_offsets, args.num_experts, args.rows);
    int batches = (used + 31) / 32;
    for (int piece = tl_warp(); piece < args.tokens + batches; piece += tl_warps()) {
        if (piece < args.tokens)
            for (int first = 0; first < args.top_k; first += TL_ROWS_SLOTS)
                backward_slots<TOKEN, ROW, N>(args, piece, first);
        else
            tl_zero_pad_rows<ROW, N>((ROW *)args.dx, args.row_slots, (piece - args.tokens) * 32,
                                     used, args.d);
    }
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    const int64_t *dim = plan->problem.dim;
    TL_TRY(tl_vectors_aligned(plan, args,
                              1u << COMBINE_BACKWARD_DY | 1u << COMBINE_BACKWARD_X |
                                  1u << COMBINE_BACKWARD_DX));
    if (dim[COMBINE_DIM_TOKENS] == 0 && (dim[COMBINE_DIM_D] == 0 || dim[COMBINE_DIM_ROWS] == 0))
        return TL_OK;
    backward_args kernel_args = {tensor[COMBINE_BACKWARD_DY].data,
                                 tensor[COMBINE_BACKWARD_X].data,
                                 (const int *)tensor[COMBINE_BACKWARD_ROW_SLOTS].data,
                                 (const int *)tensor[COMBINE_BACKWARD_SLOT_ROWS].data,
                                 (const int *)tensor[COMBINE_BACKWARD_GROUP_OFFSETS].data,
                                 (const float *)tensor[COMBINE_BACKWARD_WEIGHTS].data,
                                 tensor[COMBINE_BACKWARD_DX].data,
                                 (float *)tensor[COMBINE_BACKWARD_DWEIGHTS].data,
                                 (int)dim[COMBINE_DIM_TOKENS],
                                 (int)dim[COMBINE_DIM_TOP_K],
                                 (int)dim[COMBINE_DIM_D],
                                 (int)dim[COMBINE_DIM_ROWS],
                                 (int)dim[COMBINE_DIM_NUM_EXPERTS]};
    auto kernel = backward_kernel<__nv_bfloat16, __nv_bfloat16>;
    if (plan->problem.dtype[COMBINE_BACKWARD_X] == TL_FP32)
        kernel = backward_kernel<float, float>;
    else if (plan->problem.dtype[COMBINE_BACKWARD_DY] == TL_FP32)
        kernel = backward_kernel<float, __nv_bfloat16>;
    unsigned blocks = (unsigned)plan->device->multiprocessors * BACKWARD_BLOCKS_PER_SM;
    kernel<<<blocks, TL_ROWS_THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "backward_kernel");
}

/* The wider type decides how many elements an access moves: that of the tokens. */
static enum tl_status legal(const struct tl_problem *problem, int tokens)
{
    const int64_t *dim = problem->dim;
    TL_TRY(
        tl_vectors_legal(problem, "smxx_vec16", "d", dim[COMBINE_DIM_D], problem->dtype[tokens]));
    return tl_vectors_small(problem, "smxx_vec16");
}

static enum tl_status forward_legal(const struct tl_problem *problem)
{
    return legal(problem, COMBINE_Y);
}

static enum tl_status backward_legal(const struct tl_problem *problem)
{
    return legal(problem, COMBINE_BACKWARD_DY);
}

extern "C" const struct tl_kernel tl_kernel_combine_smxx_vec16 = {
    .operation = "combine",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "Each token adds up its weighted rows in fp32, eight in flight a lane.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = forward_legal,
    .launch = launch_forward,
};

extern "C" const struct tl_kernel tl_kernel_combine_backward_smxx_vec16 = {
    .operation = "combine_backward",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "A warp for each token: dy is read once for all slots, x and dx move once.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = backward_legal,
    .launch = launch_backward,
};
