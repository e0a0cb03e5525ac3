/* Embedding on the GPU: a gather of rows, and an addition of rows by token id.
 *
 * The addition must not depend on who comes first, so tokens are put into an order first: one block
 * counts the tokens of each id that occurs and gives it a segment, wherever; then each token finds
 * its place in the segment by counting the earlier tokens there. A warp that meets a segment's
 * first token adds all of its rows, token after token, to its columns of dtable: the sums of the
 * CPU, bit for bit. Neither sort nor pass over the vocabulary.
 */
#include "kernels/device/launch.h"
#include "kernels/device/vectors.cuh"
#include "kernels/device/vectors.h"
#include "kernels/embedding/op.h"

enum {
    THREADS = 256,
    TURNS = 4,           /* 16-byte pieces of the table in flight for each thread */
    INDEX_THREADS = 1024,
    IN_FLIGHT = 8,       /* rows of dy that a warp has in flight */
    BLOCKS_PER_SM = 4,   /* of add_kernel */
};

/* --- embedding ------------------------------------------------------------------------------- */

struct forward_args {
    const int *ids;
    const float *table;
    void *y;
    int pieces; /* of y */
    int row;    /* pieces of a row */
    int vocab;
};

template <typename T>
static __global__ void __launch_bounds__(THREADS, 4) forward_kernel(forward_args args)
{
    constexpr int N = tl_vector_width<float, T>();
    int first = (int)blockIdx.x * (THREADS * TURNS) + (int)threadIdx.x;
    tl_vector<float, N> value[TURNS];
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        int piece = first + i * THREADS, token = piece / args.row;
        int id = piece < args.pieces ? __ldg(args.ids + token) : -1;
        if (id >= 0 && id < args.vocab) {
            int64_t at = ((int64_t)id * args.row + (piece - token * args.row)) * N;
            value[i] = tl_vector_load<float, N>(args.table + at);
        } else {
#pragma unroll
            for (int c = 0; c < N; c++)
                value[i].word[c] = 0x7fffffffu; /* NaN */
        }
    }
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        int piece = first + i * THREADS;
        if (piece < args.pieces)
            tl_vector_store((T *)args.y + (int64_t)piece * N, tl_vector_convert<T>(value[i]));
    }
}

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    const int64_t *dim = plan->problem.dim;
    const struct tl_tensor *tensor = args->tensor;
    int row = (int)(dim[EMBEDDING_DIM_D] / 4);
    int64_t pieces = dim[EMBEDDING_DIM_TOKENS] * row, block = THREADS * TURNS;
    TL_TRY(tl_vectors_aligned(plan, args, 1u << EMBEDDING_TABLE | 1u << EMBEDDING_Y));
    if (pieces == 0)
        return TL_OK;
    forward_args kernel_args = {(const int *)tensor[EMBEDDING_IDS].data,
                                (const float *)tensor[EMBEDDING_TABLE].data,
                                tensor[EMBEDDING_Y].data,
                                (int)pieces,
                                row,
                                (int)dim[EMBEDDING_DIM_VOCAB]};
    unsigned blocks = (unsigned)((pieces + block - 1) / block);
    auto kernel = plan->problem.dtype[EMBEDDING_Y] == TL_FP32 ? forward_kernel<float>
                                                              : forward_kernel<__nv_bfloat16>;
    kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "forward_kernel");
}

/* --- embedding_backward ---------------------------------------------------------------------- */

struct backward_args {
    const int *ids;
    const void *dy;
    float *dtable;
    /* In the workspace. Of each id that occurs: tokens that have it, where its segment begins. */
    int *counts, *starts; /* [vocab] */
    int *arrival;         /* [tokens], how many of its id came before: any order */
    int *place, *order;   /* [tokens], tokens by segment: in any order, and ascending */
    int *placed;          /* [1], tokens in segments */
    int tokens, d, vocab;
};

static __device__ __forceinline__ int id_of(const backward_args &args, int token)
{
    int id = __ldg(args.ids + token);
    return id >= 0 && id < args.vocab ? id : -1;
}

/* One block, so that its barriers part the steps. Which token arrives first, and where segments
 * lie, differs from run to run; what they hold does not. */
static __global__ void __launch_bounds__(INDEX_THREADS) index_kernel(backward_args args)
{
    __shared__ int placed;
    int thread = (int)threadIdx.x;
    if (thread == 0)
        placed = 0;
    for (int t = thread; t < args.tokens; t += INDEX_THREADS)
        if (id_of(args, t) >= 0)
            args.counts[id_of(args, t)] = 0;
    __syncthreads();
    for (int t = thread; t < args.tokens; t += INDEX_THREADS)
        if (id_of(args, t) >= 0)
            args.arrival[t] = atomicAdd(args.counts + id_of(args, t), 1);
    __syncthreads();
    for (int t = thread; t < args.tokens; t += INDEX_THREADS)
        if (id_of(args, t) >= 0 && args.arrival[t] == 0)
            args.starts[id_of(args, t)] = atomicAdd(&placed, args.counts[id_of(args, t)]);
    __syncthreads();
    for (int t = thread; t < args.tokens; t += INDEX_THREADS)
        if (id_of(args, t) >= 0)
            args.place[args.starts[id_of(args, t)] + args.arrival[t]] = t;
    if (thread == 0)
        *args.placed = placed;
}

