/* Random tensors. Elements are made from random.h, so that every device holds the same bits: on the
 * host and copied in, or where the device can, there. */
#include "device.h"
#include "random.h"
#include "tensor.h"

#include <math.h>
#include <string.h>

struct draw {
    enum tl_dtype dtype;
    enum tl_distribution distribution;
    double low, width; /* or mean and standard deviation */
    uint64_t seed, sequence;
    /* Uniform floats: rounding to the dtype can reach `high`, which the interval excludes; such
     * an element becomes `last`, the greatest value below. */
    double high, last;
    uint32_t integers; /* uniform integers: how many there are from `low` on */
};

static double round_to(enum tl_dtype dtype, double value)
{
    double element; /* large and aligned enough for all dtypes */
    tl_element_set(&element, dtype, 0, value);
    return tl_element_get(&element, dtype, 0);
}

/* The greatest value of a float dtype below `value`, itself a value of that dtype. */
static double below(enum tl_dtype dtype, double value)
{
    if (dtype == TL_FP64)
        return nextafter(value, -INFINITY);
    if (dtype == TL_FP32)
        return (double)nextafterf((float)value, -INFINITY);
    if (value == 0)
        return (double)-tl_bf16_to_fp32(1);
    uint16_t bits = tl_bf16_from_fp64(value);
    return (double)tl_bf16_to_fp32((uint16_t)(value > 0 ? bits - 1 : bits + 1));
}

static bool is_float(enum tl_dtype dtype)
{
    return (TL_DTYPE_BIT(dtype) & TL_FLOATS) != 0;
}

static enum tl_status prepare_uniform(struct draw *draw, double low, double high)
{
    const char *name = tl_dtype_name(draw->dtype);
    if (!(low < high) || !isfinite(high - low))
        return TL_FAIL(TL_ERR_ARGUMENT, "uniform: [%g, %g) must be finite and not empty", low,
                       high);
    if (is_float(draw->dtype)) {
        draw->low = low;
        draw->width = high - low;
        draw->high = round_to(draw->dtype, high);
        draw->last = below(draw->dtype, draw->high);
        if (round_to(draw->dtype, low) >= draw->high)
            return TL_FAIL(TL_ERR_ARGUMENT, "uniform: [%g, %g) holds no value of dtype %s", low,
                           high, name);
        return TL_OK;
    }
    double first = ceil(low), end = ceil(high); /* the integers first .. end - 1 */
    if (round_to(draw->dtype, first) != first || round_to(draw->dtype, end - 1) != end - 1)
        return TL_FAIL(TL_ERR_ARGUMENT, "uniform: [%g, %g) leaves the range of %s", low, high,
                       name);
    if (end - first < 1 || end - first > (double)UINT32_MAX)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "uniform: [%g, %g) holds %.0f integers, not 1 to 2^32 - 1", low, high,
                       end - first);
    draw->low = first;
    draw->integers = (uint32_t)(end - first);
    return TL_OK;
}

static enum tl_status prepare(struct draw *draw, double low, double high)
{
    if (draw->distribution == TL_BITS)
        return TL_OK;
    const char *name = draw->distribution == TL_UNIFORM ? "uniform" : "normal";
    bool has_integers = draw->dtype == TL_I32 || draw->dtype == TL_U8;
    if (!is_float(draw->dtype) && !(draw->distribution == TL_UNIFORM && has_integers))
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: dtype %s has no such distribution; %s", name,
                       tl_dtype_name(draw->dtype),
                       has_integers ? "draw uniform integers or bits" : "draw bits");
    if (draw->distribution == TL_UNIFORM)
        return prepare_uniform(draw, low, high);
    if (!isfinite(low) || !isfinite(high) || high < 0)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "normal: mean %g and deviation %g must be finite, the latter >= 0", low,
                       high);
    draw->low = low;
    draw->width = high;
    return TL_OK;
}

static void draw_bits(const struct draw *draw, struct tl_random_block block, void *data, int64_t i)
{
    switch (tl_dtype_size(draw->dtype)) {
    case 8: ((uint64_t *)data)[i] = block.word[0] | (uint64_t)block.word[1] << 32; break;
    case 4: ((uint32_t *)data)[i] = block.word[0]; break;
    case 2: ((uint16_t *)data)[i] = (uint16_t)block.word[0]; break;
    default: ((uint8_t *)data)[i] = (uint8_t)block.word[0]; break;
    }
}

static double draw_value(const struct draw *draw, struct tl_random_block block)
{
    if (draw->distribution == TL_NORMAL)
        return draw->low + draw->width * (double)tl_random_normal(block);
    if (draw->integers)
        return draw->low + (double)tl_random_below(block, draw->integers);
    double value = draw->low + draw->width * (double)tl_random_uniform(block);
    return round_to(draw->dtype, value) < draw->high ? value : draw->last;
}

static void fill(const struct draw *draw, void *data, int64_t count)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) {
        struct tl_random_block block = tl_random_at(draw->seed, draw->sequence, (uint64_t)i);
        if (draw->distribution == TL_BITS)
            draw_bits(draw, block, data, i);
        else
            tl_element_set(data, draw->dtype, i, draw_value(draw, block));
    }
}

enum tl_status tl_tensor_random(struct tl_tensor *tensor, enum tl_distribution distribution,
                                double low, double high, uint64_t seed, uint64_t sequence)
{
    if (!tl_tensor_is_contiguous(tensor))
        return TL_FAIL(TL_ERR_ARGUMENT, "random: the tensor is not contiguous");
    struct draw draw = {
        .dtype = tensor->dtype, .distribution = distribution, .seed = seed, .sequence = sequence};
    TL_TRY(prepare(&draw, low, high));
    struct tl_device *cpu;
    TL_TRY(tl_device_open("cpu", &cpu));
    if (tensor->device == cpu) {
        fill(&draw, tensor->data, tl_tensor_numel(tensor));
        return TL_OK;
    }
    if (distribution == TL_NORMAL && tensor->device->api->normal) {
        const struct tl_normal normal = {draw.low, draw.width, seed, sequence};
        return tensor->device->api->normal(tensor->data, tensor->dtype, tl_tensor_numel(tensor),
                                           &normal, NULL);
    }
    struct tl_tensor host;
    TL_TRY(tl_tensor_init(&host, cpu, tensor->dtype, tensor->rank, tensor->shape));
    fill(&draw, host.data, tl_tensor_numel(&host));
    enum tl_status status = tl_tensor_copy(tensor, &host, NULL);
    tl_tensor_done(&host);
    return status;
}
