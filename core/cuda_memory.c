/* Memory of a GPU: a stream-ordered pool that keeps what it got, and copies from and to the host.
 *
 * Ordinary host memory is not addressable by the copy engine. Small copies leave staging to the
 * driver; large ones go chunk by chunk through two pinned buffers, so that the processor fills one
 * while the engine moves the other. Every copy from or to the host has completed on return.
 */
#if TL_CUDA
#include "cuda.h"
#include "cuda_random.h"
#include "log.h"

#include <stdlib.h>
#include <string.h>

/* More than the GPU has is refused at once: for absurd sizes the runtime gives other errors. */
static cudaError_t take(struct tl_device *device, size_t bytes, void **out)
{
    *out = NULL;
    if (bytes > device->memory_bytes)
        return cudaErrorMemoryAllocation;
    cudaError_t error = cudaMallocFromPoolAsync(out, bytes ? bytes : 1, tl_cuda_of(device)->pool,
                                                tl_cuda_native(device->default_stream));
    if (error != cudaSuccess)
        *out = NULL;
    return error;
}

enum tl_status tl_cuda_alloc(struct tl_device *device, size_t bytes, void **out)
{
    *out = NULL;
    TL_TRY(tl_cuda_use(device));
    TL_TRY(tl_cuda_not_captured(device->default_stream, "an allocation"));
    cudaError_t error = take(device, bytes, out);
    if (error == cudaErrorMemoryAllocation) {
        /* Frees may still wait in streams, and what the pool keeps may lie in pieces. */
        cudaGetLastError();
        TL_TRY(tl_cuda_order_after_all(device));
        TL_TRY(tl_cuda_stream_sync(device->default_stream));
        cudaMemPoolTrimTo(tl_cuda_of(device)->pool, 0);
        error = take(device, bytes, out);
    }
    if (error != cudaSuccess)
        return TL_CUDA_FAIL(error, device, "cannot allocate %zu bytes", bytes);
    return tl_cuda_order_before_all(device);
}

/* Remembers memory that was dropped during a capture. */
static void defer(struct tl_cuda *cuda, void *memory)
{
    if (cuda->num_deferred == cuda->max_deferred) {
        size_t larger = cuda->max_deferred ? 2 * cuda->max_deferred : 64;
        void **grown = realloc(cuda->deferred, larger * sizeof *grown);
        if (!grown) {
            tl_log(TL_LOG_WARN, "no host memory to note a free; device memory is lost");
            return;
        }
        cuda->deferred = grown;
        cuda->max_deferred = larger;
    }
    cuda->deferred[cuda->num_deferred++] = memory;
}

void tl_cuda_free(struct tl_device *device, void *memory)
{
    struct tl_cuda *cuda = tl_cuda_of(device);
    if (!memory)
        return;
    if (cuda->capturing) {
        defer(cuda, memory);
        return;
    }
    if (tl_cuda_use(device) != TL_OK || tl_cuda_order_after_all(device) != TL_OK)
        return; /* the device is lost, and its memory with it */
    cudaError_t error = cudaFreeAsync(memory, tl_cuda_native(device->default_stream));
    cudaGetLastError();
    /* A fault was reported where it was met; at the process's end the runtime may be gone. */
    if (error != cudaSuccess)
        tl_log(TL_LOG_DEBUG, "%s: cudaFreeAsync: %s", device->name, cudaGetErrorName(error));
}

void tl_cuda_free_deferred(struct tl_device *device)
{
    struct tl_cuda *cuda = tl_cuda_of(device);
    while (cuda->num_deferred > 0)
        tl_cuda_free(device, cuda->deferred[--cuda->num_deferred]);
    free(cuda->deferred);
    cuda->deferred = NULL;
    cuda->max_deferred = 0;
}

/* Settles the stream of a memory function and, on the default one, its order with the others. */
static enum tl_status begin(struct tl_stream *given, const void *memory, struct tl_stream **out)
{
    TL_TRY(tl_cuda_stream_for(given, memory, out));
    TL_TRY(tl_cuda_use((*out)->device));
    return given ? TL_OK : tl_cuda_order_after_all((*out)->device);
}

