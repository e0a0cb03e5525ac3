#include "check.h"
#include "core/compare.h"

#include <float.h>
#include <math.h>

static struct tl_tensor matrix(struct tl_device *device, enum tl_dtype dtype, int64_t rows,
                               int64_t columns, const double *values)
{
    struct tl_tensor wide, tensor;
    int64_t shape[] = {rows, columns};
    assert_ok(tl_tensor_init(&wide, cpu_device(), TL_FP64, 2, shape));
    if (values)
        memcpy(wide.data, values, (size_t)(rows * columns) * sizeof *values);
    assert_ok(tl_tensor_init(&tensor, device, dtype, 2, shape));
    assert_ok(tl_tensor_convert(&tensor, &wide));
    tl_tensor_done(&wide);
    return tensor;
}

/* Compares 2 x 3 fp32 tensors, with `scale` or without. */
static struct tl_comparison compare6(const double *value, const double *reference,
                                     struct tl_bound bound, const double *scale)
{
    struct tl_comparison result;
    struct tl_tensor v = matrix(cpu_device(), TL_FP32, 2, 3, value);
    struct tl_tensor r = matrix(cpu_device(), TL_FP32, 2, 3, reference);
    struct tl_tensor s = {0};
    if (scale) {
        s = matrix(cpu_device(), TL_FP64, 2, 3, scale);
        bound.scale = &s;
    }
    assert_ok(tl_compare(&result, &v, &r, &bound));
    tl_tensor_done(&v);
    tl_tensor_done(&r);
    tl_tensor_done(&s);
    return result;
}

static const double ones[6] = {1, 1, 1, 1, 1, 1};

static void equal_tensors_pass_any_bound(void **state)
{
    (void)state;
    double values[] = {0, -0.0, 1e30, -2.5, INFINITY, -INFINITY};
    struct tl_comparison c = compare6(values, values, (struct tl_bound){0}, NULL);
    assert_true(c.pass && c.violations == 0 && c.nonfinite == 0 && c.mismatched_bits == 0);
    assert_true(c.count == 6 && c.relative_frobenius == 0 && c.worst_ratio == 0);
    assert_true(c.worst_index == 0); /* some element is the worst, even so */
}

static void the_planted_element_is_found(void **state)
{
    (void)state;
    int64_t shape[] = {3, 4, 5, 7};
    struct tl_tensor v, r;
    struct tl_comparison c;
    assert_ok(tl_tensor_init(&v, cpu_device(), TL_FP32, 4, shape));
    assert_ok(tl_tensor_init(&r, cpu_device(), TL_FP32, 4, shape));
    for (int i = 0; i < 3 * 4 * 5 * 7; i++)
        ((float *)v.data)[i] = ((float *)r.data)[i] = (float)(i % 13 + 1);
    int64_t planted = ((2 * 4 + 1) * 5 + 3) * 7 + 6;
    ((float *)v.data)[planted] += 0.5f;
    ((float *)v.data)[0] += 0.01f;
    assert_ok(tl_compare(&c, &v, &r, &(struct tl_bound){.absolute = 0.1}));
    assert_true(!c.pass && c.violations == 1 && c.mismatched_bits == 2);
    assert_int_equal(c.worst_index, planted);
    static const int64_t coord[] = {2, 1, 3, 6};
    assert_memory_equal(c.worst_coord, coord, sizeof coord);
    assert_true(c.worst_value == c.worst_reference + 0.5);
    assert_true(fabs(c.worst_ratio - 5) < 1e-9);
    assert_ok(tl_compare(&c, &v, &r, &(struct tl_bound){.absolute = 0.5}));
    assert_true(c.pass && c.worst_ratio == 1 && c.worst_index == planted); /* <=, not < */
    tl_tensor_done(&v);
    tl_tensor_done(&r);
}

