/* Conversions against a formulation that shares nothing with them: the nearest multiple of the
 * quantum at the value's exponent, found with rint, instead of arithmetic on bits. */
#include "check.h"
#include "core/dtype.h"
#include "core/random.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static float fp32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The value that a bf16 pattern stands for, from its fields. */
static double bf16_value(unsigned bits)
{
    int exponent = bits >> 7 & 0xff, fraction = bits & 0x7f;
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == 255)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, -133);
    return sign * ldexp(128 + fraction, exponent - 134);
}

/* Rounds to `digits` binary digits with the exponent range of fp32. */
static double round_to_digits(double value, int digits)
{
    if (value == 0 || !isfinite(value))
        return value;
    int exponent = ilogb(value);
    double quantum = ldexp(1, (exponent < -126 ? -126 : exponent) - digits + 1);
    double rounded = rint(value / quantum) * quantum;
    return fabs(rounded) >= 0x1p128 ? copysign(INFINITY, rounded) : rounded;
}

static void check_bf16(double value, uint16_t bits)
{
    double expected = round_to_digits(value, 8), got = bf16_value(bits);
    if (isnan(value)) {
        if (!isnan(got) || !(bits & 0x40) || (bits >> 15) != (signbit(value) != 0))
            fail_msg("%a (NaN) became %04x", value, bits);
    } else if (got != expected || (bits >> 15) != (signbit(value) != 0)) {
        fail_msg("%a became %04x = %a, expected %a", value, bits, got, expected);
    }
}

static void every_bf16_widens_exactly_and_returns(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 65536; bits++) {
        double value = bf16_value(bits);
        float wide = tl_bf16_to_fp32((uint16_t)bits);
        assert_int_equal(bits_of(wide), bits << 16);
        if (isnan(value)) {
            assert_true(isnan(wide));
            assert_int_equal(tl_bf16_from_fp32(wide), bits | 0x40);
            assert_int_equal(tl_bf16_from_fp64((double)wide), bits | 0x40);
        } else {
            assert_true((double)wide == value && !signbit(wide) == !signbit(value));
            assert_int_equal(tl_bf16_from_fp32(wide), bits);
            assert_int_equal(tl_bf16_from_fp64(value), bits);
        }
    }
}

static void fp32_rounds_to_the_nearest_bf16(void **state)
{
    (void)state;
    static const uint32_t lows[] = {0, 1, 2, 0x3fff, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff};
    for (uint32_t high = 0; high < 65536; high++) {
        for (size_t i = 0; i < sizeof lows / sizeof lows[0] + 4; i++) {
            uint32_t low = i < 9 ? lows[i] : tl_random_at(1, i, high).word[0] & 0xffff;
            float value = fp32_of(high << 16 | low);
            uint16_t bits = tl_bf16_from_fp32(value);
            check_bf16((double)value, bits);
            if (isnan(value)) /* a signalling NaN would not survive the widening to double */
                assert_int_equal(bits >> 15, high >> 15);
            else
                assert_int_equal(bits, tl_bf16_from_fp64((double)value));
        }
    }
}

/* Around each tie between neighbours: a value a hair beyond the tie must not first become the tie
 * in fp32 and then fall to the even side. */
static void fp64_rounds_once(void **state)
{
    (void)state;
    int traps = 0;
    for (unsigned bits = 0; bits < 0x7f80; bits++) {
        double lower = bf16_value(bits);
        double upper = bits == 0x7f7f ? 0x1p128 : bf16_value(bits + 1);
        double tie = (lower + upper) / 2;
        double values[] = {tie,   nextafter(tie, 0),          nextafter(tie, INFINITY),
                           lower, nextafter(lower, INFINITY), lower + (upper - lower) / 3};
        for (int i = 0; i < 6; i++) {
            check_bf16(values[i], tl_bf16_from_fp64(values[i]));
            check_bf16(-values[i], tl_bf16_from_fp64(-values[i]));
            traps += tl_bf16_from_fp32((float)values[i]) != tl_bf16_from_fp64(values[i]);
        }
    }
    assert_true(traps > 20000); /* the set does contain values where two roundings differ */
    static const double extremes[] = {
        DBL_MAX,  0x1p128,      FLT_MAX,  0x1.fffffep127,         0x1.ffp127, 0x1.fefffffffffffp127,
        DBL_MIN,  DBL_TRUE_MIN, 0x1p-134, 0x1.0000000000001p-134, 0x1p-133,   0x1p-149,
        0x1p-150, 1e-300};
    for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
        check_bf16(extremes[i], tl_bf16_from_fp64(extremes[i]));
        check_bf16(-extremes[i], tl_bf16_from_fp64(-extremes[i]));
    }
    assert_int_equal(tl_bf16_from_fp64(0.0), 0);
    assert_int_equal(tl_bf16_from_fp64(-0.0), 0x8000);
    assert_int_equal(tl_bf16_from_fp64(INFINITY), 0x7f80);
    assert_int_equal(tl_bf16_from_fp64(-INFINITY), 0xff80);
    assert_int_equal(tl_bf16_from_fp64((double)NAN) & 0x7fc0, 0x7fc0);
    assert_int_equal(tl_bf16_from_fp64(-(double)NAN) & 0xffc0, 0xffc0);
}