static __global__ void __launch_bounds__(THREADS) order_kernel(backward_args args)
{
    int at = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (at >= *args.placed)
        return;
    int token = args.place[at], id = __ldg(args.ids + token);
    int start = args.starts[id], end = start + args.counts[id], earlier = 0;
#pragma unroll 8
    for (int i = start; i < end; i++)
        earlier += args.place[i] < token;
    args.order[start + earlier] = token;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) add_kernel(backward_args args)
{
    constexpr int N = tl_vector_width<float, T>();
    int lane = (int)threadIdx.x % 32, warp = (int)(blockIdx.x * THREADS + threadIdx.x) / 32;
    int slices = (args.d / N + 31) / 32, pieces = *args.placed * slices;
    int warps = (int)gridDim.x * (THREADS / 32);

    for (int piece = warp; piece < pieces; piece += warps) {
        int at = piece / slices, column = ((piece - at * slices) * 32 + lane) * N;
        int id = __ldg(args.ids + args.order[at]), count = args.counts[id];
        bool inside = column < args.d;
        if (args.starts[id] != at)
            continue;
        float *out = args.dtable + (int64_t)id * args.d + column, sum[N];
        tl_vector_widen(inside ? tl_vector_load<float, N>(out) : tl_vector_zero<float, N>(), sum);
        for (int first = 0; first < count; first += IN_FLIGHT) {
            tl_vector<T, N> value[IN_FLIGHT];
            bool mine = lane < IN_FLIGHT && first + lane < count;
            int tokens = mine ? args.order[at + first + lane] : -1;
#pragma unroll
            for (int i = 0; i < IN_FLIGHT; i++) {
                int token = __shfl_sync(~0u, tokens, i);
                value[i] = inside && token >= 0
                               ? tl_vector_load<T, N>((const T *)args.dy +
                                                      (int64_t)token * args.d + column)
                               : tl_vector_zero<T, N>();
            }
#pragma unroll
            for (int i = 0; i < IN_FLIGHT; i++) {
                float addend[N];
                tl_vector_widen(value[i], addend);
#pragma unroll
                for (int c = 0; c < N; c++)
                    sum[c] += addend[c];
            }
        }
        if (inside)
            tl_vector_store(out, tl_vector_narrow<float, N>(sum));
    }
}

static size_t backward_workspace(const struct tl_plan *plan)
{
    const int64_t *dim = plan->problem.dim;
    int64_t ints = 2 * dim[EMBEDDING_DIM_VOCAB] + 3 * dim[EMBEDDING_DIM_TOKENS] + 1;
    return (size_t)ints * sizeof(int);
}

static backward_args backward_args_of(const struct tl_plan *plan, const struct tl_args *args)
{
    const int64_t *dim = plan->problem.dim;
    const struct tl_tensor *tensor = args->tensor;
    int tokens = (int)dim[EMBEDDING_DIM_TOKENS], vocab = (int)dim[EMBEDDING_DIM_VOCAB];
    int *counts = (int *)args->workspace, *arrival = counts + 2 * (int64_t)vocab;
    return {(const int *)tensor[EMBEDDING_BACKWARD_IDS].data,
            tensor[EMBEDDING_BACKWARD_DY].data,
            (float *)tensor[EMBEDDING_BACKWARD_DTABLE].data,
            counts,
            counts + vocab,
            arrival,
            arrival + tokens,
            arrival + 2 * (int64_t)tokens,
            arrival + 3 * (int64_t)tokens,
            tokens,
            (int)dim[EMBEDDING_DIM_D],
            vocab};
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    cudaStream_t native = tl_cuda_stream(stream);
    TL_TRY(tl_vectors_aligned(plan, args, 1u << EMBEDDING_BACKWARD_DY |
                                              1u << EMBEDDING_BACKWARD_DTABLE));
    backward_args kernel_args = backward_args_of(plan, args);
    if (kernel_args.tokens == 0 || kernel_args.d == 0)
        return TL_OK;
    index_kernel<<<1, INDEX_THREADS, 0, native>>>(kernel_args);
    TL_TRY(TL_CUDA_LAUNCHED(plan, "index_kernel"));
    unsigned blocks = (unsigned)((kernel_args.tokens + THREADS - 1) / THREADS);
    order_kernel<<<blocks, THREADS, 0, native>>>(kernel_args);
    TL_TRY(TL_CUDA_LAUNCHED(plan, "order_kernel"));
    auto kernel = plan->problem.dtype[EMBEDDING_BACKWARD_DY] == TL_FP32
                      ? add_kernel<float>
                      : add_kernel<__nv_bfloat16>;
    blocks = (unsigned)plan->device->multiprocessors * BLOCKS_PER_SM;
    kernel<<<blocks, THREADS, 0, native>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "add_kernel");
}

/* Of both operations. */
static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t tokens = problem->dim[EMBEDDING_DIM_TOKENS], d = problem->dim[EMBEDDING_DIM_D];
    TL_TRY(tl_vectors_legal(problem, "smxx_vec16", "d", d, TL_FP32));
    TL_TRY(tl_vectors_small(problem, "smxx_vec16"));
    if (tokens > (INT32_MAX - 65536) / (d / 4 + 1))
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "%s/smxx_vec16: %lld tokens of d = %lld are too many pieces",
                       problem->operation->name, (long long)tokens, (long long)d);
    return TL_OK;
}

extern "C" const struct tl_kernel tl_kernel_embedding_smxx_vec16 = {
    .operation = "embedding",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "16 bytes of the table a thread and turn, four in flight.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .launch = launch_forward,
};

extern "C" const struct tl_kernel tl_kernel_embedding_backward_smxx_vec16 = {
    .operation = "embedding_backward",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "Tokens by id and in order, then a warp adds all rows of an id.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .workspace = backward_workspace,
    .launch = launch_backward,
};
