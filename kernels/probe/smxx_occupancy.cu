/* probe_occupancy: blocks that only stay where they are; see op.h. */
#include <cuda_runtime.h>

#include "kernels/device/launch.h"
#include "kernels/probe/op.h"

/* Each thread holds HELD words across the wait: loaded before it, needed after it. */
template <int HELD>
static __global__ void __launch_bounds__(1024, 1) stay_kernel(int *dst, int cycles)
{
    int64_t start = clock64();
    int held[HELD], sum = 0;
#pragma unroll
    for (int i = 0; i < HELD; i++)
        asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(held[i]) : "l"(dst + blockIdx.x));
    while (clock64() - start < cycles)
        ;
#pragma unroll
    for (int i = 0; i < HELD; i++)
        sum = sum * 31 + held[i];
    int stayed = (int)(clock64() - start);
    if (threadIdx.x == 0)
        dst[blockIdx.x] = sum == 0x5bd1e995 ? -1 : stayed; /* the sum is as good as never that */
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const double *param = plan->problem.param;
    unsigned blocks = (unsigned)plan->problem.dim[TL_PROBE_OCCUPANCY_BLOCKS];
    int shared_bytes = (int)param[TL_PROBE_OCCUPANCY_SHARED];
    bool many = (int)param[TL_PROBE_OCCUPANCY_REGISTERS] == TL_PROBE_MANY_REGISTERS;
    void (*kernel)(int *, int) = many ? stay_kernel<48> : stay_kernel<1>;
    if (blocks == 0)
        return TL_OK;
    TL_TRY(TL_CUDA_STATUS(
        plan, "shared memory of stay_kernel",
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes)));
    kernel<<<blocks, (unsigned)param[TL_PROBE_OCCUPANCY_THREADS], (size_t)shared_bytes,
             tl_cuda_stream(stream)>>>((int *)args->tensor[TL_PROBE_OCCUPANCY_DST].data,
                                       (int)param[TL_PROBE_OCCUPANCY_CYCLES]);
    return TL_CUDA_LAUNCHED(plan, "stay_kernel");
}

extern "C" const struct tl_kernel tl_kernel_probe_occupancy_smxx_stay = {
    .operation = "probe_occupancy",
    .variant = "smxx_stay",
    .arch = "smxx",
    .summary = "Waits on the SM's clock; registers and shared memory are held, not used.",
    .launch = launch,
};
