/* See arguments.h. */
#include "arguments.h"

#include <omp.h>
#include <stdlib.h>

#include "core/random.h"

struct tl_tensor *arg_of(struct rig *rig, const char *arg)
{
    int position = tl_operation_arg(rig->operation, arg);
    assert_true(position >= 0);
    return &rig->args.tensor[position];
}

struct tl_tensor *arg_poison(struct rig *rig, const char *arg, enum tl_dtype dtype, int rank,
                             const int64_t *shape)
{
    struct tl_tensor *tensor = arg_of(rig, arg);
    struct tl_device *cpu;
    tl_tensor_done(tensor);
    assert_ok(tl_device_open("cpu", &cpu));
    assert_ok(tl_tensor_init(tensor, cpu, dtype, rank, shape));
    assert_ok(tl_tensor_poison(tensor));
    return tensor;
}

struct tl_tensor *arg_normal(struct rig *rig, const char *arg, enum tl_dtype dtype,
                             double deviation, int rank, const int64_t *shape)
{
    struct tl_tensor *tensor = arg_poison(rig, arg, dtype, rank, shape);
    uint64_t sequence = (uint64_t)tl_operation_arg(rig->operation, arg);
    assert_ok(tl_tensor_random(tensor, TL_NORMAL, 0, deviation, 17, sequence));
    return tensor;
}

struct tl_tensor *arg_fill(struct rig *rig, const char *arg, enum tl_dtype dtype, double value,
                           int rank, const int64_t *shape)
{
    struct tl_tensor *tensor = arg_poison(rig, arg, dtype, rank, shape);
    assert_ok(tl_tensor_fill(tensor, value));
    return tensor;
}

struct tl_tensor *arg_values(struct rig *rig, const char *arg, enum tl_dtype dtype,
                             const double *values, int rank, const int64_t *shape)
{
    struct tl_tensor *tensor = arg_poison(rig, arg, dtype, rank, shape);
    for (int64_t i = 0; i < tl_tensor_numel(tensor); i++)
        tl_element_set(tensor->data, dtype, i, values[i]);
    return tensor;
}

struct tl_tensor *arg_below(struct rig *rig, const char *arg, int32_t bound, uint64_t seed,
                            int rank, const int64_t *shape)
{
    struct tl_tensor *tensor = arg_poison(rig, arg, TL_I32, rank, shape);
    int32_t *values = tensor->data;
    for (int64_t i = 0; i < tl_tensor_numel(tensor); i++)
        values[i] = (int32_t)tl_random_below(tl_random_at(seed, 0, (uint64_t)i), (uint32_t)bound);
    return tensor;
}

void arg_share(struct rig *rig, const char *arg, const struct tl_tensor *tensor)
{
    struct tl_tensor *view = arg_of(rig, arg);
    tl_tensor_done(view);
    assert_ok(tl_tensor_view(view, tensor, 0, tensor->rank, tensor->shape));
}

/* Copies of every argument's bytes, NULL where absent. */
static void snapshot(struct rig *rig, void **copies)
{
    for (int i = 0; i < TL_MAX_ARGS; i++)
        copies[i] = rig->args.tensor[i].rank ? bytes_of(&rig->args.tensor[i]) : NULL;
}

static void snapshot_free(void **copies)
{
    for (int i = 0; i < TL_MAX_ARGS; i++)
        free(copies[i]);
}

void launch_steady(struct rig *rig)
{
    static const int threads[] = {1, 2, 3, 7};
    void *before[TL_MAX_ARGS], *after[TL_MAX_ARGS];
    int usual = omp_get_max_threads();
    snapshot(rig, before);
    for (size_t run = 0; run < sizeof threads / sizeof threads[0]; run++) {
        for (int i = 0; i < TL_MAX_ARGS && rig->operation->args[i].name; i++) {
            struct tl_tensor *tensor = &rig->args.tensor[i];
            if (tensor->rank && rig->operation->args[i].role == TL_OUT)
                assert_ok(tl_tensor_poison(tensor));
            else if (tensor->rank && tl_tensor_bytes(tensor))
                memcpy(tensor->data, before[i], tl_tensor_bytes(tensor));
        }
        omp_set_num_threads(threads[run]);
        assert_ok(rig_launch(rig));
        if (run == 0)
            snapshot(rig, after);
        for (int i = 0; i < TL_MAX_ARGS; i++)
            if (rig->args.tensor[i].rank && !bytes_equal(&rig->args.tensor[i], after[i]))
                fail_msg("%s: %s depends on the number of threads", rig->operation->name,
                         rig->operation->args[i].name);
    }
    omp_set_num_threads(usual);
    snapshot_free(before);
    snapshot_free(after);
}

void launch_refused(struct rig *rig, enum tl_status status, const char *part)
{
    void *before[TL_MAX_ARGS];
    snapshot(rig, before);
    assert_string_equal(tl_status_name(rig_launch(rig)), tl_status_name(status));
    if (!strstr(tl_error_message(), part))
        fail_msg("'%s' does not contain '%s'", tl_error_message(), part);
    for (int i = 0; i < TL_MAX_ARGS; i++)
        if (rig->args.tensor[i].rank && !bytes_equal(&rig->args.tensor[i], before[i]))
            fail_msg("%s: the refused launch changed %s", rig->operation->name,
                     rig->operation->args[i].name);
    snapshot_free(before);
}

void index_refused(struct rig *rig, const char *arg, int64_t at, int32_t value, const char *part)
{
    int32_t *index = arg_of(rig, arg)->data, saved = index[at];
    index[at] = value;
    launch_refused(rig, TL_ERR_ARGUMENT, part);
    index[at] = saved;
}

void assert_near(const struct tl_tensor *tensor, const double *reference, double absolute,
                 double relative)
{
    for (int64_t i = 0; i < tl_tensor_numel(tensor); i++) {
        double value = tl_element_get(tensor->data, tensor->dtype, i);
        double error = fabs(value - reference[i]);
        if (!(error <= absolute + relative * fabs(reference[i])))
            fail_msg("element %lld is %.17g, expected %.17g", (long long)i, value, reference[i]);
    }
}

void assert_poison(const struct tl_tensor *tensor, int64_t begin, int64_t end)
{
    const unsigned char *bytes = tensor->data;
    size_t size = tl_dtype_size(tensor->dtype);
    for (size_t i = (size_t)begin * size; i < (size_t)end * size; i++)
        assert_int_equal(bytes[i], 0xff);
}
