/* CUPTI's PM sampling; see pmsampling.h.
 *
 * The hardware writes samples to a buffer, which is decoded after the region into an image that
 * holds max_samples. Intervals are of time, not of clocks, so that series of different clocks
 * compare. The first sample covers more than its interval (NVIDIA's documentation says so) and is
 * left out.
 */
#include "pmsampling.h"

#include <cupti_pmsampling.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cupti.h"
#include "cupti_host.h"

#define FUNCTIONS(X)                                                                    \
    X(cuptiPmSamplingEnable)                                                            \
    X(cuptiPmSamplingDisable)                                                           \
    X(cuptiPmSamplingSetConfig)                                                         \
    X(cuptiPmSamplingStart)                                                             \
    X(cuptiPmSamplingStop)                                                              \
    X(cuptiPmSamplingDecodeData)                                                        \
    X(cuptiPmSamplingGetCounterAvailability)                                            \
    X(cuptiPmSamplingGetCounterDataSize)                                                \
    X(cuptiPmSamplingCounterDataImageInitialize)                                        \
    X(cuptiPmSamplingGetCounterDataInfo)                                                \
    X(cuptiPmSamplingCounterDataGetSampleInfo)
TL_CUPTI_TABLE(FUNCTIONS);

#define SIZED(type) {.structSize = type##_STRUCT_SIZE}

enum { HARDWARE_BUFFER_BYTES = 128 << 20, SKIPPED = 1 };

struct tl_sampling {
    size_t device_index;
    CUpti_PmSampling_Object *object;
    struct tl_cupti_config *config;
    uint8_t *availability;
    uint8_t *data;
    size_t data_bytes;
    uint64_t interval_ns;
    int max_samples;
    double *values;  /* [max_samples, num_metrics] */
    int64_t *bounds; /* [max_samples, 2]: start and end */
};

/* --- sessions --- */

static enum tl_status read_availability(struct tl_sampling *sampling)
{
    CUpti_PmSampling_GetCounterAvailability_Params params =
        SIZED(CUpti_PmSampling_GetCounterAvailability_Params);
    params.deviceIndex = sampling->device_index;
    TL_CUPTI_TRY(cuptiPmSamplingGetCounterAvailability, &params);
    sampling->availability = calloc(1, params.counterAvailabilityImageSize + 1);
    if (!sampling->availability)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for the list of free counters");
    params.pCounterAvailabilityImage = sampling->availability;
    TL_CUPTI_TRY(cuptiPmSamplingGetCounterAvailability, &params);
    return TL_OK;
}

static enum tl_status schedule(struct tl_sampling *sampling, const char *chip,
                               const struct tl_sampling_request *request)
{
    struct tl_cupti_host *host;
    TL_TRY(tl_cupti_host_open(chip, TL_CUPTI_SAMPLES, &host));
    TL_TRY(tl_cupti_config_new(host, sampling->availability, request->metrics,
                               request->num_metrics, &sampling->config));
    if (sampling->config->passes != 1)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "these %d metrics take %d passes, and a series over time has one; ask for "
                       "fewer at once",
                       request->num_metrics, sampling->config->passes);
    size_t samples = (size_t)sampling->max_samples;
    sampling->values = calloc(samples * (size_t)request->num_metrics, sizeof *sampling->values);
    sampling->bounds = calloc(samples * 2, sizeof *sampling->bounds);
    if (!sampling->values || !sampling->bounds)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for %zu samples", samples);
    return TL_OK;
}

static enum tl_status enable(struct tl_sampling *sampling)
{
    CUpti_PmSampling_Enable_Params params = SIZED(CUpti_PmSampling_Enable_Params);
    params.deviceIndex = sampling->device_index;
    TL_CUPTI_TRY(cuptiPmSamplingEnable, &params);
    sampling->object = params.pPmSamplingObject;
    CUpti_PmSampling_SetConfig_Params config = SIZED(CUpti_PmSampling_SetConfig_Params);
    config.pPmSamplingObject = sampling->object;
    config.configSize = sampling->config->image_bytes;
    config.pConfig = sampling->config->image;
    config.hardwareBufferSize = HARDWARE_BUFFER_BYTES;
    config.samplingInterval = sampling->interval_ns;
    config.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
    config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
    TL_CUPTI_TRY(cuptiPmSamplingSetConfig, &config);
    CUpti_PmSampling_GetCounterDataSize_Params size =
        SIZED(CUpti_PmSampling_GetCounterDataSize_Params);
    size.pPmSamplingObject = sampling->object;
    size.pMetricNames = (const char **)sampling->config->names;
    size.numMetrics = (size_t)sampling->config->num_names;
    size.maxSamples = (uint32_t)sampling->max_samples;
    TL_CUPTI_TRY(cuptiPmSamplingGetCounterDataSize, &size);
    sampling->data_bytes = size.counterDataSize;
    sampling->data = calloc(1, sampling->data_bytes + 1);
    if (!sampling->data)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for %zu bytes of samples", sampling->data_bytes);
    return TL_OK;
}

enum tl_status tl_sampling_open(const struct tl_device *device,
                                const struct tl_sampling_request *request,
                                struct tl_sampling **out)
{
    enum tl_status status;
    const char *chip;
    if (!(request->interval_us >= 1 && request->interval_us <= 1e6) || request->max_samples < 2)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "a series takes an interval of 1 to 1000000 us and 2 samples or more (got "
                       "%g, %d)",
                       request->interval_us, request->max_samples);
    TL_TRY(tl_profiler_probe(device, &chip)); /* initialises CUDA and the profiler, in that order */
    TL_TRY(tl_cupti_open(&api, api_symbols));
    struct tl_sampling *sampling = calloc(1, sizeof *sampling);
    if (!sampling)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for a sampling session");
    sampling->device_index = (size_t)device->index;
    sampling->interval_ns = (uint64_t)(request->interval_us * 1e3);
    sampling->max_samples = request->max_samples;
    TL_GO(failed, read_availability(sampling));
    TL_GO(failed, schedule(sampling, chip, request));
    TL_GO(failed, enable(sampling));
    *out = sampling;
    return TL_OK;
