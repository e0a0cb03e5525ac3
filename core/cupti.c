/* Opening libcupti and libcuda, and what CUPTI's codes mean to a user; see cupti.h. */
#include "cupti.h"

#include <string.h>

enum { MAX_GPUS = 32 };

enum tl_status tl_cupti_open(void *table, const struct tl_dynlib_symbol *symbols)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so", NULL};
    static struct tl_dynlib library;
#ifdef __SANITIZE_ADDRESS__
    /* libcupti opens libnvperf_host with RTLD_DEEPBIND, at which ASan ends the process. */
    return TL_FAIL(TL_ERR_UNSUPPORTED, "CUPTI: not under AddressSanitizer; use a plain build");
#endif
    TL_TRY(tl_dynlib_open(&library, "CUPTI", names,
                          "set CUDA_HOME to a CUDA 13 toolkit or run `make toolkit`"));
    return tl_dynlib_resolve(&library, table, symbols);
}

/* --- codes --- */

struct meaning {
    CUptiResult code;
    const char *name, *text;
};

static const struct meaning meanings[] = {
    {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "INSUFFICIENT_PRIVILEGES",
     "the driver gives counters to administrators only; run as root or with CAP_SYS_ADMIN (docker: "
     "--cap-add SYS_ADMIN and root inside), or have the administrator put `options nvidia "
     "NVreg_RestrictProfilingToAdminUsers=0` into a file of /etc/modprobe.d, rebuild the initramfs "
     "and reboot"},
    {CUPTI_ERROR_HARDWARE_BUSY, "HARDWARE_BUSY",
     "another program holds the counters; pause DCGM (`dcgmi profile --pause`, then --resume) and "
     "end other profilers of this GPU"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
     "another tool uses CUPTI in this process (nsys, ncu, cuda-gdb, a Python profiler); run "
     "without it to get counters, or without counters to use it"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "VIRTUALIZED_DEVICE_NOT_SUPPORTED",
     "this virtual GPU has no counters; use a whole GPU (passthrough)"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
     "VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
     "profiling is switched off for this virtual GPU; the host's administrator enables it with the "
     "vGPU parameter enable_profiling=1"},
    {CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
     "the GPU is in confidential-computing mode, which has no counters; switch to mode off or "
     "devtools"},
    {CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, "CMP_DEVICE_NOT_SUPPORTED",
     "mining boards (CMP) have no counters; use another GPU"},
    {CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "MIG_DEVICE_NOT_SUPPORTED",
     "this MIG slice has no counters; use a GPU with MIG off (`nvidia-smi -mig 0`)"},
    {CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, "SLI_DEVICE_NOT_SUPPORTED",
     "GPUs joined by SLI have no counters; switch SLI off"},
    {CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, "WSL_DEVICE_NOT_SUPPORTED",
     "this GPU has no counters under WSL; run on Linux itself"},
    {CUPTI_ERROR_INVALID_CHIP_NAME, "INVALID_CHIP_NAME",
     "this libcupti does not know the chip; `tilelab metrics --chip help` lists those it knows, "
     "and a newer CUDA toolkit knows newer ones"},
    {CUPTI_ERROR_INVALID_METRIC_NAME, "INVALID_METRIC_NAME",
     "unknown metric; `tilelab metrics` lists those there are"},
    {CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, "LEGACY_PROFILER_NOT_SUPPORTED",
     "another library uses CUPTI's old profiler, which this driver no longer has"},
    {CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED, "OLD_PROFILER_API_INITIALIZED",
     "another library in this process uses CUPTI's old profiler; run without it"},
    {CUPTI_ERROR_NOT_INITIALIZED, "NOT_INITIALIZED",
     "CUPTI found no driver that it can use; is the driver older than the toolkit?"},
    {CUPTI_ERROR_NOT_SUPPORTED, "NOT_SUPPORTED", "not on this GPU and driver"},
    {CUPTI_ERROR_OUT_OF_MEMORY, "OUT_OF_MEMORY", "no memory left for the profiler"},
    {CUPTI_ERROR_INVALID_OPERATION, "INVALID_OPERATION", "not in this state of the profiler"},
    {CUPTI_ERROR_INVALID_PARAMETER, "INVALID_PARAMETER", "a parameter was refused"},
    {CUPTI_ERROR_UNKNOWN, "UNKNOWN", "CUPTI gives no reason"},
};

