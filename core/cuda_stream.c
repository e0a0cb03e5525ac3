/* Streams of a GPU and their order, events, and graphs; see cuda.h. */
#if TL_CUDA
#include "cuda.h"

#include <stdlib.h>

struct tl_event {
    cudaEvent_t native;
    struct tl_device *device;
};

struct tl_graph {
    cudaGraphExec_t native;
    struct tl_device *device;
};

/* --- order --------------------------------------------------------------------------------- */

/* What `waiting` is given from now on starts after what `first` was given so far. */
static enum tl_status order(struct tl_device *device, cudaStream_t first, cudaStream_t waiting)
{
    struct tl_cuda *cuda = tl_cuda_of(device);
    TL_CUDA_TRY(cudaEventRecord(cuda->order, first), device, "order of two streams");
    TL_CUDA_TRY(cudaStreamWaitEvent(waiting, cuda->order, 0), device, "order of two streams");
    return TL_OK;
}

enum tl_status tl_cuda_order_after_all(struct tl_device *device)
{
    struct tl_cuda *cuda = tl_cuda_of(device);
    cudaStream_t own = tl_cuda_native(device->default_stream);
    for (struct tl_cuda_stream *other = cuda->streams; other && !cuda->capturing;
         other = other->next)
        TL_TRY(order(device, tl_cuda_native(&other->base), own));
    return TL_OK;
}

enum tl_status tl_cuda_order_before_all(struct tl_device *device)
{
    struct tl_cuda *cuda = tl_cuda_of(device);
    cudaStream_t own = tl_cuda_native(device->default_stream);
    for (struct tl_cuda_stream *other = cuda->streams; other && !cuda->capturing;
         other = other->next)
        TL_TRY(order(device, own, tl_cuda_native(&other->base)));
    return TL_OK;
}

enum tl_status tl_cuda_not_captured(const struct tl_stream *stream, const char *what)
{
    if (tl_cuda_of(stream->device)->capturing != stream)
        return TL_OK;
    return TL_FAIL(TL_ERR_ARGUMENT,
                   "%s: %s cannot be captured into a graph; do it before the capture begins",
                   stream->device->name, what);
}

/* --- streams ------------------------------------------------------------------------------- */

enum tl_status tl_cuda_stream_new(struct tl_device *device, struct tl_stream **out)
{
    struct tl_cuda *cuda = tl_cuda_of(device);
    enum tl_status status;
    cudaStream_t native = NULL;
    *out = NULL;
    TL_TRY(tl_cuda_use(device));
    struct tl_cuda_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return TL_FAIL(TL_ERR_MEMORY, "%s: no host memory for a stream", device->name);
    TL_CUDA_GO(out, cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), device,
               "a new stream");
    stream->base.device = device;
    stream->base.native = native;
    if (device->default_stream) { /* this one is another */
        if (!cuda->capturing)
            TL_GO(out, order(device, tl_cuda_native(device->default_stream), native));
        stream->next = cuda->streams;
        cuda->streams = stream;
    }
    *out = &stream->base;
    return TL_OK;
out:
    if (native)
        cudaStreamDestroy(native);
    free(stream);
    return status;
}

void tl_cuda_stream_free(struct tl_stream *stream)
{
    if (!stream)
        return;
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    cudaStream_t native = tl_cuda_native(stream);
    for (struct tl_cuda_stream **link = &cuda->streams; *link; link = &(*link)->next) {
        if (&(*link)->base == stream) {
            *link = (*link)->next;
            break;
        }
    }
    /* Its work goes on without it, and later frees must still wait for that. */
    if (tl_cuda_use(device) == TL_OK && stream != device->default_stream) {
        if (cuda->capturing)
            cudaStreamSynchronize(native);
        else
            order(device, native, tl_cuda_native(device->default_stream));
    }
    cudaStreamDestroy(native);
    cudaGetLastError();
    free(stream); /* `base` is its first member */
}

enum tl_status tl_cuda_stream_sync(struct tl_stream *stream)
{
    TL_TRY(tl_cuda_stream_for(stream, NULL, &stream));
    TL_TRY(tl_cuda_use(stream->device));
    TL_TRY(tl_cuda_not_captured(stream, "a wait for the stream"));
    TL_CUDA_TRY(cudaStreamSynchronize(tl_cuda_native(stream)), stream->device,
                "waiting for a stream");
    return tl_fault_check(stream->device);
}

/* --- events -------------------------------------------------------------------------------- */

enum tl_status tl_cuda_event_new(struct tl_device *device, struct tl_event **out)
{
    enum tl_status status;
    TL_TRY(tl_cuda_use(device));
    struct tl_event *event = calloc(1, sizeof *event);
    *out = NULL;
    if (!event)
        return TL_FAIL(TL_ERR_MEMORY, "%s: no host memory for an event", device->name);
    TL_CUDA_GO(out, cudaEventCreate(&event->native), device, "a new event");
    event->device = device;
    *out = event;
    return TL_OK;
out:
    free(event);
    return status;
}

