/* The router on the GPU: a warp for each token, its logits in registers.
 *
 * Experts are chosen one after the other, the largest first: two reductions over the warp, of the
 * logits' bits made to order like integers, and of the numbers of those that tie. NaN orders below
 * everything. load and aux need all tokens: each block leaves its counts and its sums of probs in
 * the workspace, and a last kernel adds them up in the order of the blocks. Forced experts are
 * looked at by a kernel before, so that one out of range writes nothing.
 */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "kernels/device/fault.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/vectors.cuh"
#include "kernels/router/op.h"

enum {
    THREADS = 512,
    BLOCKS_PER_SM = 2,
    MOST_EXPERTS = 1024,
    MOST_TOP_K = 32, /* one a lane */
    CHECK_BLOCKS = 64,
    ADD_THREADS = 1024,
};

/* An element of either type. */
static __device__ __forceinline__ float widened(float value)
{
    return value;
}

static __device__ __forceinline__ float widened(__nv_bfloat16 value)
{
    return __bfloat162float(value);
}

static __device__ __forceinline__ void narrowed(float *out, float value)
{
    *out = value;
}

static __device__ __forceinline__ void narrowed(__nv_bfloat16 *out, float value)
{
    *out = __float2bfloat16(value);
}

/* --- router ---------------------------------------------------------------------------------- */

struct forward_args {
    const void *logits;
    const int *forced; /* or NULL */
    float *probs, *weights;
    int *experts, *load;
    float *aux;
    int tokens, num_experts, top_k, blocks;
    double aux_scale;
    /* In the workspace. */
    double *prob_sums; /* [blocks, num_experts] */
    int *loads;        /* [blocks, num_experts] */
    unsigned *bad;     /* [CHECK_BLOCKS]: slots up to the end from the first bad one on */
    tl_fault_port port;
};

/* Of forced experts: what each block found first out of range. */
static __global__ void __launch_bounds__(THREADS) check_kernel(forward_args args)
{
    __shared__ unsigned left;
    int slots = args.tokens * args.top_k;
    if (threadIdx.x == 0)
        left = 0;
    __syncthreads();
    for (int slot = (int)(blockIdx.x * THREADS + threadIdx.x); slot < slots;
         slot += CHECK_BLOCKS * THREADS) {
        int expert = __ldg(args.forced + slot);
        if (expert < 0 || expert >= args.num_experts)
            atomicMax(&left, (unsigned)(slots - slot));
    }
    __syncthreads();
    if (threadIdx.x == 0)
        args.bad[blockIdx.x] = left;
}

static __device__ __noinline__ void report(const forward_args &args)
{
    unsigned left = 0;
    tl_fault found = {};
    for (int i = 0; i < CHECK_BLOCKS; i++)
        left = max(left, args.bad[i]);
    int slot = args.tokens * args.top_k - (int)left;
    found.kind = ROUTER_BAD_EXPERT;
    found.position = slot;
    found.value[0] = args.forced[slot];
    found.value[2] = args.num_experts;
    tl_fault_leave(found, args.port);
}

/* For all threads of the block: whether a forced expert is out of range. */
static __device__ __forceinline__ bool refused(const forward_args &args)
{
    if (!args.forced)
        return false;
    return __syncthreads_or(threadIdx.x < CHECK_BLOCKS && args.bad[threadIdx.x] > 0);
}