/* NaN payloads in low bits only must not turn into infinity. */
static void nan_stays_nan(void **state)
{
    (void)state;
    static const uint32_t patterns[] = {0x7f800001, 0x7f80ffff, 0x7fbfffff, 0x7fc00000,
                                        0x7fffffff, 0xff800001, 0xffffffff, 0xffbf0000};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        uint16_t bits = tl_bf16_from_fp32(fp32_of(patterns[i]));
        assert_int_equal(bits & 0x7fc0, 0x7fc0);
        assert_int_equal(bits >> 15, patterns[i] >> 31);
    }
    uint64_t wide = 0xfff0000000000001u; /* signalling, negative */
    double value;
    memcpy(&value, &wide, sizeof value);
    assert_int_equal(tl_bf16_from_fp64(value) & 0xffc0, 0xffc0);
    float narrow;
    assert_ok(tl_convert(&narrow, TL_FP32, &value, TL_FP64, 1));
    assert_int_equal(bits_of(narrow) & 0xffc00000, 0xffc00000);
}

static void fp64_rounds_to_the_nearest_fp32(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 200000; i++) {
        struct tl_random_block block = tl_random_at(2, 0, i);
        uint32_t pattern = block.word[0] & 0x7fffffff;
        if (pattern >= 0x7f7fffff)
            continue;
        double lower = (double)fp32_of(pattern), upper = (double)fp32_of(pattern + 1);
        double tie = (lower + upper) / 2;
        double values[] = {tie, nextafter(tie, 0), nextafter(tie, INFINITY), -tie};
        float got[4];
        assert_ok(tl_convert(got, TL_FP32, values, TL_FP64, 4));
        for (int j = 0; j < 4; j++)
            if ((double)got[j] != round_to_digits(values[j], 24))
                fail_msg("%a became %a", values[j], (double)got[j]);
    }
}

