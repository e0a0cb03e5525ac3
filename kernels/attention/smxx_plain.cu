/* Attention on the GPU without tensor cores: what runs anywhere, and checks what is faster.
 *
 * Everything is fp32 in tiles of 64 rows (tiles.cuh). Forward, a block has 64 queries of a head and
 * walks over the keys up to the diagonal with an online softmax (Milakov and Gimelshein, 2018).
 * Backward recomputes p from lse (Dao et al., 2022), once by queries for dq and once by keys for dk
 * and dv, where a block takes the heads that share its keys one after another: no atomics, and the
 * same bits from run to run.
 */
#include "kernels/attention/op.h"
#include "kernels/attention/tiles.cuh"
#include "kernels/device/launch.h"

enum { MOST_HEAD_DIM = 128 };

/* Where things are; strides in elements between positions. */
struct attention_args {
    const void *qkv, *o, *dout; /* the latter two: backward */
    void *out;                  /* o or dqkv */
    float *lse, *delta;         /* [batch, heads, sequence] */
    int batch, sequence, heads, kv_heads, head_dim, tiles;
    int64_t qkv_stride, o_stride;
    float scale;
};

extern __shared__ float attention_shared[];

/* A block's tile of a head. Tiles that see most come first, so that the last blocks are short:
 * the last queries, the first keys. */
struct place {
    int batch, head, first;
};

static __device__ place place_of(const attention_args &args, int heads, bool last_first)
{
    int block = (int)blockIdx.x, of_head = block % (heads * args.batch);
    int tile = block / (heads * args.batch);
    return {of_head / heads, of_head % heads,
            (last_first ? args.tiles - 1 - tile : tile) * TL_TILE};
}

/* The first position of head `head` of q, k or v (counted through) and of o. */
template <typename T>
static __device__ T *qkv_head(const attention_args &args, T *qkv, int batch, int head)
{
    return qkv + (int64_t)batch * args.sequence * args.qkv_stride + (int64_t)head * args.head_dim;
}

template <typename T>
static __device__ T *o_head(const attention_args &args, T *o, int batch, int head)
{
    return o + (int64_t)batch * args.sequence * args.o_stride + (int64_t)head * args.head_dim;
}

static __device__ int64_t lse_at(const attention_args &args, int batch, int head)
{
    return ((int64_t)batch * args.heads + head) * args.sequence;
}

/* --- attention ------------------------------------------------------------------------------- */

/* What a thread knows of its four rows. */
struct online {
    float top[TL_TILE_PART], sum[TL_TILE_PART];
};

/* Scores become p relative to the new tops; acc is rescaled to them. */
template <int PART>
static __device__ __forceinline__ void soften(float (&score)[TL_TILE_PART][TL_TILE_PART],
                                              online &state, float (&acc)[TL_TILE_PART][PART],
                                              int first_row, int first_column, int sequence)
{
    int x = (int)threadIdx.x % TL_TILE_SIDE, y = (int)threadIdx.x / TL_TILE_SIDE;
#pragma unroll
    for (int i = 0; i < TL_TILE_PART; i++) {
        int row = first_row + y + TL_TILE_SIDE * i;
        float top = state.top[i], sum = 0;
#pragma unroll
        for (int j = 0; j < TL_TILE_PART; j++) {
            int column = first_column + x + TL_TILE_SIDE * j;
            if (column > row || column >= sequence)
                score[i][j] = -INFINITY;
            top = fmaxf(top, score[i][j]);
        }
        top = tl_side_max(top); /* finite: a row sees itself, and meets column 0 first */
#pragma unroll
        for (int j = 0; j < TL_TILE_PART; j++) {
            score[i][j] = expf(score[i][j] - top);
            sum += score[i][j];
        }
        float rescale = expf(state.top[i] - top);
        state.sum[i] = state.sum[i] * rescale + tl_side_sum(sum);
        state.top[i] = top;
#pragma unroll
        for (int c = 0; c < PART; c++)
            acc[i][c] *= rescale;
    }
}

