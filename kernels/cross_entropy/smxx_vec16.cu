/* Cross-entropy on the GPU: softmax and loss in one pass over the logits, the gradient in another.
 *
 * Forward, a block takes a token and each thread an online softmax over its 16-byte pieces (Milakov
 * and Gimelshein, 2018, arXiv:1805.02867), which meet in a fixed order. The sum of the losses is
 * another kernel, one block, in fp64. Backward is element by element: every thread has loaded its
 * logits before it stores, so that dlogits may be logits. In bf16 the exponential is the hardware's
 * short one, whose error bf16 does not see.
 */
#include "kernels/cross_entropy/op.h"
#include "kernels/device/launch.h"
#include "kernels/device/vectors.cuh"
#include "kernels/device/vectors.h"

enum {
    MOST_THREADS = 512, /* of a block, for a token */
    SUM_THREADS = 1024,
    THREADS = 256, /* of the backward kernel */
    TURNS = 4,     /* 16-byte pieces in flight for each thread */
};

template <typename T> static __device__ __forceinline__ float exponential(float x)
{
    return sizeof(T) == 2 ? __expf(x) : expf(x);
}

/* Forward: sum of exp(logit - top) over some columns. Starts with the least finite top, not with
 * minus infinity, whose difference with itself is NaN. */
struct online {
    float top, sum;
};

template <typename T>
static __device__ __forceinline__ online merge(const online &a, const online &b)
{
    float top = fmaxf(a.top, b.top);
    return {top, a.sum * exponential<T>(a.top - top) + b.sum * exponential<T>(b.top - top)};
}

template <typename T>
static __device__ online online_of_row(const T *row, int vectors, int threads)
{
    constexpr int N = tl_vector_width<T>();
    online state = {-3.40282347e38f, 0};
    for (int first = (int)threadIdx.x; first < vectors; first += threads * TURNS) {
        tl_vector<T, N> raw[TURNS];
        float top = state.top;
#pragma unroll
        for (int i = 0; i < TURNS; i++)
            if (first + i * threads < vectors)
                raw[i] = tl_vector_load<T, N>(row + (int64_t)(first + i * threads) * N);
#pragma unroll
        for (int i = 0; i < TURNS; i++) {
            float value[N];
            tl_vector_widen(raw[i], value);
            if (first + i * threads < vectors)
#pragma unroll
                for (int c = 0; c < N; c++)
                    top = fmaxf(top, value[c]);
        }
        state.sum *= exponential<T>(state.top - top);
        state.top = top;
#pragma unroll
        for (int i = 0; i < TURNS; i++) {
            float value[N];
            tl_vector_widen(raw[i], value);
            if (first + i * threads < vectors)
#pragma unroll
                for (int c = 0; c < N; c++)
                    state.sum += exponential<T>(value[c] - top);
        }
    }
    return state;
}

/* Over the block, for its first thread. */
template <typename T> static __device__ online block_merge(online state, int threads)
{
    __shared__ float tops[32], sums[32];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        online other = {__shfl_xor_sync(~0u, state.top, step),
                        __shfl_xor_sync(~0u, state.sum, step)};
        state = merge<T>(state, other);
    }
    if (lane == 0) {
        tops[warp] = state.top;
        sums[warp] = state.sum;
    }
    __syncthreads();
    for (int w = 1; threadIdx.x == 0 && w < threads / 32; w++)
        state = merge<T>(state, {tops[w], sums[w]});
    return state;
}

struct forward_args {
    const void *logits;
    const int *targets;
    float *lse, *losses;
    int vocab;
};

template <typename T>
static __global__ void __launch_bounds__(MOST_THREADS, 3) forward_kernel(forward_args args)
{
    int64_t token = (int64_t)blockIdx.x;
    int threads = (int)blockDim.x;
    const T *row = (const T *)args.logits + token * args.vocab;
    online state = online_of_row(row, args.vocab / tl_vector_width<T>(), threads);
    state = block_merge<T>(state, threads);
    if (threadIdx.x != 0)
        return;
    float lse = (float)((double)state.top + log((double)state.sum)), loss = 0;
    int target = __ldg(args.targets + token);
    if (target >= 0 && target < args.vocab)
        loss = lse - (float)row[target];
    else if (target != -1)
        loss = __uint_as_float(0x7fffffffu); /* NaN */
    args.lse[token] = lse;
    args.losses[token] = loss;
}