/* Bits that order as the logits do: 1 for NaN, more for everything else; both zeros are one. */
static __device__ __forceinline__ unsigned order_of(float logit)
{
    unsigned bits = __float_as_uint(logit + 0.0f);
    if (isnan(logit))
        return 1;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The top_k first by their logits, expert j in lane j. Lanes hold experts lane, lane + 32, ... */
template <int PER_LANE>
static __device__ __forceinline__ int choose(const float (&logit)[PER_LANE], int num_experts,
                                             int top_k)
{
    int lane = (int)threadIdx.x % 32, mine = 0;
    unsigned order[PER_LANE];
#pragma unroll
    for (int i = 0; i < PER_LANE; i++)
        order[i] = lane + 32 * i < num_experts ? order_of(logit[i]) : 0;
    for (int j = 0; j < top_k; j++) {
        unsigned best = 0, expert = ~0u;
#pragma unroll
        for (int i = 0; i < PER_LANE; i++)
            best = max(best, order[i]);
        best = __reduce_max_sync(~0u, best);
#pragma unroll
        for (int i = PER_LANE - 1; i >= 0; i--)
            expert = order[i] == best ? (unsigned)(lane + 32 * i) : expert;
        expert = __reduce_min_sync(~0u, expert);
#pragma unroll
        for (int i = 0; i < PER_LANE; i++)
            order[i] = (unsigned)(lane + 32 * i) == expert ? 0 : order[i];
        mine = lane == j ? (int)expert : mine;
    }
    return mine;
}

template <typename T, int PER_LANE>
static __device__ __forceinline__ void route(const forward_args &args, int token,
                                             float (&column)[PER_LANE], int *load)
{
    int lane = (int)threadIdx.x % 32;
    const T *logits = (const T *)args.logits + (int64_t)token * args.num_experts;
    float *probs = args.probs + (int64_t)token * args.num_experts;
    int64_t slot = (int64_t)token * args.top_k + lane;
    float logit[PER_LANE], prob[PER_LANE], top = -INFINITY, sum = 0;
#pragma unroll
    for (int i = 0; i < PER_LANE; i++)
        logit[i] = lane + 32 * i < args.num_experts ? widened(logits[lane + 32 * i]) : -INFINITY;
#pragma unroll
    for (int i = 0; i < PER_LANE; i++)
        top = fmaxf(top, logit[i]);
    top = tl_warp_max(top);
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        prob[i] = lane + 32 * i < args.num_experts ? expf(logit[i] - top) : 0;
        sum += prob[i];
    }
    float scale = 1 / tl_warp_sum(sum);
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        prob[i] *= scale;
        column[i] += prob[i];
        if (lane + 32 * i < args.num_experts)
            probs[lane + 32 * i] = prob[i];
    }

    bool chosen = lane < args.top_k;
    int expert = 0;
    if (!args.forced)
        expert = choose<PER_LANE>(logit, args.num_experts, args.top_k);
    else if (chosen)
        expert = __ldg(args.forced + slot);
    float mine = chosen ? widened(logits[expert]) : -INFINITY;
    top = tl_warp_max(mine);
    float weight = chosen ? expf(mine - top) : 0;
    sum = tl_warp_sum(weight);
    if (chosen) {
        args.experts[slot] = expert;
        args.weights[slot] = weight / sum;
        atomicAdd(&load[expert], 1);
    }
}

template <typename T, int PER_LANE>
static __global__ void __launch_bounds__(THREADS) route_kernel(forward_args args)
{
    __shared__ int load[32 * PER_LANE];
    __shared__ float sums[32 * PER_LANE];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int warps = (int)gridDim.x * (THREADS / 32);
    float column[PER_LANE];
    if (refused(args)) {
        if (threadIdx.x == 0 && blockIdx.x == 0)
            report(args);
        return;
    }
    for (int e = (int)threadIdx.x; e < 32 * PER_LANE; e += THREADS) {
        load[e] = 0;
        sums[e] = 0;
    }
#pragma unroll
    for (int i = 0; i < PER_LANE; i++)
        column[i] = 0;
    __syncthreads();
    for (int token = (int)blockIdx.x * (THREADS / 32) + warp; token < args.tokens; token += warps)
        route<T, PER_LANE>(args, token, column, load);
    for (int w = 0; w < THREADS / 32; w++) {
        if (w == warp)
#pragma unroll
            for (int i = 0; i < PER_LANE; i++)
                sums[lane + 32 * i] += column[i];
        __syncthreads();
    }
    for (int e = (int)threadIdx.x; e < args.num_experts; e += THREADS) {
        args.prob_sums[(int64_t)blockIdx.x * args.num_experts + e] = sums[e];
        args.loads[(int64_t)blockIdx.x * args.num_experts + e] = load[e];
    }
}

/* The blocks' counts and sums, added up: each expert by a few threads, then those in order. */
static __global__ void __launch_bounds__(ADD_THREADS) add_kernel(forward_args args)
{
    __shared__ double sums[ADD_THREADS];
    __shared__ int loads[ADD_THREADS];
    int thread = (int)threadIdx.x, parts = ADD_THREADS / args.num_experts;
    int expert = thread % args.num_experts, part = thread / args.num_experts, load = 0;
    double sum = 0;
    if (refused(args))
        return;
    if (part < parts)
#pragma unroll 8
        for (int i = part; i < args.blocks; i += parts) {
            sum += args.prob_sums[(int64_t)i * args.num_experts + expert];
            load += args.loads[(int64_t)i * args.num_experts + expert];
        }
    sums[thread] = sum;
    loads[thread] = load;
    __syncthreads();
    for (int i = 1; i < parts && part == 0; i++) {
        sum += sums[thread + i * args.num_experts];
        load += loads[thread + i * args.num_experts];
    }
    if (part == 0)
        args.load[expert] = load;
    __syncthreads();
    sums[thread] = part == 0 ? sum * load : 0;
    __syncthreads();
    for (int step = ADD_THREADS / 2; step > 0; step /= 2) {
        if (thread < step)
            sums[thread] += sums[thread + step];
        __syncthreads();
    }
    if (thread == 0 && args.tokens > 0)
        args.aux[0] += (float)(args.aux_scale * sums[0]);
}

