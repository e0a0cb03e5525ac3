/* adamw and squared_norm against a scalar re-computation in fp64. */
#include "arguments.h"

#include <stdlib.h>

static const int64_t counts[] = {1, 7, 4095, 4097, 50001};
enum { NUM_COUNTS = sizeof counts / sizeof counts[0] };

static void squared_norm_adds_up(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * NUM_COUNTS; i++) {
        struct rig rig;
        enum tl_dtype dtype = i % 2 ? TL_FP64 : TL_FP32;
        int64_t count = counts[i / 2];
        rig_open(&rig, "squared_norm", "cpu_plain");
        arg_normal(&rig, "x", dtype, 1, SHAPE(count));
        arg_fill(&rig, "sum", dtype, 11, SHAPE(1));
        launch_steady(&rig);
        double *x = doubles_of(arg_of(&rig, "x"));
        long double sum = 11;
        for (int64_t at = 0; at < count; at++)
            sum += (long double)x[at] * x[at];
        assert_near(arg_of(&rig, "sum"), (double[]){(double)sum}, 0, i % 2 ? 1e-14 : 2e-7);
        free(x);
        rig_close(&rig);
    }
}

static void squared_norm_of_nothing(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, "squared_norm", "cpu_plain");
    arg_normal(&rig, "x", TL_FP32, 1, SHAPE(0));
    arg_fill(&rig, "sum", TL_FP32, 11, SHAPE(1));
    launch_steady(&rig);
    assert_near(arg_of(&rig, "sum"), (double[]){11}, 0, 0);
    rig_close(&rig);
}

struct settings {
    double lr, beta1, beta2, eps, weight_decay, max_norm;
};

static void open_adamw(struct rig *rig, enum tl_dtype dtype, int64_t count,
                       const struct settings *set)
{
    rig_open(rig, "adamw", "cpu_plain");
    arg_normal(rig, "param", dtype, 1, SHAPE(count));
    arg_normal(rig, "grad", dtype, 1, SHAPE(count));
    arg_fill(rig, "m", dtype, 0, SHAPE(count));
    arg_fill(rig, "v", dtype, 0, SHAPE(count));
    arg_fill(rig, "step", TL_I32, 1, SHAPE(1));
    rig_param(rig, "lr", set->lr);
    rig_param(rig, "beta1", set->beta1);
    rig_param(rig, "beta2", set->beta2);
    rig_param(rig, "eps", set->eps);
    rig_param(rig, "weight_decay", set->weight_decay);
    rig_param(rig, "max_norm", set->max_norm);
}

/* One parameter's history: gradients g at steps 1, 2, ... */
static double scalar_adamw(double param, const double *g, int steps, double clip,
                           const struct settings *set)
{
    double m = 0, v = 0;
    for (int step = 1; step <= steps; step++) {
        double gradient = g[step - 1] * clip;
        m = set->beta1 * m + (1 - set->beta1) * gradient;
        v = set->beta2 * v + (1 - set->beta2) * gradient * gradient;
        double m_hat = m / (1 - pow(set->beta1, step)), v_hat = v / (1 - pow(set->beta2, step));
        param = param - set->lr * m_hat / (sqrt(v_hat) + set->eps) -
                set->lr * set->weight_decay * param;
    }
    return param;
}

enum { STEPS = 5 };

static void check_steps(enum tl_dtype dtype, int64_t count, const struct settings *set,
                        double norm_squared)
{
    struct rig rig;
    open_adamw(&rig, dtype, count, set);
    if (norm_squared >= 0)
        arg_fill(&rig, "norm_squared", dtype, norm_squared, SHAPE(1));
    double *param = doubles_of(arg_of(&rig, "param"));
    double *grads = malloc((size_t)(count * STEPS) * sizeof *grads);
    for (int step = 0; step < STEPS; step++) {
        struct tl_tensor *grad = arg_of(&rig, "grad");
        assert_ok(tl_tensor_random(grad, TL_NORMAL, 0.1, 1, 3, (uint64_t)step));
        for (int64_t i = 0; i < count; i++)
            grads[i * STEPS + step] = tl_element_get(grad->data, dtype, i);
        arg_fill(&rig, "step", TL_I32, step + 1, SHAPE(1));
        launch_steady(&rig);
    }
    double clip = 1;
    if (set->max_norm > 0 && norm_squared > set->max_norm * set->max_norm)
        clip = set->max_norm / sqrt(norm_squared);
    for (int64_t i = 0; i < count; i++)
        param[i] = scalar_adamw(param[i], grads + i * STEPS, STEPS, clip, set);
    double tolerance = dtype == TL_FP64 ? 1e-12 : 2e-6;
    assert_near(arg_of(&rig, "param"), param, tolerance, tolerance);
    free(param);
    free(grads);
    rig_close(&rig);
}

