/* SwiGLU on the GPU: 16 bytes of gate and of up a thread and turn, four turns in flight.
 *
 * The last of group_offsets is read on the device, so that no launch waits for it: blocks past it
 * write nothing. exp is the hardware's short one where bf16 does not see its error of some 2^-21.
 */
#include "kernels/device/launch.h"
#include "kernels/device/vectors.cuh"
#include "kernels/device/vectors.h"
#include "kernels/swiglu/op.h"

enum {
    THREADS = 256,
    BLOCKS_PER_SM = 3,
    FORWARD_TURNS = 4,  /* pieces in flight for each thread, two loads each */
    BACKWARD_TURNS = 3, /* three loads each */
};

struct swiglu_args {
    const void *dy, *x; /* dy: of the backward kernel */
    void *out;          /* y or dx */
    const int *group_offsets; /* or NULL */
    int num_groups, rows;
    int vectors; /* 16-byte pieces of a row of y */
    /* From a thread's piece to its next one, THREADS further. */
    int step_rows, step_vectors;
};

static __device__ __forceinline__ int used_rows(const swiglu_args &args)
{
    if (!args.group_offsets)
        return args.rows;
    return max(min(__ldg(args.group_offsets + args.num_groups), args.rows), 0);
}

template <typename T> static __device__ __forceinline__ float sigmoid(float z)
{
    if (sizeof(T) == 2)
        return __fdividef(1, 1 + __expf(-z));
    return __fdividef(1, 1 + expf(-z));
}

/* Where the gates of a thread's pieces stand in x, in pieces; each up is `vectors` further. One
 * division for all of them. */
