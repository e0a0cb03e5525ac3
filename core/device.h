/* Devices: where memory lives and kernels run.
 *
 * `cpu` is always there; other back ends fill in the same table. Streams order work; on the CPU
 * every operation completes before it returns, and events carry the host clock. Pointers of one
 * device are meaningless on another: copies say both ends.
 */
#ifndef TL_DEVICE_H
#define TL_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_device;
struct tl_stream;
struct tl_event;

/* What a back end provides. All functions act on streams of that device; a NULL stream is the
 * device's default one. */
struct tl_device_api {
    const char *name; /* "cpu", "cuda" */
    int (*count)(void);
    enum tl_status (*open)(struct tl_device *device); /* `device->index` set; fills the rest */
    void (*close)(struct tl_device *device);
    enum tl_status (*alloc)(struct tl_device *device, size_t bytes, void **out);
    void (*free)(struct tl_device *device, void *memory);
    /* From or to host memory, or within the device; ordered on the stream. */
    enum tl_status (*copy_in)(void *dst, const void *host, size_t bytes, struct tl_stream *stream);
    enum tl_status (*copy_out)(void *host, const void *src, size_t bytes, struct tl_stream *stream);
    enum tl_status (*copy)(void *dst, const void *src, size_t bytes, struct tl_stream *stream);
    enum tl_status (*fill)(void *dst, uint8_t byte, size_t bytes, struct tl_stream *stream);
    enum tl_status (*stream_new)(struct tl_device *device, struct tl_stream **out);
    void (*stream_free)(struct tl_stream *stream);
    enum tl_status (*stream_sync)(struct tl_stream *stream);
    enum tl_status (*event_new)(struct tl_device *device, struct tl_event **out);
    void (*event_free)(struct tl_event *event);
    enum tl_status (*event_record)(struct tl_event *event, struct tl_stream *stream);
    /* Waits for both events. */
    enum tl_status (*event_elapsed_us)(struct tl_event *start, struct tl_event *stop,
                                       double *out_us);
};

struct tl_device {
    const struct tl_device_api *api;
    int index;
    char name[16];       /* as on the command line: "cpu", "cuda:0" */
    char model[128];     /* as the vendor prints it */
    int arch;            /* compute capability times ten, 90 for sm_90; 0 for the CPU */
    int multiprocessors; /* SMs; on the CPU, threads that OpenMP uses */
    size_t memory_bytes;
    struct tl_stream *default_stream;
};

/* The stream's device; every back end's stream begins with this. */
struct tl_stream {
    struct tl_device *device;
};

/* Opens "cpu", "cuda" or "cuda:N"; the same device is opened once and shared, and lives until the
 * process ends. TL_ERR_ARGUMENT for an unknown name, TL_ERR_UNSUPPORTED with the reason where the
 * machine or the build has none. */
enum tl_status tl_device_open(const char *name, struct tl_device **out);

/* Names of all devices of this machine, one a call, "cpu" first; NULL past the end. */
const char *tl_device_name_at(int position);

/* Back ends compiled in; NULL past the end. */
const struct tl_device_api *tl_device_api_at(int position);

/* The host clock, monotonic, in microseconds. */
double tl_time_us(void);

#ifdef __cplusplus
}
#endif
#endif
