/* Counters and kernel records in a build without CUPTI's headers: everything says so. */
#include "activity.h"
#include "cupti_host.h"
#include "pmsampling.h"
#include "profiler.h"

static enum tl_status absent(void)
{
    return TL_FAIL(TL_ERR_UNSUPPORTED, "this build of tilelab has no CUPTI: build it where a CUDA "
                                       "toolkit is installed, with CUDA=1");
}

enum tl_status tl_cupti_host_open(const char *chip, enum tl_cupti_use use,
                                  struct tl_cupti_host **out)
{
    (void)chip, (void)use, (void)out;
    return absent();
}

enum tl_status tl_cupti_host_chips(char *out, size_t size)
{
    (void)out, (void)size;
    return absent();
}

const char *tl_cupti_host_name_at(const struct tl_cupti_host *host, int position)
{
    (void)host, (void)position;
    return NULL;
}

enum tl_status tl_cupti_host_describe(const struct tl_cupti_host *host, const char *name,
                                      struct tl_cupti_metric *out)
{
    (void)host, (void)name, (void)out;
    return absent();
}

enum tl_status tl_cupti_host_rollups(const struct tl_cupti_host *host, const char *name,
                                     const char *const **out, int *count)
{
    (void)host, (void)name, (void)out, (void)count;
    return absent();
}

enum tl_status tl_cupti_host_check(const struct tl_cupti_host *host, const char *name)
{
    (void)host, (void)name;
    return absent();
}

enum tl_status tl_cupti_config_new(const struct tl_cupti_host *host, const uint8_t *availability,
                                   const char *const *names, int count,
                                   struct tl_cupti_config **out)
{
    (void)host, (void)availability, (void)names, (void)count, (void)out;
    return absent();
}

enum tl_status tl_cupti_config_evaluate(const struct tl_cupti_config *config, const uint8_t *data,
                                        size_t bytes, int range, double *values)
{
    (void)config, (void)data, (void)bytes, (void)range, (void)values;
    return absent();
}

void tl_cupti_config_free(struct tl_cupti_config *config)
{
    (void)config;
}

enum tl_status tl_profiler_probe(const struct tl_device *device, const char **out_chip)
{
    (void)device, (void)out_chip;
    return absent();
}

enum tl_status tl_profiler_open(const struct tl_device *device,
                                const struct tl_profile_request *request,
                                struct tl_profiler **out)
{
    (void)device, (void)request, (void)out;
    return absent();
}

int tl_profiler_passes(const struct tl_profiler *profiler)
{
    (void)profiler;
    return 0;
}

enum tl_status tl_profiler_run(struct tl_profiler *profiler,
                               const struct tl_profile_region *region, int *out_ranges)
{
    (void)profiler, (void)region, (void)out_ranges;
    return absent();
}

double tl_profiler_value(const struct tl_profiler *profiler, int range, int metric)
{
    (void)profiler, (void)range, (void)metric;
    return 0;
}

bool tl_profiler_running(void)
{
    return false;
}

void tl_profiler_close(struct tl_profiler *profiler)
{
    (void)profiler;
}

enum tl_status tl_activity_begin(const struct tl_device *device, bool copies)
{
    (void)device;
    (void)copies;
    return absent();
}

enum tl_status tl_activity_end(void)
{
    return absent();
}

const struct tl_kernel_record *tl_activity_record_at(int position)
{
    (void)position;
    return NULL;
}

enum tl_status tl_sampling_open(const struct tl_device *device,
                                const struct tl_sampling_request *request,
                                struct tl_sampling **out)
{
    (void)device, (void)request, (void)out;
    return absent();
}

enum tl_status tl_sampling_run(struct tl_sampling *sampling, const struct tl_profile_region *region,
                               int *out_samples)
{
    (void)sampling, (void)region, (void)out_samples;
    return absent();
}

void tl_sampling_time(const struct tl_sampling *sampling, int sample, int64_t *start_ns,
                      int64_t *end_ns)
{
    (void)sampling, (void)sample;
    *start_ns = *end_ns = 0;
}

double tl_sampling_value(const struct tl_sampling *sampling, int sample, int metric)
{
    (void)sampling, (void)sample, (void)metric;
    return 0;
}

void tl_sampling_close(struct tl_sampling *sampling)
{
    (void)sampling;
}
