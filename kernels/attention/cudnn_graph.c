/* See cudnn_graph.h. The library's types are declared by hand, so that building needs neither its
 * headers nor its gigabyte. */
#if TL_CUDA
#include "cudnn_graph.h"
#include "cudnn_abi.h"

#include "core/dynlib.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEVICES = 32, MAX_CONFIGS = 16, OLDEST = 91002, FIRST_VIRTUAL = 100 };

static struct {
    size_t (*version)(void);
    const char *(*status_name)(int status);
    void (*last_error)(char *text, size_t size);
    int (*create)(void **handle);
    int (*set_stream)(void *handle, void *stream);
    int (*descriptor_create)(int type, void **descriptor);
    int (*descriptor_destroy)(void *descriptor);
    int (*finalize)(void *descriptor);
    int (*set)(void *descriptor, int attribute, int type, int64_t count, const void *values);
    int (*get)(void *descriptor, int attribute, int type, int64_t capacity, int64_t *count,
               void *values);
    int (*execute)(void *handle, void *plan, void *pack);
} dnn;

#define DNN(member, function)                                                                      \
    {                                                                                              \
        function, offsetof(__typeof__(dnn), member), false                                         \
    }

static const struct tl_dynlib_symbol symbols[] = {
    DNN(version, "cudnnGetVersion"),
    DNN(status_name, "cudnnGetErrorString"),
    DNN(last_error, "cudnnGetLastErrorString"),
    DNN(create, "cudnnCreate"),
    DNN(set_stream, "cudnnSetStream"),
    DNN(descriptor_create, "cudnnBackendCreateDescriptor"),
    DNN(descriptor_destroy, "cudnnBackendDestroyDescriptor"),
    DNN(finalize, "cudnnBackendFinalize"),
    DNN(set, "cudnnBackendSetAttribute"),
    DNN(get, "cudnnBackendGetAttribute"),
    DNN(execute, "cudnnBackendExecute"),
    {NULL, 0, false},
};

static struct tl_dynlib library;
static bool ready;
/* One for each GPU, made by its first use and left to the end of the process: cuDNN opens parts of
 * itself as they are needed, and by the time of an exit handler they may be closed. */
static void *handles[MAX_DEVICES];

/* --- the library ----------------------------------------------------------------------------- */

enum tl_status tl_cudnn_open(void)
{
    static const char *const names[] = {"libcudnn.so.9", NULL};
    if (ready)
        return TL_OK;
    TL_TRY(tl_dynlib_open(&library, "cuDNN", names,
                          "install cuDNN 9 (the wheel nvidia-cudnn-cu13 has it in "
                          "nvidia/cudnn/lib)"));
    TL_TRY(tl_dynlib_resolve(&library, &dnn, symbols));
    size_t version = dnn.version();
    if (version < OLDEST)
        return TL_FAIL(TL_ERR_UNSUPPORTED,
                       "cuDNN: %s is version %zu, and attention needs %d (9.10.2) or later; name "
                       "the folder of a later one in TILELAB_LIBRARY_PATH",
                       library.path, version, OLDEST);
    ready = true;
    return TL_OK;
}

int tl_cudnn_number(void)
{
    return (int)dnn.version();
}

const char *tl_cudnn_version(void)
{
    static char text[600];
    if (ready)
        snprintf(text, sizeof text, "%zu (%s)", dnn.version(), library.path);
    return text;
}

/* A failed call of the library: `who`, what could not be done, the status and what the library
 * adds. */
static enum tl_status fail(const char *who, const char *what, const char *name, int result)
{
    char more[512] = "";
    dnn.last_error(more, sizeof more);
    more[sizeof more - 1] = 0;
    bool unsupported = result >= CUDNN_NOT_SUPPORTED && result < CUDNN_NOT_SUPPORTED_END;
    return TL_FAIL(unsupported ? TL_ERR_ILLEGAL : TL_ERR_DEVICE, "%s: cuDNN %zu: %s%s%s%s: %s%s%s",
                   who, dnn.version(), what, *name ? " '" : "", name, *name ? "'" : "",
                   dnn.status_name(result), *more ? ": " : "", more);
}