static void nan_never_passes(void **state)
{
    (void)state;
    struct tl_bound loose = {.absolute = INFINITY, .relative = INFINITY};
    double value[] = {1, 1, 1, 1, NAN, 1};
    struct tl_comparison c = compare6(value, ones, loose, NULL);
    assert_true(!c.pass && c.violations == 1 && c.nonfinite == 1 && c.worst_index == 4);
    assert_true(c.worst_coord[0] == 1 && c.worst_coord[1] == 1 && isnan(c.worst_value));
    assert_true(isinf(c.worst_ratio) && c.relative_frobenius == 0); /* of the finite pairs */
    c = compare6(ones, value, loose, NULL);
    assert_true(!c.pass && c.violations == 1 && c.nonfinite == 1);
    /* NaN on both sides: the same bits, and still no number within a bound. */
    c = compare6(value, value, loose, NULL);
    assert_true(!c.pass && c.violations == 1 && c.nonfinite == 0 && c.mismatched_bits == 0);
}

static void a_bound_that_is_nan_passes_nothing(void **state)
{
    (void)state;
    struct tl_comparison c = compare6(ones, ones, (struct tl_bound){.absolute = NAN}, NULL);
    assert_true(!c.pass && c.violations == 6 && c.nonfinite == 0);
    double scale[] = {1, 1, NAN, 1, 1, 1};
    c = compare6(ones, ones, (struct tl_bound){.scaled = 1}, scale);
    assert_true(!c.pass && c.violations == 1 && c.worst_index == 2);
    c = compare6(ones, ones, (struct tl_bound){.absolute = -1}, NULL);
    assert_int_equal(c.violations, 6);
}

static void infinities(void **state)
{
    (void)state;
    struct tl_bound loose = {.absolute = 1, .relative = 1}; /* relative * inf must excuse nothing */
    double same[] = {INFINITY, -INFINITY, 1, 1, 1, 1};
    struct tl_comparison c = compare6(same, same, loose, NULL);
    assert_true(c.pass);
    double opposite[] = {-INFINITY, -INFINITY, 1, 1, 1, 1};
    c = compare6(opposite, same, loose, NULL);
    assert_true(!c.pass && c.violations == 1 && c.nonfinite == 0 && c.worst_index == 0);
    c = compare6(ones, same, loose, NULL);
    assert_true(!c.pass && c.violations == 2 && c.nonfinite == 2);
    c = compare6(same, ones, loose, NULL);
    assert_true(!c.pass && c.violations == 2 && c.nonfinite == 2);
    double nan[] = {NAN, -INFINITY, 1, 1, 1, 1};
    c = compare6(nan, same, loose, NULL);
    assert_true(!c.pass && c.violations == 1 && c.nonfinite == 0);
}

static void the_three_parts_of_a_bound(void **state)
{
    (void)state;
    double reference[] = {0, 1, -10, 100, 1000, 0};
    double value[] = {0.25, 1.34375, -11.25, 110.25, 1100.25, 0}; /* 0.25 and 10 % off, at most */
    struct tl_comparison c;
    c = compare6(value, reference, (struct tl_bound){.absolute = 0.25, .relative = 0.1}, NULL);
    assert_true(c.pass && c.worst_ratio == 1 && c.worst_index == 0);
    c = compare6(value, reference, (struct tl_bound){.absolute = 0.25}, NULL);
    assert_true(c.violations == 4 && c.worst_index == 4);
    c = compare6(value, reference, (struct tl_bound){.relative = 0.1}, NULL);
    assert_true(c.violations == 5 && c.worst_index == 0); /* nothing around a reference of 0 */
    double scale[] = {0.5, 1, 2.5, 20.5, 200.5, 0};
    c = compare6(value, reference, (struct tl_bound){.scaled = 0.5}, scale);
    assert_true(c.pass && c.worst_ratio == 1 && c.worst_index == 0);
    c = compare6(value, reference, (struct tl_bound){.scaled = 0.25}, scale);
    assert_true(c.violations == 5 && c.worst_ratio == 2);
    scale[4] = 100; /* the scale of one element is its own */
    c = compare6(value, reference, (struct tl_bound){.scaled = 0.5}, scale);
    assert_true(c.violations == 1 && c.worst_index == 4);
    scale[0] = INFINITY; /* an unused scale does not matter */
    c = compare6(ones, ones, (struct tl_bound){0}, scale);
    assert_true(c.pass);
}

