/* The catalogue of a chip's metrics, and their scheduling; see cupti_host.h.
 *
 * cupti_profiler_host.h of CUDA 13.0 includes C++'s <string> without using it: the build puts
 * core/cupti_c, which holds an empty file of that name, on the include path of this file alone.
 *
 * CUPTI keeps the texts and lists it hands out; names are copied anyway, since a later call of the
 * same kind may reuse them. After one bad metric its object refuses everything, so names are
 * checked before, and every configuration has an object of its own.
 */
#include "cupti_host.h"

#include <cupti_profiler_host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti.h"
#include "names.h"

#define FUNCTIONS(X)                                                                      \
    X(cuptiProfilerHostInitialize)                                                        \
    X(cuptiProfilerHostDeinitialize)                                                      \
    X(cuptiProfilerHostGetSupportedChips)                                                 \
    X(cuptiProfilerHostGetBaseMetrics)                                                    \
    X(cuptiProfilerHostGetSubMetrics)                                                     \
    X(cuptiProfilerHostGetMetricProperties)                                               \
    X(cuptiProfilerHostConfigAddMetrics)                                                  \
    X(cuptiProfilerHostGetConfigImageSize)                                                \
    X(cuptiProfilerHostGetConfigImage)                                                    \
    X(cuptiProfilerHostGetNumOfPasses)                                                    \
    X(cuptiProfilerHostEvaluateToGpuValues)
TL_CUPTI_TABLE(FUNCTIONS);

enum { MAX_HOSTS = 16, MAX_NAME = 256, NUM_NEAR = 3 };

struct tl_cupti_host {
    char chip[32];
    enum tl_cupti_use use;
    CUpti_Profiler_Host_Object *object;
    char **names;
    int count;
};

static struct tl_cupti_host hosts[MAX_HOSTS];
static int num_hosts;

/* --- opening --- */

static enum tl_status open_library(void)
{
    static int is_open;
    if (!is_open)
        TL_TRY(tl_cupti_open(&api, api_symbols));
    is_open = 1;
    return TL_OK;
}

enum tl_status tl_cupti_host_chips(char *out, size_t size)
{
    TL_TRY(open_library());
    CUpti_Profiler_Host_GetSupportedChips_Params params = {
        .structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE};
    TL_CUPTI_TRY(cuptiProfilerHostGetSupportedChips, &params);
    size_t used = 0;
    for (size_t i = 0; i < params.numChips && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "",
                                 params.ppChipNames[i]);
    return TL_OK;
}

static enum tl_status new_object(const char *chip, enum tl_cupti_use use,
                                 const uint8_t *availability, CUpti_Profiler_Host_Object **out)
{
    CUpti_Profiler_Host_Initialize_Params params = {
        .structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE,
        .profilerType = use == TL_CUPTI_SAMPLES ? CUPTI_PROFILER_TYPE_PM_SAMPLING
                                                : CUPTI_PROFILER_TYPE_RANGE_PROFILER,
        .pChipName = chip,
        .pCounterAvailabilityImage = availability,
    };
    TL_CUPTI_TRY(cuptiProfilerHostInitialize, &params);
    *out = params.pHostObject;
    return TL_OK;
}

static void free_object(CUpti_Profiler_Host_Object *object)
{
    CUpti_Profiler_Host_Deinitialize_Params params = {
        .structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE,
        .pHostObject = object,
    };
    if (object)
        api.cuptiProfilerHostDeinitialize(&params);
}

