/* NVIDIA GPUs as devices. Only the static CUDA runtime is linked, and it looks for the driver
 * itself, so that a program with this back end starts on a machine that has none. */
#if TL_CUDA
#include "cuda.h"
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GPUS = 32 };

static struct tl_device *opened[MAX_GPUS];
static int num_opened;

static int cuda_count(void)
{
    static int count = -1; /* the GPUs a process sees do not change */
    if (count < 0) {
        if (cudaGetDeviceCount(&count) != cudaSuccess || count < 0)
            count = 0;
        cudaGetLastError();
    }
    return count;
}

enum tl_status tl_cuda_use(struct tl_device *device)
{
    static _Thread_local int current = -1;
    if (current == device->index)
        return TL_OK;
    TL_CUDA_TRY(cudaSetDevice(device->index), device, "its selection");
    current = device->index;
    return TL_OK;
}

enum tl_status tl_cuda_stream_for(struct tl_stream *stream, const void *memory,
                                  struct tl_stream **out)
{
    struct cudaPointerAttributes attributes;
    *out = stream;
    if (stream)
        return TL_OK;
    if (num_opened == 1) {
        *out = opened[0]->default_stream;
        return TL_OK;
    }
    TL_CUDA_TRY(cudaPointerGetAttributes(&attributes, memory), NULL, "looking up address %p",
                memory);
    for (int i = 0; i < num_opened; i++) {
        if (opened[i]->index == attributes.device && attributes.type == cudaMemoryTypeDevice) {
            *out = opened[i]->default_stream;
            return TL_OK;
        }
    }
    return TL_FAIL(TL_ERR_ARGUMENT, "address %p is on none of the %d open GPUs", memory,
                   num_opened);
}

static void cuda_close(struct tl_device *device)
{
    struct tl_cuda *cuda = tl_cuda_of(device);
    if (!cuda)
        return;
    tl_cuda_use(device);
    if (device->default_stream)
        cudaStreamSynchronize(tl_cuda_native(device->default_stream));
    for (int i = 0; i < 2; i++) {
        if (cuda->staging[i])
            cudaFreeHost(cuda->staging[i]);
        if (cuda->staged[i])
            cudaEventDestroy(cuda->staged[i]);
    }
    cudaFree(cuda->flush);
    cudaFree(cuda->notes);
    if (device->fault) {
        cudaFree(device->fault->claim);
        cudaFreeHost(device->fault);
    }
    if (cuda->order)
        cudaEventDestroy(cuda->order);
    tl_cuda_stream_free(device->default_stream);
    cudaGetLastError();
    device->default_stream = NULL;
    device->fault = NULL;
    device->state = NULL;
    free(cuda->deferred);
    free(cuda);
    for (int i = 0; i < num_opened; i++)
        if (opened[i] == device)
            opened[i] = opened[--num_opened];
}

/* The pool keeps what it got, so that a sweep allocates from the driver once. */
static enum tl_status open_pool(struct tl_device *device, const struct cudaDeviceProp *properties)
{
    struct tl_cuda *cuda = tl_cuda_of(device);
    uint64_t all = UINT64_MAX;
    if (!properties->memoryPoolsSupported)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "%s (%s) has no memory pools; use --device cpu",
                       device->name, device->model);
    TL_CUDA_TRY(cudaDeviceGetDefaultMemPool(&cuda->pool, device->index), device,
                "its memory pool");
    TL_CUDA_TRY(cudaMemPoolSetAttribute(cuda->pool, cudaMemPoolAttrReleaseThreshold, &all), device,
                "its memory pool");
    return TL_OK;
}

/* Host memory from cudaHostAlloc has the same address on the device, as on every 64-bit system
 * (CUDA Programming Guide, "Unified Virtual Address Space"). */
static enum tl_status open_fault(struct tl_device *device)
{
    void *memory;
    TL_CUDA_TRY(cudaHostAlloc(&memory, sizeof *device->fault, cudaHostAllocMapped), device,
                "pinned host memory for faults of kernels");
    device->fault = memset(memory, 0, sizeof *device->fault);
    TL_CUDA_TRY(cudaMalloc(&memory, sizeof *device->fault->claim), device,
                "memory for faults of kernels");
    device->fault->claim = memory;
    TL_CUDA_TRY(cudaMemcpy(memory, &device->fault->left, sizeof *device->fault->claim,
                           cudaMemcpyHostToDevice), /* no memset: that would return too early */
                device, "memory for faults of kernels");
    return TL_OK;
}

