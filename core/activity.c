/* Kernel records from CUPTI's Activity API; see activity.h.
 *
 * CUPTI asks for buffers and hands them back full, on a thread of its own or inside a flush: the
 * two callbacks are registered once a process, since registering again has lost the first records
 * of a region. Recording is switched off between regions, since it slows launches down. The range
 * profiler launches kernels of its own; they are known by name.
 */
#include "activity.h"

#include <cupti_activity.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cupti.h"

#define FUNCTIONS(X)                                                                     \
    X(cuptiActivityRegisterCallbacks)                                                    \
    X(cuptiActivityEnable)                                                               \
    X(cuptiActivityDisable)                                                              \
    X(cuptiActivityFlushAll)                                                             \
    X(cuptiActivityGetNextRecord)                                                        \
    X(cuptiActivityGetNumDroppedRecords)
TL_CUPTI_TABLE(FUNCTIONS);

enum { BUFFER_BYTES = 1 << 20, BUFFER_ALIGNMENT = 8 };

struct entry {
    struct tl_kernel_record record;
    uint32_t correlation; /* rises with each launch */
};

/* What the callbacks fill; the lock is held only for moments. */
static struct {
    pthread_mutex_t lock;
    struct entry *entries;
    int count, capacity;
    size_t lost;
    bool registered, recording, copies;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_cuptis_own(const char *symbol)
{
    static const char *const names[] = {"WaitNs", "cuptiWait", "NVPW_"};
    char name[128];
    tl_kernel_name_short(symbol, name, sizeof name);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static void fill(struct tl_kernel_record *record, const CUpti_ActivityKernel10 *kernel)
{
    bool timed = kernel->start != 0 && kernel->end > kernel->start;
    tl_kernel_name_short(kernel->name, record->name, sizeof record->name);
    record->duration_us = timed ? (double)(kernel->end - kernel->start) * 1e-3 : NAN;
    record->start_ns = timed ? (int64_t)kernel->start : 0;
    record->grid[0] = kernel->gridX;
    record->grid[1] = kernel->gridY;
    record->grid[2] = kernel->gridZ;
    record->block[0] = kernel->blockX;
    record->block[1] = kernel->blockY;
    record->block[2] = kernel->blockZ;
    /* 0 stands for "no cluster". */
    record->cluster[0] = kernel->clusterX ? (int)kernel->clusterX : 1;
    record->cluster[1] = kernel->clusterY ? (int)kernel->clusterY : 1;
    record->cluster[2] = kernel->clusterZ ? (int)kernel->clusterZ : 1;
    record->registers = kernel->registersPerThread;
    record->static_shared_bytes = kernel->staticSharedMemory;
    record->dynamic_shared_bytes = kernel->dynamicSharedMemory;
    record->shared_carveout_bytes = kernel->sharedMemoryExecuted;
    record->local_bytes = kernel->localMemoryPerThread;
    record->max_active_clusters = (int)kernel->maxActiveClusters;
    record->stream = kernel->streamId;
    record->graph_node = kernel->graphNodeId;
}

/* Room for one more entry, zeros but for its symbol; NULL where there is no memory. With the lock
 * held. */
static struct entry *append(const char *symbol)
{
    if (state.count == state.capacity) {
        int capacity = state.capacity ? 2 * state.capacity : 256;
        struct entry *entries = realloc(state.entries, (size_t)capacity * sizeof *entries);
        if (!entries) {
            state.lost++;
            return NULL;
        }
        state.entries = entries;
        state.capacity = capacity;
    }
    struct entry *entry = &state.entries[state.count];
    memset(entry, 0, sizeof *entry);
    entry->record.symbol = strdup(symbol);
    if (!entry->record.symbol) {
        state.lost++;
        return NULL;
    }
    state.count++;
    return entry;
}

static void append_kernel(const CUpti_ActivityKernel10 *kernel)
{
    if (!kernel->name || is_cuptis_own(kernel->name))
        return;
    struct entry *entry = append(kernel->name);
    if (!entry)
        return;
    fill(&entry->record, kernel);
    entry->correlation = kernel->correlationId;
}

static void append_copy(const CUpti_ActivityMemcpy6 *copy)
{
    bool timed = copy->start != 0 && copy->end > copy->start;
    struct entry *entry = append(TL_ACTIVITY_COPY);
    if (!entry)
        return;
    memcpy(entry->record.name, TL_ACTIVITY_COPY, sizeof TL_ACTIVITY_COPY);
    entry->record.duration_us = timed ? (double)(copy->end - copy->start) * 1e-3 : NAN;
    entry->record.start_ns = timed ? (int64_t)copy->start : 0;
    entry->record.stream = copy->streamId;
    entry->record.graph_node = copy->graphNodeId;
    entry->correlation = copy->correlationId;
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
    void *memory = NULL;
    *max_records = 0; /* as many as fit */
    *size = posix_memalign(&memory, BUFFER_ALIGNMENT, BUFFER_BYTES) == 0 ? BUFFER_BYTES : 0;
    *buffer = *size ? memory : NULL;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t dropped = 0;
    (void)context;
    (void)stream;
    (void)size;
    pthread_mutex_lock(&state.lock);
    while (state.recording && valid > 0 &&
           api.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
            record->kind == CUPTI_ACTIVITY_KIND_KERNEL)
            append_kernel((const CUpti_ActivityKernel10 *)record);
        else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
            append_copy((const CUpti_ActivityMemcpy6 *)record);
    if (api.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS)
        state.lost += dropped;
    pthread_mutex_unlock(&state.lock);
    free(buffer);
}

static void set_recording(bool recording)
{
    pthread_mutex_lock(&state.lock);
    if (recording) {
        for (int i = 0; i < state.count; i++)
            free((char *)state.entries[i].record.symbol);
        state.count = 0;
        state.lost = 0;
    }
    state.recording = recording;
    pthread_mutex_unlock(&state.lock);
}

static enum tl_status flush(void)
{
    CUptiResult code = api.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (code != CUPTI_SUCCESS)
        return tl_cupti_failed(code, "cuptiActivityFlushAll", __FILE__, __LINE__);
    return TL_OK;
}

enum tl_status tl_activity_begin(const struct tl_device *device, bool copies)
{
    CUcontext context;
    CUptiResult code;
    if (state.recording)
        return TL_FAIL(TL_ERR_ARGUMENT, "kernel records inside a region that is recorded already");
    TL_TRY(tl_cupti_context(device, &context));
    if (!state.registered) {
        TL_TRY(tl_cupti_open(&api, api_symbols));
        code = api.cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
        if (code != CUPTI_SUCCESS)
            return tl_cupti_failed(code, "cuptiActivityRegisterCallbacks", __FILE__, __LINE__);
        state.registered = true;
    }
    /* What was launched before belongs to nobody. */
    TL_TRY(tl_cupti_synchronize());
    TL_TRY(flush());
    set_recording(true);
    code = api.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    state.copies = copies && code == CUPTI_SUCCESS;
    if (state.copies)
        code = api.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
    if (code != CUPTI_SUCCESS) {
        if (state.copies)
            api.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        set_recording(false);
        return tl_cupti_failed(code, "cuptiActivityEnable", __FILE__, __LINE__);
    }
    return TL_OK;
}

static int by_launch(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    /* Kernels of one graph launch share its number. */
    return (x->record.start_ns > y->record.start_ns) - (x->record.start_ns < y->record.start_ns);
}

enum tl_status tl_activity_end(void)
{
    if (!state.recording)
        return TL_FAIL(TL_ERR_ARGUMENT, "no region is recorded");
    enum tl_status status = tl_cupti_synchronize();
    enum tl_status flushed = flush(); /* before the kind is off, lest its last records go with it */
    CUptiResult code = api.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (state.copies)
        api.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY);
    if (status == TL_OK)
        status = flushed;
    if (status == TL_OK && code != CUPTI_SUCCESS)
        status = tl_cupti_failed(code, "cuptiActivityDisable", __FILE__, __LINE__);
    flushed = flush();
    if (status == TL_OK)
        status = flushed;
    set_recording(false);
    if (status != TL_OK)
        return status;
    if (state.lost > 0)
        return TL_FAIL(TL_ERR_DEVICE, "%zu kernel records were lost; record fewer launches at once",
                       state.lost);
    qsort(state.entries, (size_t)state.count, sizeof *state.entries, by_launch);
    return TL_OK;
}

const struct tl_kernel_record *tl_activity_record_at(int position)
{
    return position >= 0 && position < state.count ? &state.entries[position].record : NULL;
}
