/* RMSNorm on the GPU: a thread keeps 16 bytes of columns, or twice 16, a block a few rows at a
 * time.
 *
 * All loads of a block's rows are in flight before their sums are taken, in one exchange among the
 * warps for all rows. The backward kernel stays on its columns while it walks over the rows, so
 * that dweight is a sum in registers, one partial of d a block in the workspace, and a second
 * kernel that adds the partials in the order of the blocks: the same bits from run to run on the
 * same device.
 */
#include "kernels/device/launch.h"
#include "kernels/device/vectors.cuh"
#include "kernels/device/vectors.h"
#include "kernels/rmsnorm/op.h"

enum {
    MOST_THREADS = 1024,    /* 16 bytes of a row each */
    NARROW_THREADS = 384,   /* rows of 6 KiB and less: registers for more rows at a time */
    FORWARD_PIECES = 4,     /* accesses in flight of a thread of forward_kernel: rows x pieces */
    BACKWARD_ROWS = 3,
    WIDE_ROWS = 2,
    BLOCKS_PER_SM = 2,      /* of backward_kernel */
    ADD_COLUMNS = 32,       /* of dweight, for a block of add_kernel */
};

/* Sums over a block for all its threads: warps first, then the warps in order. `partial` must not
 * be the one of the call before, which others may still read. */
template <int ROWS>
static __device__ __forceinline__ void block_sums(float (&value)[ROWS], float (&partial)[32][ROWS])
{
    int warp = (int)threadIdx.x / 32, warps = (int)blockDim.x / 32;
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        value[i] = tl_warp_sum(value[i]);
    if (threadIdx.x % 32 == 0)
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            partial[warp][i] = value[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        value[i] = 0;
    for (int w = 0; w < warps; w++)
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            value[i] += partial[w][i];
}

/* --- rmsnorm --------------------------------------------------------------------------------- */

struct forward_args {
    const void *x, *residual; /* the latter may be NULL, and sum too */
    const float *weight;
    void *y, *sum;
    float *rstd;
    int64_t tokens;
    int d;
    float inverse_d, eps;
};

/* Which row and column a thread's access number i is at. PIECES of a row to a thread, a block's
 * width apart, so that wide rows still leave room for three blocks on an SM: while one block waits
 * at its barrier, the others load. */
template <int N, int PIECES> struct place {
    int row, column;
    bool inside;

    __device__ __forceinline__ place(int i, int rows, int d)
        : row(i / PIECES),
          column(((int)threadIdx.x + i % PIECES * (int)blockDim.x) * N),
          inside(row < rows && column < d)
    {
    }
};

/* A sum is rounded to T before it is normalised: what the backward operation will read. */
template <typename T, int PIECES>
static __device__ __forceinline__ void
load_rows(const forward_args &args, int64_t first, int rows,
          tl_vector<T, tl_vector_width<T>()> (&raw)[FORWARD_PIECES])
{
    constexpr int N = tl_vector_width<T>();
    const T *x = (const T *)args.x + first * args.d;
    const T *residual = (const T *)args.residual + first * args.d;
    tl_vector<T, N> other[FORWARD_PIECES];
#pragma unroll
    for (int i = 0; i < FORWARD_PIECES; i++) {
        place<N, PIECES> at(i, rows, args.d);
        raw[i] = at.inside ? tl_vector_load<T, N>(x + (int64_t)at.row * args.d + at.column)
                           : tl_vector_zero<T, N>();
    }
    if (!args.residual)
        return;
#pragma unroll
    for (int i = 0; i < FORWARD_PIECES; i++) {
        place<N, PIECES> at(i, rows, args.d);
        other[i] = at.inside
                       ? tl_vector_load<T, N>(residual + (int64_t)at.row * args.d + at.column)
                       : tl_vector_zero<T, N>();
    }
#pragma unroll
    for (int i = 0; i < FORWARD_PIECES; i++) {
        float a[N], b[N];
        tl_vector_widen(raw[i], a);
        tl_vector_widen(other[i], b);
#pragma unroll
        for (int c = 0; c < N; c++)
            a[c] += b[c];
        raw[i] = tl_vector_narrow<T, N>(a);
    }
}

template <typename T, int PIECES, int THREADS, int BLOCKS>
static __global__ void __launch_bounds__(THREADS, BLOCKS) forward_kernel(forward_args args)
{
    constexpr int N = tl_vector_width<T>(), ROWS = FORWARD_PIECES / PIECES;
    __shared__ float partial[32][ROWS];
    int64_t first = (int64_t)blockIdx.x * ROWS;
    int rows = (int)min((int64_t)ROWS, args.tokens - first);
    tl_vector<T, N> raw[FORWARD_PIECES];
    float scale[ROWS] = {0}, weight[N];

    load_rows<T, PIECES>(args, first, rows, raw);
#pragma unroll
    for (int i = 0; i < FORWARD_PIECES; i++) {
        float value[N];
        tl_vector_widen(raw[i], value);
#pragma unroll
        for (int c = 0; c < N; c++)
            scale[i / PIECES] += value[c] * value[c];
    }
    block_sums(scale, partial);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        scale[i] = rsqrtf(scale[i] * args.inverse_d + args.eps);
        if (threadIdx.x == 0 && i < rows)
            args.rstd[first + i] = scale[i];
    }
#pragma unroll
    for (int piece = 0; piece < PIECES; piece++) {
        place<N, PIECES> across(piece, rows, args.d);
        if (!across.inside)
            break;
        tl_vector_shared(args.weight + across.column, weight);
#pragma unroll
        for (int i = piece; i < FORWARD_PIECES; i += PIECES) {
            float value[N];
            int64_t at = (first + i / PIECES) * args.d + across.column;
            if (i / PIECES >= rows)
                break;
            tl_vector_keep(raw[i]);
            tl_vector_widen(raw[i], value);
#pragma unroll
            for (int c = 0; c < N; c++)
                value[c] = value[c] * scale[i / PIECES] * weight[c];
            tl_vector_store((T *)args.y + at, tl_vector_narrow<T, N>(value));
            if (args.sum)
                tl_vector_store((T *)args.sum + at, raw[i]);
        }
    }
}