template <typename T, int D>
static __global__ void __launch_bounds__(TL_TILE_THREADS) forward_kernel(attention_args args)
{
    float *q = attention_shared, *kv = q + tl_tile<D>::FLOATS, *scores = kv + tl_tile<D>::FLOATS;
    place at = place_of(args, args.heads, true);
    int kv_head = at.head / (args.heads / args.kv_heads), y = (int)threadIdx.x / TL_TILE_SIDE;
    const T *qkv = (const T *)args.qkv;
    const T *keys = qkv_head(args, qkv, at.batch, args.heads + kv_head);
    const T *values = qkv_head(args, qkv, at.batch, args.heads + args.kv_heads + kv_head);
    float acc[TL_TILE_PART][tl_tile<D>::PART] = {};
    online state;
    for (int i = 0; i < TL_TILE_PART; i++) {
        state.top[i] = -INFINITY;
        state.sum[i] = 0;
    }

    tl_tile_load<D>(q, qkv_head(args, qkv, at.batch, at.head), args.qkv_stride, at.first,
                    args.sequence, args.head_dim, args.scale);
    for (int first = 0; first <= at.first; first += TL_TILE) {
        float score[TL_TILE_PART][TL_TILE_PART];
        tl_tile_load<D>(kv, keys, args.qkv_stride, first, args.sequence, args.head_dim, 1);
        __syncthreads();
        tl_tile_dot<D>(q, kv, score);
        soften(score, state, acc, at.first, first, args.sequence);
        tl_scores_store(scores, score);
        __syncthreads();
        tl_tile_load<D>(kv, values, args.qkv_stride, first, args.sequence, args.head_dim, 1);
        __syncthreads();
        tl_tile_add_product<D, false>(scores, kv, acc);
        __syncthreads();
    }
    for (int i = 0; i < TL_TILE_PART; i++) {
        int row = at.first + y + TL_TILE_SIDE * i;
        float share = 1 / state.sum[i];
        for (int c = 0; c < tl_tile<D>::PART; c++)
            acc[i][c] *= share;
        if (threadIdx.x % TL_TILE_SIDE == 0 && row < args.sequence)
            args.lse[lse_at(args, at.batch, at.head) + row] = state.top[i] + logf(state.sum[i]);
    }
    tl_tile_store<D>(o_head(args, (T *)args.out, at.batch, at.head), args.o_stride, at.first,
                     args.sequence, args.head_dim, acc);
}

/* --- attention_backward ---------------------------------------------------------------------- */

/* delta of a row, dout . o, by a warp. */
template <typename T>
static __global__ void __launch_bounds__(TL_TILE_THREADS) delta_kernel(attention_args args)
{
    int64_t rows = (int64_t)args.batch * args.heads * args.sequence;
    int64_t row = ((int64_t)blockIdx.x * TL_TILE_THREADS + threadIdx.x) / 32;
    if (row >= rows)
        return;
    int position = (int)(row % args.sequence), head = (int)(row / args.sequence % args.heads);
    int batch = (int)(row / args.sequence / args.heads);
    int64_t offset = position * args.o_stride;
    const T *dout = o_head(args, (const T *)args.dout, batch, head) + offset;
    const T *o = o_head(args, (const T *)args.o, batch, head) + offset;
    float sum = 0;
    for (int c = (int)threadIdx.x % 32; c < args.head_dim; c += 32)
        sum += tl_wide(dout[c]) * tl_wide(o[c]);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0)
        args.delta[row] = sum;
}

/* p of a tile from its scores, zero outside the mask, and ds / scale from p and dp, in place. */
static __device__ __forceinline__ void
differentiate(const attention_args &args, int64_t rows_at, int first_row, int first_column,
              float (&p)[TL_TILE_PART][TL_TILE_PART], float (&ds)[TL_TILE_PART][TL_TILE_PART])
{
    int x = (int)threadIdx.x % TL_TILE_SIDE, y = (int)threadIdx.x / TL_TILE_SIDE;
#pragma unroll
    for (int i = 0; i < TL_TILE_PART; i++) {
        int row = first_row + y + TL_TILE_SIDE * i;
        float lse = row < args.sequence ? args.lse[rows_at + row] : 0;
        float delta = row < args.sequence ? args.delta[rows_at + row] : 0;
#pragma unroll
        for (int j = 0; j < TL_TILE_PART; j++) {
            int column = first_column + x + TL_TILE_SIDE * j;
            bool seen = column <= row && row < args.sequence;
            p[i][j] = seen ? expf(p[i][j] - lse) : 0;
            ds[i][j] = p[i][j] * (ds[i][j] - delta);
        }
    }
}

