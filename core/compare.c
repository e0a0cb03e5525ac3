/* See compare.h. Every verdict is phrased so that NaN fails it: "not (error <= bound)". */
#include "compare.h"

#include <math.h>
#include <string.h>

struct element {
    double value, reference;
    double error; /* NaN where one side is not finite, unless both are the same infinity */
    double bound;
    bool within;
};

static bool same_shape(const struct tl_tensor *a, const struct tl_tensor *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

static enum tl_status check(const struct tl_tensor *value, const struct tl_tensor *reference,
                            const struct tl_bound *bound)
{
    char text[2][128];
    if (value->rank == 0 || reference->rank == 0)
        return TL_FAIL(TL_ERR_ARGUMENT, "compare: the %s is absent",
                       value->rank == 0 ? "value" : "reference");
    if (!same_shape(value, reference))
        return TL_FAIL(TL_ERR_ARGUMENT, "compare: value is %s, reference is %s",
                       tl_tensor_describe(value, text[0], sizeof text[0]),
                       tl_tensor_describe(reference, text[1], sizeof text[1]));
    if (bound->scale && !same_shape(value, bound->scale))
        return TL_FAIL(TL_ERR_ARGUMENT, "compare: value is %s, scale is %s",
                       tl_tensor_describe(value, text[0], sizeof text[0]),
                       tl_tensor_describe(bound->scale, text[1], sizeof text[1]));
    if (bound->scaled != 0 && !bound->scale)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "compare: the bound has a scaled part, but no scale tensor");
    const struct tl_tensor *operands[] = {value, reference, bound->scale};
    for (int i = 0; i < 3 && operands[i]; i++) {
        enum tl_dtype dtype = operands[i]->dtype;
        if (!tl_tensor_is_contiguous(operands[i]))
            return TL_FAIL(TL_ERR_ARGUMENT, "compare: %s is not contiguous",
                           tl_tensor_describe(operands[i], text[0], sizeof text[0]));
        if (dtype == TL_E4M3 || dtype == TL_E8M0)
            return TL_FAIL(TL_ERR_UNSUPPORTED, "compare: elements of dtype %s have no value here",
                           tl_dtype_name(dtype));
    }
    return TL_OK;
}

static double bound_at(const struct tl_bound *bound, const struct tl_tensor *scale,
                       double reference, int64_t i)
{
    double limit = bound->absolute + bound->relative * fabs(reference);
    if (bound->scaled != 0)
        limit += bound->scaled * tl_element_get(scale->data, scale->dtype, i);
    return limit;
}

static void judge(struct element *e, const struct tl_bound *bound, const struct tl_tensor *scale,
                  int64_t i)
{
    if (isfinite(e->value) && isfinite(e->reference)) {
        e->error = fabs(e->value - e->reference);
        e->bound = bound_at(bound, scale, e->reference, i);
        e->within = e->error <= e->bound;
        return;
    }
    /* No bound excuses these, not even an infinite one. */
    e->within = isinf(e->value) && e->value == e->reference;
    e->error = e->within ? 0 : NAN;
    e->bound = 0;
}

static double ratio(const struct element *e)
{
    if (e->within)
        return e->error == 0 ? 0 : e->error / e->bound;
    return e->bound > 0 && e->error > e->bound ? e->error / e->bound : INFINITY;
}

static void keep_worst(struct tl_comparison *out, const struct element *e, int64_t i)
{
    double now = ratio(e);
    if (out->worst_index >= 0 && !(now > out->worst_ratio))
        return;
    out->worst_ratio = now;
    out->worst_index = i;
    out->worst_value = e->value;
    out->worst_reference = e->reference;
}