/* Threads for a row, whole warps. */
static unsigned row_threads(const struct tl_problem *problem, int arg)
{
    int64_t bytes = problem->dim[RMSNORM_DIM_D] * (int64_t)tl_dtype_size(problem->dtype[arg]);
    return (unsigned)((bytes / 16 + 31) / 32 * 32);
}

/* Rows of up to 6, 12 and 16 KiB. */
template <typename T> static void (*forward_of(unsigned threads, int pieces))(forward_args)
{
    if (pieces == 1)
        return forward_kernel<T, 1, NARROW_THREADS, 3>;
    if (threads <= NARROW_THREADS)
        return forward_kernel<T, 2, NARROW_THREADS, 3>;
    return forward_kernel<T, 2, MOST_THREADS / 2, 2>;
}

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    int64_t tokens = plan->problem.dim[RMSNORM_DIM_TOKENS], d = plan->problem.dim[RMSNORM_DIM_D];
    unsigned threads = row_threads(&plan->problem, RMSNORM_X);
    int pieces = threads <= NARROW_THREADS ? 1 : 2, rows = FORWARD_PIECES / pieces;
    if (pieces == 2)
        threads = (threads / 2 + 31) / 32 * 32;
    TL_TRY(tl_vectors_aligned(plan, args, ~(1u << RMSNORM_RSTD)));
    if (tokens == 0 || d == 0)
        return TL_OK;
    forward_args kernel_args = {tensor[RMSNORM_X].data,
                                tensor[RMSNORM_RESIDUAL].data,
                                (const float *)tensor[RMSNORM_WEIGHT].data,
                                tensor[RMSNORM_Y].data,
                                tensor[RMSNORM_SUM].data,
                                (float *)tensor[RMSNORM_RSTD].data,
                                tokens,
                                (int)d,
                                (float)(1.0 / (double)d),
                                (float)plan->problem.param[RMSNORM_PARAM_EPS]};
    auto kernel = plan->problem.dtype[RMSNORM_X] == TL_FP32
                      ? forward_of<float>(threads, pieces)
                      : forward_of<__nv_bfloat16>(threads, pieces);
    unsigned blocks = (unsigned)((tokens + rows - 1) / rows);
    kernel<<<blocks, threads, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "forward_kernel");
}

/* --- rmsnorm_backward ------------------------------------------------------------------------ */

struct backward_args {
    const void *dy, *x, *dsum; /* the last may be NULL */
    const float *weight, *rstd;
    void *dx;
    float *partials; /* [gridDim, d] */
    int64_t tokens;
    int d;
    float inverse_d;
};

template <int N, int THREADS>
static __device__ void keep_weights(const float *from, bool inside, float4 (&kept)[N / 4][THREADS])
{
#pragma unroll
    for (int i = 0; i < N / 4; i++)
        kept[i][threadIdx.x] =
            inside ? __ldg((const float4 *)from + i) : make_float4(0, 0, 0, 0);
}