static enum tl_status cuda_open(struct tl_device *device)
{
    struct cudaDeviceProp properties;
    enum tl_status status;
    snprintf(device->name, sizeof device->name, "cuda:%d", device->index);
    if (num_opened == MAX_GPUS)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "%s: %d GPUs are open already", device->name, MAX_GPUS);
    TL_CUDA_TRY(cudaGetDeviceProperties(&properties, device->index), device, "its properties");
    struct tl_cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return TL_FAIL(TL_ERR_MEMORY, "%s: no host memory for a device", device->name);
    device->state = cuda;
    snprintf(device->model, sizeof device->model, "%.127s", properties.name);
    device->arch = properties.major * 10 + properties.minor;
    device->multiprocessors = properties.multiProcessorCount;
    device->memory_bytes = properties.totalGlobalMem;
    cuda->l2_bytes = (size_t)properties.l2CacheSize;
    TL_GO(out, tl_cuda_use(device));
    TL_CUDA_GO(out, cudaFree(NULL), device, "its context"); /* made by the first such call */
    TL_GO(out, open_pool(device, &properties));
    TL_GO(out, open_fault(device));
    TL_CUDA_GO(out, cudaEventCreateWithFlags(&cuda->order, cudaEventDisableTiming), device,
               "an event");
    TL_CUDA_GO(out, cudaDeviceGetPCIBusId(cuda->pci, sizeof cuda->pci, device->index), device,
               "its PCI address");
    TL_GO(out, tl_cuda_stream_new(device, &device->default_stream));
    opened[num_opened++] = device;
    return TL_OK;
out:
    cuda_close(device);
    return status;
}

static enum tl_status cuda_state(struct tl_device *device, struct tl_device_state *out)
{
    return tl_nvml_state(tl_cuda_of(device)->pci, out);
}

static int cuda_details(struct tl_device *device, struct tl_device_detail *out, int capacity)
{
    const struct tl_cuda *cuda = tl_cuda_of(device);
    int driver = 0, runtime = 0, count = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    const struct {
        const char *key;
        int major, minor;
    } versions[] = {{"cuda_driver", driver / 1000, driver % 1000 / 10},
                    {"cuda_runtime", runtime / 1000, runtime % 1000 / 10},
                    {"gpu_arch", device->arch / 10, device->arch % 10}};
    for (int i = 0; i < 3 && count < capacity; i++, count++) {
        snprintf(out[count].key, sizeof out->key, "%s", versions[i].key);
        snprintf(out[count].value, sizeof out->value, "%d.%d", versions[i].major,
                 versions[i].minor);
    }
    if (count < capacity) {
        snprintf(out[count].key, sizeof out->key, "gpu_l2_bytes");
        snprintf(out[count++].value, sizeof out->value, "%zu", cuda->l2_bytes);
    }
    if (count < capacity) {
        snprintf(out[count].key, sizeof out->key, "gpu_pci");
        snprintf(out[count++].value, sizeof out->value, "%s", cuda->pci);
    }
    int more = 0;
    tl_nvml_details(cuda->pci, out + count, capacity - count, &more); /* where there is NVML */
    return count + more;
}

const struct tl_device_api tl_device_cuda_api = {
    .name = "cuda",
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = tl_cuda_alloc,
    .free = tl_cuda_free,
    .copy_in = tl_cuda_copy_in,
    .copy_out = tl_cuda_copy_out,
    .copy = tl_cuda_copy,
    .fill = tl_cuda_fill,
    .stream_new = tl_cuda_stream_new,
    .stream_free = tl_cuda_stream_free,
    .stream_sync = tl_cuda_stream_sync,
    .event_new = tl_cuda_event_new,
    .event_free = tl_cuda_event_free,
    .event_record = tl_cuda_event_record,
    .event_elapsed_us = tl_cuda_event_elapsed_us,
    .absent = tl_cuda_absent,
    .use = tl_cuda_use,
    .normal = tl_cuda_normal,
    .capture_begin = tl_cuda_capture_begin,
    .capture_end = tl_cuda_capture_end,
    .graph_launch = tl_cuda_graph_launch,
    .graph_free = tl_cuda_graph_free,
    .flush_l2 = tl_cuda_flush_l2,
    .flush_l2_clean = tl_cuda_flush_l2_clean,
    .clock_mark = tl_cuda_clock_mark,
    .clock_mhz = tl_cuda_clock_mhz,
    .memory = tl_cuda_memory,
    .state = cuda_state,
    .details = cuda_details,
};
#endif
