/* See cudnn.h. Descriptors keep what later calls ask for. */
#include "cudnn.h"

#include "kernels/attention/cudnn_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT struct fake_cudnn fake_cudnn;

enum { BAD_PARAM = 2000, NOT_FINALIZED = 2004 };

struct descriptor {
    int type;
    bool final, by_value;
    int64_t tensor_id, count, id[16];
    void *at[16], *workspace;
};

/* The status of a call that the test may have fail. */
static int call(void)
{
    return ++fake_cudnn.calls == fake_cudnn.failing ? fake_cudnn.status : 0;
}

EXPORT size_t cudnnGetVersion(void)
{
    return fake_cudnn.version;
}

EXPORT const char *cudnnGetErrorString(int status)
{
    return status == BAD_PARAM ? "FAKE_BAD_PARAM" : "FAKE_STATUS";
}

EXPORT void cudnnGetLastErrorString(char *text, size_t size)
{
    snprintf(text, size, "call %d", fake_cudnn.calls);
}

EXPORT int cudnnCreate(void **handle)
{
    *handle = &fake_cudnn;
    return call();
}

EXPORT int cudnnSetStream(void *handle, void *stream)
{
    fake_cudnn.stream = stream;
    return handle == &fake_cudnn ? call() : BAD_PARAM;
}

EXPORT int cudnnBackendCreateDescriptor(int type, void **out)
{
    int status = call();
    if (status)
        return status;
    struct descriptor *made = calloc(1, sizeof *made);
    made->type = type;
    fake_cudnn.live++;
    *out = made;
    return 0;
}

EXPORT int cudnnBackendDestroyDescriptor(void *descriptor)
{
    fake_cudnn.live--;
    free(descriptor);
    return 0;
}

EXPORT int cudnnBackendFinalize(void *descriptor)
{
    struct descriptor *d = descriptor;
    if (!d || d->final)
        return BAD_PARAM;
    if (d->type == CUDNN_TENSOR && d->by_value)
        fake_cudnn.scalars |= (uint64_t)1 << d->tensor_id;
    d->final = true;
    return call();
}

/* What is passed on must be finished. */
static bool all_final(int64_t count, const void *values)
{
    struct descriptor *const *list = values;
    for (int64_t i = 0; i < count; i++)
        if (!list[i] || !list[i]->final)
            return false;
    return true;
}

EXPORT int cudnnBackendSetAttribute(void *descriptor, int attribute, int type, int64_t count,
                                    const void *values)
{
    struct descriptor *d = descriptor;
    if (!d || d->final)
        return BAD_PARAM;
    if (type == CUDNN_OF_DESCRIPTOR && d->type != CUDNN_PLAN && !all_final(count, values))
        return NOT_FINALIZED;
    if (attribute == CUDNN_TENSOR_ID)
        memcpy(&d->tensor_id, values, sizeof d->tensor_id);
    else if (attribute == CUDNN_TENSOR_BY_VALUE)
        d->by_value = true;
    else if (attribute == CUDNN_GRAPH_OPS)
        fake_cudnn.operations = (int)count;
    else if (attribute == CUDNN_PACK_IDS)
        memcpy(d->id, values, (size_t)(d->count = count) * sizeof d->id[0]);
    else if (attribute == CUDNN_PACK_POINTERS)
        memcpy(d->at, values, (size_t)count * sizeof d->at[0]);
    else if (attribute == CUDNN_PACK_WORKSPACE)
        memcpy(&d->workspace, values, sizeof d->workspace);
    return call();
}

EXPORT int cudnnBackendGetAttribute(void *descriptor, int attribute, int type, int64_t capacity,
                                    int64_t *count, void *values)
{
    const int note = CUDNN_NOTE_NONDETERMINISTIC;
    int64_t number = attribute == CUDNN_PLAN_WORKSPACE ? fake_cudnn.workspace_bytes : 7;
    (void)type;
    if (!descriptor || capacity < 1)
        return BAD_PARAM;
    *count = 1;
    if (attribute == CUDNN_HEURISTIC_RESULTS)
        *count = fake_cudnn.configs;
    else if (attribute == CUDNN_PLAN_WORKSPACE || attribute == CUDNN_ENGINE_INDEX)
        memcpy(values, &number, sizeof number);
    else if (attribute == CUDNN_ENGINE_NUMERICAL_NOTE && fake_cudnn.nondeterministic)
        memcpy(values, &note, sizeof note);
    else if (attribute == CUDNN_ENGINE_NUMERICAL_NOTE)
        *count = 0;
    return call();
}

EXPORT int cudnnBackendExecute(void *handle, void *plan, void *pack)
{
    const struct descriptor *p = plan, *d = pack;
    if (handle != &fake_cudnn || !p->final || !d->final)
        return BAD_PARAM;
    fake_cudnn.runs++;
    fake_cudnn.count = (int)d->count;
    fake_cudnn.workspace = d->workspace;
    memcpy(fake_cudnn.id, d->id, sizeof d->id);
    memcpy(fake_cudnn.at, d->at, sizeof d->at);
    for (int64_t i = 0; i < d->count; i++)
        if (fake_cudnn.scalars >> d->id[i] & 1)
            memcpy(&fake_cudnn.number[i], d->at[i], sizeof(float));
    return call();
}
