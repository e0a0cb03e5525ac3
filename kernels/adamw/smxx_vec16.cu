/* AdamW and the squared norm on the GPU: 16 bytes of each tensor a thread and turn.
 *
 * The norm is a partial sum in fp64 for each chunk of elements, whatever the device, and one block
 * that adds the partials in order. AdamW walks with as many blocks as the GPU holds, so that what
 * depends on step and norm only is worked out once a block, by its first thread; all of it comes
 * from device memory, so that a graph replays it.
 */
#include "kernels/adamw/op.h"
#include "kernels/device/launch.h"
#include "kernels/device/vectors.cuh"
#include "kernels/device/vectors.h"

enum {
    THREADS = 256,
    NORM_TURNS = 8,                            /* 16-byte pieces in flight for each thread */
    CHUNK = THREADS * NORM_TURNS * 4 * 8,      /* elements of a partial sum */
    SUM_THREADS = 1024,
    TURNS = 2,                                 /* pieces of four tensors in flight */
    BLOCKS_PER_SM = 4,
};

/* Over a block of whole warps, for its first thread. */
static __device__ double block_sum(double value, int threads)
{
    __shared__ double sums[32];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(~0u, value, step);
    if (lane == 0)
        sums[warp] = value;
    __syncthreads();
    for (int w = 1; threadIdx.x == 0 && w < threads / 32; w++)
        value += sums[w];
    return value;
}

static __global__ void __launch_bounds__(THREADS, 4)
    norm_kernel(const float *x, int64_t count, double *partials)
{
    int64_t begin = (int64_t)blockIdx.x * CHUNK, left = count - begin;
    int length = (int)(left < CHUNK ? left : CHUNK), whole = length / 4;
    double sum[2] = {0, 0}; /* two chains of additions */
    x += begin;
    for (int first = (int)threadIdx.x; first < whole; first += THREADS * NORM_TURNS) {
        tl_vector<float, 4> raw[NORM_TURNS];
#pragma unroll
        for (int i = 0; i < NORM_TURNS; i++)
            raw[i] = first + i * THREADS < whole
                         ? tl_vector_load<float, 4>(x + (int64_t)(first + i * THREADS) * 4)
                         : tl_vector_zero<float, 4>();
#pragma unroll
        for (int i = 0; i < NORM_TURNS; i++) {
            float value[4];
            tl_vector_widen(raw[i], value);
#pragma unroll
            for (int c = 0; c < 4; c++)
                sum[c % 2] += (double)value[c] * (double)value[c];
        }
    }
    int last = whole * 4 + (int)threadIdx.x;
    if (last < length)
        sum[0] += (double)x[last] * (double)x[last];
    double total = block_sum(sum[0] + sum[1], THREADS);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = total;
}

static __global__ void __launch_bounds__(SUM_THREADS)
    sum_kernel(const double *partials, int count, float *sum)
{
    double total = 0;
#pragma unroll 8
    for (int i = (int)threadIdx.x; i < count; i += SUM_THREADS)
        total += partials[i];
    total = block_sum(total, SUM_THREADS);
    if (threadIdx.x == 0)
        *sum += (float)total;
}

static int64_t num_chunks(const struct tl_plan *plan)
{
    return (plan->problem.dim[SQUARED_NORM_DIM_COUNT] + CHUNK - 1) / CHUNK;
}

static size_t norm_workspace(const struct tl_plan *plan)
{
    return (size_t)num_chunks(plan) * sizeof(double);
}

static enum tl_status launch_norm(const struct tl_plan *plan, const struct tl_args *args,
                                  struct tl_stream *stream)
{
    int64_t chunks = num_chunks(plan);
    double *partials = (double *)args->workspace;
    TL_TRY(tl_vectors_aligned(plan, args, 1u << SQUARED_NORM_X));
    if (chunks == 0)
        return TL_OK;
    norm_kernel<<<(unsigned)chunks, THREADS, 0, tl_cuda_stream(stream)>>>(
        (const float *)args->tensor[SQUARED_NORM_X].data,
        plan->problem.dim[SQUARED_NORM_DIM_COUNT], partials);
    TL_TRY(TL_CUDA_LAUNCHED(plan, "norm_kernel"));
    sum_kernel<<<1, SUM_THREADS, 0, tl_cuda_stream(stream)>>>(
        partials, (int)chunks, (float *)args->tensor[SQUARED_NORM_SUM].data);
    return TL_CUDA_LAUNCHED(plan, "sum_kernel");
}

/* --- adamw ----------------------------------------------------------------------------------- */

struct adamw_args {
    float *param, *m, *v;
    const float *grad;
    __nv_bfloat16 *param_bf16;  /* may be NULL */
    const int *step;
    const float *norm_squared; /* NULL: no clipping */
    int64_t count;
    double lr, beta1, beta2, eps, weight_decay, max_norm;
};

/* Of all elements. */
struct factors {
    float clip, beta1, rest1, beta2, rest2, correct1, correct2, eps, lr, decay;
};

static __device__ factors factors_of(const adamw_args &args)
{
    int step = *args.step;
    double clip = 1;
    if (args.norm_squared) {
        double norm = sqrt((double)*args.norm_squared);
        if (!(norm <= args.max_norm)) /* NaN goes through */
            clip = args.max_norm / norm;
    }
    double nan = (double)__uint_as_float(0x7fffffffu);
    double past1 = step < 1 ? nan : pow(args.beta1, step), past2 = pow(args.beta2, step);
    return {(float)clip,
            (float)args.beta1,
            (float)(1 - args.beta1),
            (float)args.beta2,
            (float)(1 - args.beta2),
            (float)(1 / (1 - past1)),
            (float)(1 / (1 - past2)),
            (float)args.eps,
            (float)args.lr,
            (float)args.weight_decay};
}