enum tl_status tl_cudnn_handle(struct tl_device *device, void **out)
{
    TL_TRY(tl_cudnn_open());
    if (device->index >= MAX_DEVICES)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "%s: cuDNN is used on the first %d GPUs only",
                       device->name, MAX_DEVICES);
    if (device->api->use)
        TL_TRY(device->api->use(device));
    if (!handles[device->index]) {
        int result = dnn.create(&handles[device->index]);
        if (result != 0) {
            handles[device->index] = NULL;
            return fail(device->name, "no handle", "", result);
        }
    }
    *out = handles[device->index];
    return TL_OK;
}

/* --- descriptors ----------------------------------------------------------------------------- */

static void refuse(struct tl_cudnn_graph *graph, const char *name, int result)
{
    graph->status = fail(graph->who, "refused", name, result);
}

/* A new descriptor that belongs to the graph, NULL once the graph has failed. */
static void *create(struct tl_cudnn_graph *graph, const char *name, int type)
{
    void *descriptor = NULL;
    if (graph->status == TL_OK)
        graph->status = tl_cudnn_open();
    if (graph->status != TL_OK)
        return NULL;
    if (graph->num_descriptors == CUDNN_MOST_DESCRIPTORS) {
        graph->status = TL_FAIL(TL_ERR_ARGUMENT, "%s: a graph of more than %d descriptors ('%s')",
                                graph->who, CUDNN_MOST_DESCRIPTORS, name);
        return NULL;
    }
    int result = dnn.descriptor_create(type, &descriptor);
    if (result != 0) {
        refuse(graph, name, result);
        return NULL;
    }
    graph->descriptor[graph->num_descriptors++] = descriptor;
    return descriptor;
}

static void set(struct tl_cudnn_graph *graph, const char *name, void *descriptor, int attribute,
                int type, int64_t count, const void *values)
{
    if (graph->status != TL_OK)
        return;
    int result = dnn.set(descriptor, attribute, type, count, values);
    if (result != 0)
        refuse(graph, name, result);
}

static void set_descriptor(struct tl_cudnn_graph *graph, const char *name, void *descriptor,
                           int attribute, void *value)
{
    if (value)
        set(graph, name, descriptor, attribute, CUDNN_OF_DESCRIPTOR, 1, &value);
}

static void finalize(struct tl_cudnn_graph *graph, const char *name, void *descriptor)
{
    if (graph->status != TL_OK)
        return;
    int result = dnn.finalize(descriptor);
    if (result != 0)
        refuse(graph, name, result);
}

static void add_operation(struct tl_cudnn_graph *graph, const char *name, void *operation)
{
    finalize(graph, name, operation);
    if (graph->status == TL_OK && graph->num_operations == CUDNN_MOST_OPERATIONS)
        graph->status = TL_FAIL(TL_ERR_ARGUMENT, "%s: a graph of more than %d operations ('%s')",
                                graph->who, CUDNN_MOST_OPERATIONS, name);
    if (graph->status == TL_OK)
        graph->operation[graph->num_operations++] = operation;
}

static void *tensor(struct tl_cudnn_graph *graph, const char *name, int type,
                    const struct tl_cudnn_shape *shape, int64_t id, bool by_value)
{
    const int64_t alignment = CUDNN_ALIGNMENT;
    bool is_virtual = id == 0;
    if (is_virtual)
        id = FIRST_VIRTUAL + graph->virtual_id++;
    void *made = create(graph, name, CUDNN_TENSOR);
    set(graph, name, made, CUDNN_TENSOR_TYPE, CUDNN_OF_DATA_TYPE, 1, &type);
    set(graph, name, made, CUDNN_TENSOR_DIMENSIONS, CUDNN_OF_INT64, 4, shape->dim);
    set(graph, name, made, CUDNN_TENSOR_STRIDES, CUDNN_OF_INT64, 4, shape->stride);
    set(graph, name, made, CUDNN_TENSOR_ID, CUDNN_OF_INT64, 1, &id);
    set(graph, name, made, CUDNN_TENSOR_ALIGNMENT, CUDNN_OF_INT64, 1, &alignment);
    if (is_virtual)
        set(graph, name, made, CUDNN_TENSOR_VIRTUAL, CUDNN_OF_BOOL, 1, &is_virtual);
    if (by_value)
        set(graph, name, made, CUDNN_TENSOR_BY_VALUE, CUDNN_OF_BOOL, 1, &by_value);
    finalize(graph, name, made);
    return made;
}