static enum tl_status staging_open(struct tl_device *device)
{
    struct tl_cuda *cuda = tl_cuda_of(device);
    for (int i = 0; i < 2; i++) {
        if (!cuda->staging[i])
            TL_CUDA_TRY(cudaHostAlloc(&cuda->staging[i], TL_CUDA_CHUNK, cudaHostAllocDefault),
                        device, "%zu bytes of pinned host memory for copies", TL_CUDA_CHUNK);
        if (!cuda->staged[i])
            TL_CUDA_TRY(cudaEventCreateWithFlags(&cuda->staged[i], cudaEventDisableTiming), device,
                        "an event for copies");
    }
    return TL_OK;
}

static size_t chunk_bytes(size_t bytes, size_t offset)
{
    return bytes - offset < TL_CUDA_CHUNK ? bytes - offset : TL_CUDA_CHUNK;
}

static enum tl_status stage_in(char *dst, const char *host, size_t bytes, struct tl_stream *stream)
{
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    TL_TRY(staging_open(device));
    int turn = 0;
    for (size_t offset = 0; offset < bytes; offset += TL_CUDA_CHUNK, turn ^= 1) {
        size_t chunk = chunk_bytes(bytes, offset);
        /* The buffer's last use, two chunks ago. */
        TL_CUDA_TRY(cudaEventSynchronize(cuda->staged[turn]), device,
                    "copy of %zu bytes to %p, waiting at byte %zu", bytes, (void *)dst, offset);
        memcpy(cuda->staging[turn], host + offset, chunk);
        TL_CUDA_TRY(cudaMemcpyAsync(dst + offset, cuda->staging[turn], chunk,
                                    cudaMemcpyHostToDevice, tl_cuda_native(stream)),
                    device, "copy of %zu bytes to %p, at byte %zu", bytes, (void *)dst, offset);
        TL_CUDA_TRY(cudaEventRecord(cuda->staged[turn], tl_cuda_native(stream)), device,
                    "copy of %zu bytes to %p, at byte %zu", bytes, (void *)dst, offset);
    }
    return TL_OK;
}

/* Starts one chunk on its way to its pinned buffer. */
static enum tl_status fetch(const char *src, size_t bytes, size_t offset, int turn,
                            struct tl_stream *stream)
{
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    TL_CUDA_TRY(cudaMemcpyAsync(cuda->staging[turn], src + offset, chunk_bytes(bytes, offset),
                                cudaMemcpyDeviceToHost, tl_cuda_native(stream)),
                device, "copy of %zu bytes from %p, at byte %zu", bytes, (const void *)src, offset);
    TL_CUDA_TRY(cudaEventRecord(cuda->staged[turn], tl_cuda_native(stream)), device,
                "copy of %zu bytes from %p, at byte %zu", bytes, (const void *)src, offset);
    return TL_OK;
}

static enum tl_status stage_out(char *host, const char *src, size_t bytes,
                                struct tl_stream *stream)
{
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    TL_TRY(staging_open(device));
    TL_TRY(fetch(src, bytes, 0, 0, stream));
    int turn = 0;
    for (size_t offset = 0; offset < bytes; offset += TL_CUDA_CHUNK, turn ^= 1) {
        if (bytes - offset > TL_CUDA_CHUNK)
            TL_TRY(fetch(src, bytes, offset + TL_CUDA_CHUNK, turn ^ 1, stream));
        TL_CUDA_TRY(cudaEventSynchronize(cuda->staged[turn]), device,
                    "copy of %zu bytes from %p, waiting at byte %zu", bytes, (const void *)src,
                    offset);
        memcpy(host + offset, cuda->staging[turn], chunk_bytes(bytes, offset));
    }
    return TL_OK;
}