static unsigned blocks_of(const struct tl_plan *plan)
{
    int64_t needed = (plan->problem.dim[ROUTER_DIM_TOKENS] + THREADS / 32 - 1) / (THREADS / 32);
    int64_t most = (int64_t)plan->device->multiprocessors * BLOCKS_PER_SM;
    return (unsigned)(needed < most ? needed : most);
}

static size_t forward_workspace(const struct tl_plan *plan)
{
    size_t sums = (size_t)blocks_of(plan) * (size_t)plan->problem.dim[ROUTER_DIM_NUM_EXPERTS];
    return sums * (sizeof(double) + sizeof(int)) + CHECK_BLOCKS * sizeof(unsigned);
}

template <typename T> static void (*forward_of(int64_t num_experts))(forward_args)
{
    if (num_experts <= 32)
        return route_kernel<T, 1>;
    if (num_experts <= 64)
        return route_kernel<T, 2>;
    if (num_experts <= 128)
        return route_kernel<T, 4>;
    if (num_experts <= 256)
        return route_kernel<T, 8>;
    return route_kernel<T, 32>;
}

static forward_args forward_arguments(const struct tl_plan *plan, const struct tl_args *args)
{
    const struct tl_tensor *tensor = args->tensor;
    double tokens = (double)plan->problem.dim[ROUTER_DIM_TOKENS];
    double num_experts = (double)plan->problem.dim[ROUTER_DIM_NUM_EXPERTS];
    double top_k = (double)plan->problem.dim[ROUTER_DIM_TOP_K];
    forward_args out = {};
    out.logits = tensor[ROUTER_LOGITS].data;
    out.forced = (const int *)tensor[ROUTER_FORCED].data;
    out.probs = (float *)tensor[ROUTER_PROBS].data;
    out.weights = (float *)tensor[ROUTER_WEIGHTS].data;
    out.experts = (int *)tensor[ROUTER_EXPERTS].data;
    out.load = (int *)tensor[ROUTER_LOAD].data;
    out.aux = (float *)tensor[ROUTER_AUX].data;
    out.tokens = (int)tokens;
    out.num_experts = (int)num_experts;
    out.top_k = (int)top_k;
    out.blocks = (int)blocks_of(plan);
    out.aux_scale =
        plan->problem.param[ROUTER_PARAM_COEFFICIENT] * num_experts / (tokens * top_k * tokens);
    out.prob_sums = (double *)args->workspace;
    out.loads = (int *)(out.prob_sums + (int64_t)out.blocks * out.num_experts);
    out.bad = (unsigned *)(out.loads + (int64_t)out.blocks * out.num_experts);
    out.port = tl_cuda_fault(plan);
    return out;
}

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    forward_args kernel_args = forward_arguments(plan, args);
    int64_t num_experts = plan->problem.dim[ROUTER_DIM_NUM_EXPERTS];
    auto kernel = plan->problem.dtype[ROUTER_LOGITS] == TL_FP32
                      ? forward_of<float>(num_experts)
                      : forward_of<__nv_bfloat16>(num_experts);
    unsigned blocks = blocks_of(plan);
    if (kernel_args.forced) {
        check_kernel<<<CHECK_BLOCKS, THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
        TL_TRY(TL_CUDA_LAUNCHED(plan, "check_kernel"));
    }
    if (blocks > 0) {
        kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
        TL_TRY(TL_CUDA_LAUNCHED(plan, "route_kernel"));
    }
    add_kernel<<<1, ADD_THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "add_kernel");
}

/* --- router_backward ------------------------------------------------------------------------- */

struct backward_args {
    const float *probs, *weights, *dweights;
    const int *experts, *load;
    void *dlogits;
    int tokens, num_experts, top_k;
    float scale; /* of probs (load - load . probs) */
};