void *tl_cudnn_tensor(struct tl_cudnn_graph *graph, const char *name, int type,
                      const struct tl_cudnn_shape *shape, int64_t id)
{
    return tensor(graph, name, type, shape, id, false);
}

void *tl_cudnn_scalar(struct tl_cudnn_graph *graph, const char *name, int64_t id)
{
    static const struct tl_cudnn_shape one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    return tensor(graph, name, CUDNN_FP32, &one, id, true);
}

void tl_cudnn_matmul(struct tl_cudnn_graph *graph, const char *name, void *a, void *b, void *c)
{
    const int type = CUDNN_FP32;
    void *desc = create(graph, name, CUDNN_MATMUL);
    set(graph, name, desc, CUDNN_MATMUL_PRECISION, CUDNN_OF_DATA_TYPE, 1, &type);
    finalize(graph, name, desc);
    void *operation = create(graph, name, CUDNN_OP_MATMUL);
    set_descriptor(graph, name, operation, CUDNN_OP_MATMUL_DESC, desc);
    set_descriptor(graph, name, operation, CUDNN_OP_MATMUL_A, a);
    set_descriptor(graph, name, operation, CUDNN_OP_MATMUL_B, b);
    set_descriptor(graph, name, operation, CUDNN_OP_MATMUL_C, c);
    add_operation(graph, name, operation);
}

void tl_cudnn_pointwise(struct tl_cudnn_graph *graph, const char *name,
                        const struct tl_cudnn_pointwise *spec)
{
    void *desc = create(graph, name, CUDNN_POINTWISE);
    set(graph, name, desc, CUDNN_POINTWISE_MODE, CUDNN_OF_POINTWISE, 1, &spec->mode);
    set(graph, name, desc, CUDNN_POINTWISE_PRECISION, CUDNN_OF_DATA_TYPE, 1, &spec->type);
    if (spec->mode == CUDNN_INDEX)
        set(graph, name, desc, CUDNN_POINTWISE_AXIS, CUDNN_OF_INT64, 1, &spec->axis);
    finalize(graph, name, desc);
    void *operation = create(graph, name, CUDNN_OP_POINTWISE);
    set_descriptor(graph, name, operation, CUDNN_OP_POINTWISE_DESC, desc);
    set_descriptor(graph, name, operation, CUDNN_OP_POINTWISE_X, spec->x);
    set_descriptor(graph, name, operation, CUDNN_OP_POINTWISE_B, spec->b);
    set_descriptor(graph, name, operation, CUDNN_OP_POINTWISE_T, spec->t);
    set_descriptor(graph, name, operation, CUDNN_OP_POINTWISE_Y, spec->y);
    add_operation(graph, name, operation);
}

void tl_cudnn_reduce(struct tl_cudnn_graph *graph, const char *name, int operator, void * x,
                     void *y)
{
    const int type = CUDNN_FP32;
    void *desc = create(graph, name, CUDNN_REDUCTION);
    set(graph, name, desc, CUDNN_REDUCTION_PRECISION, CUDNN_OF_DATA_TYPE, 1, &type);
    set(graph, name, desc, CUDNN_REDUCTION_OPERATOR, CUDNN_OF_REDUCTION, 1, &operator);
    finalize(graph, name, desc);
    void *operation = create(graph, name, CUDNN_OP_REDUCTION);
    set_descriptor(graph, name, operation, CUDNN_OP_REDUCTION_DESC, desc);
    set_descriptor(graph, name, operation, CUDNN_OP_REDUCTION_X, x);
    set_descriptor(graph, name, operation, CUDNN_OP_REDUCTION_Y, y);
    add_operation(graph, name, operation);
}

