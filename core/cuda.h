/* What the files of the CUDA back end share; nothing else includes it.
 *
 *   device_cuda.c   finding and opening GPUs, the table of functions
 *   cuda_memory.c   pool, staging through pinned memory, fills; cuda_random.cu draws numbers
 *   cuda_stream.c   streams and how they are ordered, events, graphs
 *   cuda_probe.c    L2 flush and SM clock; their kernels are in cuda_probe.cu
 *
 * The device's default stream is a stream of its own, not CUDA's legacy one, which cannot be
 * captured. What the legacy stream gives is kept where it guards against surprises: memory
 * functions on the default stream are ordered with all other streams (tl_cuda_order_*), so that a
 * tensor that is collected while another stream still uses it is reused only afterwards.
 */
#ifndef TL_CUDA_H
#define TL_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "clock.h"
#include "cuda_error.h"
#include "device.h"
#include "fault.h"

struct tl_cuda_stream {
    struct tl_stream base;
    struct tl_cuda_stream *next; /* in the device's list, which leaves out the default stream */
};

/* struct tl_device.state */
struct tl_cuda {
    cudaMemPool_t pool;
    struct tl_cuda_stream *streams;
    cudaEvent_t order; /* orders streams; no timing */
    char pci[16];      /* "0000:17:00.0" */
    size_t l2_bytes;

    void *staging[2]; /* pinned, TL_CUDA_CHUNK bytes each; NULL before the first large copy */
    cudaEvent_t staged[2];

    struct tl_stream *capturing; /* NULL outside of a capture */
    void **deferred;             /* memory to be freed after it */
    size_t num_deferred, max_deferred;

    void *flush; /* scratch for the L2 flush, NULL before the first */
    size_t flush_bytes;
    struct tl_clock_note *notes; /* on the device: TL_CLOCK_SLOTS times one for each SM */
    uint64_t noted[TL_CLOCK_SLOTS], sequence;
};

/* Copies from and to the host above this size go through pinned buffers of this size. */
#define TL_CUDA_CHUNK ((size_t)8 << 20)
#define TL_CUDA_SMALL ((size_t)256 << 10)

static inline struct tl_cuda *tl_cuda_of(const struct tl_device *device)
{
    return device->state;
}

static inline cudaStream_t tl_cuda_native(const struct tl_stream *stream)
{
    return stream->native;
}

/* Makes it the thread's device. */
enum tl_status tl_cuda_use(struct tl_device *device);

/* The stream, or where it is NULL the default stream of the device that `memory` is on. */
enum tl_status tl_cuda_stream_for(struct tl_stream *stream, const void *memory,
                                  struct tl_stream **out);

/* The default stream waits for all others; all others wait for the default stream. Nothing while a
 * graph is captured, when waiting for what is outside of the graph is not possible. */
enum tl_status tl_cuda_order_after_all(struct tl_device *device);
enum tl_status tl_cuda_order_before_all(struct tl_device *device);

/* TL_ERR_ARGUMENT when the stream is being captured: "<device>: <what> cannot be captured ...". */
enum tl_status tl_cuda_not_captured(const struct tl_stream *stream, const char *what);

/* Frees what was put off during a capture. */
void tl_cuda_free_deferred(struct tl_device *device);

/* cuda_memory.c */
enum tl_status tl_cuda_alloc(struct tl_device *device, size_t bytes, void **out);
void tl_cuda_free(struct tl_device *device, void *memory);
enum tl_status tl_cuda_copy_in(void *dst, const void *host, size_t bytes, struct tl_stream *stream);
enum tl_status tl_cuda_copy_out(void *host, const void *src, size_t bytes,
                                struct tl_stream *stream);
enum tl_status tl_cuda_copy(void *dst, const void *src, size_t bytes, struct tl_stream *stream);
enum tl_status tl_cuda_fill(void *dst, uint8_t byte, size_t bytes, struct tl_stream *stream);
enum tl_status tl_cuda_normal(void *dst, enum tl_dtype dtype, int64_t count,
                              const struct tl_normal *normal, struct tl_stream *stream);
enum tl_status tl_cuda_memory(struct tl_device *device, struct tl_memory *out);

/* cuda_stream.c */
enum tl_status tl_cuda_stream_new(struct tl_device *device, struct tl_stream **out);
void tl_cuda_stream_free(struct tl_stream *stream);
enum tl_status tl_cuda_stream_sync(struct tl_stream *stream);
enum tl_status tl_cuda_event_new(struct tl_device *device, struct tl_event **out);
void tl_cuda_event_free(struct tl_event *event);
enum tl_status tl_cuda_event_record(struct tl_event *event, struct tl_stream *stream);
enum tl_status tl_cuda_event_elapsed_us(struct tl_event *start, struct tl_event *stop,
                                        double *out_us);
enum tl_status tl_cuda_capture_begin(struct tl_stream *stream);
enum tl_status tl_cuda_capture_end(struct tl_stream *stream, struct tl_graph **out);
enum tl_status tl_cuda_graph_launch(struct tl_graph *graph, struct tl_stream *stream);
void tl_cuda_graph_free(struct tl_graph *graph);

/* cuda_probe.c */
enum tl_status tl_cuda_flush_l2(struct tl_stream *stream);
enum tl_status tl_cuda_flush_l2_clean(struct tl_stream *stream);
enum tl_status tl_cuda_clock_mark(struct tl_stream *stream, int index);
enum tl_status tl_cuda_clock_mhz(struct tl_stream *stream, int first, int second, double *out_mhz);

#endif
