/* See launch.h. */
#if TL_CUDA
#include "launch.h"

#include "core/cuda_error.h"

enum tl_status tl_cuda_status(const struct tl_plan *plan, const char *what, int error,
                              const char *file, int line)
{
    char text[256];
    if (error == cudaSuccess)
        return TL_OK;
    tl_kernel_describe(plan->kernel, plan->problem.dim, text, sizeof text);
    return tl_cuda_error_set(error, plan->device, file, line, "%s: %s", text, what);
}
#endif
