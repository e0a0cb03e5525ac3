/* Programmatic dependent launch: a kernel that may start while the one before it on the stream
 * still runs, so that its launch and its first steps cost no time. The one before says when, with
 * cudaTriggerProgrammaticLaunchCompletion; this one calls cudaGridDependencySynchronize before it
 * reads or writes what others might, which waits until the one before is complete.
 */
#ifndef TL_DEVICE_EARLY_CUH
#define TL_DEVICE_EARLY_CUH

#include <cuda_runtime.h>

template <typename... Params, typename... Args>
static cudaError_t tl_cuda_launch_early(void (*kernel)(Params...), unsigned blocks,
                                        unsigned threads, size_t shared_bytes, cudaStream_t stream,
                                        Args... args)
{
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, kernel, args...);
}

#endif