template <typename T, int D>
static __global__ void __launch_bounds__(TL_TILE_THREADS) dq_kernel(attention_args args)
{
    float *q = attention_shared, *dout = q + tl_tile<D>::FLOATS, *k = dout + tl_tile<D>::FLOATS;
    float *v = k + tl_tile<D>::FLOATS, *scores = v + tl_tile<D>::FLOATS;
    place at = place_of(args, args.heads, true);
    int kv_head = at.head / (args.heads / args.kv_heads), sequence = args.sequence;
    int64_t stride = args.qkv_stride, rows_at = lse_at(args, at.batch, at.head);
    const T *qkv = (const T *)args.qkv;
    const T *keys = qkv_head(args, qkv, at.batch, args.heads + kv_head);
    const T *values = qkv_head(args, qkv, at.batch, args.heads + args.kv_heads + kv_head);
    float dq[TL_TILE_PART][tl_tile<D>::PART] = {};

    tl_tile_load<D>(q, qkv_head(args, qkv, at.batch, at.head), stride, at.first, sequence,
                    args.head_dim, args.scale);
    tl_tile_load<D>(dout, o_head(args, (const T *)args.dout, at.batch, at.head), args.o_stride,
                    at.first, sequence, args.head_dim, 1);
    for (int first = 0; first <= at.first; first += TL_TILE) {
        float p[TL_TILE_PART][TL_TILE_PART], ds[TL_TILE_PART][TL_TILE_PART];
        tl_tile_load<D>(k, keys, stride, first, sequence, args.head_dim, 1);
        tl_tile_load<D>(v, values, stride, first, sequence, args.head_dim, 1);
        __syncthreads();
        tl_tile_dot<D>(q, k, p);
        tl_tile_dot<D>(dout, v, ds);
        differentiate(args, rows_at, at.first, first, p, ds);
        tl_scores_store(scores, ds);
        __syncthreads();
        tl_tile_add_product<D, false>(scores, k, dq);
        __syncthreads();
    }
    for (int i = 0; i < TL_TILE_PART; i++)
        for (int c = 0; c < tl_tile<D>::PART; c++)
            dq[i][c] *= args.scale;
    tl_tile_store<D>(qkv_head(args, (T *)args.out, at.batch, at.head), stride, at.first, sequence,
                     args.head_dim, dq);
}

/* q is loaded scaled, so that ds^T q needs no scale any more. */
template <typename T, int D>
static __global__ void __launch_bounds__(TL_TILE_THREADS) dkv_kernel(attention_args args)
{
    float *k = attention_shared, *v = k + tl_tile<D>::FLOATS, *q = v + tl_tile<D>::FLOATS;
    float *dout = q + tl_tile<D>::FLOATS, *p_tile = dout + tl_tile<D>::FLOATS;
    float *ds_tile = p_tile + TL_TILE * TL_SCORE_STRIDE;
    place at = place_of(args, args.kv_heads, false);
    int group = args.heads / args.kv_heads, sequence = args.sequence;
    int64_t stride = args.qkv_stride;
    const T *qkv = (const T *)args.qkv;
    float dk[TL_TILE_PART][tl_tile<D>::PART] = {}, dv[TL_TILE_PART][tl_tile<D>::PART] = {};

    tl_tile_load<D>(k, qkv_head(args, qkv, at.batch, args.heads + at.head), stride, at.first,
                    sequence, args.head_dim, 1);
    tl_tile_load<D>(v, qkv_head(args, qkv, at.batch, args.heads + args.kv_heads + at.head), stride,
                    at.first, sequence, args.head_dim, 1);
    for (int head = at.head * group; head < (at.head + 1) * group; head++) {
        const T *queries = qkv_head(args, qkv, at.batch, head);
        const T *gradients = o_head(args, (const T *)args.dout, at.batch, head);
        for (int first = at.first; first < sequence; first += TL_TILE) {
            float p[TL_TILE_PART][TL_TILE_PART], ds[TL_TILE_PART][TL_TILE_PART];
            tl_tile_load<D>(q, queries, stride, first, sequence, args.head_dim, args.scale);
            tl_tile_load<D>(dout, gradients, args.o_stride, first, sequence, args.head_dim, 1);
            __syncthreads();
            tl_tile_dot<D>(q, k, p);
            tl_tile_dot<D>(dout, v, ds);
            differentiate(args, lse_at(args, at.batch, head), first, at.first, p, ds);
            tl_scores_store(p_tile, p);
            tl_scores_store(ds_tile, ds);
            __syncthreads();
            tl_tile_add_product<D, true>(p_tile, dout, dv);
            tl_tile_add_product<D, true>(ds_tile, q, dk);
            __syncthreads();
        }
    }
    tl_tile_store<D>(qkv_head(args, (T *)args.out, at.batch, args.heads + at.head), stride,
                     at.first, sequence, args.head_dim, dk);
    tl_tile_store<D>(qkv_head(args, (T *)args.out, at.batch, args.heads + args.kv_heads + at.head),
                     stride, at.first, sequence, args.head_dim, dv);
}

