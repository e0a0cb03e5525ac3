/* Kernel records and sampling over time of the CUPTI that pretends; see cupti.h. */
#include "cupti.h"

#include <cupti_activity.h>
#include <cupti_pmsampling.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

extern struct fake_cupti fake_cupti;
#define fake fake_cupti

/* --- kernel records --- */

enum { MAX_PENDING = 64 };

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_ActivityKernel10 pending[MAX_PENDING];
static int num_pending;

EXPORT fake_launch_function fake_launch;

EXPORT void fake_launch(const char *symbol, uint64_t start_ns, uint64_t end_ns,
                        uint32_t correlation)
{
    if (!fake.recording || num_pending == MAX_PENDING)
        return;
    bool copy = strcmp(symbol, "memcpy") == 0;
    if (copy && !fake.copies)
        return;
    CUpti_ActivityKernel10 *kernel = &pending[num_pending++];
    memset(kernel, 0, sizeof *kernel);
    if (copy) {
        CUpti_ActivityMemcpy6 record = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                                        .start = start_ns,
                                        .end = end_ns,
                                        .correlationId = correlation};
        memcpy(kernel, &record, sizeof record);
        return;
    }
    kernel->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel->name = symbol;
    kernel->start = start_ns;
    kernel->end = end_ns;
    kernel->correlationId = correlation;
    kernel->gridX = 132, kernel->gridY = 2, kernel->gridZ = 1;
    kernel->blockX = 384, kernel->blockY = kernel->blockZ = 1;
    kernel->registersPerThread = 168;
    kernel->dynamicSharedMemory = 200 * 1024;
}

EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                  CUpti_BuffersCallbackCompleteFunc completed)
{
    request = requested;
    complete = completed;
    fake.registrations++;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    *(kind == CUPTI_ACTIVITY_KIND_MEMCPY ? &fake.copies : &fake.recording) = true;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    *(kind == CUPTI_ACTIVITY_KIND_MEMCPY ? &fake.copies : &fake.recording) = false;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer;
    size_t size, most, used = (size_t)num_pending * sizeof pending[0];
    (void)flag;
    if (num_pending == 0)
        return CUPTI_SUCCESS;
    request(&buffer, &size, &most);
    if (!buffer || size < used)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    memcpy(buffer, pending, used);
    num_pending = 0;
    complete(NULL, 0, buffer, size, used);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
                                              CUpti_Activity **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + sizeof pending[0] : buffer;
    if (next + sizeof pending[0] > buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                     size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = (size_t)fake.lost;
    fake.lost = 0;
    return CUPTI_SUCCESS;
}

/* --- sampling over time --- */

EXPORT CUptiResult cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params *p)
{
    static char object;
    p->pPmSamplingObject = (CUpti_PmSampling_Object *)(void *)&object;
    fake.sampling++;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params *p)
{
    (void)p;
    fake.sampling--;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params *p)
{
    return p->samplingInterval == 20000 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORT CUptiResult cuptiPmSamplingStart(CUpti_PmSampling_Start_Params *p)
{
    (void)p;
    fake.starts++;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params *p)
{
    (void)p;
    fake.stops++;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params *p)
{
    p->overflow = fake.overflow;
    p->decodeStopReason = fake.full ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
                                    : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params *p)
{
    p->counterAvailabilityImageSize = 8;
    if (p->pCounterAvailabilityImage)
        memset(p->pCounterAvailabilityImage, 2, 8);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params *p)
{
    p->counterDataSize = 64;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiPmSamplingCounterDataImageInitialize(
    CUpti_PmSampling_CounterDataImage_Initialize_Params *p)
{
    memset(p->pCounterData, 0, p->counterDataSize);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params *p)
{
    p->numTotalSamples = p->numPopulatedSamples = p->numCompletedSamples = (size_t)fake.samples;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params *p)
{
    p->startTimestamp = 1000000 + 20000 * p->sampleIndex;
    p->endTimestamp = p->startTimestamp + 20000;
    return CUPTI_SUCCESS;
}
