/* L2 flush and SM clock of a GPU. What they need is allocated by their first call, so make that
 * call before anything is timed. */
#if TL_CUDA
#include "cuda.h"
#include "cuda_probe.h"

#include <string.h>

enum { FLUSH_BYTE = 0x5a, FLUSH_TIMES = 4 };
#define FLUSH_LEAST ((size_t)256 << 20)

/* Several times the L2, because its replacement is not strictly by age. Outside of the pool, whose
 * bytes in use are those of tensors. */
static enum tl_status flush_open(struct tl_stream *stream)
{
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    TL_TRY(tl_cuda_use(device));
    if (cuda->flush)
        return TL_OK;
    TL_TRY(tl_cuda_not_captured(stream, "the first flush of the L2 cache"));
    size_t bytes = cuda->l2_bytes * FLUSH_TIMES;
    bytes = bytes < FLUSH_LEAST ? FLUSH_LEAST : (bytes + 15) & ~(size_t)15;
    void *memory;
    TL_CUDA_TRY(cudaMalloc(&memory, bytes), device, "%zu bytes to flush the L2 cache with", bytes);
    cudaError_t error = cudaMemset(memory, FLUSH_BYTE, bytes);
    if (error != cudaSuccess) {
        cudaFree(memory);
        return TL_CUDA_FAIL(error, device, "fill of %zu bytes to flush the L2 cache with", bytes);
    }
    cuda->flush = memory;
    cuda->flush_bytes = bytes;
    return TL_OK;
}

enum tl_status tl_cuda_flush_l2(struct tl_stream *stream)
{
    TL_TRY(flush_open(stream));
    struct tl_cuda *cuda = tl_cuda_of(stream->device);
    TL_CUDA_TRY(cudaMemsetAsync(cuda->flush, FLUSH_BYTE, cuda->flush_bytes,
                                tl_cuda_native(stream)),
                stream->device, "flush of the L2 cache by writing %zu bytes", cuda->flush_bytes);
    return TL_OK;
}

enum tl_status tl_cuda_flush_l2_clean(struct tl_stream *stream)
{
    TL_TRY(flush_open(stream));
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    TL_CUDA_TRY(tl_cuda_probe_read(cuda->flush, cuda->flush_bytes, device->multiprocessors,
                                   tl_cuda_native(stream)),
                device, "flush of the L2 cache by reading %zu bytes", cuda->flush_bytes);
    return TL_OK;
}

static struct tl_clock_note *slot(const struct tl_device *device, int index)
{
    return tl_cuda_of(device)->notes + (ptrdiff_t)index * device->multiprocessors;
}

static enum tl_status check_slot(int index)
{
    if (index >= 0 && index < TL_CLOCK_SLOTS)
        return TL_OK;
    return TL_FAIL(TL_ERR_ARGUMENT, "clock mark %d is not in 0 .. %d", index, TL_CLOCK_SLOTS - 1);
}

static enum tl_status notes_open(struct tl_stream *stream)
{
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    TL_TRY(tl_cuda_use(device));
    if (cuda->notes)
        return TL_OK;
    TL_TRY(tl_cuda_not_captured(stream, "the first clock mark"));
    size_t bytes = sizeof *cuda->notes * TL_CLOCK_SLOTS * (size_t)device->multiprocessors;
    void *memory;
    TL_CUDA_TRY(cudaMalloc(&memory, bytes), device, "%zu bytes for clock marks", bytes);
    cudaError_t error = cudaMemset(memory, 0, bytes); /* sequences begin with 1 */
    if (error != cudaSuccess) {
        cudaFree(memory);
        return TL_CUDA_FAIL(error, device, "%zu bytes for clock marks", bytes);
    }
    cuda->notes = memory;
    return TL_OK;
}

enum tl_status tl_cuda_clock_mark(struct tl_stream *stream, int index)
{
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    TL_TRY(check_slot(index));
    TL_TRY(notes_open(stream));
    cuda->noted[index] = ++cuda->sequence;
    TL_CUDA_TRY(tl_cuda_probe_note(slot(device, index), device->multiprocessors, cuda->sequence,
                                   tl_cuda_native(stream)),
                device, "clock mark %d", index);
    return TL_OK;
}

enum tl_status tl_cuda_clock_mhz(struct tl_stream *stream, int first, int second, double *out_mhz)
{
    enum { MOST = 512 };
    struct tl_clock_note notes[2][MOST];
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    int num_sms = device->multiprocessors < MOST ? device->multiprocessors : MOST;
    TL_TRY(check_slot(first));
    TL_TRY(check_slot(second));
    if (!cuda->noted[first] || !cuda->noted[second])
        return TL_FAIL(TL_ERR_ARGUMENT, "clock mark %d was never made",
                       cuda->noted[first] ? second : first);
    TL_TRY(tl_cuda_copy_out(notes[0], slot(device, first), sizeof notes[0][0] * (size_t)num_sms,
                            stream));
    TL_TRY(tl_cuda_copy_out(notes[1], slot(device, second), sizeof notes[0][0] * (size_t)num_sms,
                            stream));
    return tl_clock_frequency(notes[0], cuda->noted[first], notes[1], cuda->noted[second], num_sms,
                              out_mhz);
}
#endif