static void relative_frobenius(void **state)
{
    (void)state;
    double reference[] = {3, 0, 0, 0, 4, 0}, value[] = {3, 0, 0, 0.5, 4, 0};
    struct tl_comparison c = compare6(value, reference, (struct tl_bound){0}, NULL);
    assert_true(fabs(c.relative_frobenius - 0.1) < 1e-12);
    double zero[6] = {0};
    c = compare6(zero, zero, (struct tl_bound){0}, NULL);
    assert_true(c.relative_frobenius == 0 && c.pass);
    c = compare6(value, zero, (struct tl_bound){.absolute = 10}, NULL);
    assert_true(isinf(c.relative_frobenius) && c.relative_frobenius > 0 && c.pass);
    /* Squares of these leave the range of a double. */
    double v[] = {DBL_MAX / 4, 1e-300}, r[] = {DBL_MAX / 2, 1e-300};
    struct tl_tensor big_v = matrix(cpu_device(), TL_FP64, 1, 1, v);
    struct tl_tensor big_r = matrix(cpu_device(), TL_FP64, 1, 1, r);
    assert_ok(tl_compare(&c, &big_v, &big_r, &(struct tl_bound){0}));
    assert_true(c.relative_frobenius == 0.5);
    tl_tensor_done(&big_v);
    tl_tensor_done(&big_r);
}

static void dtypes_may_differ(void **state)
{
    (void)state;
    double values[] = {1, 2, 3, 4, 257, 6}; /* 257 is no bf16: it becomes 256 */
    struct tl_tensor bf16 = matrix(cpu_device(), TL_BF16, 2, 3, values);
    struct tl_tensor fp64 = matrix(cpu_device(), TL_FP64, 2, 3, values);
    struct tl_tensor i32 = matrix(cpu_device(), TL_I32, 2, 3, values);
    struct tl_comparison c;
    assert_ok(tl_compare(&c, &bf16, &fp64, &(struct tl_bound){.absolute = 0.5}));
    assert_true(c.violations == 1 && c.worst_index == 4 && c.mismatched_bits == -1);
    assert_true(c.worst_value == 256 && c.worst_reference == 257 && c.worst_ratio == 2);
    assert_ok(tl_compare(&c, &i32, &fp64, &(struct tl_bound){0}));
    assert_true(c.pass && c.mismatched_bits == -1);
    ((int32_t *)i32.data)[5] = 7;
    assert_ok(tl_compare(&c, &i32, &i32, &(struct tl_bound){0}));
    assert_true(c.pass && c.mismatched_bits == 0);
    tl_tensor_done(&bf16);
    tl_tensor_done(&fp64);
    tl_tensor_done(&i32);
}

static void zeros_of_both_signs_differ_in_bits_only(void **state)
{
    (void)state;
    double plus[6] = {0}, minus[6] = {-0.0, 0, 0, 0, 0, -0.0};
    struct tl_comparison c = compare6(minus, plus, (struct tl_bound){0}, NULL);
    assert_true(c.pass && c.mismatched_bits == 2);
}

static void empty_tensors_pass(void **state)
{
    (void)state;
    struct tl_tensor a = matrix(cpu_device(), TL_FP32, 0, 3, NULL);
    struct tl_tensor b = matrix(cpu_device(), TL_BF16, 0, 3, NULL);
    struct tl_comparison c;
    assert_ok(tl_compare(&c, &a, &a, &(struct tl_bound){0}));
    assert_true(c.pass && c.count == 0 && c.worst_index == -1 && c.mismatched_bits == 0);
    assert_true(c.relative_frobenius == 0 && c.worst_ratio == 0);
    assert_ok(tl_compare(&c, &a, &b, &(struct tl_bound){0}));
    assert_true(c.pass && c.mismatched_bits == -1);
    tl_tensor_done(&a);
    tl_tensor_done(&b);
}

static void other_devices_are_copied(void **state)
{
    (void)state;
    double values[] = {1, 2, 3, 4, 5, 6}, wrong[] = {1, 2, 3, 4.5, 5, 6};
    struct tl_tensor v = matrix(fake_device(), TL_FP32, 2, 3, wrong);
    struct tl_tensor r = matrix(cpu_device(), TL_FP32, 2, 3, values);
    struct tl_tensor s = matrix(fake_device(), TL_FP32, 2, 3, ones);
    struct tl_comparison c;
    assert_ok(tl_compare(&c, &v, &r, &(struct tl_bound){.scaled = 0.25, .scale = &s}));
    assert_true(c.violations == 1 && c.worst_index == 3 && c.mismatched_bits == 1);
    assert_ok(tl_compare(&c, &r, &v, &(struct tl_bound){.scaled = 0.5, .scale = &s}));
    assert_true(c.pass);
    tl_tensor_done(&v);
    tl_tensor_done(&r);
    tl_tensor_done(&s);
    assert_int_equal(fake_allocations, 0);
}

