/* swiglu against the formula in fp64, and its backward against differences. */
#include "gradient.h"

#include <stdlib.h>

static const int64_t shapes[][2] = {{1, 1}, {1, 7}, {5, 33}, {300, 57}};
enum { NUM_SHAPES = sizeof shapes / sizeof shapes[0] };

/* `used` rows in two groups, the first of them empty; all rows where it is negative. */
static void add_offsets(struct rig *rig, int64_t used)
{
    const double offsets[] = {0, 0, (double)used};
    if (used >= 0)
        arg_values(rig, "group_offsets", TL_I32, offsets, SHAPE(3));
}

static void open_forward(struct rig *rig, enum tl_dtype dtype, int64_t rows, int64_t f,
                         int64_t used)
{
    rig_open(rig, "swiglu", "cpu_plain");
    arg_normal(rig, "x", dtype, 2, SHAPE(rows, 2 * f));
    arg_poison(rig, "y", dtype, SHAPE(rows, f));
    add_offsets(rig, used);
}

static void check_forward(enum tl_dtype dtype, int64_t rows, int64_t f, int64_t used)
{
    struct rig rig;
    open_forward(&rig, dtype, rows, f, used);
    launch_steady(&rig);
    double *x = doubles_of(arg_of(&rig, "x"));
    struct tl_tensor *y = arg_of(&rig, "y");
    int64_t end = used < 0 ? rows : used;
    for (int64_t i = 0; i < end * f; i++) {
        double gate = x[i / f * 2 * f + i % f], up = x[i / f * 2 * f + f + i % f];
        double expected = gate / (1 + exp(-gate)) * up;
        double tolerance = dtype == TL_FP64 ? 1e-14 : 1e-6;
        assert_true(fabs(tl_element_get(y->data, dtype, i) - expected) <=
                    tolerance * fabs(expected) + 1e-30);
    }
    assert_poison(y, end * f, rows * f);
    free(x);
    rig_close(&rig);
}

static void forward_is_the_formula(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SHAPES; i++)
        for (int wide = 0; wide < 2; wide++) {
            enum tl_dtype dtype = wide ? TL_FP64 : TL_FP32;
            check_forward(dtype, shapes[i][0], shapes[i][1], -1);
            check_forward(dtype, shapes[i][0], shapes[i][1], shapes[i][0] / 2);
        }
}

static void extremes_saturate(void **state)
{
    (void)state;
    struct rig rig;
    const double x[] = {-200, 200, 0, 3, 3, 3}, y[] = {0, 600, 0};
    open_forward(&rig, TL_FP32, 1, 3, -1);
    arg_values(&rig, "x", TL_FP32, x, SHAPE(1, 6));
    assert_ok(rig_launch(&rig));
    assert_near(arg_of(&rig, "y"), y, 1e-30, 0);
    rig_close(&rig);
}

static void open_backward(struct rig *rig, struct rig *forward, enum tl_dtype dtype, int64_t rows,
                          int64_t f, int64_t used)
{
    rig_open(rig, "swiglu_backward", "cpu_plain");
    arg_normal(rig, "dy", dtype, 1, SHAPE(rows, f));
    arg_share(rig, "x", arg_of(forward, "x"));
    arg_poison(rig, "dx", dtype, SHAPE(rows, 2 * f));
    add_offsets(rig, used);
}

static void check_backward(int64_t rows, int64_t f, int64_t used)
{
    struct rig forward, backward;
    open_forward(&forward, TL_FP64, rows, f, used);
    open_backward(&backward, &forward, TL_FP64, rows, f, used);
    launch_steady(&backward);

    /* Rows out of use have no gradient. */
    struct tl_tensor *dx = arg_of(&backward, "dx"), *dy = arg_of(&backward, "dy");
    for (int64_t r = used < 0 ? rows : used; r < rows; r++) {
        assert_poison(dx, r * 2 * f, (r + 1) * 2 * f);
        memset((double *)dx->data + r * 2 * f, 0, (size_t)(2 * f) * sizeof(double));
        memset((double *)dy->data + r * f, 0, (size_t)f * sizeof(double));
    }
    const struct gradient_output outputs[] = {{"y", dy}, {NULL, NULL}};
    gradient_check(&forward, outputs, "x", dx);
    rig_close(&forward);
    rig_close(&backward);
}

static void backward_is_the_gradient(void **state)
{
    (void)state;
    check_backward(1, 1, -1);
    check_backward(5, 7, -1);
    check_backward(5, 7, 3);
    check_backward(5, 7, 0);
}

static void backward_in_fp32_follows_fp64(void **state)
{
    (void)state;
    struct rig forward[2], backward[2];
    for (int wide = 0; wide < 2; wide++) {
        enum tl_dtype dtype = wide ? TL_FP64 : TL_FP32;
        open_forward(&forward[wide], dtype, 300, 57, -1);
        open_backward(&backward[wide], &forward[wide], dtype, 300, 57, -1);
        launch_steady(&backward[wide]);
    }
    assert_near(arg_of(&backward[0], "dx"), arg_of(&backward[1], "dx")->data, 2e-6, 2e-6);
    double *apart = doubles_of(arg_of(&backward[0], "dx"));
    arg_share(&backward[0], "dx", arg_of(&backward[0], "x")); /* in place */
    assert_ok(rig_launch(&backward[0]));
    assert_near(arg_of(&backward[0], "dx"), apart, 0, 0);
    free(apart);
    for (int wide = 0; wide < 2; wide++) {
        rig_close(&forward[wide]);
        rig_close(&backward[wide]);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig forward, backward;
    open_forward(&forward, TL_FP32, 4, 3, 5);
    launch_refused(&forward, TL_ERR_ARGUMENT, "group_offsets[2] is 5");
    open_backward(&backward, &forward, TL_FP32, 4, 3, -1);
    arg_values(&backward, "group_offsets", TL_I32, (double[]){0, 3, 2}, SHAPE(3));
    launch_refused(&backward, TL_ERR_ARGUMENT, "group_offsets[2] is 2");
    arg_normal(&forward, "x", TL_FP32, 1, SHAPE(4, 7));
    launch_refused(&forward, TL_ERR_ARGUMENT, "x has 7 columns");
    rig_close(&forward);
    rig_close(&backward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_formula),   cmocka_unit_test(extremes_saturate),
        cmocka_unit_test(backward_is_the_gradient), cmocka_unit_test(backward_in_fp32_follows_fp64),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