template <typename T, int PER_LANE>
static __global__ void __launch_bounds__(THREADS) backward_kernel(backward_args args)
{
    int lane = (int)threadIdx.x % 32, warps = (int)gridDim.x * (THREADS / 32);
    for (int token = (int)(blockIdx.x * THREADS + threadIdx.x) / 32; token < args.tokens;
         token += warps) {
        int64_t at = (int64_t)token * args.num_experts + lane;
        int64_t slot = (int64_t)token * args.top_k + lane;
        float prob[PER_LANE], load[PER_LANE], load_mean = 0;
        bool chosen = lane < args.top_k;
        int expert = chosen ? __ldg(args.experts + slot) : -1;
        float weight = chosen ? __ldg(args.weights + slot) : 0;
        float grad = chosen ? __ldg(args.dweights + slot) : 0;
#pragma unroll
        for (int i = 0; i < PER_LANE; i++) {
            bool inside = lane + 32 * i < args.num_experts;
            prob[i] = inside ? __ldg(args.probs + at + 32 * i) : 0;
            load[i] = inside ? (float)__ldg(args.load + lane + 32 * i) : 0;
            load_mean += prob[i] * load[i];
        }
        load_mean = tl_warp_sum(load_mean);
        float share = weight * (grad - tl_warp_sum(weight * grad));
#pragma unroll
        for (int i = 0; i < PER_LANE; i++)
            prob[i] *= args.scale * (load[i] - load_mean);
        for (int j = 0; j < args.top_k; j++) { /* a forced expert may come twice */
            int other = __shfl_sync(~0u, expert, j);
            float addend = __shfl_sync(~0u, share, j);
#pragma unroll
            for (int i = 0; i < PER_LANE; i++)
                prob[i] += lane + 32 * i == other ? addend : 0;
        }
#pragma unroll
        for (int i = 0; i < PER_LANE; i++)
            if (lane + 32 * i < args.num_experts)
                narrowed((T *)args.dlogits + at + 32 * i, prob[i]);
    }
}

template <typename T> static void (*backward_of(int64_t num_experts))(backward_args)
{
    if (num_experts <= 32)
        return backward_kernel<T, 1>;
    if (num_experts <= 64)
        return backward_kernel<T, 2>;
    if (num_experts <= 128)
        return backward_kernel<T, 4>;
    if (num_experts <= 256)
        return backward_kernel<T, 8>;
    return backward_kernel<T, 32>;
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    const int64_t *dim = plan->problem.dim;
    const double *param = plan->problem.param;
    int64_t num_experts = dim[ROUTER_DIM_NUM_EXPERTS];
    double tokens = (double)dim[ROUTER_DIM_TOKENS], top_k = (double)dim[ROUTER_DIM_TOP_K];
    unsigned blocks = blocks_of(plan);
    if (blocks == 0)
        return TL_OK;
    double scale = param[ROUTER_BACKWARD_PARAM_SCALE] * param[ROUTER_BACKWARD_PARAM_COEFFICIENT] *
                   (double)num_experts / (tokens * tokens * top_k);
    backward_args kernel_args = {(const float *)tensor[ROUTER_BACKWARD_PROBS].data,
                                 (const float *)tensor[ROUTER_BACKWARD_WEIGHTS].data,
                                 (const float *)tensor[ROUTER_BACKWARD_DWEIGHTS].data,
                                 (const int *)tensor[ROUTER_BACKWARD_EXPERTS].data,
                                 (const int *)tensor[ROUTER_BACKWARD_LOAD].data,
                                 tensor[ROUTER_BACKWARD_DLOGITS].data,
                                 (int)dim[ROUTER_DIM_TOKENS],
                                 (int)num_experts,
                                 (int)dim[ROUTER_DIM_TOP_K],
                                 (float)scale};
    auto kernel = plan->problem.dtype[ROUTER_BACKWARD_DLOGITS] == TL_FP32
                      ? backward_of<float>(num_experts)
                      : backward_of<__nv_bfloat16>(num_experts);
    kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(kernel_args);
    return TL_CUDA_LAUNCHED(plan, "backward_kernel");
}

static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t num_experts = problem->dim[ROUTER_DIM_NUM_EXPERTS];
    int64_t top_k = problem->dim[ROUTER_DIM_TOP_K];
    if (num_experts > MOST_EXPERTS || top_k > MOST_TOP_K)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "%s/smxx_warp: top_k %lld of %lld experts, but the most is %d of %d",
                       problem->operation->name, (long long)top_k, (long long)num_experts,
                       (int)MOST_TOP_K, (int)MOST_EXPERTS);
    return TL_OK;
}

extern "C" const struct tl_kernel tl_kernel_router_smxx_warp = {
    .operation = "router",
    .variant = "smxx_warp",
    .arch = "smxx",
    .summary = "A warp for each token; load and aux through sums of each block, in order.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .workspace = forward_workspace,
    .launch = launch_forward,
};

extern "C" const struct tl_kernel tl_kernel_router_backward_smxx_warp = {
    .operation = "router_backward",
    .variant = "smxx_warp",
    .arch = "smxx",
    .summary = "A warp for each token, load held constant.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .launch = launch_backward,
};