static enum tl_status check_chip(const char *chip)
{
    char chips[1024];
    TL_TRY(tl_cupti_host_chips(chips, sizeof chips));
    size_t length = strlen(chip);
    for (const char *word = chips; *word; word += strcspn(word, " "), word += *word == ' ')
        if (strcspn(word, " ") == length && memcmp(word, chip, length) == 0)
            return TL_OK;
    return TL_FAIL(TL_ERR_ARGUMENT, "unknown chip '%s'; this libcupti knows %s", chip, chips);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum tl_status append_names(struct tl_cupti_host *host, CUpti_MetricType type)
{
    CUpti_Profiler_Host_GetBaseMetrics_Params params = {
        .structSize = CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE,
        .pHostObject = host->object,
        .metricType = type,
    };
    TL_CUPTI_TRY(cuptiProfilerHostGetBaseMetrics, &params);
    size_t total = (size_t)host->count + params.numMetrics;
    char **names = realloc(host->names, (total + 1) * sizeof *names);
    if (!names)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for the metrics of %s", host->chip);
    host->names = names;
    for (size_t i = 0; i < params.numMetrics; i++) {
        names[host->count] = strdup(params.ppMetricNames[i]);
        if (!names[host->count])
            return TL_FAIL(TL_ERR_MEMORY, "no memory for the metrics of %s", host->chip);
        host->count++;
    }
    return TL_OK;
}

static void clear(struct tl_cupti_host *host)
{
    free_object(host->object);
    for (int i = 0; i < host->count; i++)
        free(host->names[i]);
    free(host->names);
    memset(host, 0, sizeof *host);
}

enum tl_status tl_cupti_host_open(const char *chip, enum tl_cupti_use use,
                                  struct tl_cupti_host **out)
{
    enum tl_status status;
    TL_TRY(open_library());
    for (int i = 0; i < num_hosts; i++) {
        if (strcmp(hosts[i].chip, chip) == 0 && hosts[i].use == use) {
            *out = &hosts[i];
            return TL_OK;
        }
    }
    TL_TRY(check_chip(chip));
    if (num_hosts == MAX_HOSTS)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "chip %s: %d metric lists are open already", chip,
                       MAX_HOSTS);
    struct tl_cupti_host *host = &hosts[num_hosts];
    snprintf(host->chip, sizeof host->chip, "%s", chip);
    host->use = use;
    TL_GO(failed, new_object(chip, use, NULL, &host->object));
    TL_GO(failed, append_names(host, CUPTI_METRIC_TYPE_COUNTER));
    TL_GO(failed, append_names(host, CUPTI_METRIC_TYPE_RATIO));
    TL_GO(failed, append_names(host, CUPTI_METRIC_TYPE_THROUGHPUT));
    qsort(host->names, (size_t)host->count, sizeof *host->names, by_name);
    num_hosts++;
    *out = host;
    return TL_OK;
failed:
    clear(host);
    return status;
}

const char *tl_cupti_host_name_at(const struct tl_cupti_host *host, int position)
{
    return position >= 0 && position < host->count ? host->names[position] : NULL;
}

/* --- one metric --- */

static int position_of(const struct tl_cupti_host *host, const char *base)
{
    char **found = bsearch(&base, host->names, (size_t)host->count, sizeof *host->names, by_name);
    return found ? (int)(found - host->names) : -1;
}

/* Splits off the base, and returns its position among the names, or -1. A base may hold dots
 * itself ("TPC.TriageCompute.sm__inst_executed_realtime"), so it is the first part that is known;
 * where none is, what comes before the first dot behind "__". */
static int split(const struct tl_cupti_host *host, const char *name, char base[MAX_NAME])
{
    size_t length = strlen(name);
    for (size_t at = 0; at <= length && at < MAX_NAME; at++) {
        if (name[at] != '.' && name[at] != 0)
            continue;
        memcpy(base, name, at);
        base[at] = 0;
        int position = position_of(host, base);
        if (position >= 0)
            return position;
    }
    const char *body = strstr(name, "__");
    length = body ? (size_t)(body - name) + strcspn(body, ".") : strcspn(name, ".");
    snprintf(base, MAX_NAME, "%.*s", (int)length, name);
    return -1;
}

/* Lists the nearest base names, best first. */
static enum tl_status unknown(const struct tl_cupti_host *host, const char *name, const char *base)
{
    char near[4 * MAX_NAME] = "";
    const char **left = malloc((size_t)host->count * sizeof *left);
    if (!left)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for near names of %s", name);
    memcpy(left, host->names, (size_t)host->count * sizeof *left);
    int count = host->count;
    for (int i = 0; i < NUM_NEAR; i++) {
        const char *nearest = tl_name_nearest(base, left, count);
        if (!nearest)
            break;
        size_t used = strlen(near);
        snprintf(near + used, sizeof near - used, "%s%s", i ? ", " : "", nearest);
        for (int k = 0; k < count; k++)
            if (left[k] == nearest)
                left[k--] = left[--count];
    }
    free(left);
    return TL_FAIL(TL_ERR_ARGUMENT, "unknown metric '%s' on %s; %s%s", name, host->chip,
                   near[0] ? "near names: " : "`tilelab metrics` lists them all", near);
}

