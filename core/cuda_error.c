/* See cuda_error.h. */
#if TL_CUDA
#include "cuda_error.h"
#include "kernel.h"

#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdio.h>

/* Errors after which the process cannot use the GPU any more. */
static bool is_fault(int error)
{
    return error == cudaErrorIllegalAddress || error == cudaErrorLaunchFailure ||
           error == cudaErrorHardwareStackError || error == cudaErrorIllegalInstruction ||
           error == cudaErrorMisalignedAddress || error == cudaErrorInvalidAddressSpace ||
           error == cudaErrorInvalidPc || error == cudaErrorAssert ||
           error == cudaErrorLaunchTimeout || error == cudaErrorECCUncorrectable;
}

static enum tl_status status_of(int error)
{
    switch (error) {
    case cudaErrorMemoryAllocation: return TL_ERR_MEMORY;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorNotSupported: return TL_ERR_UNSUPPORTED;
    default: return TL_ERR_DEVICE;
    }
}

static const char *fixed_remedy(int error)
{
    switch (error) {
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice:
        return "this build holds machine code for sm_90a only; use --device cpu on another GPU";
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorSystemDriverMismatch: return "update the NVIDIA driver to 580 or later";
    case cudaErrorDevicesUnavailable:
        return "another process has the GPU to itself, or its compute mode forbids use; see "
               "nvidia-smi";
    case cudaErrorSystemNotReady: return "the NVSwitch fabric manager is not running";
    case cudaErrorLaunchOutOfResources:
        return "the kernel asks for more registers or shared memory than a block may have";
    case cudaErrorInvalidConfiguration:
        return "its grid, block, cluster or shared memory is beyond what the GPU allows";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
        return "a graph takes only work on its own stream: launches, fills and copies within the "
               "device";
    default: return "";
    }
}

static void remedy(int error, const struct tl_device *device, char *out, size_t size)
{
    size_t available, total;
    char plan[256] = "";
    snprintf(out, size, "%s", fixed_remedy(error));
    if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice)
        snprintf(out, size, "%s", tl_cuda_absent());
    if (error == cudaErrorMemoryAllocation && cudaMemGetInfo(&available, &total) == cudaSuccess)
        snprintf(out, size, "%zu of %zu bytes are free", available, total);
    if (is_fault(error)) {
        if (device && device->last_kernel)
            tl_kernel_describe(device->last_kernel, device->last_dim, plan, sizeof plan);
        snprintf(out, size,
                 "a kernel failed%s%s; this process cannot use the GPU any more. With "
                 "CUDA_LAUNCH_BLOCKING=1 the failing launch itself is reported; compute-sanitizer "
                 "shows where in the kernel",
                 plan[0] ? "; launched last: " : "", plan);
    }
}

enum tl_status tl_cuda_error_set(int error, const struct tl_device *device, const char *file,
                                 int line, const char *fmt, ...)
{
    char what[384], help[640];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    cudaGetLastError();
    remedy(error, device, help, sizeof help);
    cudaGetLastError(); /* of cudaMemGetInfo */
    return tl_error_set(status_of(error), file, line, "%s%s%s: %s (%s)%s%s",
                        device ? device->name : "", device ? ": " : "", what,
                        cudaGetErrorName((cudaError_t)error),
                        cudaGetErrorString((cudaError_t)error), help[0] ? "; " : "", help);
}

const char *tl_cuda_absent(void)
{
    static char text[256];
    int count = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    cudaGetLastError();
    text[0] = 0;
    if (error == cudaSuccess && count > 0)
        return text;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        snprintf(text, sizeof text,
                 "this machine has no NVIDIA driver (libcuda.so.1); install one of version 580 or "
                 "later, or use --device cpu");
    else if (error == cudaErrorInsufficientDriver)
        snprintf(text, sizeof text,
                 "its NVIDIA driver supports CUDA %d.%d, and this build needs %d.%d; update the "
                 "driver to version 580 or later, or use --device cpu",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                 CUDART_VERSION % 1000 / 10);
    else if (error == cudaErrorNoDevice || error == cudaSuccess)
        snprintf(text, sizeof text,
                 "the NVIDIA driver shows no GPU; see nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
                 "--device cpu");
    else
        snprintf(text, sizeof text, "the NVIDIA driver does not start: %s (%s); see nvidia-smi",
                 cudaGetErrorName(error), cudaGetErrorString(error));
    cudaGetLastError();
    return text;
}
#endif