enum tl_status tl_cuda_copy_in(void *dst, const void *host, size_t bytes, struct tl_stream *stream)
{
    if (bytes == 0)
        return TL_OK;
    TL_TRY(begin(stream, dst, &stream));
    TL_TRY(tl_cuda_not_captured(stream, "a copy from the host"));
    if (bytes > TL_CUDA_SMALL)
        TL_TRY(stage_in(dst, host, bytes, stream));
    else
        TL_CUDA_TRY(cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice,
                                    tl_cuda_native(stream)),
                    stream->device, "copy of %zu bytes from the host to %p", bytes, dst);
    TL_CUDA_TRY(cudaStreamSynchronize(tl_cuda_native(stream)), stream->device,
                "copy of %zu bytes from the host to %p", bytes, dst);
    return TL_OK;
}

enum tl_status tl_cuda_copy_out(void *host, const void *src, size_t bytes,
                                struct tl_stream *stream)
{
    if (bytes == 0)
        return TL_OK;
    TL_TRY(begin(stream, src, &stream));
    TL_TRY(tl_cuda_not_captured(stream, "a copy to the host"));
    if (bytes > TL_CUDA_SMALL)
        TL_TRY(stage_out(host, src, bytes, stream));
    else
        TL_CUDA_TRY(cudaMemcpyAsync(host, src, bytes, cudaMemcpyDeviceToHost,
                                    tl_cuda_native(stream)),
                    stream->device, "copy of %zu bytes from %p to the host", bytes, src);
    TL_CUDA_TRY(cudaStreamSynchronize(tl_cuda_native(stream)), stream->device,
                "copy of %zu bytes from %p to the host", bytes, src);
    return tl_fault_check(stream->device);
}

enum tl_status tl_cuda_copy(void *dst, const void *src, size_t bytes, struct tl_stream *stream)
{
    struct tl_stream *given = stream;
    if (bytes == 0)
        return TL_OK;
    TL_TRY(begin(given, dst, &stream));
    TL_CUDA_TRY(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, tl_cuda_native(stream)),
                stream->device, "copy of %zu bytes from %p to %p", bytes, src, dst);
    return given ? TL_OK : tl_cuda_order_before_all(stream->device);
}

enum tl_status tl_cuda_fill(void *dst, uint8_t byte, size_t bytes, struct tl_stream *stream)
{
    struct tl_stream *given = stream;
    if (bytes == 0)
        return TL_OK;
    TL_TRY(begin(given, dst, &stream));
    TL_CUDA_TRY(cudaMemsetAsync(dst, byte, bytes, tl_cuda_native(stream)), stream->device,
                "fill of %zu bytes at %p with %u", bytes, dst, byte);
    return given ? TL_OK : tl_cuda_order_before_all(stream->device);
}

enum tl_status tl_cuda_normal(void *dst, enum tl_dtype dtype, int64_t count,
                              const struct tl_normal *normal, struct tl_stream *stream)
{
    struct tl_stream *given = stream;
    if (count == 0)
        return TL_OK;
    TL_TRY(begin(given, dst, &stream));
    TL_CUDA_TRY(tl_cuda_random_normal(dst, dtype, count, normal, stream->device->multiprocessors,
                                      tl_cuda_native(stream)),
                stream->device, "%lld normal numbers at %p", (long long)count, dst);
    return given ? TL_OK : tl_cuda_order_before_all(stream->device);
}

enum tl_status tl_cuda_memory(struct tl_device *device, struct tl_memory *out)
{
    uint64_t used = 0, reserved = 0;
    memset(out, 0, sizeof *out);
    TL_TRY(tl_cuda_use(device));
    TL_CUDA_TRY(cudaMemGetInfo(&out->free_bytes, &out->total_bytes), device, "cudaMemGetInfo");
    cudaMemPool_t pool = tl_cuda_of(device)->pool;
    TL_CUDA_TRY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), device,
                "the pool's bytes in use");
    TL_CUDA_TRY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), device,
                "the pool's reserved bytes");
    out->used_bytes = (size_t)used;
    out->reserved_bytes = (size_t)reserved;
    return TL_OK;
}
#endif
