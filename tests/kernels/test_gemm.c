/* gemm/cpu_plain against a naive product: layouts, dtypes, betas, edge shapes, exact properties. */
#include "arguments.h"

#include "kernels/gemm/op.h"

#include <stdlib.h>

struct shape {
    int64_t m, n, k;
};
static const struct shape shapes[] = {
    {1, 1, 1},     {5, 7, 3},   {6, 16, 8}, {97, 130, 257}, {33, 65, 300},
    {3, 1408, 72}, {9, 768, 8}, {2, 8, 72}, {64, 64, 64},   {4, 3, 600},
    {200, 40, 65}, {7, 5, 0},   {0, 5, 3},  {5, 0, 3},      {0, 0, 0},
};
enum { NUM_SHAPES = sizeof shapes / sizeof shapes[0] };

static const struct {
    enum tl_dtype operands, d;
} dtypes[] = {
    {TL_FP32, TL_FP32}, {TL_FP64, TL_FP64}, {TL_BF16, TL_FP32}, {TL_BF16, TL_BF16},
    {TL_FP32, TL_FP64}, {TL_BF16, TL_FP64}, {TL_FP64, TL_FP32}, {TL_FP32, TL_BF16},
};
enum { NUM_DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* Operands drawn; d drawn at beta 1 and poisoned at beta 0. */
static void open_gemm(struct rig *rig, int layout, struct shape s, enum tl_dtype operands,
                      enum tl_dtype d, double beta)
{
    bool a_turned = layout == TL_GEMM_TN, b_turned = layout != TL_GEMM_NT;
    rig_open(rig, "gemm", "cpu_plain");
    rig_param(rig, "layout", layout);
    rig_param(rig, "beta", beta);
    rig_normal(rig, "a", operands, a_turned ? s.k : s.m, a_turned ? s.m : s.k, -1, 1);
    rig_normal(rig, "b", operands, b_turned ? s.k : s.n, b_turned ? s.n : s.k, -1, 2);
    if (beta == 0)
        rig_poison(rig, "d", d, s.m, s.n, -1);
    else
        rig_normal(rig, "d", d, s.m, s.n, -1, 3);
}

static void naive_gemm(const struct rig *rig, int layout, struct shape s, double *d, double *scale,
                       double beta)
{
    double *a = doubles_of(&rig->args.tensor[TL_GEMM_A]);
    double *b = doubles_of(&rig->args.tensor[TL_GEMM_B]);
    bool a_turned = layout == TL_GEMM_TN, b_turned = layout != TL_GEMM_NT;
    naive_product(d, scale, s.m, s.n, s.k,
                  (struct naive_operand){a, a_turned ? 1 : s.k, a_turned ? s.m : 1},
                  (struct naive_operand){b, b_turned ? 1 : s.k, b_turned ? s.n : 1}, beta);
    free(a);
    free(b);
}

static void check_against_naive(int layout, struct shape s, enum tl_dtype operands,
                                enum tl_dtype d_dtype, double beta)
{
    struct rig rig;
    open_gemm(&rig, layout, s, operands, d_dtype, beta);
    struct tl_tensor *d = &rig.args.tensor[TL_GEMM_D];
    double *expected = doubles_of(d), *scale = doubles_of(d);
    naive_gemm(&rig, layout, s, expected, scale, beta);
    assert_ok(rig_launch(&rig));
    struct tl_comparison result = compare_naive(d, expected, scale, s.k);
    if (!result.pass)
        fail_msg("layout %d, m %d n %d k %d, %s to %s, beta %g: %d violations, %d non-finite, "
                 "worst %g for %g",
                 layout, (int)s.m, (int)s.n, (int)s.k, tl_dtype_name(operands),
                 tl_dtype_name(d_dtype), beta, (int)result.violations, (int)result.nonfinite,
                 result.worst_value, result.worst_reference);
    free(expected);
    free(scale);
    rig_close(&rig);
}

static void test_matches_naive(void **state)
{
    (void)state;
    for (int layout = TL_GEMM_NT; layout <= TL_GEMM_TN; layout++)
        for (int i = 0; i < NUM_SHAPES; i++)
            for (int beta = 0; beta <= 1; beta++)
                for (int t = 0; t < NUM_DTYPES; t++)
                    check_against_naive(layout, shapes[i], dtypes[t].operands, dtypes[t].d, beta);
}

/* An error of a thousandth of one element is found, and where it is. */
static void test_planted_error_is_found(void **state)
{
    (void)state;
    struct rig rig;
    struct shape s = {31, 29, 100};
    open_gemm(&rig, TL_GEMM_NT, s, TL_FP32, TL_FP32, 0);
    struct tl_tensor *d = &rig.args.tensor[TL_GEMM_D];
    double *expected = doubles_of(d), *scale = doubles_of(d);
    naive_gemm(&rig, TL_GEMM_NT, s, expected, scale, 0);
    assert_ok(rig_launch(&rig));
    float *values = d->data, good = values[7 * 29 + 11];
    values[7 * 29 + 11] += 0.01f;
    struct tl_comparison result = compare_naive(d, expected, scale, s.k);
    assert_false(result.pass);
    assert_int_equal(result.violations, 1);
    assert_int_equal(result.worst_coord[0], 7);
    assert_int_equal(result.worst_coord[1], 11);
    values[7 * 29 + 11] = NAN;
    assert_false(compare_naive(d, expected, scale, s.k).pass);
    values[7 * 29 + 11] = good;
    assert_true(compare_naive(d, expected, scale, s.k).pass);
    free(expected);
    free(scale);
    rig_close(&rig);
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    for (int layout = TL_GEMM_NT; layout <= TL_GEMM_TN; layout++) {
        struct rig rig;
        open_gemm(&rig, layout, (struct shape){211, 133, 300}, TL_FP32, TL_FP32, 0);
        launch_steady(&rig);
        rig_close(&rig);
    }
}

/* Each row alone gives the bits it has among 97. */
static void test_rows_do_not_depend_on_place(void **state)
{
    (void)state;
    struct rig whole, single;
    struct shape s = {97, 45, 300};
    open_gemm(&whole, TL_GEMM_NT, s, TL_FP32, TL_FP32, 0);
    assert_ok(rig_launch(&whole));
    open_gemm(&single, TL_GEMM_NT, (struct shape){1, s.n, s.k}, TL_FP32, TL_FP32, 0);
    for (int64_t i = 0; i < s.m; i++) {
        const float *a = whole.args.tensor[TL_GEMM_A].data, *d = whole.args.tensor[TL_GEMM_D].data;
        memcpy(single.args.tensor[TL_GEMM_A].data, a + i * s.k, (size_t)s.k * sizeof *a);
        assert_ok(rig_launch(&single));
        assert_true(bytes_equal(&single.args.tensor[TL_GEMM_D], d + i * s.n));
    }
    rig_close(&whole);
    rig_close(&single);
}

/* NaN and infinity in one row of a reach that row of d alone. */
static void test_nonfinite_rows_stay_apart(void **state)
{
    (void)state;
    struct rig rig;
    struct shape s = {50, 37, 90};
    open_gemm(&rig, TL_GEMM_NT, s, TL_FP32, TL_FP32, 0);
    float *a = rig.args.tensor[TL_GEMM_A].data, *d = rig.args.tensor[TL_GEMM_D].data;
    assert_ok(rig_launch(&rig));
    void *clean = bytes_of(&rig.args.tensor[TL_GEMM_D]);
    a[13 * s.k + 89] = NAN;
    a[14 * s.k] = INFINITY;
    assert_ok(rig_launch(&rig));
    for (int64_t i = 0; i < s.m; i++)
        for (int64_t j = 0; j < s.n; j++)
            if (i == 13 || i == 14)
                assert_false(isfinite(d[i * s.n + j]));
            else
                assert_memory_equal(&d[i * s.n + j], (float *)clean + i * s.n + j, sizeof *d);
    free(clean);
    rig_close(&rig);
}

/* At beta 1, k = 0 and rows of zeros leave every bit of d, -0 included. */
static void test_zero_sums_leave_d(void **state)
{
    (void)state;
    static const enum tl_dtype d_dtypes[] = {TL_FP32, TL_FP64, TL_BF16};
    for (int t = 0; t < 3; t++)
        for (int64_t k = 0; k <= 5; k += 5) {
            struct rig rig;
            open_gemm(&rig, TL_GEMM_TN, (struct shape){8, 19, k}, TL_FP32, d_dtypes[t], 1);
            struct tl_tensor *d = &rig.args.tensor[TL_GEMM_D];
            assert_ok(tl_tensor_fill(&rig.args.tensor[TL_GEMM_A], -0.0));
            tl_element_set(d->data, d->dtype, 5, -0.0);
            void *before = bytes_of(d);
            assert_ok(rig_launch(&rig));
            assert_true(bytes_equal(d, before));
            free(before);
            rig_close(&rig);
        }
}

static void test_contract(void **state)
{
    (void)state;
    struct rig rig;
    struct tl_problem problem;
    struct shape s = {10, 20, 30};
    open_gemm(&rig, TL_GEMM_TN, s, TL_BF16, TL_FP32, 0);
    assert_ok(tl_problem_bind(&problem, rig.operation, &rig.args, rig.param));
    assert_true(rig.operation->flops(&problem) == 12000);
    assert_true(rig.operation->bytes(&problem) == 2 * (300 + 600) + 4 * 200);
    rig_param(&rig, "beta", 1);
    assert_ok(tl_problem_bind(&problem, rig.operation, &rig.args, rig.param));
    assert_true(rig.operation->bytes(&problem) == 2 * (300 + 600) + 8 * 200);
    rig_param(&rig, "beta", 0.5);
    assert_refused(rig_launch(&rig), TL_ERR_ARGUMENT, "'beta' is 0.5");
    rig_param(&rig, "beta", 0);
    rig_normal(&rig, "b", TL_FP32, s.k, s.n, -1, 1);
    assert_refused(rig_launch(&rig), TL_ERR_ARGUMENT, "'a' is bf16 and 'b' is fp32");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches_naive),
        cmocka_unit_test(test_planted_error_is_found),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_rows_do_not_depend_on_place),
        cmocka_unit_test(test_nonfinite_rows_stay_apart),
        cmocka_unit_test(test_zero_sums_leave_d),
        cmocka_unit_test(test_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
