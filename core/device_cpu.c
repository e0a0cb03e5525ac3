/* The CPU as a device: host memory, and streams on which everything has already completed. */
#include "device.h"
#include "provenance.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tl_event {
    double time_us;
};

static int cpu_count(void)
{
    return 1;
}

static enum tl_status cpu_stream_new(struct tl_device *device, struct tl_stream **out)
{
    struct tl_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return TL_FAIL(TL_ERR_MEMORY, "cpu: no memory for a stream");
    stream->device = device;
    *out = stream;
    return TL_OK;
}

static void cpu_stream_free(struct tl_stream *stream)
{
    free(stream);
}

static enum tl_status cpu_stream_sync(struct tl_stream *stream)
{
    (void)stream;
    return TL_OK;
}

static enum tl_status cpu_open(struct tl_device *device)
{
    struct tl_host host;
    tl_host_describe(&host);
    snprintf(device->name, sizeof device->name, "cpu");
    snprintf(device->model, sizeof device->model, "%s", host.cpu);
    device->arch = 0;
    device->multiprocessors = omp_get_max_threads();
    device->memory_bytes = host.memory_bytes;
    return cpu_stream_new(device, &device->default_stream);
}

static void cpu_close(struct tl_device *device)
{
    cpu_stream_free(device->default_stream);
    device->default_stream = NULL;
}

static enum tl_status cpu_alloc(struct tl_device *device, size_t bytes, void **out)
{
    (void)device;
    /* aligned_alloc wants a multiple of the alignment. */
    size_t rounded = (bytes + 255) & ~(size_t)255;
    *out = rounded < bytes ? NULL : aligned_alloc(256, rounded ? rounded : 256);
    if (!*out)
        return TL_FAIL(TL_ERR_MEMORY, "cpu: cannot allocate %zu bytes", bytes);
    return TL_OK;
}

static void cpu_free(struct tl_device *device, void *memory)
{
    (void)device;
    free(memory);
}

static enum tl_status cpu_copy(void *dst, const void *src, size_t bytes, struct tl_stream *stream)
{
    (void)stream;
    if (bytes)
        memmove(dst, src, bytes);
    return TL_OK;
}

static enum tl_status cpu_fill(void *dst, uint8_t byte, size_t bytes, struct tl_stream *stream)
{
    (void)stream;
    if (bytes)
        memset(dst, byte, bytes);
    return TL_OK;
}

static enum tl_status cpu_event_new(struct tl_device *device, struct tl_event **out)
{
    (void)device;
    *out = calloc(1, sizeof **out);
    return *out ? TL_OK : TL_FAIL(TL_ERR_MEMORY, "cpu: no memory for an event");
}

static void cpu_event_free(struct tl_event *event)
{
    free(event);
}

static enum tl_status cpu_event_record(struct tl_event *event, struct tl_stream *stream)
{
    (void)stream;
    event->time_us = tl_time_us();
    return TL_OK;
}

static enum tl_status cpu_event_elapsed_us(struct tl_event *start, struct tl_event *stop,
                                           double *out_us)
{
    *out_us = stop->time_us - start->time_us;
    return TL_OK;
}

const struct tl_device_api tl_device_cpu_api = {
    .name = "cpu",
    .count = cpu_count,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .stream_new = cpu_stream_new,
    .stream_free = cpu_stream_free,
    .stream_sync = cpu_stream_sync,
    .event_new = cpu_event_new,
    .event_free = cpu_event_free,
    .event_record = cpu_event_record,
    .event_elapsed_us = cpu_event_elapsed_us,
};
