/* agreement/cpu_plain against a plain count, and what is not a number. */
#include "arguments.h"
#include "cases.h"

#include "kernels/agreement/op.h"

#include <stdlib.h>

#define TAIL       3 /* rows past the last offset, which nobody looks at */
#define RELATIVE   0.125
#define SCALED     0.0625
#define MAX_GROUPS CASES_MAX_GROUPS

static int32_t offsets[MAX_GROUPS + 1];
static struct group_case groups;

/* Outputs poisoned, the tail NaN. */
static void open_case(struct rig *rig, int64_t n, enum tl_dtype dtype)
{
    int64_t m = group_case_offsets(&groups, 1, offsets) + TAIL;
    rig_open(rig, "agreement", "cpu_plain");
    rig_param(rig, "relative", RELATIVE);
    rig_param(rig, "scaled", SCALED);
    arg_normal(rig, "value", dtype, 1, SHAPE(m, n));
    arg_normal(rig, "reference", TL_FP64, 1, SHAPE(m, n));
    struct tl_tensor *magnitude = arg_normal(rig, "magnitude", TL_FP64, 1, SHAPE(m, n));
    for (int64_t i = 0; i < m * n; i++)
        ((double *)magnitude->data)[i] = fabs(((double *)magnitude->data)[i]);
    for (int64_t i = groups.rows * n; i < m * n; i++)
        ((double *)arg_of(rig, "reference")->data)[i] = NAN;
    rig_i32(rig, "group_offsets", offsets, groups.num_groups + 1);
    arg_poison(rig, "worst", TL_FP64, SHAPE(groups.num_groups));
    arg_poison(rig, "worst_row", TL_I32, SHAPE(groups.num_groups));
    arg_poison(rig, "worst_column", TL_I32, SHAPE(groups.num_groups));
    arg_poison(rig, "violations", TL_FP64, SHAPE(groups.num_groups));
}

static double worst_of(struct rig *rig, int64_t g)
{
    return ((double *)arg_of(rig, "worst")->data)[g];
}

static double violations_of(struct rig *rig, int64_t g)
{
    return ((double *)arg_of(rig, "violations")->data)[g];
}

static void assert_at(struct rig *rig, int64_t g, int row, int column)
{
    assert_int_equal(((int32_t *)arg_of(rig, "worst_row")->data)[g], row);
    assert_int_equal(((int32_t *)arg_of(rig, "worst_column")->data)[g], column);
}

static void check_case(int64_t n, enum tl_dtype dtype)
{
    struct rig rig;
    open_case(&rig, n, dtype);
    assert_ok(rig_launch(&rig));
    double *value = doubles_of(arg_of(&rig, "value"));
    double *reference = doubles_of(arg_of(&rig, "reference"));
    double *magnitude = doubles_of(arg_of(&rig, "magnitude"));
    for (int64_t g = 0; g < groups.num_groups; g++) {
        double worst = -1, violations = 0;
        int64_t at = -1;
        for (int64_t i = offsets[g] * n; i < offsets[g + 1] * n; i++) {
            double error = fabs(value[i] - reference[i]);
            double bound = RELATIVE * fabs(reference[i]) + SCALED * magnitude[i];
            violations += error > bound;
            at = error / bound > worst ? i : at;
            worst = fmax(worst, error / bound);
        }
        assert_true(worst_of(&rig, g) == fmax(worst, 0));
        assert_true(violations_of(&rig, g) == violations);
        assert_at(&rig, g, at < 0 ? -1 : (int)(at / n), at < 0 ? -1 : (int)(at % n));
    }
    free(value);
    free(reference);
    free(magnitude);
    rig_close(&rig);
}

static void test_every_case(void **state)
{
    (void)state;
    for (int i = 0; group_case_at(i, &groups); i++) {
        check_case(1, TL_FP64);
        check_case(7, TL_FP32);
        check_case(16, TL_BF16);
    }
    check_case(0, TL_FP32);
}

