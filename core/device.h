/* Devices: where memory lives and kernels run.
 *
 * `cpu` is always there, `cuda` where the build has it; both fill in the same table. Streams order
 * work; on the CPU every operation completes before it returns, and events carry the host clock.
 * A pointer of one device is meaningless on another, so there is one function for copies in, one
 * for copies out and one for copies within; tl_tensor_copy (tensor.h) picks.
 */
#ifndef TL_DEVICE_H
#define TL_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "dtype.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_device;
struct tl_stream;
struct tl_event;
struct tl_fault;
struct tl_graph;
struct tl_kernel;

struct tl_memory {
    size_t free_bytes, total_bytes; /* of the whole device, other processes included */
    size_t used_bytes;              /* held by this process's tensors */
    size_t reserved_bytes;          /* taken from the driver, used or kept for reuse */
};

/* What the device says about itself at this moment; NAN where it does not say. */
struct tl_device_state {
    double power_w;       /* NVIDIA: mean over the last second */
    double temperature_c; /* of the chip */
    double sm_clock_mhz;
    uint64_t throttle; /* bits; tl_throttle_name gives the words */
};

/* Why clocks are below their maximum: NVML's bits and words. Those of TL_THROTTLE_SLOWDOWN mean
 * that the machine protects itself, and that what is measured now is not the chip's speed; a power
 * cap alone is how a loaded GPU runs. */
#define TL_THROTTLE_SLOWDOWN 0xe8u
const char *tl_throttle_name(int bit); /* "power_cap"; NULL for a bit without a meaning */

/* One line of provenance, e.g. "driver_version", "580.159.04". */
struct tl_device_detail {
    char key[24];
    char value[104];
};

/* Numbers as tl_tensor_random draws them, element i from counter (seed, sequence, i). */
struct tl_normal {
    double mean, deviation;
    uint64_t seed, sequence;
};

/* What a back end provides. All functions act on streams of that device; a NULL stream is the
 * device's default one. On a NULL stream, memory functions wait for what other streams of the
 * device were given before, and other streams wait for them; launches do neither. stream_sync,
 * event_elapsed_us and copy_out also fail with what a kernel before them refused (fault.h), after
 * they have done their work; graph_launch instead of it. */
struct tl_device_api {
    const char *name;   /* "cpu", "cuda" */
    int (*count)(void); /* never an error: 0 where there is no driver */
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

    /* --- Optional: NULL where a back end has no such thing, as the CPU has none of them. Their
     * stream is never NULL, except that of graph_launch. --- */

    /* Why count() is 0, and what to do about it. */
    const char *(*absent)(void);
    /* Makes it the calling thread's device; tl_plan_launch does so before each launch. */
    enum tl_status (*use)(struct tl_device *device);

    /* Fills memory of the device with normal numbers, in fp64, fp32 or bf16; a memory function. */
    enum tl_status (*normal)(void *dst, enum tl_dtype dtype, int64_t count,
                             const struct tl_normal *normal, struct tl_stream *stream);

    /* Work given to the stream between begin and end is recorded and not run. Meanwhile memory of
     * the device can neither be allocated nor copied from or to the host; frees are put off. `out`
     * NULL drops what was recorded; TL_ERR_ARGUMENT when that is nothing. The graph holds
     * addresses: the memory behind them must outlive it. */
    enum tl_status (*capture_begin)(struct tl_stream *stream);
    enum tl_status (*capture_end)(struct tl_stream *stream, struct tl_graph **out);
    enum tl_status (*graph_launch)(struct tl_graph *graph, struct tl_stream *stream);
    void (*graph_free)(struct tl_graph *graph);

    /* Empties the L2 cache of everything that was in it, by writing several times its size: what is
     * left are lines that are dirty and of no use. The clean form reads instead, so that a later
     * kernel pays for no write-back. The first call allocates; later ones only enqueue. */
    enum tl_status (*flush_l2)(struct tl_stream *stream);
    enum tl_status (*flush_l2_clean)(struct tl_stream *stream);

    /* Notes the SM clock's count and the time in slot `index`, 0 .. TL_CLOCK_SLOTS - 1: a kernel of
     * one or two microseconds. clock_mhz waits for the stream and gives the mean frequency between
     * two slots, exact to a percent from 100 us on. */
    enum tl_status (*clock_mark)(struct tl_stream *stream, int index);
    enum tl_status (*clock_mhz)(struct tl_stream *stream, int first, int second, double *out_mhz);

    enum tl_status (*memory)(struct tl_device *device, struct tl_memory *out);
    /* TL_ERR_UNSUPPORTED where nothing on the machine knows. */
    enum tl_status (*state)(struct tl_device *device, struct tl_device_state *out);
    /* Fills up to `capacity` lines and returns how many. */
    int (*details)(struct tl_device *device, struct tl_device_detail *out, int capacity);
};

#define TL_CLOCK_SLOTS 16

struct tl_device {
    const struct tl_device_api *api;
    int index;
    char name[16];       /* as on the command line: "cpu", "cuda:0" */
    char model[128];     /* as the vendor prints it */
    int arch;            /* compute capability times ten, 90 for sm_90; 0 for the CPU */
    int multiprocessors; /* SMs; on the CPU, threads that OpenMP uses */
    size_t memory_bytes;
    struct tl_stream *default_stream;
    void *state; /* the back end's own */
    struct tl_fault *fault; /* what a kernel objected to (fault.h); NULL where kernels cannot */
    /* The plan launched last, for the message when the device faults; NULL before the first. */
    const struct tl_kernel *last_kernel;
    int64_t last_dim[12]; /* TL_MAX_DIMS of kernel.h */
};

/* Every back end's stream begins with this. */
struct tl_stream {
    struct tl_device *device;
    void *native; /* cudaStream_t on CUDA, NULL on the CPU */
};

/* Opens "cpu", "cuda" or "cuda:N"; the same device is opened once and shared, and lives until the
 * process ends. TL_ERR_ARGUMENT for an unknown name, TL_ERR_UNSUPPORTED with the reason where the
 * machine or the build has none. */
enum tl_status tl_device_open(const char *name, struct tl_device **out);

/* Names of all devices of this machine, one a call, "cpu" first; NULL past the end. */
const char *tl_device_name_at(int position);

/* The host clock, monotonic, in microseconds. */
double tl_time_us(void);

#ifdef __cplusplus
}
#endif
#endif