static void integers_truncate_and_saturate(void **state)
{
    (void)state;
    static const struct {
        double value;
        int32_t i32;
        uint8_t u8;
    } cases[] = {
        {0, 0, 0},
        {-0.0, 0, 0},
        {0.999, 0, 0},
        {-0.999, 0, 0},
        {1.5, 1, 1},
        {-1.5, -1, 0},
        {2.999, 2, 2},
        {254.99, 254, 254},
        {255, 255, 255},
        {255.5, 255, 255},
        {256, 256, 255},
        {-256, -256, 0},
        {2147483646.5, 2147483646, 255},
        {2147483647.0, INT32_MAX, 255},
        {2147483648.0, INT32_MAX, 255},
        {-2147483648.0, INT32_MIN, 0},
        {-2147483648.9, INT32_MIN, 0},
        {-2147483649.0, INT32_MIN, 0},
        {1e300, INT32_MAX, 255},
        {-1e300, INT32_MIN, 0},
        {INFINITY, INT32_MAX, 255},
        {-INFINITY, INT32_MIN, 0},
        {NAN, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t i32;
        uint8_t u8;
        assert_ok(tl_convert(&i32, TL_I32, &cases[i].value, TL_FP64, 1));
        assert_ok(tl_convert(&u8, TL_U8, &cases[i].value, TL_FP64, 1));
        assert_int_equal(i32, cases[i].i32);
        assert_int_equal(u8, cases[i].u8);
        tl_element_set(&i32, TL_I32, 0, cases[i].value);
        tl_element_set(&u8, TL_U8, 0, cases[i].value);
        assert_int_equal(i32, cases[i].i32);
        assert_int_equal(u8, cases[i].u8);
    }
    /* From the narrower floats and from i32. */
    float wide[] = {2147483648.0f, -2147483648.0f, -3.7f, NAN, 300.5f};
    int32_t i32[5], integers[] = {-1, 255, 256, INT32_MAX, INT32_MIN};
    uint8_t u8[5];
    assert_ok(tl_convert(i32, TL_I32, wide, TL_FP32, 5));
    assert_memory_equal(i32, ((int32_t[]){INT32_MAX, INT32_MIN, -3, 0, 300}), sizeof i32);
    assert_ok(tl_convert(u8, TL_U8, wide, TL_FP32, 5));
    assert_memory_equal(u8, ((uint8_t[]){255, 0, 0, 0, 255}), sizeof u8);
    assert_ok(tl_convert(u8, TL_U8, integers, TL_I32, 5));
    assert_memory_equal(u8, ((uint8_t[]){0, 255, 255, 255, 0}), sizeof u8);
    uint16_t bf16[] = {0x4f00 /* 2^31 */, 0xcf00, 0x7fff, 0x3fff /* 1.99 */};
    assert_ok(tl_convert(i32, TL_I32, bf16, TL_BF16, 4));
    assert_memory_equal(i32, ((int32_t[]){INT32_MAX, INT32_MIN, 0, 1}), 4 * sizeof *i32);
}

static void i32_rounds_once(void **state)
{
    (void)state;
    int32_t from[] = {0, -1, 257, 259, 16777217, 16777219, INT32_MAX, INT32_MIN,
                      0x01010001 /* just above a tie of bf16 that fp32 would round onto it */};
    float fp32[9];
    uint16_t bf16[9];
    double fp64[9];
    assert_ok(tl_convert(fp32, TL_FP32, from, TL_I32, 9));
    assert_ok(tl_convert(bf16, TL_BF16, from, TL_I32, 9));
    assert_ok(tl_convert(fp64, TL_FP64, from, TL_I32, 9));
    for (int i = 0; i < 9; i++) {
        assert_true(fp64[i] == from[i]);
        assert_true((double)fp32[i] == round_to_digits(from[i], 24));
        check_bf16(from[i], bf16[i]);
    }
    assert_true((double)tl_bf16_to_fp32(bf16[8]) == 0x01020000);
}

/* All pairs of convertible dtypes, on values that each of them can hold. */
static void every_pair_converts(void **state)
{
    (void)state;
    static const enum tl_dtype all[] = {TL_FP64, TL_FP32, TL_BF16, TL_I32, TL_U8};
    enum { COUNT = 37 }; /* no multiple of a vector */
    for (int from = 0; from < 5; from++) {
        for (int to = 0; to < 5; to++) {
            double source[COUNT], target[COUNT + 1];
            memset(target, 0xa5, sizeof target);
            for (int i = 0; i < COUNT; i++)
                tl_element_set(source, all[from], i, i * 3);
            assert_ok(tl_convert(target, all[to], source, all[from], COUNT));
            for (int i = 0; i < COUNT; i++)
                assert_true(tl_element_get(target, all[to], i) == i * 3);
            const unsigned char *bytes = (const unsigned char *)target;
            assert_int_equal(bytes[COUNT * tl_dtype_size(all[to])], 0xa5);
        }
    }
    assert_ok(tl_convert(NULL, TL_FP32, NULL, TL_BF16, 0));
}

static void eight_bit_floats_only_copy(void **state)
{
    (void)state;
    uint8_t from[] = {0, 0x7f, 0x80, 0xff}, to[4];
    float wide[4];
    assert_ok(tl_convert(to, TL_E4M3, from, TL_E4M3, 4));
    assert_memory_equal(to, from, 4);
    assert_ok(tl_convert(to, TL_E8M0, from, TL_E8M0, 4));
    assert_fails(TL_ERR_UNSUPPORTED, "e4m3", tl_convert(wide, TL_FP32, from, TL_E4M3, 4));
    assert_fails(TL_ERR_UNSUPPORTED, "e8m0", tl_convert(to, TL_E8M0, wide, TL_FP32, 4));
    assert_fails(TL_ERR_UNSUPPORTED, "e8m0", tl_convert(to, TL_E8M0, from, TL_E4M3, 4));
    assert_fails(TL_ERR_UNSUPPORTED, "u8", tl_convert(to, TL_U8, from, TL_E4M3, 4));
}

static void names_and_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum tl_dtype dtype;
        size_t size;
    } cases[] = {{"fp64", TL_FP64, 8}, {"fp32", TL_FP32, 4}, {"bf16", TL_BF16, 2},
                 {"i32", TL_I32, 4},   {"u8", TL_U8, 1},     {"e4m3", TL_E4M3, 1},
                 {"e8m0", TL_E8M0, 1}};
    assert_int_equal(sizeof cases / sizeof cases[0], TL_NUM_DTYPES);
    for (int i = 0; i < TL_NUM_DTYPES; i++) {
        enum tl_dtype dtype = TL_NUM_DTYPES;
        assert_ok(tl_dtype_parse(cases[i].name, &dtype));
        assert_int_equal(dtype, cases[i].dtype);
        assert_string_equal(tl_dtype_name(dtype), cases[i].name);
        assert_int_equal(tl_dtype_size(dtype), cases[i].size);
    }
    static const char *const wrong[] = {"", "fp", "fp322", "FP32", "float", " fp32"};
    for (int i = 0; i < 6; i++) {
        enum tl_dtype dtype = TL_U8;
        assert_fails(TL_ERR_ARGUMENT, wrong[i], tl_dtype_parse(wrong[i], &dtype));
        for (int j = 0; j < TL_NUM_DTYPES; j++)
            assert_message(cases[j].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bf16_widens_exactly_and_returns),
        cmocka_unit_test(fp32_rounds_to_the_nearest_bf16),
        cmocka_unit_test(fp64_rounds_once),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(fp64_rounds_to_the_nearest_fp32),
        cmocka_unit_test(integers_truncate_and_saturate),
        cmocka_unit_test(i32_rounds_once),
        cmocka_unit_test(every_pair_converts),
        cmocka_unit_test(eight_bit_floats_only_copy),
        cmocka_unit_test(names_and_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