void tl_cudnn_reshape(struct tl_cudnn_graph *graph, const char *name, void *x, void *y)
{
    void *operation = create(graph, name, CUDNN_OP_RESHAPE);
    set_descriptor(graph, name, operation, CUDNN_OP_RESHAPE_X, x);
    set_descriptor(graph, name, operation, CUDNN_OP_RESHAPE_Y, y);
    add_operation(graph, name, operation);
}

void tl_cudnn_graph_done(struct tl_cudnn_graph *graph)
{
    while (graph->num_descriptors > 0)
        dnn.descriptor_destroy(graph->descriptor[--graph->num_descriptors]);
    graph->num_operations = 0;
}

/* --- plans ----------------------------------------------------------------------------------- */

/* The graph's own descriptor. */
static void *join_operations(struct tl_cudnn_graph *graph, void *handle)
{
    void *joined = create(graph, "the graph", CUDNN_GRAPH);
    set(graph, "the graph", joined, CUDNN_GRAPH_OPS, CUDNN_OF_DESCRIPTOR, graph->num_operations,
        graph->operation);
    set(graph, "the graph", joined, CUDNN_GRAPH_HANDLE, CUDNN_OF_HANDLE, 1, &handle);
    finalize(graph, "the graph", joined);
    return joined;
}

/* Asks the heuristics of one mode; the configurations belong to the graph. Returns how many. */
static int64_t suggest(struct tl_cudnn_graph *graph, void *joined, int mode,
                       void *configs[MAX_CONFIGS])
{
    int64_t count = 0;
    void *heuristic = create(graph, "the heuristics", CUDNN_HEURISTIC);
    set_descriptor(graph, "the heuristics", heuristic, CUDNN_HEURISTIC_GRAPH, joined);
    set(graph, "the heuristics", heuristic, CUDNN_HEURISTIC_MODE, CUDNN_OF_HEURISTIC, 1, &mode);
    finalize(graph, "the heuristics", heuristic);
    for (int i = 0; i < MAX_CONFIGS; i++)
        configs[i] = create(graph, "an engine's configuration", CUDNN_ENGINE_CONFIG);
    if (graph->status != TL_OK)
        return 0;
    int result = dnn.get(heuristic, CUDNN_HEURISTIC_RESULTS, CUDNN_OF_DESCRIPTOR, MAX_CONFIGS,
                         &count, configs);
    if (result != 0) {
        refuse(graph, "the heuristics", result);
        return 0;
    }
    return count < MAX_CONFIGS ? count : MAX_CONFIGS;
}

/* The engine's number, and whether it gives the same bits each time. */
static int inspect(void *engine, void *config, int64_t *number, bool *deterministic)
{
    int notes[CUDNN_NOTES];
    int64_t count = 0;
    int result =
        dnn.get(config, CUDNN_ENGINE_CONFIG_ENGINE, CUDNN_OF_DESCRIPTOR, 1, &count, &engine);
    if (result == 0)
        result = dnn.get(engine, CUDNN_ENGINE_INDEX, CUDNN_OF_INT64, 1, &count, number);
    count = 0;
    if (result == 0)
        result = dnn.get(engine, CUDNN_ENGINE_NUMERICAL_NOTE, CUDNN_OF_NUMERICAL_NOTE, CUDNN_NOTES,
                         &count, notes);
    *deterministic = true;
    for (int64_t i = 0; i < count && i < CUDNN_NOTES; i++)
        *deterministic = *deterministic && notes[i] != CUDNN_NOTE_NONDETERMINISTIC;
    return result;
}