/* Elements [begin, end) of host tensors. */
static void compare_host(struct tl_comparison *out, const struct tl_tensor *value,
                         const struct tl_tensor *reference, const struct tl_tensor *scale,
                         const struct tl_bound *bound, int64_t begin, int64_t end)
{
    bool same_dtype = value->dtype == reference->dtype;
    size_t size = tl_dtype_size(value->dtype);
    /* long double: squares of large doubles must not overflow, of small ones not vanish. */
    long double error_squares = 0, reference_squares = 0;
    *out = (struct tl_comparison){
        .count = end - begin, .mismatched_bits = same_dtype ? 0 : -1, .worst_index = -1};
    for (int64_t i = begin; i < end; i++) {
        struct element e = {.value = tl_element_get(value->data, value->dtype, i),
                            .reference = tl_element_get(reference->data, reference->dtype, i)};
        judge(&e, bound, scale, i);
        out->violations += !e.within;
        out->nonfinite += !isfinite(e.value) != !isfinite(e.reference);
        if (same_dtype)
            out->mismatched_bits +=
                memcmp((const char *)value->data + (size_t)i * size,
                       (const char *)reference->data + (size_t)i * size, size) != 0;
        if (isfinite(e.value) && isfinite(e.reference)) {
            long double difference = (long double)e.value - e.reference;
            error_squares += difference * difference;
            reference_squares += (long double)e.reference * e.reference;
        }
        keep_worst(out, &e, i);
    }
    if (error_squares > 0)
        out->relative_frobenius =
            reference_squares > 0 ? (double)sqrtl(error_squares / reference_squares) : INFINITY;
    int64_t rest = out->worst_index;
    for (int i = value->rank - 1; i >= 0 && rest >= 0; i--) {
        out->worst_coord[i] = rest % value->shape[i];
        rest /= value->shape[i];
    }
    out->pass = out->violations == 0 && out->nonfinite == 0;
}

/* Groups of rows, or with no offsets all of the tensor as one group. */
static enum tl_status compare_ranges(struct tl_comparison *out, const struct tl_tensor *value,
                                     const struct tl_tensor *reference,
                                     const struct tl_bound *bound, const int32_t *offsets,
                                     int64_t num_groups)
{
    struct tl_tensor host_value = {0}, host_reference = {0}, host_scale = {0};
    int64_t numel = tl_tensor_numel(value);
    int64_t row = value->shape[0] > 0 ? numel / value->shape[0] : 0;
    enum tl_status status;
    TL_GO(done, tl_tensor_on_host(&host_value, value));
    TL_GO(done, tl_tensor_on_host(&host_reference, reference));
    if (bound->scale)
        TL_GO(done, tl_tensor_on_host(&host_scale, bound->scale));
    for (int64_t g = 0; g < num_groups; g++)
        compare_host(out + g, &host_value, &host_reference, &host_scale, bound,
                     offsets ? offsets[g] * row : 0, offsets ? offsets[g + 1] * row : numel);
done:
    tl_tensor_done(&host_value);
    tl_tensor_done(&host_reference);
    tl_tensor_done(&host_scale);
    return status;
}

enum tl_status tl_compare(struct tl_comparison *out, const struct tl_tensor *value,
                          const struct tl_tensor *reference, const struct tl_bound *bound)
{
    TL_TRY(check(value, reference, bound));
    return compare_ranges(out, value, reference, bound, NULL, 1);
}

enum tl_status tl_compare_groups(struct tl_comparison *out, const struct tl_tensor *value,
                                 const struct tl_tensor *reference, const struct tl_bound *bound,
                                 const int32_t *offsets, int64_t num_groups)
{
    TL_TRY(check(value, reference, bound));
    for (int64_t g = 0; g <= num_groups; g++) {
        int32_t least = g > 0 ? offsets[g - 1] : 0;
        if (offsets[g] < least || offsets[g] > value->shape[0])
            return TL_FAIL(TL_ERR_ARGUMENT,
                           "compare: offset %lld is %d; it must be %d to %lld, the rows compared",
                           (long long)g, offsets[g], least, (long long)value->shape[0]);
    }
    return compare_ranges(out, value, reference, bound, offsets, num_groups);
}
