/* RoPE on the GPU: a block takes one position of every sequence and head, so that its angles are
 * computed once, while the loads of what they turn are under way.
 *
 * A thread keeps its 16 bytes of pairs, and their sines and cosines, for all heads that it visits.
 * Angles are reduced to a part of a turn in fp64, which leaves fp32 sines as good at position 10^5
 * as at 0.
 */
#include "kernels/device/launch.h"
#include "kernels/device/vectors.cuh"
#include "kernels/device/vectors.h"
#include "kernels/rope/op.h"

enum {
    THREADS = 256,
    BLOCKS_PER_SM = 3,
    HEADS = 4,       /* a thread has in flight */
    MOST_PAIRS = 1024, /* of a head */
};

struct rope_args {
    void *qkv;
    int sequence, heads;  /* rotated ones, of all sequences: batch * rotated_heads */
    int rotated;
    int64_t width;        /* elements of a position */
    int half;
    double log2_step; /* from a pair's angle to the next one's */
    float sign;
};

/* Of position `position`: the turn of pair i is position theta^(-i / half) / 2 pi. */
static __device__ void turns(const rope_args &args, int position, float *cosine, float *sine)
{
    for (int i = (int)threadIdx.x; i < args.half; i += THREADS) {
        double turn = position * exp2(args.log2_step * i) * 0.15915494309189533577;
        float s, c;
        turn -= rint(turn);
        sincospif((float)(2 * turn), &s, &c);
        cosine[i] = c;
        sine[i] = args.sign * s;
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) rope_kernel(rope_args args)
{
    constexpr int N = tl_vector_width<T>();
    __shared__ __align__(16) float cosine[MOST_PAIRS], sine[MOST_PAIRS];
    int position = (int)blockIdx.x, vectors = args.half / N; /* of half a head */
    int column = (int)threadIdx.x % vectors * N, mine = (int)threadIdx.x / vectors;
    int step = THREADS / vectors; /* heads that the block takes at a time */
    float c[N], s[N];

    for (int first = 0; first < args.heads; first += step * HEADS) {
        tl_vector<T, N> low[HEADS], high[HEADS];
        T *at[HEADS];
#pragma unroll
        for (int i = 0; i < HEADS; i++) {
            int head = first + i * step + mine;
            int batch = head / args.rotated;
            bool here = mine < step && head < args.heads;
            at[i] = here ? (T *)args.qkv +
                               ((int64_t)batch * args.sequence + position) * args.width +
                               (int64_t)(head - batch * args.rotated) * 2 * args.half + column
                         : nullptr;
            if (here) {
                low[i] = tl_vector_load<T, N>(at[i]);
                high[i] = tl_vector_load<T, N>(at[i] + args.half);
            }
        }
        if (first == 0) {
            turns(args, position, cosine, sine);
            __syncthreads();
#pragma unroll
            for (int k = 0; k < N; k++) {
                c[k] = cosine[column + k];
                s[k] = sine[column + k];
            }
        }
#pragma unroll
        for (int i = 0; i < HEADS; i++) {
            float u[N], v[N];
            if (!at[i])
                continue;
            tl_vector_widen(low[i], u);
            tl_vector_widen(high[i], v);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float turned = u[k] * c[k] - v[k] * s[k];
                v[k] = u[k] * s[k] + v[k] * c[k];
                u[k] = turned;
            }
            tl_vector_store(at[i], tl_vector_narrow<T, N>(u));
            tl_vector_store(at[i] + args.half, tl_vector_narrow<T, N>(v));
        }
    }
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    const double *param = plan->problem.param;
    int64_t rotated = (int64_t)param[ROPE_PARAM_ROTATED_HEADS];
    int64_t heads = dim[ROPE_DIM_BATCH] * rotated;
    TL_TRY(tl_vectors_aligned(plan, args, 1u << ROPE_QKV));
    if (heads == 0 || dim[ROPE_DIM_SEQUENCE] == 0 || dim[ROPE_DIM_HEAD_DIM] == 0)
        return TL_OK;
    rope_args kernel_args = {args->tensor[ROPE_QKV].data,
                             (int)dim[ROPE_DIM_SEQUENCE],
                             (int)heads,
                             (int)rotated,
                             dim[ROPE_DIM_QKV_HEADS] * dim[ROPE_DIM_HEAD_DIM],
                             (int)dim[ROPE_DIM_HEAD_DIM] / 2,
                             -2 * log2(param[ROPE_PARAM_THETA]) / (double)dim[ROPE_DIM_HEAD_DIM],
                             param[ROPE_PARAM_INVERSE] != 0 ? -1.0f : 1.0f};
    unsigned blocks = (unsigned)dim[ROPE_DIM_SEQUENCE];
    auto kernel = plan->problem.dtype[ROPE_QKV] == TL_FP32 ? rope_kernel<float>
                                                           : rope_kernel<__nv_bfloat16>;
    kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "rope_kernel");
}

static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t head_dim = problem->dim[ROPE_DIM_HEAD_DIM];
    TL_TRY(tl_vectors_legal(problem, "smxx_vec16", "half of head_dim", head_dim / 2,
                            problem->dtype[ROPE_QKV]));
    TL_TRY(tl_vectors_small(problem, "smxx_vec16"));
    if (head_dim > 2 * MOST_PAIRS)
        return TL_FAIL(TL_ERR_ILLEGAL, "rope/smxx_vec16: head_dim is %lld, but the most is %d",
                       (long long)head_dim, 2 * MOST_PAIRS);
    if (problem->dim[ROPE_DIM_BATCH] * problem->dim[ROPE_DIM_QKV_HEADS] > INT32_MAX - 65536)
        return TL_FAIL(TL_ERR_ILLEGAL, "rope/smxx_vec16: %lld sequences of %lld heads are too many",
                       (long long)problem->dim[ROPE_DIM_BATCH],
                       (long long)problem->dim[ROPE_DIM_QKV_HEADS]);
    return TL_OK;
}

extern "C" const struct tl_kernel tl_kernel_rope_smxx_vec16 = {
    .operation = "rope",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "A block for each position, whose angles it computes once for all heads.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .launch = launch,
};