template <int N, int THREADS>
static __device__ __forceinline__ void kept_weights(const float4 (&kept)[N / 4][THREADS],
                                                    float (&weight)[N])
{
#pragma unroll
    for (int i = 0; i < N / 4; i++) {
        float4 four = kept[i][threadIdx.x];
        weight[4 * i] = four.x;
        weight[4 * i + 1] = four.y;
        weight[4 * i + 2] = four.z;
        weight[4 * i + 3] = four.w;
    }
}

template <typename T, int ROWS, int THREADS, int BLOCKS>
static __global__ void __launch_bounds__(THREADS, BLOCKS) backward_kernel(backward_args args)
{
    constexpr int N = tl_vector_width<T>();
    __shared__ float partial[2][32][ROWS];
    __shared__ float4 weights[N / 4][THREADS]; /* each thread's own: registers are short */
    int column = (int)threadIdx.x * N, turn = 0;
    bool inside = column < args.d;
    float dweight[N] = {0};
    keep_weights<N, THREADS>(args.weight + column, inside, weights);

    for (int64_t first = (int64_t)blockIdx.x * ROWS; first < args.tokens;
         first += (int64_t)gridDim.x * ROWS, turn ^= 1) {
        tl_vector<T, N> dy[ROWS], x[ROWS], dsum[ROWS];
        float dot[ROWS], rstd[ROWS], weight[N];
        int64_t at = first * args.d + column;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            bool here = inside && first + i < args.tokens;
            int64_t from = at + (int64_t)i * args.d;
            dy[i] = here ? tl_vector_load<T, N>((const T *)args.dy + from) : tl_vector_zero<T, N>();
            x[i] = here ? tl_vector_load<T, N>((const T *)args.x + from) : tl_vector_zero<T, N>();
            rstd[i] = here ? __ldg(args.rstd + first + i) : 0;
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            dsum[i] = args.dsum && inside && first + i < args.tokens
                          ? tl_vector_load<T, N>((const T *)args.dsum + at + (int64_t)i * args.d)
                          : tl_vector_zero<T, N>();
        kept_weights<N, THREADS>(weights, weight);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            float dy_value[N], x_value[N];
            tl_vector_widen(dy[i], dy_value);
            tl_vector_widen(x[i], x_value);
            dot[i] = 0;
#pragma unroll
            for (int c = 0; c < N; c++) {
                float product = dy_value[c] * x_value[c];
                dot[i] += product * weight[c];
                dweight[c] += product * rstd[i];
            }
        }
        block_sums(dot, partial[turn]);
        kept_weights<N, THREADS>(weights, weight);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            float dy_value[N], x_value[N], value[N];
            float of_x = rstd[i] * rstd[i] * rstd[i] * (dot[i] * args.inverse_d);
            if (!inside || first + i >= args.tokens)
                break;
            tl_vector_keep(dy[i]);
            tl_vector_keep(x[i]);
            tl_vector_widen(dy[i], dy_value);
            tl_vector_widen(x[i], x_value);
            tl_vector_widen(dsum[i], value);
#pragma unroll
            for (int c = 0; c < N; c++)
                value[c] += rstd[i] * weight[c] * dy_value[c] - of_x * x_value[c];
            tl_vector_store((T *)args.dx + at + (int64_t)i * args.d,
                            tl_vector_narrow<T, N>(value));
        }
    }
    if (inside)
#pragma unroll
        for (int c = 0; c < N; c += 4)
            *(float4 *)(args.partials + (int64_t)blockIdx.x * args.d + column + c) =
                make_float4(dweight[c], dweight[c + 1], dweight[c + 2], dweight[c + 3]);
}

/* dweight += the sum of the partials, in fp64: each warp adds every 32nd, then the warps meet. */
static __global__ void __launch_bounds__(1024)
    add_kernel(const float *__restrict__ partials, float *dweight, int count, int d)
{
    __shared__ double sums[32][ADD_COLUMNS + 1];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int column = (int)blockIdx.x * ADD_COLUMNS + lane;
    double sum = 0;
    if (column < d)
#pragma unroll 8
        for (int i = warp; i < count; i += 32)
            sum += (double)__ldg(partials + (int64_t)i * d + column);
    sums[warp][lane] = sum;
    __syncthreads();
    sum = sums[lane][warp];
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(~0u, sum, step);
    column = (int)blockIdx.x * ADD_COLUMNS + warp;
    if (lane == 0 && column < d)
        dweight[column] += (float)sum;
}

