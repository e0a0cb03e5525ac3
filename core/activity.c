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
#include <stdio.h>
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

/* A memset or a copy. */
struct span {
    uint64_t start, end, bytes;
    uint32_t correlation, stream;
};

/* What the callbacks fill; the lock is held only for moments. */
static struct {
    pthread_mutex_t lock;
    struct entry *entries;
    int count, capacity;
    size_t lost;
    bool registered, recording, memory;
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

/* A new entry of that symbol at the end; NULL without memory for it. With the lock held. */
static struct entry *append(const char *symbol, uint32_t correlation)
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
    entry->correlation = correlation;
    state.count++;
    return entry;
}

static void append_kernel(const CUpti_ActivityKernel10 *kernel)
{
    if (!kernel->name || is_cuptis_own(kernel->name))
        return;
    struct entry *entry = append(kernel->name, kernel->correlationId);
    if (entry)
        fill(&entry->record, kernel);
}

static void append_memory(enum tl_activity_kind kind, const char *name, const struct span *span)
{
    struct entry *entry = append(name, span->correlation);
    if (!entry)
        return;
    bool timed = span->start != 0 && span->end >= span->start;
    struct tl_kernel_record *record = &entry->record;
    record->kind = kind;
    record->bytes = (int64_t)span->bytes;
    snprintf(record->name, sizeof record->name, "%s", name);
    record->duration_us = timed ? (double)(span->end - span->start) * 1e-3 : NAN;
    record->start_ns = timed ? (int64_t)span->start : 0;
    record->stream = span->stream;
}

static const char *copy_name(uint8_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        return "copy from the host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        return "copy to the host";
    default:
        return "copy";
    }
}

static void append_any(const CUpti_Activity *record)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
        record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
        append_kernel((const CUpti_ActivityKernel10 *)record);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const CUpti_ActivityMemset4 *set = (const CUpti_ActivityMemset4 *)record;
        append_memory(TL_ACTIVITY_MEMSET, "memset",
                      &(struct span){set->start, set->end, set->bytes, set->correlationId,
                                     set->streamId});
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const CUpti_ActivityMemcpy6 *copy = (const CUpti_ActivityMemcpy6 *)record;
        append_memory(TL_ACTIVITY_COPY, copy_name(copy->copyKind),
                      &(struct span){copy->start, copy->end, copy->bytes, copy->correlationId,
                                     copy->streamId});
    }
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
        append_any(record);
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

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMCPY};

static int num_kinds(void)
{
    return state.memory ? (int)(sizeof kinds / sizeof kinds[0]) : 1;
}

static enum tl_status switch_off(int count)
{
    enum tl_status status = TL_OK;
    for (int i = 0; i < count; i++) {
        CUptiResult code = api.cuptiActivityDisable(kinds[i]);
        if (status == TL_OK && code != CUPTI_SUCCESS)
            status = tl_cupti_failed(code, "cuptiActivityDisable", __FILE__, __LINE__);
    }
    return status;
}

enum tl_status tl_activity_begin(const struct tl_device *device, bool memory)
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
    state.memory = memory;
    for (int i = 0; i < num_kinds(); i++) {
        code = api.cuptiActivityEnable(kinds[i]);
        if (code != CUPTI_SUCCESS) {
            set_recording(false);
            (void)switch_off(i);
            return tl_cupti_failed(code, "cuptiActivityEnable", __FILE__, __LINE__);
        }
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
    enum tl_status flushed = flush(); /* before a kind is off, lest its last records go with it */
    enum tl_status off = switch_off(num_kinds());
    if (status == TL_OK)
        status = flushed;
    if (status == TL_OK)
        status = off;
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
