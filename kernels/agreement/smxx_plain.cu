/* agreement/smxx_plain: PARTS blocks a group, then one block a group over their findings. */
#include <cuda_runtime.h>

#include "kernels/agreement/judge.h"
#include "kernels/agreement/op.h"
#include "kernels/device/element.cuh"
#include "kernels/device/launch.h"

enum { THREADS = 256, PARTS = 128 };

struct agreement_inputs {
    const void *value;
    enum tl_dtype dtype;
    const double *reference, *magnitude;
    const int *offsets;
    int64_t m, n;
    double relative, scaled;
};

/* Merges what the block's threads found; the result is thread 0's. */
template <int COUNT> static __device__ struct agreement merge_block(struct agreement mine)
{
    __shared__ struct agreement found[COUNT];
    found[threadIdx.x] = mine;
    for (int half = COUNT / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            agreement_merge(&found[threadIdx.x], found[threadIdx.x + half]);
    }
    return found[0];
}

/* Block g * PARTS + part takes every PARTS-th run of THREADS elements of group g. */
static __global__ void __launch_bounds__(THREADS)
    judge_kernel(const __grid_constant__ agreement_inputs p, struct agreement *parts)
{
    int64_t group = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
    int64_t begin = max((int64_t)p.offsets[group], (int64_t)0) * p.n;
    int64_t end = min((int64_t)p.offsets[group + 1], p.m) * p.n;
    struct agreement mine = agreement_none();
    for (int64_t i = begin + part * THREADS + threadIdx.x; i < end; i += PARTS * THREADS) {
        double bound = p.relative * fabs(p.reference[i]) + p.scaled * p.magnitude[i];
        agreement_merge(
            &mine, agreement_of(tl_element_load(p.value, p.dtype, i), p.reference[i], bound, i));
    }
    mine = merge_block<THREADS>(mine);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = mine;
}

static __global__ void __launch_bounds__(PARTS)
    merge_kernel(const struct agreement *parts, int64_t n, double *worst, int *row, int *column,
                 double *violations)
{
    struct agreement all = merge_block<PARTS>(parts[(int64_t)blockIdx.x * PARTS + threadIdx.x]);
    if (threadIdx.x != 0)
        return;
    worst[blockIdx.x] = all.worst;
    row[blockIdx.x] = all.at < 0 ? -1 : (int)(all.at / n);
    column[blockIdx.x] = all.at < 0 ? -1 : (int)(all.at % n);
    violations[blockIdx.x] = (double)all.violations;
}

static size_t workspace(const struct tl_plan *plan)
{
    return (size_t)plan->problem.dim[TL_AGREEMENT_NUM_GROUPS] * PARTS * sizeof(struct agreement);
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const struct tl_tensor *tensor = args->tensor;
    const int64_t *dim = plan->problem.dim;
    unsigned groups = (unsigned)dim[TL_AGREEMENT_NUM_GROUPS];
    if (groups == 0)
        return TL_OK;
    agreement_inputs p = {tensor[TL_AGREEMENT_VALUE].data,
                          tensor[TL_AGREEMENT_VALUE].dtype,
                          (const double *)tensor[TL_AGREEMENT_REFERENCE].data,
                          (const double *)tensor[TL_AGREEMENT_MAGNITUDE].data,
                          (const int *)tensor[TL_AGREEMENT_OFFSETS].data,
                          dim[TL_AGREEMENT_M],
                          dim[TL_AGREEMENT_N],
                          plan->problem.param[TL_AGREEMENT_RELATIVE],
                          plan->problem.param[TL_AGREEMENT_SCALED]};
    struct agreement *parts = (struct agreement *)args->workspace;
    judge_kernel<<<groups * PARTS, THREADS, 0, tl_cuda_stream(stream)>>>(p, parts);
    TL_TRY(TL_CUDA_LAUNCHED(plan, "judge_kernel"));
    merge_kernel<<<groups, PARTS, 0, tl_cuda_stream(stream)>>>(
        parts, p.n, (double *)tensor[TL_AGREEMENT_WORST].data,
        (int *)tensor[TL_AGREEMENT_WORST_ROW].data, (int *)tensor[TL_AGREEMENT_WORST_COLUMN].data,
        (double *)tensor[TL_AGREEMENT_VIOLATIONS].data);
    return TL_CUDA_LAUNCHED(plan, "merge_kernel");
}

extern "C" const struct tl_kernel tl_kernel_agreement_smxx_plain = {
    .operation = "agreement",
    .variant = "smxx_plain",
    .arch = "smxx",
    .summary = "One pass over the elements, 128 blocks a group, then one over the blocks.",
    .workspace = workspace,
    .launch = launch,
};
