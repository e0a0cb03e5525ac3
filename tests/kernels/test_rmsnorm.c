/* rmsnorm against the formula in fp64, and its backward against differences. */
#include "gradient.h"

#include <stdlib.h>

static const int64_t shapes[][2] = {{1, 1}, {1, 7}, {3, 33}, {37, 100}, {300, 257}};
enum { NUM_SHAPES = sizeof shapes / sizeof shapes[0] };

static void open_forward(struct rig *rig, enum tl_dtype dtype, int64_t tokens, int64_t d,
                         bool residual)
{
    rig_open(rig, "rmsnorm", "cpu_plain");
    arg_normal(rig, "x", dtype, 1, SHAPE(tokens, d));
    arg_normal(rig, "weight", dtype, 1, SHAPE(d));
    arg_poison(rig, "y", dtype, SHAPE(tokens, d));
    arg_poison(rig, "rstd", dtype, SHAPE(tokens));
    if (!residual)
        return;
    arg_normal(rig, "residual", dtype, 1, SHAPE(tokens, d));
    arg_poison(rig, "sum", dtype, SHAPE(tokens, d));
}

static void check_forward(enum tl_dtype dtype, int64_t tokens, int64_t d, bool residual, double eps)
{
    struct rig rig;
    double tolerance = dtype == TL_FP64 ? 1e-13 : 1e-6;
    open_forward(&rig, dtype, tokens, d, residual);
    rig_param(&rig, "eps", eps);
    launch_steady(&rig);

    double *sum = doubles_of(arg_of(&rig, "x")), *weight = doubles_of(arg_of(&rig, "weight"));
    double *y = malloc((size_t)(tokens * d) * sizeof *y);
    double *rstd = malloc((size_t)tokens * sizeof *rstd);
    if (residual) {
        double *other = doubles_of(arg_of(&rig, "residual"));
        for (int64_t i = 0; i < tokens * d; i++)
            sum[i] += other[i];
        assert_near(arg_of(&rig, "sum"), sum, 1e-30, tolerance);
        free(other);
    }
    for (int64_t t = 0; t < tokens; t++) {
        double mean = 0;
        for (int64_t c = 0; c < d; c++)
            mean += pow(sum[t * d + c], 2) / (double)d;
        rstd[t] = pow(mean + eps, -0.5);
        for (int64_t c = 0; c < d; c++)
            y[t * d + c] = sum[t * d + c] * rstd[t] * weight[c];
    }
    assert_near(arg_of(&rig, "rstd"), rstd, 0, tolerance);
    assert_near(arg_of(&rig, "y"), y, tolerance, tolerance);
    free(sum);
    free(weight);
    free(y);
    free(rstd);
    rig_close(&rig);
}

static void forward_is_the_formula(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SHAPES; i++)
        for (int residual = 0; residual < 2; residual++) {
            check_forward(TL_FP64, shapes[i][0], shapes[i][1], residual, 0.1);
            check_forward(TL_FP32, shapes[i][0], shapes[i][1], residual, 1e-6);
        }
}

static void zero_row_stays_finite(void **state)
{
    (void)state;
    struct rig rig;
    double zeros[9] = {0};
    open_forward(&rig, TL_FP32, 1, 9, false);
    arg_fill(&rig, "x", TL_FP32, 0, SHAPE(1, 9));
    launch_steady(&rig);
    assert_near(arg_of(&rig, "y"), zeros, 0, 0);
    rig_close(&rig);
}

/* Both operations at one size; dsum is the gradient arriving at sum. */
static void check_backward(int64_t tokens, int64_t d, bool residual)
{
    struct rig forward, backward;
    open_forward(&forward, TL_FP64, tokens, d, residual);
    rig_param(&forward, "eps", 0.01);
    assert_ok(rig_launch(&forward));

    rig_open(&backward, "rmsnorm_backward", "cpu_plain");
    arg_normal(&backward, "dy", TL_FP64, 1, SHAPE(tokens, d));
    arg_share(&backward, "x", arg_of(&forward, residual ? "sum" : "x"));
    arg_share(&backward, "weight", arg_of(&forward, "weight"));
    arg_share(&backward, "rstd", arg_of(&forward, "rstd"));
    if (residual)
        arg_normal(&backward, "dsum", TL_FP64, 1, SHAPE(tokens, d));
    arg_poison(&backward, "dx", TL_FP64, SHAPE(tokens, d));
    arg_fill(&backward, "dweight", TL_FP64, 0, SHAPE(d));
    launch_steady(&backward);

    struct gradient_output outputs[3] = {{"y", arg_of(&backward, "dy")}, {NULL, NULL}};
    if (residual)
        outputs[1] = (struct gradient_output){"sum", arg_of(&backward, "dsum")};
    gradient_check(&forward, outputs, "x", arg_of(&backward, "dx"));
    gradient_check(&forward, outputs, "weight", arg_of(&backward, "dweight"));
    if (residual)
        gradient_check(&forward, outputs, "residual", arg_of(&backward, "dx"));
    rig_close(&forward);
    rig_close(&backward);
}