/* One group of one row, an element each. */
static void test_verdicts(void **state)
{
    (void)state;
    static const struct {
        double value, reference, magnitude, worst;
    } rows[] = {
        {0, 0, 0, 0}, /* 0 / 0 */
        {2, 2, 1, 0},
        {1e-300, 0, 0, INFINITY},
        {1.125, 1, 0, 1},
        {1, 0, 8, 2},
        {NAN, 0, 1, INFINITY},
        {0, NAN, 1, INFINITY},
        {NAN, NAN, 1, INFINITY},
        {INFINITY, INFINITY, INFINITY, 0},
        {INFINITY, -INFINITY, INFINITY, INFINITY},
        {INFINITY, 1, 1, INFINITY},
        {1, INFINITY, INFINITY, INFINITY}, /* an infinite bound excuses nothing */
        {1, 2, INFINITY, INFINITY},
        {1, 2, NAN, INFINITY},
    };
    int count = sizeof rows / sizeof rows[0];
    struct rig rig;
    groups = (struct group_case){.num_groups = count, .rows = count};
    for (int g = 0; g < count; g++)
        groups.sizes[g] = 1;
    open_case(&rig, 1, TL_FP64);
    for (int g = 0; g < count; g++) {
        ((double *)arg_of(&rig, "value")->data)[g] = rows[g].value;
        ((double *)arg_of(&rig, "reference")->data)[g] = rows[g].reference;
        ((double *)arg_of(&rig, "magnitude")->data)[g] = rows[g].magnitude;
    }
    assert_ok(rig_launch(&rig));
    for (int g = 0; g < count; g++) {
        if (worst_of(&rig, g) != rows[g].worst)
            fail_msg("row %d: the ratio is %g", g, worst_of(&rig, g));
        assert_true(violations_of(&rig, g) == (rows[g].worst > 1));
        assert_at(&rig, g, g, 0);
    }
    rig_close(&rig);
}

/* Of equal ratios the first counts; the largest wins over it wherever it is. */
static void test_ties(void **state)
{
    (void)state;
    struct rig rig;
    groups = (struct group_case){.num_groups = 2, .rows = 50, .sizes = {20, 30}};
    open_case(&rig, 4, TL_FP32);
    assert_ok(tl_tensor_fill(arg_of(&rig, "value"), 1));
    assert_ok(tl_tensor_fill(arg_of(&rig, "reference"), 1));
    ((float *)arg_of(&rig, "value")->data)[13 * 4 + 2] = NAN;
    ((float *)arg_of(&rig, "value")->data)[7 * 4 + 3] = INFINITY;
    ((float *)arg_of(&rig, "value")->data)[7 * 4 + 2] = 100;
    assert_ok(rig_launch(&rig));
    assert_at(&rig, 0, 7, 3);
    assert_true(violations_of(&rig, 0) == 3);
    assert_at(&rig, 1, 20, 0);
    assert_true(worst_of(&rig, 1) == 0 && violations_of(&rig, 1) == 0);
    rig_close(&rig);
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    struct rig rig;
    group_case_draw(&groups, CASE_ZIPF, 33, 1020, 5);
    open_case(&rig, 50, TL_BF16);
    launch_steady(&rig);
    rig_close(&rig);
}

static void test_bad_offsets(void **state)
{
    (void)state;
    struct rig rig;
    groups = (struct group_case){.num_groups = 3, .rows = 60, .sizes = {20, 1, 39}};
    open_case(&rig, 4, TL_FP32);
    index_refused(&rig, "group_offsets", 0, 1, "agreement: group_offsets[0] is 1");
    index_refused(&rig, "group_offsets", 2, 19, "below group_offsets[1] = 20");
    index_refused(&rig, "group_offsets", 3, 64, "beyond the 63 rows");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_case),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_bad_offsets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