static void steps_are_the_formula(void **state)
{
    (void)state;
    const struct settings plain = {0.01, 0.9, 0.95, 1e-8, 0, 0};
    const struct settings decay = {0.02, 0.8, 0.99, 1e-3, 0.3, 0};
    const struct settings clipped = {0.01, 0.9, 0.95, 1e-2, 0.1, 2};
    for (int i = 0; i < 2 * NUM_COUNTS; i++) {
        enum tl_dtype dtype = i % 2 ? TL_FP64 : TL_FP32;
        check_steps(dtype, counts[i / 2], &plain, -1);
        check_steps(dtype, counts[i / 2], &decay, -1);
        check_steps(dtype, counts[i / 2], &clipped, 100); /* scaled by 1/5 */
        check_steps(dtype, counts[i / 2], &clipped, 3.9); /* short enough */
        check_steps(dtype, counts[i / 2], &decay, 100);   /* a norm, but no maximum */
    }
}

/* The same parameters as without it, and each rounded; doubles are rounded once. */
static void bf16_copy_is_the_rounded_param(void **state)
{
    (void)state;
    const struct settings set = {0.01, 0.9, 0.95, 1e-8, 0.1, 0};
    for (int i = 0; i < 2 * NUM_COUNTS; i++) {
        struct rig rig, plain;
        enum tl_dtype dtype = i % 2 ? TL_FP64 : TL_FP32;
        int64_t count = counts[i / 2];
        open_adamw(&plain, dtype, count, &set);
        assert_ok(rig_launch(&plain));
        open_adamw(&rig, dtype, count, &set);
        arg_poison(&rig, "param_bf16", TL_BF16, SHAPE(count));
        assert_ok(rig_launch(&rig));
        const struct tl_tensor *param = arg_of(&rig, "param");
        const uint16_t *copy = arg_of(&rig, "param_bf16")->data;
        void *expected = bytes_of(arg_of(&plain, "param"));
        assert_true(bytes_equal(param, expected));
        for (int64_t at = 0; at < count; at++)
            assert_int_equal(copy[at],
                             tl_bf16_from_fp64(tl_element_get(param->data, dtype, at)));
        free(expected);
        rig_close(&rig);
        rig_close(&plain);
    }
}

static void nan_norm_is_not_hidden(void **state)
{
    (void)state;
    struct rig rig;
    const struct settings set = {0.01, 0.9, 0.95, 1e-8, 0, 1};
    open_adamw(&rig, TL_FP32, 5, &set);
    arg_fill(&rig, "norm_squared", TL_FP32, NAN, SHAPE(1));
    assert_ok(rig_launch(&rig));
    for (int i = 0; i < 5; i++)
        assert_true(isnan(((float *)arg_of(&rig, "param")->data)[i]));
    rig_close(&rig);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig rig;
    struct settings set = {0.01, 0.9, 0.95, 1e-8, 0, 1};
    open_adamw(&rig, TL_FP32, 5, &set);
    launch_refused(&rig, TL_ERR_ARGUMENT, "norm_squared is missing");
    rig_param(&rig, "max_norm", 0);
    arg_fill(&rig, "step", TL_I32, 0, SHAPE(1));
    launch_refused(&rig, TL_ERR_ARGUMENT, "step is 0");
    arg_fill(&rig, "step", TL_I32, 1, SHAPE(1));
    rig_param(&rig, "beta1", 1);
    launch_refused(&rig, TL_ERR_ARGUMENT, "beta1 is 1");
    rig_param(&rig, "beta1", 0.9);
    rig_param(&rig, "lr", NAN);
    launch_refused(&rig, TL_ERR_ARGUMENT, "lr");
    rig_param(&rig, "lr", 0.01);
    arg_poison(&rig, "param_bf16", TL_FP32, SHAPE(5));
    launch_refused(&rig, TL_ERR_ARGUMENT, "param_bf16");
    arg_poison(&rig, "param_bf16", TL_BF16, SHAPE(5));
    arg_fill(&rig, "m", TL_FP64, 0, SHAPE(5));
    launch_refused(&rig, TL_ERR_ARGUMENT, "m is fp64");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squared_norm_adds_up),  cmocka_unit_test(squared_norm_of_nothing),
        cmocka_unit_test(steps_are_the_formula), cmocka_unit_test(nan_norm_is_not_hidden),
        cmocka_unit_test(mistakes_are_named),    cmocka_unit_test(bf16_copy_is_the_rounded_param),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
