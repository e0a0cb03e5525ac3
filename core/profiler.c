/* CUPTI's range profiler: user ranges with user replay, auto ranges with kernel replay; see
 * profiler.h.
 *
 * Facts that shape it (CUDA 13.0, H200): the profiler is initialised after CUDA (else error 999).
 * Without privileges everything succeeds up to the availability image, so that is the probe. The
 * image cannot be read while a session is active, so it is kept. Ranges that did not fit are only
 * told by a count after decoding. Every run sets the configuration anew, which starts the passes
 * from the first again.
 */
#include "profiler.h"

#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti.h"
#include "cupti_host.h"

#define FUNCTIONS(X)                                                                       \
    X(cuptiProfilerInitialize)                                                             \
    X(cuptiProfilerDeviceSupported)                                                        \
    X(cuptiProfilerGetCounterAvailability)                                                 \
    X(cuptiDeviceGetChipName)                                                              \
    X(cuptiRangeProfilerEnable)                                                            \
    X(cuptiRangeProfilerDisable)                                                           \
    X(cuptiRangeProfilerGetCounterDataSize)                                                \
    X(cuptiRangeProfilerCounterDataImageInitialize)                                        \
    X(cuptiRangeProfilerSetConfig)                                                         \
    X(cuptiRangeProfilerStart)                                                             \
    X(cuptiRangeProfilerStop)                                                              \
    X(cuptiRangeProfilerPushRange)                                                         \
    X(cuptiRangeProfilerPopRange)                                                          \
    X(cuptiRangeProfilerDecodeData)                                                        \
    X(cuptiRangeProfilerGetCounterDataInfo)
TL_CUPTI_TABLE(FUNCTIONS);

#define SIZED(type) {.structSize = type##_STRUCT_SIZE}

enum { MAX_GPUS = 32 };

/* What the probe found out about a GPU. */
struct gpu {
    bool probed;
    enum tl_status status;
    char reason[1024];
    char chip[32];
    uint8_t *availability;
};

struct tl_profiler {
    enum tl_profile_mode mode;
    CUcontext context;
    CUpti_RangeProfiler_Object *object;
    struct tl_cupti_config *config;
    int max_ranges;
    uint8_t *data; /* counter data */
    size_t data_bytes;
    double *values; /* [max_ranges, num_metrics] */
    bool *is_ratio; /* by metric */
    bool close_after_run;
};

static struct gpu gpus[MAX_GPUS];
static struct tl_profiler *opened;
static bool running;

bool tl_profiler_running(void)
{
    return running;
}

static enum tl_status refuse_nested(void)
{
    return TL_FAIL(TL_ERR_ARGUMENT,
                   "profiling inside a profiled region: each pass of the outer one would repeat "
                   "passes of the inner one");
}

/* --- the probe --- */

static enum tl_status check_supported(int index)
{
    CUpti_Profiler_DeviceSupported_Params params = SIZED(CUpti_Profiler_DeviceSupported_Params);
    params.cuDevice = index;
    params.api = CUPTI_PROFILER_RANGE_PROFILING;
    TL_CUPTI_TRY(cuptiProfilerDeviceSupported, &params);
    if (params.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED)
        return TL_OK;
    CUptiResult code = CUPTI_ERROR_NOT_SUPPORTED;
    if (params.vGpu == CUPTI_PROFILER_CONFIGURATION_DISABLED)
        code = CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES;
    else if (params.vGpu == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED)
        code = CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED;
    else if (params.confidentialCompute == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED)
        code = CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED;
    else if (params.sli == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED)
        code = CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED;
    else if (params.cmp == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED)
        code = CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED;
    else if (params.wsl == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED)
        code = CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED;
    return tl_cupti_failed(code, "cuptiProfilerDeviceSupported", __FILE__, __LINE__);
}

static enum tl_status probe(const struct tl_device *device, struct gpu *gpu)
{
    CUcontext context;
    TL_TRY(tl_cupti_open(&api, api_symbols));
    TL_TRY(tl_cupti_context(device, &context));
    CUpti_Profiler_Initialize_Params initialize = SIZED(CUpti_Profiler_Initialize_Params);
    TL_CUPTI_TRY(cuptiProfilerInitialize, &initialize);
    TL_TRY(check_supported(device->index));
    CUpti_Device_GetChipName_Params chip = SIZED(CUpti_Device_GetChipName_Params);
    chip.deviceIndex = (size_t)device->index;
    TL_CUPTI_TRY(cuptiDeviceGetChipName, &chip);
    snprintf(gpu->chip, sizeof gpu->chip, "%s", chip.pChipName);
    CUpti_Profiler_GetCounterAvailability_Params params =
        SIZED(CUpti_Profiler_GetCounterAvailability_Params);
    params.ctx = context;
    TL_CUPTI_TRY(cuptiProfilerGetCounterAvailability, &params);
    gpu->availability = calloc(1, params.counterAvailabilityImageSize + 1);
    if (!gpu->availability)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for the list of free counters");
    params.pCounterAvailabilityImage = gpu->availability;
    TL_CUPTI_TRY(cuptiProfilerGetCounterAvailability, &params);
    return TL_OK;
}