void tl_cuda_event_free(struct tl_event *event)
{
    if (!event)
        return;
    if (tl_cuda_use(event->device) == TL_OK)
        cudaEventDestroy(event->native);
    cudaGetLastError();
    free(event);
}

enum tl_status tl_cuda_event_record(struct tl_event *event, struct tl_stream *stream)
{
    struct tl_device *device = event->device;
    if (!stream)
        stream = device->default_stream;
    TL_TRY(tl_cuda_use(device));
    TL_TRY(tl_cuda_not_captured(stream, "an event"));
    TL_CUDA_TRY(cudaEventRecord(event->native, tl_cuda_native(stream)), device,
                "recording an event");
    return TL_OK;
}

enum tl_status tl_cuda_event_elapsed_us(struct tl_event *start, struct tl_event *stop,
                                        double *out_us)
{
    struct tl_device *device = start->device;
    float ms = 0;
    TL_TRY(tl_cuda_use(device));
    TL_CUDA_TRY(cudaEventSynchronize(start->native), device, "waiting for an event");
    TL_CUDA_TRY(cudaEventSynchronize(stop->native), device, "waiting for an event");
    TL_CUDA_TRY(cudaEventElapsedTime(&ms, start->native, stop->native), device,
                "the time between two events");
    *out_us = 1e3 * (double)ms;
    return tl_fault_check(device);
}

/* --- graphs -------------------------------------------------------------------------------- */

/* The mode is relaxed, because a kernel's first launch may load its code, which stricter modes
 * refuse; what must not happen meanwhile is refused by the functions of this back end. */
enum tl_status tl_cuda_capture_begin(struct tl_stream *stream)
{
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    if (cuda->capturing)
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: a graph is being captured already", device->name);
    TL_TRY(tl_cuda_use(device));
    TL_CUDA_TRY(cudaStreamBeginCapture(tl_cuda_native(stream), cudaStreamCaptureModeRelaxed),
                device, "the begin of a capture");
    cuda->capturing = stream;
    return TL_OK;
}

/* Makes a captured graph ready to be launched. */
static enum tl_status instantiate(struct tl_stream *stream, cudaGraph_t captured,
                                  struct tl_graph **out)
{
    struct tl_device *device = stream->device;
    enum tl_status status;
    size_t nodes = 0;
    struct tl_graph *graph = NULL;
    TL_CUDA_GO(out, cudaGraphGetNodes(captured, NULL, &nodes), device, "the nodes of a graph");
    if (nodes == 0)
        TL_GO(out, TL_FAIL(TL_ERR_ARGUMENT,
                           "%s: nothing was captured: no launch went to the captured stream",
                           device->name));
    graph = calloc(1, sizeof *graph);
    if (!graph)
        TL_GO(out, TL_FAIL(TL_ERR_MEMORY, "%s: no host memory for a graph", device->name));
    graph->device = device;
    TL_CUDA_GO(out, cudaGraphInstantiate(&graph->native, captured, 0), device,
               "a graph of %zu nodes", nodes);
    /* Otherwise the first launch would pay for it. */
    TL_CUDA_GO(out, cudaGraphUpload(graph->native, tl_cuda_native(stream)), device,
               "a graph of %zu nodes, its upload", nodes);
    *out = graph;
    return TL_OK;
out:
    tl_cuda_graph_free(graph);
    return status;
}

enum tl_status tl_cuda_capture_end(struct tl_stream *stream, struct tl_graph **out)
{
    struct tl_device *device = stream->device;
    struct tl_cuda *cuda = tl_cuda_of(device);
    cudaGraph_t captured = NULL;
    if (out)
        *out = NULL;
    if (cuda->capturing != stream)
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: this stream is not being captured", device->name);
    cudaError_t error = cudaStreamEndCapture(tl_cuda_native(stream), &captured);
    cuda->capturing = NULL;
    tl_cuda_free_deferred(device);
    enum tl_status status = TL_OK;
    if (error != cudaSuccess && out)
        status = TL_CUDA_FAIL(error, device, "the end of a capture");
    else if (error == cudaSuccess && out)
        status = instantiate(stream, captured, out);
    if (captured)
        cudaGraphDestroy(captured);
    cudaGetLastError();
    return status;
}

enum tl_status tl_cuda_graph_launch(struct tl_graph *graph, struct tl_stream *stream)
{
    struct tl_device *device = graph->device;
    TL_TRY(tl_fault_check(device)); /* as tl_plan_launch does */
    TL_TRY(tl_cuda_use(device));
    TL_CUDA_TRY(cudaGraphLaunch(graph->native,
                                tl_cuda_native(stream ? stream : device->default_stream)),
                device, "the launch of a graph");
    return TL_OK;
}

/* A graph that is still running is freed by the runtime when it has finished. */
void tl_cuda_graph_free(struct tl_graph *graph)
{
    if (!graph)
        return;
    if (graph->native && tl_cuda_use(graph->device) == TL_OK)
        cudaGraphExecDestroy(graph->native);
    cudaGetLastError();
    free(graph);
}
#endif
