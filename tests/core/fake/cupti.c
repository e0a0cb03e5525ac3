/* See cupti.h. Compiled with the include folder that holds an empty file `string`, which
 * cupti_profiler_host.h wants. */
#include "cupti.h"

#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT struct fake_cupti fake_cupti = {.passes = 1, .ranges = 1, .value = 42};
#define fake fake_cupti

static CUptiResult answer(const char *function)
{
    return fake.failing && strcmp(fake.failing, function) == 0 ? (CUptiResult)fake.code
                                                               : CUPTI_SUCCESS;
}
#define ANSWER() return answer(__func__)

/* --- the driver --- */

EXPORT CUresult cuInit(unsigned int flags)
{
    (void)flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    static char contexts[64];
    *context = (CUcontext)(void *)&contexts[device];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    fake.synchronized++;
    return CUDA_SUCCESS;
}

/* --- the host side: one chip with three metrics --- */

static const char *metrics[] = {"dram__bytes_read", "lts__t_sector_hit_rate", "sm__warps_active"};
static const char *counter_rollups[] = {".sum", ".avg"}, *ratio_rollups[] = {".pct"};

static bool is_ratio(const char *name)
{
    return strncmp(name, metrics[1], strlen(metrics[1])) == 0;
}

EXPORT CUptiResult
cuptiProfilerHostGetSupportedChips(CUpti_Profiler_Host_GetSupportedChips_Params *p)
{
    static const char *const chips[] = {"GH100"};
    p->numChips = 1;
    p->ppChipNames = chips;
    ANSWER();
}

EXPORT CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *p)
{
    static char object;
    fake.hosts++;
    p->pHostObject = (CUpti_Profiler_Host_Object *)(void *)&object;
    ANSWER();
}

EXPORT CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *p)
{
    (void)p;
    fake.hosts--;
    ANSWER();
}

EXPORT CUptiResult cuptiProfilerHostGetBaseMetrics(CUpti_Profiler_Host_GetBaseMetrics_Params *p)
{
    p->ppMetricNames = p->metricType == CUPTI_METRIC_TYPE_RATIO ? metrics + 1 : metrics;
    p->numMetrics = p->metricType == CUPTI_METRIC_TYPE_THROUGHPUT ? 0 : 1;
    if (p->metricType == CUPTI_METRIC_TYPE_COUNTER) {
        static const char *counters[2];
        counters[0] = metrics[0];
        counters[1] = metrics[2];
        p->ppMetricNames = counters;
        p->numMetrics = 2;
    }
    ANSWER();
}

EXPORT CUptiResult cuptiProfilerHostGetSubMetrics(CUpti_Profiler_Host_GetSubMetrics_Params *p)
{
    p->ppSubMetrics = is_ratio(p->pMetricName) ? ratio_rollups : counter_rollups;
    p->numOfSubmetrics = is_ratio(p->pMetricName) ? 1 : 2;
    ANSWER();
}

EXPORT CUptiResult
cuptiProfilerHostGetMetricProperties(CUpti_Profiler_Host_GetMetricProperties_Params *p)
{
    p->metricType = is_ratio(p->pMetricName) ? CUPTI_METRIC_TYPE_RATIO : CUPTI_METRIC_TYPE_COUNTER;
    p->pDescription = "pretended";
    ANSWER();
}

EXPORT CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
    (void)p;
    ANSWER();
}

EXPORT CUptiResult
cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *p)
{
    p->configImageSize = 16;
    ANSWER();
}

EXPORT CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *p)
{
    memset(p->pConfigImage, 1, p->configImageSize);
    ANSWER();
}

EXPORT CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *p)
{
    p->numOfPasses = (size_t)fake.passes;
    ANSWER();
}

EXPORT CUptiResult
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
    for (size_t i = 0; i < p->numMetrics; i++)
        p->pMetricValues[i] = fake.value + (double)p->rangeIndex;
    ANSWER();
}

/* --- the target side --- */

EXPORT CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *p)
{
    (void)p;
    ANSWER();
}

EXPORT CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *p)
{
    p->isSupported = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    ANSWER();
}

EXPORT CUptiResult
cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    p->counterAvailabilityImageSize = 8;
    if (p->pCounterAvailabilityImage)
        memset(p->pCounterAvailabilityImage, 2, 8);
    ANSWER();
}

EXPORT CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p)
{
    p->pChipName = "GH100";
    ANSWER();
}

EXPORT CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p)
{
    static char object;
    p->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)(void *)&object;
    fake.enabled++;
    ANSWER();
}

EXPORT CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *p)
{
    (void)p;
    fake.enabled--;
    ANSWER();
}

EXPORT CUptiResult
cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
    p->counterDataSize = 64;
    ANSWER();
}

EXPORT CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
    memset(p->pCounterData, 0, p->counterDataSize);
    ANSWER();
}

EXPORT CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *p)
{
    bool region = p->range == CUPTI_UserRange && p->replayMode == CUPTI_UserReplay;
    bool kernels = p->range == CUPTI_AutoRange && p->replayMode == CUPTI_KernelReplay;
    fake.configs++;
    fake.stops = 0;
    if (!region && !kernels)
        return CUPTI_ERROR_INVALID_OPERATION;
    ANSWER();
}

EXPORT CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p)
{
    (void)p;
    fake.starts++;
    ANSWER();
}

EXPORT CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *p)
{
    fake.stops++;
    p->isAllPassSubmitted = fake.stops >= (fake.stops_needed ? fake.stops_needed : fake.passes);
    if (fake.range_open)
        return CUPTI_ERROR_INVALID_OPERATION;
    ANSWER();
}

EXPORT CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params *p)
{
    (void)p;
    fake.pushes++;
    fake.range_open = true;
    ANSWER();
}

EXPORT CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params *p)
{
    (void)p;
    fake.pops++;
    fake.range_open = false;
    ANSWER();
}

EXPORT CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *p)
{
    p->numOfRangeDropped = (size_t)fake.dropped;
    ANSWER();
}

EXPORT CUptiResult
cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
    p->numTotalRanges = (size_t)fake.ranges;
    ANSWER();
}