static enum tl_status properties(const struct tl_cupti_host *host, const char *name,
                                 CUpti_Profiler_Host_GetMetricProperties_Params *params)
{
    char base[MAX_NAME];
    if (split(host, name, base) < 0)
        return unknown(host, name, base);
    memset(params, 0, sizeof *params);
    params->structSize = CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE;
    params->pHostObject = host->object;
    params->pMetricName = name;
    CUptiResult code = api.cuptiProfilerHostGetMetricProperties(params);
    if (code == CUPTI_ERROR_INVALID_METRIC_NAME) { /* the roll-up: the caller looks closer */
        params->pMetricName = base;
        code = api.cuptiProfilerHostGetMetricProperties(params);
    }
    params->pMetricName = NULL;
    if (code != CUPTI_SUCCESS)
        return tl_cupti_failed(code, "cuptiProfilerHostGetMetricProperties", __FILE__, __LINE__);
    return TL_OK;
}

enum tl_status tl_cupti_host_describe(const struct tl_cupti_host *host, const char *name,
                                      struct tl_cupti_metric *out)
{
    static const char *const kinds[] = {"counter", "ratio", "throughput"};
    CUpti_Profiler_Host_GetMetricProperties_Params params;
    char base[MAX_NAME];
    TL_TRY(properties(host, name, &params));
    out->base = host->names[split(host, name, base)];
    out->kind = params.metricType < CUPTI_METRIC_TYPE__COUNT ? kinds[params.metricType] : "unknown";
    out->description = params.pDescription ? params.pDescription : "";
    out->hardware = params.pHwUnit ? params.pHwUnit : "";
    out->unit = params.pDimUnit ? params.pDimUnit : "";
    return TL_OK;
}

enum tl_status tl_cupti_host_rollups(const struct tl_cupti_host *host, const char *name,
                                     const char *const **out, int *count)
{
    CUpti_Profiler_Host_GetMetricProperties_Params metric;
    char base[MAX_NAME];
    TL_TRY(properties(host, name, &metric));
    split(host, name, base);
    CUpti_Profiler_Host_GetSubMetrics_Params params = {
        .structSize = CUpti_Profiler_Host_GetSubMetrics_Params_STRUCT_SIZE,
        .pHostObject = host->object,
        .metricType = metric.metricType,
        .pMetricName = base,
    };
    TL_CUPTI_TRY(cuptiProfilerHostGetSubMetrics, &params);
    *out = params.ppSubMetrics;
    *count = (int)params.numOfSubmetrics;
    return TL_OK;
}

enum tl_status tl_cupti_host_check(const struct tl_cupti_host *host, const char *name)
{
    const char *const *rollups;
    char base[MAX_NAME];
    int count;
    TL_TRY(tl_cupti_host_rollups(host, name, &rollups, &count));
    split(host, name, base);
    const char *rollup = name + strlen(base);
    for (int i = 0; i < count; i++)
        if (strcmp(rollups[i], rollup) == 0)
            return TL_OK;
    const char *nearest = *rollup ? tl_name_nearest(rollup, rollups, count) : NULL;
    if (nearest)
        return TL_FAIL(TL_ERR_ARGUMENT, "metric '%s': %s has no roll-up %s; did you mean %s?", name,
                       base, rollup, nearest);
    return TL_FAIL(TL_ERR_ARGUMENT,
                   "metric '%s' needs a roll-up such as %s; `tilelab describe %s` lists them", name,
                   count ? rollups[0] : ".sum", base);
}

/* --- configurations --- */