static enum tl_status find_gpu(const struct tl_device *device, const struct gpu **out)
{
    if (strcmp(device->api->name, "cuda") != 0 || device->index >= MAX_GPUS)
        return TL_FAIL(TL_ERR_UNSUPPORTED,
                       "counters: device %s has none that tilelab reads; use a CUDA device",
                       device->name);
    struct gpu *gpu = &gpus[device->index];
    if (!gpu->probed) {
        gpu->status = probe(device, gpu);
        gpu->probed = true;
        if (gpu->status != TL_OK)
            snprintf(gpu->reason, sizeof gpu->reason, "%s", tl_error_message());
    }
    *out = gpu;
    return gpu->status == TL_OK ? TL_OK : TL_FAIL(gpu->status, "%s", gpu->reason);
}

enum tl_status tl_profiler_probe(const struct tl_device *device, const char **out_chip)
{
    const struct gpu *gpu;
    TL_TRY(find_gpu(device, &gpu));
    *out_chip = gpu->chip;
    return TL_OK;
}

/* --- sessions --- */

static enum tl_status schedule(struct tl_profiler *profiler, const struct gpu *gpu,
                               const struct tl_profile_request *request)
{
    struct tl_cupti_host *host;
    struct tl_cupti_metric metric;
    TL_TRY(tl_cupti_host_open(gpu->chip, TL_CUPTI_RANGES, &host));
    TL_TRY(tl_cupti_config_new(host, gpu->availability, request->metrics, request->num_metrics,
                               &profiler->config));
    if (request->max_passes > 0 && profiler->config->passes > request->max_passes)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "these %d metrics take %d passes and max_passes is %d; ask for fewer at "
                       "once",
                       request->num_metrics, profiler->config->passes, request->max_passes);
    profiler->is_ratio = calloc((size_t)request->num_metrics, sizeof *profiler->is_ratio);
    profiler->values = calloc((size_t)request->num_metrics * (size_t)profiler->max_ranges,
                              sizeof *profiler->values);
    if (!profiler->is_ratio || !profiler->values)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for counter values");
    for (int i = 0; i < request->num_metrics; i++) {
        TL_TRY(tl_cupti_host_describe(host, request->metrics[i], &metric));
        profiler->is_ratio[i] = strcmp(metric.kind, "ratio") == 0;
    }
    return TL_OK;
}

static enum tl_status enable(struct tl_profiler *profiler)
{
    CUpti_RangeProfiler_Enable_Params params = SIZED(CUpti_RangeProfiler_Enable_Params);
    params.ctx = profiler->context;
    TL_CUPTI_TRY(cuptiRangeProfilerEnable, &params);
    profiler->object = params.pRangeProfilerObject;
    CUpti_RangeProfiler_GetCounterDataSize_Params size =
        SIZED(CUpti_RangeProfiler_GetCounterDataSize_Params);
    size.pRangeProfilerObject = profiler->object;
    size.pMetricNames = (const char **)profiler->config->names;
    size.numMetrics = (size_t)profiler->config->num_names;
    size.maxNumOfRanges = (size_t)profiler->max_ranges;
    size.maxNumRangeTreeNodes = (uint32_t)profiler->max_ranges;
    TL_CUPTI_TRY(cuptiRangeProfilerGetCounterDataSize, &size);
    profiler->data_bytes = size.counterDataSize;
    profiler->data = calloc(1, profiler->data_bytes + 1);
    if (!profiler->data)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for %zu bytes of counter data",
                       profiler->data_bytes);
    return TL_OK;
}

static void destroy(struct tl_profiler *profiler)
{
    if (profiler->object) {
        CUpti_RangeProfiler_Disable_Params params = SIZED(CUpti_RangeProfiler_Disable_Params);
        params.pRangeProfilerObject = profiler->object;
        api.cuptiRangeProfilerDisable(&params);
    }
    tl_cupti_config_free(profiler->config);
    free(profiler->data);
    free(profiler->values);
    free(profiler->is_ratio);
    if (opened == profiler)
        opened = NULL;
    free(profiler);
}