static void backward_is_the_gradient(void **state)
{
    (void)state;
    for (int residual = 0; residual < 2; residual++) {
        check_backward(1, 1, residual);
        check_backward(1, 7, residual);
        check_backward(5, 33, residual);
    }
}

static void open_backward(struct rig *rig, enum tl_dtype dtype, int64_t tokens, int64_t d)
{
    rig_open(rig, "rmsnorm_backward", "cpu_plain");
    arg_normal(rig, "dy", dtype, 1, SHAPE(tokens, d));
    arg_normal(rig, "x", dtype, 1, SHAPE(tokens, d));
    arg_normal(rig, "weight", dtype, 1, SHAPE(d));
    arg_fill(rig, "rstd", dtype, 0.9, SHAPE(tokens));
    arg_normal(rig, "dsum", dtype, 1, SHAPE(tokens, d));
    arg_poison(rig, "dx", dtype, SHAPE(tokens, d));
    arg_normal(rig, "dweight", dtype, 1, SHAPE(d));
}

static void backward_in_fp32_follows_fp64(void **state)
{
    (void)state;
    struct rig wide, narrow;
    open_backward(&wide, TL_FP64, 300, 257);
    open_backward(&narrow, TL_FP32, 300, 257);
    launch_steady(&wide);
    launch_steady(&narrow);
    assert_near(arg_of(&narrow, "dx"), arg_of(&wide, "dx")->data, 2e-6, 2e-6);
    assert_near(arg_of(&narrow, "dweight"), arg_of(&wide, "dweight")->data, 2e-6, 2e-6);
    rig_close(&wide);
    rig_close(&narrow);
}

static void dweight_accumulates_and_dx_may_be_dsum(void **state)
{
    (void)state;
    struct rig apart, together;
    open_backward(&apart, TL_FP64, 11, 45);
    open_backward(&together, TL_FP64, 11, 45);
    arg_share(&together, "dx", arg_of(&together, "dsum"));
    assert_ok(rig_launch(&apart));
    assert_ok(rig_launch(&together));
    assert_near(arg_of(&together, "dx"), arg_of(&apart, "dx")->data, 0, 0);

    double *once = doubles_of(arg_of(&apart, "dweight"));
    struct rig fresh;
    open_backward(&fresh, TL_FP64, 11, 45);
    double *start = doubles_of(arg_of(&fresh, "dweight"));
    assert_ok(rig_launch(&apart));
    for (int i = 0; i < 45; i++)
        start[i] += 2 * (once[i] - start[i]);
    assert_near(arg_of(&apart, "dweight"), start, 1e-13, 1e-13);
    free(once);
    free(start);
    rig_close(&apart);
    rig_close(&together);
    rig_close(&fresh);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig rig;
    open_forward(&rig, TL_FP32, 3, 5, false);
    arg_normal(&rig, "residual", TL_FP32, 1, SHAPE(3, 5));
    launch_refused(&rig, TL_ERR_ARGUMENT, "sum must be given");
    arg_poison(&rig, "sum", TL_FP64, SHAPE(3, 5));
    launch_refused(&rig, TL_ERR_ARGUMENT, "sum is fp64 but x is fp32");
    rig_close(&rig);
    open_backward(&rig, TL_FP32, 3, 5);
    arg_normal(&rig, "dweight", TL_FP64, 1, SHAPE(5));
    launch_refused(&rig, TL_ERR_ARGUMENT, "dweight is fp64 but dy is fp32");
    rig_close(&rig);
}

/* Statistics and weights in fp32 beside bf16 are the operation's, but not of this kernel. */
static void bf16_is_left_to_the_gpu(void **state)
{
    (void)state;
    struct rig rig;
    open_forward(&rig, TL_FP32, 3, 5, false);
    arg_normal(&rig, "x", TL_BF16, 1, SHAPE(3, 5));
    launch_refused(&rig, TL_ERR_ARGUMENT, "y is fp32 but x is bf16");
    arg_poison(&rig, "y", TL_BF16, SHAPE(3, 5));
    launch_refused(&rig, TL_ERR_ILLEGAL, "bf16");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_formula),
        cmocka_unit_test(zero_row_stays_finite),
        cmocka_unit_test(backward_is_the_gradient),
        cmocka_unit_test(backward_in_fp32_follows_fp64),
        cmocka_unit_test(dweight_accumulates_and_dx_may_be_dsum),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(bf16_is_left_to_the_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