static enum tl_status copy_names(struct tl_cupti_config *config, const char *const *names,
                                 int count)
{
    config->names = calloc((size_t)count + 1, sizeof *config->names);
    for (; config->names && config->num_names < count; config->num_names++) {
        char *copy = strdup(names[config->num_names]);
        if (!copy)
            break;
        config->names[config->num_names] = copy;
    }
    if (config->num_names < count)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for %d metric names", count);
    return TL_OK;
}

/* All metrics go into one call: each further call would open passes of its own. */
static enum tl_status schedule(struct tl_cupti_config *config)
{
    CUpti_Profiler_Host_ConfigAddMetrics_Params add = {
        .structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE,
        .pHostObject = config->object,
        .ppMetricNames = (const char **)config->names,
        .numMetrics = (size_t)config->num_names,
    };
    TL_CUPTI_TRY(cuptiProfilerHostConfigAddMetrics, &add);
    CUpti_Profiler_Host_GetConfigImageSize_Params size = {
        .structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE,
        .pHostObject = config->object,
    };
    TL_CUPTI_TRY(cuptiProfilerHostGetConfigImageSize, &size);
    config->image_bytes = size.configImageSize;
    config->image = calloc(1, config->image_bytes ? config->image_bytes : 1);
    if (!config->image)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for %zu bytes of counter configuration",
                       config->image_bytes);
    CUpti_Profiler_Host_GetConfigImage_Params image = {
        .structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE,
        .pHostObject = config->object,
        .configImageSize = config->image_bytes,
        .pConfigImage = config->image,
    };
    TL_CUPTI_TRY(cuptiProfilerHostGetConfigImage, &image);
    CUpti_Profiler_Host_GetNumOfPasses_Params passes = {
        .structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE,
        .configImageSize = config->image_bytes,
        .pConfigImage = config->image,
    };
    TL_CUPTI_TRY(cuptiProfilerHostGetNumOfPasses, &passes);
    config->passes = (int)passes.numOfPasses;
    if (config->passes < 1)
        return TL_FAIL(TL_ERR_DEVICE, "CUPTI scheduled %s and %d more metrics over %d passes",
                       config->names[0], config->num_names - 1, config->passes);
    return TL_OK;
}

enum tl_status tl_cupti_config_new(const struct tl_cupti_host *host, const uint8_t *availability,
                                   const char *const *names, int count,
                                   struct tl_cupti_config **out)
{
    enum tl_status status;
    if (count < 1)
        return TL_FAIL(TL_ERR_ARGUMENT, "no metric was named");
    for (int i = 0; i < count; i++) {
        TL_TRY(tl_cupti_host_check(host, names[i]));
        for (int k = 0; k < i; k++)
            if (strcmp(names[i], names[k]) == 0)
                return TL_FAIL(TL_ERR_ARGUMENT, "metric %s is named twice", names[i]);
    }
    struct tl_cupti_config *config = calloc(1, sizeof *config);
    if (!config)
        return TL_FAIL(TL_ERR_MEMORY, "no memory for a counter configuration");
    CUpti_Profiler_Host_Object *object = NULL;
    TL_GO(failed, copy_names(config, names, count));
    TL_GO(failed, new_object(host->chip, host->use, availability, &object));
    config->object = object;
    TL_GO(failed, schedule(config));
    *out = config;
    return TL_OK;
failed:
    tl_cupti_config_free(config);
    return status;
}

enum tl_status tl_cupti_config_evaluate(const struct tl_cupti_config *config, const uint8_t *data,
                                        size_t bytes, int range, double *values)
{
    CUpti_Profiler_Host_EvaluateToGpuValues_Params params = {
        .structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE,
        .pHostObject = config->object,
        .pCounterDataImage = data,
        .counterDataImageSize = bytes,
        .rangeIndex = (size_t)range,
        .ppMetricNames = (const char **)config->names,
        .numMetrics = (size_t)config->num_names,
        .pMetricValues = values,
    };
    TL_CUPTI_TRY(cuptiProfilerHostEvaluateToGpuValues, &params);
    return TL_OK;
}

void tl_cupti_config_free(struct tl_cupti_config *config)
{
    if (!config)
        return;
    free_object(config->object);
    for (int i = 0; i < config->num_names; i++)
        free(config->names[i]);
    free(config->names);
    free(config->image);
    free(config);
}