failed:
    tl_sampling_close(sampling);
    return status;
}

void tl_sampling_close(struct tl_sampling *sampling)
{
    if (!sampling)
        return;
    if (sampling->object) {
        CUpti_PmSampling_Disable_Params params = SIZED(CUpti_PmSampling_Disable_Params);
        params.pPmSamplingObject = sampling->object;
        api.cuptiPmSamplingDisable(&params);
    }
    tl_cupti_config_free(sampling->config);
    free(sampling->availability);
    free(sampling->data);
    free(sampling->values);
    free(sampling->bounds);
    free(sampling);
}

/* --- a run --- */

static enum tl_status empty_data(struct tl_sampling *sampling)
{
    CUpti_PmSampling_CounterDataImage_Initialize_Params params =
        SIZED(CUpti_PmSampling_CounterDataImage_Initialize_Params);
    params.pPmSamplingObject = sampling->object;
    params.counterDataSize = sampling->data_bytes;
    params.pCounterData = sampling->data;
    TL_CUPTI_TRY(cuptiPmSamplingCounterDataImageInitialize, &params);
    return TL_OK;
}

static enum tl_status sample_region(struct tl_sampling *sampling,
                                    const struct tl_profile_region *region)
{
    CUpti_PmSampling_Start_Params start = SIZED(CUpti_PmSampling_Start_Params);
    start.pPmSamplingObject = sampling->object;
    TL_CUPTI_TRY(cuptiPmSamplingStart, &start);
    enum tl_status status = region->run(region->context);
    if (status == TL_OK)
        status = tl_cupti_synchronize();
    CUpti_PmSampling_Stop_Params stop = SIZED(CUpti_PmSampling_Stop_Params);
    stop.pPmSamplingObject = sampling->object;
    CUptiResult code = api.cuptiPmSamplingStop(&stop);
    if (status == TL_OK && code != CUPTI_SUCCESS)
        status = tl_cupti_failed(code, "cuptiPmSamplingStop", __FILE__, __LINE__);
    return status;
}

static enum tl_status decode(struct tl_sampling *sampling)
{
    CUpti_PmSampling_DecodeData_Params params = SIZED(CUpti_PmSampling_DecodeData_Params);
    params.pPmSamplingObject = sampling->object;
    params.pCounterDataImage = sampling->data;
    params.counterDataImageSize = sampling->data_bytes;
    TL_CUPTI_TRY(cuptiPmSamplingDecodeData, &params);
    if (params.overflow)
        return TL_FAIL(TL_ERR_DEVICE, "samples were lost: the hardware's buffer overflowed; take a "
                                      "longer interval");
    if (params.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL)
        return TL_FAIL(TL_ERR_DEVICE,
                       "the region took more than %d samples; raise max_samples or take a longer "
                       "interval",
                       sampling->max_samples);
    return TL_OK;
}

static enum tl_status evaluate(struct tl_sampling *sampling, int *out_samples)
{
    CUpti_PmSampling_GetCounterDataInfo_Params info =
        SIZED(CUpti_PmSampling_GetCounterDataInfo_Params);
    info.pCounterDataImage = sampling->data;
    info.counterDataImageSize = sampling->data_bytes;
    TL_CUPTI_TRY(cuptiPmSamplingGetCounterDataInfo, &info);
    int num_metrics = sampling->config->num_names, count = 0;
    for (int i = SKIPPED; i < (int)info.numCompletedSamples && i < sampling->max_samples; i++) {
        CUpti_PmSampling_CounterData_GetSampleInfo_Params sample =
            SIZED(CUpti_PmSampling_CounterData_GetSampleInfo_Params);
        sample.pPmSamplingObject = sampling->object;
        sample.pCounterDataImage = sampling->data;
        sample.counterDataImageSize = sampling->data_bytes;
        sample.sampleIndex = (size_t)i;
        TL_CUPTI_TRY(cuptiPmSamplingCounterDataGetSampleInfo, &sample);
        sampling->bounds[2 * count] = (int64_t)sample.startTimestamp;
        sampling->bounds[2 * count + 1] = (int64_t)sample.endTimestamp;
        double *values = sampling->values + count * num_metrics;
        TL_TRY(tl_cupti_config_evaluate(sampling->config, sampling->data, sampling->data_bytes, i,
                                        values));
        for (int k = 0; k < num_metrics; k++)
            if (!isfinite(values[k]))
                values[k] = NAN;
        count++;
    }
    *out_samples = count;
    return TL_OK;
}

enum tl_status tl_sampling_run(struct tl_sampling *sampling, const struct tl_profile_region *region,
                               int *out_samples)
{
    if (tl_profiler_running())
        return TL_FAIL(TL_ERR_ARGUMENT, "a series over time inside a profiled region: both want "
                                        "the counters");
    TL_TRY(empty_data(sampling));
    TL_TRY(sample_region(sampling, region));
    TL_TRY(decode(sampling));
    return evaluate(sampling, out_samples);
}

void tl_sampling_time(const struct tl_sampling *sampling, int sample, int64_t *start_ns,
                      int64_t *end_ns)
{
    *start_ns = sampling->bounds[2 * sample];
    *end_ns = sampling->bounds[2 * sample + 1];
}

double tl_sampling_value(const struct tl_sampling *sampling, int sample, int metric)
{
    return sampling->values[sample * sampling->config->num_names + metric];
}