enum tl_status tl_profiler_open(const struct tl_device *device,
                                const struct tl_profile_request *request,
                                struct tl_profiler **out)
{
    enum tl_status status;
    const struct gpu *gpu;
    if (running)
        return refuse_nested();
    if (opened)
        return TL_FAIL(TL_ERR_ARGUMENT, "a profiling session is open; close it first");
    TL_TRY(find_gpu(device, &gpu));
    struct tl_profiler *profiler = calloc(1, sizeof *profiler);
    if (!profiler)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for a profiling session");
    profiler->mode = request->mode;
    profiler->max_ranges = request->mode == TL_PROFILE_REGION ? 1 : request->max_kernels;
    if (profiler->max_ranges < 1)
        profiler->max_ranges = 1;
    TL_GO(failed, tl_cupti_context(device, &profiler->context));
    TL_GO(failed, schedule(profiler, gpu, request));
    TL_GO(failed, enable(profiler));
    opened = profiler;
    *out = profiler;
    return TL_OK;
failed:
    destroy(profiler);
    return status;
}

int tl_profiler_passes(const struct tl_profiler *profiler)
{
    return profiler->config->passes;
}

double tl_profiler_value(const struct tl_profiler *profiler, int range, int metric)
{
    return profiler->values[range * profiler->config->num_names + metric];
}

void tl_profiler_close(struct tl_profiler *profiler)
{
    if (!profiler)
        return;
    if (running && profiler == opened)
        profiler->close_after_run = true;
    else
        destroy(profiler);
}

/* --- a run --- */