/* --- the host's side ------------------------------------------------------------------------- */

typedef void (*attention_kernel)(attention_args);

template <typename T> struct kernels_of {
    template <int D> static void pick(attention_kernel *forward, attention_kernel *dq,
                                      attention_kernel *dkv)
    {
        *forward = forward_kernel<T, D>;
        *dq = dq_kernel<T, D>;
        *dkv = dkv_kernel<T, D>;
    }
};

/* The kernels for the problem, and D. */
struct choice {
    attention_kernel forward, dq, dkv, delta;
    int d;
};

template <typename T> static choice choose(int64_t head_dim)
{
    choice found = {nullptr, nullptr, nullptr, delta_kernel<T>, 128};
    if (head_dim <= 32) {
        found.d = 32;
        kernels_of<T>::template pick<32>(&found.forward, &found.dq, &found.dkv);
    } else if (head_dim <= 64) {
        found.d = 64;
        kernels_of<T>::template pick<64>(&found.forward, &found.dq, &found.dkv);
    } else {
        kernels_of<T>::template pick<128>(&found.forward, &found.dq, &found.dkv);
    }
    return found;
}

static choice choose_for(const struct tl_plan *plan)
{
    int64_t head_dim = plan->problem.dim[ATTENTION_DIM_HEAD_DIM];
    return plan->problem.dtype[0] == TL_FP32 ? choose<float>(head_dim)
                                             : choose<__nv_bfloat16>(head_dim);
}

/* Without the tensors. */
static attention_args args_of(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    int64_t heads = dim[ATTENTION_DIM_HEADS], packed = dim[ATTENTION_DIM_QKV_HEADS];
    int64_t head_dim = dim[ATTENTION_DIM_HEAD_DIM], sequence = dim[ATTENTION_DIM_SEQUENCE];
    attention_args args = {};
    args.batch = (int)dim[ATTENTION_DIM_BATCH];
    args.sequence = (int)sequence;
    args.heads = (int)heads;
    args.kv_heads = (int)((packed - heads) / 2);
    args.head_dim = (int)head_dim;
    args.tiles = (int)((sequence + TL_TILE - 1) / TL_TILE);
    args.qkv_stride = packed * head_dim;
    args.o_stride = heads * head_dim;
    args.scale = (float)(1 / sqrt((double)head_dim));
    return args;
}

/* A block for each tile of each head; `tiles` tiles and `scores` score tiles of shared memory. */
static enum tl_status run(const struct tl_plan *plan, struct tl_stream *stream,
                          attention_kernel kernel, const attention_args &args, int d, int heads,
                          int tiles, int scores, const char *name)
{
    int floats = tiles * TL_TILE * (d + 4) + scores * TL_TILE * TL_SCORE_STRIDE;
    int bytes = floats * (int)sizeof(float);
    unsigned blocks = (unsigned)args.tiles * (unsigned)heads * (unsigned)args.batch;
    TL_TRY(TL_CUDA_STATUS(plan, "shared memory of attention",
                          cudaFuncSetAttribute((const void *)kernel,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               bytes)));
    kernel<<<blocks, TL_TILE_THREADS, bytes, tl_cuda_stream(stream)>>>(args);
    return TL_CUDA_LAUNCHED(plan, name);
}

