/* Metrics as a series over time: what the chip did every few microseconds of a region.
 *
 * tl_sampling_open, tl_sampling_run as often as wanted, tl_sampling_close. Metrics are those of
 * TL_CUPTI_SAMPLES (cupti_host.h) and must fit into a single pass. The whole GPU is sampled, other
 * processes included. Close a session of profiler.h first: both want the counters.
 */
#ifndef TL_PMSAMPLING_H
#define TL_PMSAMPLING_H

#include "device.h"
#include "profiler.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_sampling;

struct tl_sampling_request {
    const char *const *metrics; /* full names */
    int num_metrics;
    double interval_us; /* between samples */
    int max_samples;    /* that a region may take */
};

/* TL_ERR_ARGUMENT for unknown metrics, or for more than a pass can hold; TL_ERR_UNSUPPORTED with
 * the reason. */
enum tl_status tl_sampling_open(const struct tl_device *device,
                                const struct tl_sampling_request *request,
                                struct tl_sampling **out);

/* Samples while region->run and what it launched run; there is no flush. TL_ERR_DEVICE where
 * samples were lost, or the region took more than max_samples. What `run` returns is passed on. */
enum tl_status tl_sampling_run(struct tl_sampling *sampling, const struct tl_profile_region *region,
                               int *out_samples);

/* When sample `sample` of the last run began and ended, in ns of one clock. */
void tl_sampling_time(const struct tl_sampling *sampling, int sample, int64_t *start_ns,
                      int64_t *end_ns);

/* NaN where a ratio had no denominator in that interval. */
double tl_sampling_value(const struct tl_sampling *sampling, int sample, int metric);

void tl_sampling_close(struct tl_sampling *sampling); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