/* Empties the counter data and goes back to the first pass. */
static enum tl_status rewind_passes(struct tl_profiler *profiler)
{
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params empty =
        SIZED(CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
    empty.pRangeProfilerObject = profiler->object;
    empty.counterDataSize = profiler->data_bytes;
    empty.pCounterData = profiler->data;
    TL_CUPTI_TRY(cuptiRangeProfilerCounterDataImageInitialize, &empty);
    bool region = profiler->mode == TL_PROFILE_REGION;
    CUpti_RangeProfiler_SetConfig_Params config = SIZED(CUpti_RangeProfiler_SetConfig_Params);
    config.pRangeProfilerObject = profiler->object;
    config.configSize = profiler->config->image_bytes;
    config.pConfig = profiler->config->image;
    config.counterDataImageSize = profiler->data_bytes;
    config.pCounterDataImage = profiler->data;
    config.range = region ? CUPTI_UserRange : CUPTI_AutoRange;
    config.replayMode = region ? CUPTI_UserReplay : CUPTI_KernelReplay;
    config.maxRangesPerPass = (size_t)profiler->max_ranges;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = 0;
    config.targetNestingLevel = 1;
    TL_CUPTI_TRY(cuptiRangeProfilerSetConfig, &config);
    return TL_OK;
}

static enum tl_status push_range(struct tl_profiler *profiler)
{
    CUpti_RangeProfiler_PushRange_Params params = SIZED(CUpti_RangeProfiler_PushRange_Params);
    params.pRangeProfilerObject = profiler->object;
    params.pRangeName = "region";
    TL_CUPTI_TRY(cuptiRangeProfilerPushRange, &params);
    return TL_OK;
}

static enum tl_status pop_range(struct tl_profiler *profiler)
{
    CUpti_RangeProfiler_PopRange_Params params = SIZED(CUpti_RangeProfiler_PopRange_Params);
    params.pRangeProfilerObject = profiler->object;
    TL_CUPTI_TRY(cuptiRangeProfilerPopRange, &params);
    return TL_OK;
}

static enum tl_status start(struct tl_profiler *profiler)
{
    CUpti_RangeProfiler_Start_Params params = SIZED(CUpti_RangeProfiler_Start_Params);
    params.pRangeProfilerObject = profiler->object;
    TL_CUPTI_TRY(cuptiRangeProfilerStart, &params);
    return TL_OK;
}

static enum tl_status stop(struct tl_profiler *profiler, bool *out_last)
{
    CUpti_RangeProfiler_Stop_Params params = SIZED(CUpti_RangeProfiler_Stop_Params);
    params.pRangeProfilerObject = profiler->object;
    TL_CUPTI_TRY(cuptiRangeProfilerStop, &params);
    *out_last = params.isAllPassSubmitted != 0;
    return TL_OK;
}

/* Runs the region between start and stop. Whatever fails, what was begun is ended, so that the
 * session can be closed; the first failure counts. */
static enum tl_status run_pass(struct tl_profiler *profiler, const struct tl_profile_region *region,
                               bool *out_last)
{
    bool user_range = profiler->mode == TL_PROFILE_REGION;
    if (region->flush && user_range) {
        TL_TRY(region->flush(region->context));
        /* The range begins on the host's word, so the flush has to be over. */
        TL_TRY(tl_cupti_synchronize());
    }
    TL_TRY(start(profiler));
    enum tl_status status = user_range ? push_range(profiler) : TL_OK;
    bool pushed = user_range && status == TL_OK;
    if (status == TL_OK)
        status = region->run(region->context);
    enum tl_status ended = pushed ? pop_range(profiler) : TL_OK;
    if (status == TL_OK)
        status = ended;
    ended = stop(profiler, out_last);
    return status == TL_OK ? ended : status;
}

static enum tl_status run_passes(struct tl_profiler *profiler,
                                 const struct tl_profile_region *region)
{
    bool last = false;
    int count = 0;
    for (; !last; count++) {
        if (count > 2 * profiler->config->passes)
            return TL_FAIL(TL_ERR_DEVICE,
                           "counters: CUPTI scheduled %d passes and asks for ever more",
                           profiler->config->passes);
        TL_TRY(run_pass(profiler, region, &last));
    }
    return TL_OK;
}

/* Reads the counters back and checks that every range is there. */
static enum tl_status decode(struct tl_profiler *profiler, int *out_ranges)
{
    CUpti_RangeProfiler_DecodeData_Params params = SIZED(CUpti_RangeProfiler_DecodeData_Params);
    params.pRangeProfilerObject = profiler->object;
    TL_CUPTI_TRY(cuptiRangeProfilerDecodeData, &params);
    if (params.numOfRangeDropped > 0)
        return TL_FAIL(TL_ERR_DEVICE,
                       "counters: %zu kernels did not fit into the %d that were asked for; raise "
                       "max_kernels",
                       params.numOfRangeDropped, profiler->max_ranges);
    CUpti_RangeProfiler_GetCounterDataInfo_Params info =
        SIZED(CUpti_RangeProfiler_GetCounterDataInfo_Params);
    info.pCounterDataImage = profiler->data;
    info.counterDataImageSize = profiler->data_bytes;
    TL_CUPTI_TRY(cuptiRangeProfilerGetCounterDataInfo, &info);
    bool fits = profiler->mode == TL_PROFILE_KERNELS ? info.numTotalRanges > 0
                                                     : info.numTotalRanges == 1;
    if (!fits || info.numTotalRanges > (size_t)profiler->max_ranges)
        return TL_FAIL(TL_ERR_DEVICE, "counters: CUPTI returned %zu ranges%s", info.numTotalRanges,
                       info.numTotalRanges ? "" : "; does the region launch a kernel?");
    *out_ranges = (int)info.numTotalRanges;
    return TL_OK;
}

static enum tl_status evaluate(struct tl_profiler *profiler, int num_ranges)
{
    int num_metrics = profiler->config->num_names;
    for (int range = 0; range < num_ranges; range++) {
        double *values = profiler->values + range * num_metrics;
        for (int i = 0; i < num_metrics; i++)
            values[i] = NAN;
        TL_TRY(tl_cupti_config_evaluate(profiler->config, profiler->data, profiler->data_bytes,
                                        range, values));
        for (int i = 0; i < num_metrics; i++) {
            if (isfinite(values[i]))
                continue;
            if (!profiler->is_ratio[i])
                return TL_FAIL(TL_ERR_DEVICE, "counters: %s is %g in range %d",
                               profiler->config->names[i], values[i], range);
            values[i] = NAN; /* nothing to divide by: the region did none of it */
        }
    }
    return TL_OK;
}

enum tl_status tl_profiler_run(struct tl_profiler *profiler,
                               const struct tl_profile_region *region, int *out_ranges)
{
    if (running)
        return refuse_nested();
    running = true;
    enum tl_status status = rewind_passes(profiler);
    if (status == TL_OK)
        status = run_passes(profiler, region);
    if (status == TL_OK)
        status = tl_cupti_synchronize(); /* a failed kernel speaks up here, by its own error */
    if (status == TL_OK)
        status = decode(profiler, out_ranges);
    if (status == TL_OK)
        status = evaluate(profiler, *out_ranges);
    running = false;
    if (profiler->close_after_run)
        destroy(profiler);
    return status;
}