static bool is_empty(const struct tl_problem *problem)
{
    return problem->dim[ATTENTION_DIM_BATCH] == 0 || problem->dim[ATTENTION_DIM_SEQUENCE] == 0 ||
           problem->dim[ATTENTION_DIM_HEAD_DIM] == 0;
}

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    choice kernels = choose_for(plan);
    attention_args kernel_args = args_of(&plan->problem);
    kernel_args.qkv = tensor[ATTENTION_QKV].data;
    kernel_args.out = tensor[ATTENTION_O].data;
    kernel_args.lse = (float *)tensor[ATTENTION_LSE].data;
    if (is_empty(&plan->problem))
        return TL_OK;
    return run(plan, stream, kernels.forward, kernel_args, kernels.d, kernel_args.heads, 2, 1,
               "forward_kernel");
}

/* delta */
static size_t backward_workspace(const struct tl_plan *plan)
{
    const int64_t *dim = plan->problem.dim;
    return (size_t)(dim[ATTENTION_DIM_BATCH] * dim[ATTENTION_DIM_HEADS] *
                    dim[ATTENTION_DIM_SEQUENCE]) *
           sizeof(float);
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    choice kernels = choose_for(plan);
    attention_args kernel_args = args_of(&plan->problem);
    kernel_args.qkv = tensor[ATTENTION_BACKWARD_QKV].data;
    kernel_args.o = tensor[ATTENTION_BACKWARD_O].data;
    kernel_args.dout = tensor[ATTENTION_BACKWARD_DOUT].data;
    kernel_args.out = tensor[ATTENTION_BACKWARD_DQKV].data;
    kernel_args.lse = (float *)tensor[ATTENTION_BACKWARD_LSE].data;
    kernel_args.delta = (float *)args->workspace;
    if (is_empty(&plan->problem))
        return TL_OK;
    int64_t rows = (int64_t)kernel_args.batch * kernel_args.heads * kernel_args.sequence;
    unsigned blocks = (unsigned)((rows * 32 + TL_TILE_THREADS - 1) / TL_TILE_THREADS);
    attention_kernel delta = kernels.delta;
    delta<<<blocks, TL_TILE_THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    TL_TRY(TL_CUDA_LAUNCHED(plan, "delta_kernel"));
    TL_TRY(run(plan, stream, kernels.dq, kernel_args, kernels.d, kernel_args.heads, 4, 1,
               "dq_kernel"));
    return run(plan, stream, kernels.dkv, kernel_args, kernels.d, kernel_args.kv_heads, 4, 2,
               "dkv_kernel");
}

/* Of both operations. */
static enum tl_status legal(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    int64_t rows = dim[ATTENTION_DIM_BATCH] * dim[ATTENTION_DIM_HEADS];
    if (dim[ATTENTION_DIM_HEAD_DIM] > MOST_HEAD_DIM)
        return TL_FAIL(TL_ERR_ILLEGAL, "%s/smxx_plain: head_dim is %lld, but the most is %d",
                       problem->operation->name, (long long)dim[ATTENTION_DIM_HEAD_DIM],
                       (int)MOST_HEAD_DIM);
    if (dim[ATTENTION_DIM_SEQUENCE] > INT32_MAX / 64 ||
        rows * dim[ATTENTION_DIM_SEQUENCE] > (int64_t)INT32_MAX * 4)
        return TL_FAIL(TL_ERR_ILLEGAL, "%s/smxx_plain: %lld heads of sequence %lld are too many",
                       problem->operation->name, (long long)rows,
                       (long long)dim[ATTENTION_DIM_SEQUENCE]);
    return TL_OK;
}

extern "C" const struct tl_kernel tl_kernel_attention_smxx_plain = {
    .operation = "attention",
    .variant = "smxx_plain",
    .arch = "smxx",
    .summary = "64 queries a block in fp32, online softmax (Milakov and Gimelshein, 2018).",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .launch = launch_forward,
};

extern "C" const struct tl_kernel tl_kernel_attention_backward_smxx_plain = {
    .operation = "attention_backward",
    .variant = "smxx_plain",
    .arch = "smxx",
    .summary = "p from lse in fp32, once by queries and once by keys (Dao et al., 2022).",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .workspace = backward_workspace,
    .transient_workspace = true,
    .launch = launch_backward,
};
