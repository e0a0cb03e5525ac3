/* What every launcher of a CUDA kernel does: take the native stream, and report how it went.
 *
 *   my_kernel<<<grid, block, bytes, tl_cuda_stream(stream)>>>(...);
 *   return TL_CUDA_LAUNCHED(plan, "my_kernel");
 *
 * Plain C and CUDA C++.
 */
#ifndef TL_DEVICE_LAUNCH_H
#define TL_DEVICE_LAUNCH_H

#include <cuda_runtime_api.h>

#include "core/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline cudaStream_t tl_cuda_stream(const struct tl_stream *stream)
{
    return (cudaStream_t)stream->native;
}

/* Where the plan's kernel leaves what it refuses (core/fault.h, fault.cuh): a kernel parameter. */
static inline struct tl_fault_port tl_cuda_fault(const struct tl_plan *plan)
{
    struct tl_fault_port port = {plan->device->fault, plan->kernel};
    return port;
}

/* TL_OK, or the error with operation, variant, dimensions and `what`: the kernel's name or the
 * runtime call. */
enum tl_status tl_cuda_status(const struct tl_plan *plan, const char *what, int error,
                              const char *file, int line);

/* Of a runtime call: TL_TRY(TL_CUDA_STATUS(plan, "memset of the flags", cudaMemsetAsync(...))). */
#define TL_CUDA_STATUS(plan, what, error) \
    tl_cuda_status((plan), (what), (int)(error), __FILE__, __LINE__)

/* Of the launch just before it. */
#define TL_CUDA_LAUNCHED(plan, kernel) TL_CUDA_STATUS(plan, kernel, cudaGetLastError())

#ifdef __cplusplus
}
#endif
#endif