/* A plan from one configuration; the library's status. */
static int build(void *handle, void *config, struct tl_cudnn_plan *out)
{
    int64_t bytes = 0, count = 0;
    out->handle = handle;
    int result = dnn.descriptor_create(CUDNN_PLAN, &out->descriptor);
    if (result == 0)
        result =
            dnn.set(out->descriptor, CUDNN_PLAN_ENGINE_CONFIG, CUDNN_OF_DESCRIPTOR, 1, &config);
    if (result == 0)
        result = dnn.set(out->descriptor, CUDNN_PLAN_HANDLE, CUDNN_OF_HANDLE, 1, &handle);
    if (result == 0)
        result = dnn.finalize(out->descriptor);
    if (result == 0)
        result = dnn.get(out->descriptor, CUDNN_PLAN_WORKSPACE, CUDNN_OF_INT64, 1, &count, &bytes);
    out->workspace_bytes = bytes > 0 ? (size_t)bytes : 0;
    return result;
}

/* Tries the configurations of one heuristic mode in their order; `result` is the status of the
 * last one. True once there is a plan. */
static bool try_mode(struct tl_cudnn_graph *graph, void *handle, void *joined, int mode,
                     bool deterministic, struct tl_cudnn_plan *out, int *result)
{
    void *configs[MAX_CONFIGS];
    int64_t count = suggest(graph, joined, mode, configs);
    for (int64_t i = 0; i < count; i++) {
        bool same_bits = true;
        void *engine = create(graph, "an engine", CUDNN_ENGINE);
        if (!engine)
            return false;
        *result = inspect(engine, configs[i], &out->engine, &same_bits);
        if (*result != 0 || (deterministic && !same_bits))
            continue;
        *result = build(handle, configs[i], out);
        if (*result == 0)
            return true;
        tl_cudnn_plan_done(out);
    }
    return false;
}

enum tl_status tl_cudnn_plan_find(struct tl_cudnn_graph *graph, void *handle, bool deterministic,
                                  struct tl_cudnn_plan *out)
{
    static const int modes[] = {CUDNN_HEURISTIC_A, CUDNN_HEURISTIC_FALLBACK};
    int result = 0;
    memset(out, 0, sizeof *out);
    void *joined = join_operations(graph, handle);
    for (int i = 0; i < 2 && graph->status == TL_OK; i++)
        if (try_mode(graph, handle, joined, modes[i], deterministic, out, &result))
            return TL_OK;
    if (graph->status != TL_OK)
        return graph->status;
    if (result != 0)
        return fail(graph->who, "no plan", "", result);
    return TL_FAIL(TL_ERR_ILLEGAL,
                   "%s: cuDNN %zu has no %splan for this problem on this GPU; it tells why with "
                   "CUDNN_LOGLEVEL_DBG=2 CUDNN_LOGDEST_DBG=stderr (libnvrtc not found, for one)",
                   graph->who, dnn.version(), deterministic ? "deterministic " : "");
}

void tl_cudnn_plan_done(struct tl_cudnn_plan *plan)
{
    if (plan->descriptor)
        dnn.descriptor_destroy(plan->descriptor);
    memset(plan, 0, sizeof *plan);
}

enum tl_status tl_cudnn_plan_run(const char *who, const struct tl_cudnn_plan *plan,
                                 const int64_t *id, void *const *pointer, int count,
                                 void *workspace, struct tl_stream *stream)
{
    void *pack = NULL;
    int result = dnn.set_stream(plan->handle, stream->native);
    if (result == 0)
        result = dnn.descriptor_create(CUDNN_PACK, &pack);
    if (result == 0)
        result = dnn.set(pack, CUDNN_PACK_IDS, CUDNN_OF_INT64, count, id);
    if (result == 0)
        result = dnn.set(pack, CUDNN_PACK_POINTERS, CUDNN_OF_POINTER, count, pointer);
    if (result == 0)
        result = dnn.set(pack, CUDNN_PACK_WORKSPACE, CUDNN_OF_POINTER, 1, &workspace);
    if (result == 0)
        result = dnn.finalize(pack);
    if (result == 0)
        result = dnn.execute(plan->handle, plan->descriptor, pack);
    enum tl_status status = result == 0 ? TL_OK : fail(who, "launch", "", result);
    if (pack)
        dnn.descriptor_destroy(pack);
    return status;
}
#endif