static __device__ __forceinline__ void update(const factors &f, float grad, float &m, float &v,
                                              float &param)
{
    float g = grad * f.clip;
    m = f.beta1 * m + f.rest1 * g;
    v = f.beta2 * v + f.rest2 * g * g;
    float direction = m * f.correct1 / (sqrtf(v * f.correct2) + f.eps);
    param -= f.lr * (direction + f.decay * param);
}

static __device__ void update_one(const adamw_args &args, const factors &f, int64_t i)
{
    update(f, args.grad[i], args.m[i], args.v[i], args.param[i]);
    if (args.param_bf16)
        args.param_bf16[i] = __float2bfloat16(args.param[i]);
}

static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) adamw_kernel(adamw_args args)
{
    __shared__ factors shared;
    if (threadIdx.x == 0)
        shared = factors_of(args);
    __syncthreads();
    const factors f = shared;
    int64_t whole = args.count / 4, stride = (int64_t)gridDim.x * THREADS * TURNS;
    int64_t start = (int64_t)blockIdx.x * (THREADS * TURNS) + threadIdx.x;

    for (int64_t first = start; first < whole; first += stride) {
        tl_vector<float, 4> grad[TURNS], m[TURNS], v[TURNS], param[TURNS];
#pragma unroll
        for (int i = 0; i < TURNS; i++) {
            int64_t at = (first + i * THREADS) * 4;
            if (first + i * THREADS < whole) {
                grad[i] = tl_vector_load<float, 4>(args.grad + at);
                m[i] = tl_vector_load<float, 4>(args.m + at);
                v[i] = tl_vector_load<float, 4>(args.v + at);
                param[i] = tl_vector_load<float, 4>(args.param + at);
            }
        }
#pragma unroll
        for (int i = 0; i < TURNS; i++) {
            int64_t at = (first + i * THREADS) * 4;
            float g[4], m_value[4], v_value[4], value[4];
            if (first + i * THREADS >= whole)
                break;
            tl_vector_widen(grad[i], g);
            tl_vector_widen(m[i], m_value);
            tl_vector_widen(v[i], v_value);
            tl_vector_widen(param[i], value);
#pragma unroll
            for (int c = 0; c < 4; c++)
                update(f, g[c], m_value[c], v_value[c], value[c]);
            tl_vector_store(args.m + at, tl_vector_narrow<float, 4>(m_value));
            tl_vector_store(args.v + at, tl_vector_narrow<float, 4>(v_value));
            tl_vector_store(args.param + at, tl_vector_narrow<float, 4>(value));
            if (args.param_bf16)
                tl_vector_store(args.param_bf16 + at, tl_vector_narrow<__nv_bfloat16, 4>(value));
        }
    }
    int64_t last = whole * 4 + threadIdx.x;
    if (blockIdx.x == 0 && last < args.count)
        update_one(args, f, last);
}

static enum tl_status launch_adamw(const struct tl_plan *plan, const struct tl_args *args,
                                   struct tl_stream *stream)
{
    const double *param = plan->problem.param;
    const struct tl_tensor *tensor = args->tensor;
    int64_t count = plan->problem.dim[ADAMW_DIM_COUNT], block = THREADS * TURNS * 4;
    int64_t needed = (count + block - 1) / block;
    int64_t most = (int64_t)plan->device->multiprocessors * BLOCKS_PER_SM;
    TL_TRY(tl_vectors_aligned(plan, args, ~(1u << ADAMW_STEP | 1u << ADAMW_NORM_SQUARED)));
    if (count == 0)
        return TL_OK;
    adamw_args kernel_args = {(float *)tensor[ADAMW_PARAM].data,
                              (float *)tensor[ADAMW_M].data,
                              (float *)tensor[ADAMW_V].data,
                              (const float *)tensor[ADAMW_GRAD].data,
                              (__nv_bfloat16 *)tensor[ADAMW_PARAM_BF16].data,
                              (const int *)tensor[ADAMW_STEP].data,
                              (const float *)tensor[ADAMW_NORM_SQUARED].data,
                              count,
                              param[ADAMW_PARAM_LR],
                              param[ADAMW_PARAM_BETA1],
                              param[ADAMW_PARAM_BETA2],
                              param[ADAMW_PARAM_EPS],
                              param[ADAMW_PARAM_WEIGHT_DECAY],
                              param[ADAMW_PARAM_MAX_NORM]};
    if (!(param[ADAMW_PARAM_MAX_NORM] > 0))
        kernel_args.norm_squared = nullptr;
    adamw_kernel<<<(unsigned)(needed < most ? needed : most), THREADS, 0,
                   tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "adamw_kernel");
}

static enum tl_status legal_norm(const struct tl_problem *problem)
{
    if (problem->dim[SQUARED_NORM_DIM_COUNT] > (int64_t)INT32_MAX * CHUNK)
        return TL_FAIL(TL_ERR_ILLEGAL, "squared_norm/smxx_vec16: %lld elements are too many chunks",
                       (long long)problem->dim[SQUARED_NORM_DIM_COUNT]);
    return TL_OK;
}

extern "C" const struct tl_kernel tl_kernel_squared_norm_smxx_vec16 = {
    .operation = "squared_norm",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "fp64 partial sums of 65536 elements, added in order.",
    .dtypes = TL_DTYPE_BIT(TL_FP32),
    .legal = legal_norm,
    .workspace = norm_workspace,
    .launch = launch_norm,
};

extern "C" const struct tl_kernel tl_kernel_adamw_smxx_vec16 = {
    .operation = "adamw",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "16 bytes of four tensors a thread and turn, and the bf16 copy in the same pass.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .launch = launch_adamw,
};
