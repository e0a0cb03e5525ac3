/* Conversions go through one of two routes: integer arithmetic on the bits for bf16, and double for
 * everything else. Every supported type fits a double exactly, so that a conversion rounds once. */
#include "dtype.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[TL_NUM_DTYPES] = {
    [TL_FP64] = {"fp64", 8}, [TL_FP32] = {"fp32", 4}, [TL_BF16] = {"bf16", 2},
    [TL_I32] = {"i32", 4},   [TL_U8] = {"u8", 1},     [TL_E4M3] = {"e4m3", 1},
    [TL_E8M0] = {"e8m0", 1},
};

static bool is_known(enum tl_dtype dtype)
{
    return (unsigned)dtype < TL_NUM_DTYPES;
}

size_t tl_dtype_size(enum tl_dtype dtype)
{
    return is_known(dtype) ? dtypes[dtype].size : 0;
}

const char *tl_dtype_name(enum tl_dtype dtype)
{
    return is_known(dtype) ? dtypes[dtype].name : "unknown";
}

enum tl_status tl_dtype_parse(const char *name, enum tl_dtype *out)
{
    for (int i = 0; i < TL_NUM_DTYPES; i++) {
        if (strcmp(name, dtypes[i].name) == 0) {
            *out = (enum tl_dtype)i;
            return TL_OK;
        }
    }
    return TL_FAIL(TL_ERR_ARGUMENT,
                   "unknown dtype '%s'; dtypes are fp64, fp32, bf16, i32, u8, e4m3 and e8m0", name);
}

static uint32_t fp32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint16_t bf16_round(uint32_t bits)
{
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

uint16_t tl_bf16_from_fp32(float value)
{
    uint32_t bits = fp32_bits(value);
    if (isnan(value))
        return (uint16_t)((bits >> 16) | 0x40u); /* a payload in the low half must not become inf */
    return bf16_round(bits);
}

/* By way of fp32 rounded to odd: an inexact value gets a last bit of 1, which keeps it off the ties
 * of bf16, so that the second rounding decides as if it were the only one. */
uint16_t tl_bf16_from_fp64(double value)
{
    if (isnan(value)) {
        uint64_t wide;
        memcpy(&wide, &value, sizeof wide);
        return (uint16_t)((wide >> 63 << 15) | 0x7fc0u | (wide >> 45 & 0x3fu));
    }
    float nearest = (float)value;
    uint32_t bits = fp32_bits(nearest);
    if ((double)nearest != value) {
        if (fabs((double)nearest) > fabs(value))
            bits--;
        bits |= 1u;
    }
    /* An infinite value is exact; a finite one that overflowed fp32 stands at FLT_MAX here, beyond
     * the tie between the largest bf16 and infinity. */
    return bf16_round(bits);
}

float tl_bf16_to_fp32(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static int32_t i32_from_fp64(double value)
{
    if (isnan(value))
        return 0;
    if (value >= (double)INT32_MAX)
        return INT32_MAX;
    if (value <= (double)INT32_MIN)
        return INT32_MIN;
    return (int32_t)value;
}

static uint8_t u8_from_fp64(double value)
{
    if (!(value > 0)) /* NaN too */
        return 0;
    return value >= UINT8_MAX ? UINT8_MAX : (uint8_t)value;
}

static bool has_conversion(enum tl_dtype dtype)
{
    return dtype == TL_FP64 || dtype == TL_FP32 || dtype == TL_BF16 || dtype == TL_I32 ||
           dtype == TL_U8;
}

double tl_element_get(const void *data, enum tl_dtype dtype, int64_t index)
{
    switch (dtype) {
    case TL_FP64: return ((const double *)data)[index];
    case TL_FP32: return (double)((const float *)data)[index];
    case TL_BF16: return (double)tl_bf16_to_fp32(((const uint16_t *)data)[index]);
    case TL_I32: return (double)((const int32_t *)data)[index];
    case TL_U8: return (double)((const uint8_t *)data)[index];
    default: return NAN; /* e4m3, e8m0: no number yet, and NaN passes no check */
    }
}

void tl_element_set(void *data, enum tl_dtype dtype, int64_t index, double value)
{
    switch (dtype) {
    case TL_FP64: ((double *)data)[index] = value; break;
    case TL_FP32: ((float *)data)[index] = (float)value; break;
    case TL_BF16: ((uint16_t *)data)[index] = tl_bf16_from_fp64(value); break;
    case TL_I32: ((int32_t *)data)[index] = i32_from_fp64(value); break;
    case TL_U8: ((uint8_t *)data)[index] = u8_from_fp64(value); break;
    default: break;
    }
}

enum tl_status tl_convert(void *dst, enum tl_dtype dst_dtype, const void *src,
                          enum tl_dtype src_dtype, size_t count)
{
    if (!is_known(dst_dtype) || !is_known(src_dtype))
        return TL_FAIL(TL_ERR_ARGUMENT, "convert: dtype %d or %d does not exist", (int)src_dtype,
                       (int)dst_dtype);
    if (dst_dtype != src_dtype && (!has_conversion(dst_dtype) || !has_conversion(src_dtype)))
        return TL_FAIL(TL_ERR_UNSUPPORTED,
                       "no conversion from %s to %s: both sides must be fp64, fp32, bf16, i32 or "
                       "u8, or the same",
                       tl_dtype_name(src_dtype), tl_dtype_name(dst_dtype));
    if (count == 0)
        return TL_OK;
    if (dst_dtype == src_dtype) {
        memcpy(dst, src, count * tl_dtype_size(dst_dtype));
    } else if (dst_dtype == TL_BF16 && src_dtype == TL_FP32) {
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)dst)[i] = tl_bf16_from_fp32(((const float *)src)[i]);
    } else if (dst_dtype == TL_FP32 && src_dtype == TL_BF16) {
        for (size_t i = 0; i < count; i++)
            ((float *)dst)[i] = tl_bf16_to_fp32(((const uint16_t *)src)[i]);
    } else {
        for (size_t i = 0; i < count; i++)
            tl_element_set(dst, dst_dtype, (int64_t)i, tl_element_get(src, src_dtype, (int64_t)i));
    }
    return TL_OK;
}