static void refuses(void **state)
{
    (void)state;
    struct tl_tensor a = matrix(cpu_device(), TL_FP32, 2, 3, ones);
    struct tl_tensor b = matrix(cpu_device(), TL_FP32, 3, 2, ones);
    struct tl_tensor absent = {0}, strided = a;
    struct tl_comparison c;
    struct tl_bound bound = {0};
    assert_fails(TL_ERR_ARGUMENT, "[2, 3] fp32", tl_compare(&c, &a, &b, &bound));
    assert_message("[3, 2] fp32");
    assert_fails(TL_ERR_ARGUMENT, "absent", tl_compare(&c, &a, &absent, &bound));
    assert_fails(TL_ERR_ARGUMENT, "absent", tl_compare(&c, &absent, &a, &bound));
    strided.stride[0] = 1, strided.stride[1] = 2;
    assert_fails(TL_ERR_ARGUMENT, "contiguous", tl_compare(&c, &strided, &a, &bound));
    assert_fails(TL_ERR_ARGUMENT, "contiguous", tl_compare(&c, &a, &strided, &bound));
    bound.scaled = 1;
    assert_fails(TL_ERR_ARGUMENT, "scale", tl_compare(&c, &a, &a, &bound));
    bound.scale = &b;
    assert_fails(TL_ERR_ARGUMENT, "scale is [3, 2]", tl_compare(&c, &a, &a, &bound));
    struct tl_tensor e4m3;
    assert_ok(tl_tensor_init(&e4m3, cpu_device(), TL_E4M3, 2, (int64_t[]){2, 3}));
    assert_fails(TL_ERR_UNSUPPORTED, "e4m3", tl_compare(&c, &e4m3, &e4m3, &(struct tl_bound){0}));
    tl_tensor_done(&a);
    tl_tensor_done(&b);
    tl_tensor_done(&e4m3);
}

static void groups_show_where_the_error_is(void **state)
{
    (void)state;
    const double values[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                 exact[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 1, 2};
    struct tl_tensor v = matrix(cpu_device(), TL_FP32, 6, 2, values);
    struct tl_tensor r = matrix(cpu_device(), TL_FP32, 6, 2, exact);
    struct tl_bound bound = {.absolute = 0.5};
    struct tl_comparison result[4];
    const int32_t offsets[] = {0, 1, 1, 5, 6}, beyond[] = {0, 7}, falling[] = {0, 3, 2};
    assert_ok(tl_compare_groups(result, &v, &r, &bound, offsets, 4));
    assert_true(result[0].pass && result[0].count == 2);
    assert_true(result[1].pass && result[1].count == 0 && result[1].worst_index == -1);
    assert_false(result[2].pass);
    assert_int_equal(result[2].worst_coord[0], 4);
    assert_int_equal(result[2].worst_coord[1], 1);
    assert_int_equal(result[2].violations, 1);
    assert_false(result[3].pass);
    assert_int_equal(result[3].worst_index, 11);
    assert_fails(TL_ERR_ARGUMENT, "offset 1 is 7",
                 tl_compare_groups(result, &v, &r, &bound, beyond, 1));
    assert_fails(TL_ERR_ARGUMENT, "offset 2 is 2",
                 tl_compare_groups(result, &v, &r, &bound, falling, 2));
    tl_tensor_done(&v);
    tl_tensor_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_tensors_pass_any_bound),
        cmocka_unit_test(the_planted_element_is_found),
        cmocka_unit_test(nan_never_passes),
        cmocka_unit_test(a_bound_that_is_nan_passes_nothing),
        cmocka_unit_test(infinities),
        cmocka_unit_test(the_three_parts_of_a_bound),
        cmocka_unit_test(relative_frobenius),
        cmocka_unit_test(dtypes_may_differ),
        cmocka_unit_test(zeros_of_both_signs_differ_in_bits_only),
        cmocka_unit_test(empty_tensors_pass),
        cmocka_unit_test(other_devices_are_copied),
        cmocka_unit_test(groups_show_where_the_error_is),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