static __global__ void __launch_bounds__(SUM_THREADS)
    sum_kernel(const float *losses, int tokens, double scale, float *loss_sum)
{
    __shared__ double sums[32];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    double sum = 0;
#pragma unroll 4
    for (int t = (int)threadIdx.x; t < tokens; t += SUM_THREADS)
        sum += (double)losses[t];
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0)
        sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int w = 1; w < SUM_THREADS / 32; w++)
        sum += sums[w];
    *loss_sum += (float)(scale * sum);
}

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    const struct tl_tensor *tensor = args->tensor;
    bool wide = plan->problem.dtype[CROSS_ENTROPY_LOGITS] == TL_FP32;
    int tokens = (int)dim[CROSS_ENTROPY_DIM_TOKENS], vocab = (int)dim[CROSS_ENTROPY_DIM_VOCAB];
    int64_t threads = (vocab / (wide ? 4 : 8) + 31) / 32 * 32;
    TL_TRY(tl_vectors_aligned(plan, args, 1u << CROSS_ENTROPY_LOGITS));
    if (tokens == 0)
        return TL_OK;
    float *losses = (float *)tensor[CROSS_ENTROPY_LOSSES].data;
    forward_args kernel_args = {tensor[CROSS_ENTROPY_LOGITS].data,
                                (const int *)tensor[CROSS_ENTROPY_TARGETS].data,
                                (float *)tensor[CROSS_ENTROPY_LSE].data, losses, vocab};
    auto kernel = wide ? forward_kernel<float> : forward_kernel<__nv_bfloat16>;
    unsigned block = (unsigned)(threads < MOST_THREADS ? threads : (int64_t)MOST_THREADS);
    kernel<<<(unsigned)tokens, block, 0, tl_cuda_stream(stream)>>>(kernel_args);
    TL_TRY(TL_CUDA_LAUNCHED(plan, "forward_kernel"));
    sum_kernel<<<1, SUM_THREADS, 0, tl_cuda_stream(stream)>>>(
        losses, tokens, plan->problem.param[CROSS_ENTROPY_PARAM_SCALE],
        (float *)tensor[CROSS_ENTROPY_LOSS_SUM].data);
    return TL_CUDA_LAUNCHED(plan, "sum_kernel");
}

struct backward_args {
    const void *logits;
    const float *lse;
    const int *targets;
    void *dlogits;
    int pieces, row; /* of all logits; of a token's */
    float scale;
};

template <typename T>
static __global__ void __launch_bounds__(THREADS, 4) backward_kernel(backward_args args)
{
    constexpr int N = tl_vector_width<T>();
    int first = (int)blockIdx.x * (THREADS * TURNS) + (int)threadIdx.x;
    tl_vector<T, N> raw[TURNS];
#pragma unroll
    for (int i = 0; i < TURNS; i++)
        if (first + i * THREADS < args.pieces)
            raw[i] = tl_vector_load<T, N>((const T *)args.logits +
                                          (int64_t)(first + i * THREADS) * N);
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        int piece = first + i * THREADS, token = piece / args.row;
        float value[N];
        if (piece >= args.pieces)
            break;
        int target = __ldg(args.targets + token), column = (piece - token * args.row) * N;
        float lse = __ldg(args.lse + token), scale = target == -1 ? 0 : args.scale;
        if (target < -1 || target >= args.row * N)
            scale = __uint_as_float(0x7fffffffu); /* NaN */
        tl_vector_widen(raw[i], value);
#pragma unroll
        for (int c = 0; c < N; c++) {
            value[c] = target == -1 ? 0 : scale * exponential<T>(value[c] - lse);
            if (column + c == target)
                value[c] -= scale;
        }
        tl_vector_store((T *)args.dlogits + (int64_t)piece * N, tl_vector_narrow<T, N>(value));
    }
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    const struct tl_tensor *tensor = args->tensor;
    bool wide = plan->problem.dtype[CROSS_ENTROPY_BACKWARD_LOGITS] == TL_FP32;
    int64_t row = dim[CROSS_ENTROPY_DIM_VOCAB] / (wide ? 4 : 8);
    int64_t pieces = dim[CROSS_ENTROPY_DIM_TOKENS] * row, block = THREADS * TURNS;
    TL_TRY(tl_vectors_aligned(plan, args, 1u << CROSS_ENTROPY_BACKWARD_LOGITS |
                                              1u << CROSS_ENTROPY_BACKWARD_DLOGITS));
    if (pieces == 0)
        return TL_OK;
    backward_args kernel_args = {tensor[CROSS_ENTROPY_BACKWARD_LOGITS].data,
                                 (const float *)tensor[CROSS_ENTROPY_BACKWARD_LSE].data,
                                 (const int *)tensor[CROSS_ENTROPY_BACKWARD_TARGETS].data,
                                 tensor[CROSS_ENTROPY_BACKWARD_DLOGITS].data,
                                 (int)pieces,
                                 (int)row,
                                 (float)plan->problem.param[CROSS_ENTROPY_PARAM_SCALE]};
    auto kernel = wide ? backward_kernel<float> : backward_kernel<__nv_bfloat16>;
    unsigned blocks = (unsigned)((pieces + block - 1) / block);
    kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "backward_kernel");
}

/* Of both operations. */
static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t tokens = problem->dim[CROSS_ENTROPY_DIM_TOKENS];
    int64_t vocab = problem->dim[CROSS_ENTROPY_DIM_VOCAB];
    TL_TRY(tl_vectors_legal(problem, "smxx_vec16", "vocab", vocab, problem->dtype[0]));
    TL_TRY(tl_vectors_small(problem, "smxx_vec16"));
    if (tokens > (INT32_MAX - 65536) / (vocab / 4))
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "%s/smxx_vec16: %lld tokens of vocab = %lld are too many pieces",
                       problem->operation->name, (long long)tokens, (long long)vocab);
    return TL_OK;
}

extern "C" const struct tl_kernel tl_kernel_cross_entropy_smxx_vec16 = {
    .operation = "cross_entropy",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "A block a token, online softmax in one pass (Milakov and Gimelshein, 2018).",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .launch = launch_forward,
};

extern "C" const struct tl_kernel tl_kernel_cross_entropy_backward_smxx_vec16 = {
    .operation = "cross_entropy_backward",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "16 bytes of logits a thread and turn, four in flight; in place.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .launch = launch_backward,
};