static unsigned backward_blocks(const struct tl_plan *plan)
{
    unsigned threads = row_threads(&plan->problem, RMSNORM_BACKWARD_DY);
    int rows = threads <= NARROW_THREADS ? BACKWARD_ROWS : WIDE_ROWS;
    int64_t needed = (plan->problem.dim[RMSNORM_DIM_TOKENS] + rows - 1) / rows;
    int64_t most = (int64_t)plan->device->multiprocessors * BLOCKS_PER_SM;
    return (unsigned)(needed < most ? needed : most);
}

static size_t backward_workspace(const struct tl_plan *plan)
{
    return (size_t)backward_blocks(plan) * (size_t)plan->problem.dim[RMSNORM_DIM_D] *
           sizeof(float);
}

template <typename T> static void (*backward_of(unsigned threads))(backward_args)
{
    if (threads <= NARROW_THREADS)
        return backward_kernel<T, BACKWARD_ROWS, NARROW_THREADS, BLOCKS_PER_SM>;
    return backward_kernel<T, WIDE_ROWS, MOST_THREADS, 1>;
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    int64_t tokens = plan->problem.dim[RMSNORM_DIM_TOKENS], d = plan->problem.dim[RMSNORM_DIM_D];
    unsigned threads = row_threads(&plan->problem, RMSNORM_BACKWARD_DY);
    unsigned blocks = backward_blocks(plan);
    TL_TRY(tl_vectors_aligned(plan, args, ~(1u << RMSNORM_BACKWARD_RSTD)));
    if (tokens == 0 || d == 0)
        return TL_OK;
    backward_args kernel_args = {tensor[RMSNORM_BACKWARD_DY].data,
                                 tensor[RMSNORM_BACKWARD_X].data,
                                 tensor[RMSNORM_BACKWARD_DSUM].data,
                                 (const float *)tensor[RMSNORM_BACKWARD_WEIGHT].data,
                                 (const float *)tensor[RMSNORM_BACKWARD_RSTD].data,
                                 tensor[RMSNORM_BACKWARD_DX].data,
                                 (float *)args->workspace,
                                 tokens,
                                 (int)d,
                                 (float)(1.0 / (double)d)};
    auto kernel = plan->problem.dtype[RMSNORM_BACKWARD_DY] == TL_FP32
                      ? backward_of<float>(threads)
                      : backward_of<__nv_bfloat16>(threads);
    kernel<<<blocks, threads, 0, tl_cuda_stream(stream)>>>(kernel_args);
    TL_TRY(TL_CUDA_LAUNCHED(plan, "backward_kernel"));
    unsigned add_blocks = (unsigned)((d + ADD_COLUMNS - 1) / ADD_COLUMNS);
    add_kernel<<<add_blocks, 1024, 0, tl_cuda_stream(stream)>>>(
        kernel_args.partials, (float *)tensor[RMSNORM_BACKWARD_DWEIGHT].data, (int)blocks, (int)d);
    return TL_CUDA_LAUNCHED(plan, "add_kernel");
}

/* Of both operations: the activations have the dtype of the first argument. */
static enum tl_status legal(const struct tl_problem *problem)
{
    enum tl_dtype dtype = problem->dtype[0];
    int64_t d = problem->dim[RMSNORM_DIM_D];
    int64_t most = MOST_THREADS * 16 / (int64_t)tl_dtype_size(dtype);
    TL_TRY(tl_vectors_legal(problem, "smxx_vec16", "d", d, dtype));
    TL_TRY(tl_vectors_small(problem, "smxx_vec16"));
    if (d > most)
        return TL_FAIL(TL_ERR_ILLEGAL, "%s/smxx_vec16: d is %lld, but a block holds rows of %lld",
                       problem->operation->name, (long long)d, (long long)most);
    return TL_OK;
}

extern "C" const struct tl_kernel tl_kernel_rmsnorm_smxx_vec16 = {
    .operation = "rmsnorm",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "A block holds a few rows in registers: every tensor moves once.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .launch = launch_forward,
};

extern "C" const struct tl_kernel tl_kernel_rmsnorm_backward_smxx_vec16 = {
    .operation = "rmsnorm_backward",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "Rows as in the forward kernel; dweight through a partial of each block, in order.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .workspace = backward_workspace,
    .transient_workspace = true,
    .launch = launch_backward,
};