enum tl_status tl_cupti_failed(CUptiResult code, const char *call, const char *file, int line)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        const struct meaning *m = &meanings[i];
        if (m->code != code)
            continue;
        enum tl_status status = TL_ERR_UNSUPPORTED;
        if (code == CUPTI_ERROR_OUT_OF_MEMORY)
            status = TL_ERR_MEMORY;
        else if (code == CUPTI_ERROR_INVALID_OPERATION || code == CUPTI_ERROR_INVALID_PARAMETER ||
                 code == CUPTI_ERROR_UNKNOWN)
            status = TL_ERR_DEVICE;
        return tl_error_set(status, file, line, "counters: %s (%s: CUPTI error %d %s)", m->text,
                            call, (int)code, m->name);
    }
    return tl_error_set(TL_ERR_DEVICE, file, line, "counters: %s failed with CUPTI error %d", call,
                        (int)code);
}

/* --- the context --- */

#define FUNCTIONS(X)                                                                       \
    X(cuInit)                                                                              \
    X(cuDeviceGet)                                                                         \
    X(cuDevicePrimaryCtxRetain)                                                            \
    X(cuCtxSetCurrent)                                                                     \
    X(cuCtxSynchronize)
TL_CUPTI_TABLE(FUNCTIONS);

static enum tl_status driver_failed(CUresult code, const char *call)
{
    return TL_FAIL(TL_ERR_DEVICE, "counters: %s failed with CUDA error %d", call, (int)code);
}

static enum tl_status open_driver(void)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    static struct tl_dynlib library;
    if (api.cuInit)
        return TL_OK;
    TL_TRY(tl_dynlib_open(&library, "the NVIDIA driver", names, "install the NVIDIA driver"));
    TL_TRY(tl_dynlib_resolve(&library, &api, api_symbols));
    CUresult code = api.cuInit(0);
    return code == CUDA_SUCCESS ? TL_OK : driver_failed(code, "cuInit");
}

enum tl_status tl_cupti_context(const struct tl_device *device, CUcontext *out)
{
    static CUcontext contexts[MAX_GPUS]; /* retained once each: devices live as long as we do */
    if (strcmp(device->api->name, "cuda") != 0 || device->index >= MAX_GPUS)
        return TL_FAIL(TL_ERR_UNSUPPORTED,
                       "counters: device %s has none that tilelab reads; use a CUDA device",
                       device->name);
    TL_TRY(open_driver());
    CUcontext *context = &contexts[device->index];
    CUresult code = CUDA_SUCCESS;
    if (!*context) {
        CUdevice handle;
        code = api.cuDeviceGet(&handle, device->index);
        if (code == CUDA_SUCCESS)
            code = api.cuDevicePrimaryCtxRetain(context, handle);
        if (code != CUDA_SUCCESS)
            return driver_failed(code, "cuDevicePrimaryCtxRetain");
    }
    code = api.cuCtxSetCurrent(*context);
    if (code != CUDA_SUCCESS)
        return driver_failed(code, "cuCtxSetCurrent");
    *out = *context;
    return TL_OK;
}

enum tl_status tl_cupti_synchronize(void)
{
    TL_TRY(open_driver());
    CUresult code = api.cuCtxSynchronize();
    if (code != CUDA_SUCCESS)
        return TL_FAIL(TL_ERR_DEVICE, "the profiled region failed with CUDA error %d", (int)code);
    return TL_OK;
}
