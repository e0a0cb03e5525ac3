/* Hardware counters of what a region launches.
 *
 * Life cycle: tl_profiler_probe says whether this device's counters can be read, and why not;
 * tl_profiler_open schedules metrics and opens the session; tl_profiler_run profiles a region, as
 * often as wanted; tl_profiler_close ends the session. A session holds the counters and may slow
 * launches down, so close it before anything is timed. One session is open a process.
 *
 * TL_PROFILE_REGION counts the region as a whole: it runs once a pass, kernels as concurrent as
 * ever, and must do the same each time. TL_PROFILE_KERNELS counts every kernel by itself: the
 * region runs once, CUPTI replays each kernel, saves and restores the memory that it writes, and
 * waits for it; a kernel that waits for a later one hangs. There caches cannot be flushed.
 *
 * Times from here are no kernel times: the region's include starting and stopping the counters.
 */
#ifndef TL_PROFILER_H
#define TL_PROFILER_H

#include <stdbool.h>

#include "device.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_profiler;

enum tl_profile_mode { TL_PROFILE_REGION, TL_PROFILE_KERNELS };

struct tl_profile_request {
    enum tl_profile_mode mode;
    const char *const *metrics; /* full names */
    int num_metrics;
    int max_passes;  /* TL_ERR_ARGUMENT beyond it; 0: no limit */
    int max_kernels; /* of TL_PROFILE_KERNELS: what the region launches at most */
};

struct tl_profile_region {
    enum tl_status (*run)(void *context);   /* launches; need not wait */
    enum tl_status (*flush)(void *context); /* before every pass, not counted; may be NULL */
    void *context;
};

/* Reads the chip's name ("GH100") and tries whether counters are allowed; asked once a device,
 * then remembered. TL_ERR_UNSUPPORTED with reason and remedy. Initialises CUDA. */
enum tl_status tl_profiler_probe(const struct tl_device *device, const char **out_chip);

/* TL_ERR_ARGUMENT for an unknown metric, too many passes, or while another session is open. */
enum tl_status tl_profiler_open(const struct tl_device *device,
                                const struct tl_profile_request *request,
                                struct tl_profiler **out);

/* How often the region (or each kernel) runs. */
int tl_profiler_passes(const struct tl_profiler *profiler);

/* Profiles once. `*out_ranges` is 1, or the number of kernels in launch order. TL_ERR_ARGUMENT
 * inside another run; TL_ERR_DEVICE for dropped ranges, or another number of them than there
 * should be. What `run` and `flush` return is passed on, and ends the session's use: close it. */
enum tl_status tl_profiler_run(struct tl_profiler *profiler,
                               const struct tl_profile_region *region, int *out_ranges);

/* Value of metric `metric` of the request in range `range` of the last run. A ratio without a
 * denominator is NaN; any other metric that is not finite has failed the run. */
double tl_profiler_value(const struct tl_profiler *profiler, int range, int metric);

/* Whether a run is on, in any session. */
bool tl_profiler_running(void);

/* NULL is fine. During a run the session is closed when the run ends. */
void tl_profiler_close(struct tl_profiler *profiler);

#ifdef __cplusplus
}
#endif
#endif