template <int TURNS>
static __device__ __forceinline__ void gates(const swiglu_args &args, int piece, int (&gate)[TURNS])
{
    int row = piece / args.vectors, vector = piece - row * args.vectors;
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        gate[i] = 2 * row * args.vectors + vector;
        row += args.step_rows;
        vector += args.step_vectors;
        if (vector >= args.vectors) {
            vector -= args.vectors;
            row++;
        }
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) forward_kernel(swiglu_args args)
{
    constexpr int N = tl_vector_width<T>();
    int pieces = used_rows(args) * args.vectors, at[FORWARD_TURNS];
    int first = (int)blockIdx.x * (THREADS * FORWARD_TURNS) + (int)threadIdx.x;
    const T *gate = (const T *)args.x, *up = gate + (int64_t)args.vectors * N;
    tl_vector<T, N> gates_raw[FORWARD_TURNS], ups_raw[FORWARD_TURNS];
    gates(args, first, at);
#pragma unroll
    for (int i = 0; i < FORWARD_TURNS; i++) {
        if (first + i * THREADS < pieces) {
            gates_raw[i] = tl_vector_load<T, N>(gate + (int64_t)at[i] * N);
            ups_raw[i] = tl_vector_load<T, N>(up + (int64_t)at[i] * N);
        }
    }
#pragma unroll
    for (int i = 0; i < FORWARD_TURNS; i++) {
        int piece = first + i * THREADS;
        float z[N], u[N];
        if (piece >= pieces)
            break;
        tl_vector_widen(gates_raw[i], z);
        tl_vector_widen(ups_raw[i], u);
#pragma unroll
        for (int c = 0; c < N; c++)
            z[c] = z[c] * sigmoid<T>(z[c]) * u[c];
        tl_vector_store((T *)args.out + (int64_t)piece * N, tl_vector_narrow<T, N>(z));
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) backward_kernel(swiglu_args args)
{
    constexpr int N = tl_vector_width<T>();
    int pieces = used_rows(args) * args.vectors, at[BACKWARD_TURNS];
    int first = (int)blockIdx.x * (THREADS * BACKWARD_TURNS) + (int)threadIdx.x;
    int64_t to_up = (int64_t)args.vectors * N;
    const T *x = (const T *)args.x, *dy = (const T *)args.dy;
    T *dx = (T *)args.out;
    tl_vector<T, N> gates_raw[BACKWARD_TURNS], ups_raw[BACKWARD_TURNS], grads_raw[BACKWARD_TURNS];
    gates(args, first, at);
#pragma unroll
    for (int i = 0; i < BACKWARD_TURNS; i++) {
        int piece = first + i * THREADS;
        if (piece < pieces) {
            gates_raw[i] = tl_vector_load<T, N>(x + (int64_t)at[i] * N);
            ups_raw[i] = tl_vector_load<T, N>(x + (int64_t)at[i] * N + to_up);
            grads_raw[i] = tl_vector_load<T, N>(dy + (int64_t)piece * N);
        }
    }
#pragma unroll
    for (int i = 0; i < BACKWARD_TURNS; i++) {
        float z[N], u[N], g[N];
        if (first + i * THREADS >= pieces)
            break;
        tl_vector_widen(gates_raw[i], z);
        tl_vector_widen(ups_raw[i], u);
        tl_vector_widen(grads_raw[i], g);
#pragma unroll
        for (int c = 0; c < N; c++) {
            float s = sigmoid<T>(z[c]), dgate = g[c] * u[c] * s * (1 + z[c] * (1 - s));
            u[c] = g[c] * z[c] * s;
            z[c] = dgate;
        }
        tl_vector_store(dx + (int64_t)at[i] * N, tl_vector_narrow<T, N>(z));
        tl_vector_store(dx + (int64_t)at[i] * N + to_up, tl_vector_narrow<T, N>(u));
    }
}

/* Of both operations; `offsets` is the position of group_offsets, `turns` those of the kernel. */
static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream, void (*kernel)(swiglu_args),
                             const void *dy, const void *x, void *out, int offsets, int turns)
{
    const int64_t *dim = plan->problem.dim;
    int width = 16 / (int)tl_dtype_size(plan->problem.dtype[0]);
    bool grouped = plan->problem.present[offsets];
    swiglu_args kernel_args = {dy,
                               x,
                               out,
                               grouped ? (const int *)args->tensor[offsets].data : nullptr,
                               (int)dim[SWIGLU_DIM_NUM_GROUPS],
                               (int)dim[SWIGLU_DIM_ROWS],
                               (int)dim[SWIGLU_DIM_F] / width,
                               0,
                               0};
    int64_t pieces = dim[SWIGLU_DIM_ROWS] * kernel_args.vectors, block = THREADS * turns;
    TL_TRY(tl_vectors_aligned(plan, args, ~(1u << offsets)));
    if (pieces == 0)
        return TL_OK;
    kernel_args.step_rows = THREADS / kernel_args.vectors;
    kernel_args.step_vectors = THREADS % kernel_args.vectors;
    unsigned blocks = (unsigned)((pieces + block - 1) / block);
    kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, plan->problem.operation->name);
}

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    bool wide = plan->problem.dtype[SWIGLU_X] == TL_FP32;
    return launch(plan, args, stream, wide ? forward_kernel<float> : forward_kernel<__nv_bfloat16>,
                  nullptr, args->tensor[SWIGLU_X].data, args->tensor[SWIGLU_Y].data,
                  SWIGLU_GROUP_OFFSETS, FORWARD_TURNS);
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    bool wide = plan->problem.dtype[SWIGLU_BACKWARD_X] == TL_FP32;
    return launch(plan, args, stream,
                  wide ? backward_kernel<float> : backward_kernel<__nv_bfloat16>,
                  args->tensor[SWIGLU_BACKWARD_DY].data, args->tensor[SWIGLU_BACKWARD_X].data,
                  args->tensor[SWIGLU_BACKWARD_DX].data, SWIGLU_BACKWARD_GROUP_OFFSETS,
                  BACKWARD_TURNS);
}

static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t rows = problem->dim[SWIGLU_DIM_ROWS], f = problem->dim[SWIGLU_DIM_F];
    int64_t width = 16 / (int64_t)tl_dtype_size(problem->dtype[0]);
    TL_TRY(tl_vectors_legal(problem, "smxx_vec16", "f", f, problem->dtype[0]));
    TL_TRY(tl_vectors_small(problem, "smxx_vec16"));
    if (rows * (f / width) > INT32_MAX / 2 - 65536)
        return TL_FAIL(TL_ERR_ILLEGAL, "%s/smxx_vec16: %lld rows of f = %lld are too many pieces",
                       problem->operation->name, (long long)rows, (long long)f);
    return TL_OK;
}

extern "C" const struct tl_kernel tl_kernel_swiglu_smxx_vec16 = {
    .operation = "swiglu",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "16 bytes of gate and up a thread, four of each in flight.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .launch = launch_forward,
};

extern "C" const struct tl_kernel tl_kernel_swiglu_backward_smxx_vec16 = {
    .operation = "swiglu_backward",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "As the forward kernel, the sigmoid computed again.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .launch = launch_backward,
};
