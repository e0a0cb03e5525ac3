/* cross_entropy against the formula in fp64, and its backward against differences. */
#include "gradient.h"

#include <stdlib.h>

static const int64_t shapes[][2] = {{1, 1}, {1, 7}, {9, 33}, {100, 257}};
enum { NUM_SHAPES = sizeof shapes / sizeof shapes[0] };

/* Every third target is ignored. */
static void open_forward(struct rig *rig, enum tl_dtype dtype, int64_t tokens, int64_t vocab,
                         double deviation)
{
    rig_open(rig, "cross_entropy", "cpu_plain");
    arg_normal(rig, "logits", dtype, deviation, SHAPE(tokens, vocab));
    int32_t *targets = arg_below(rig, "targets", (int32_t)vocab, 6, SHAPE(tokens))->data;
    for (int64_t t = 2; t < tokens; t += 3)
        targets[t] = -1;
    arg_poison(rig, "lse", dtype, SHAPE(tokens));
    arg_poison(rig, "losses", dtype, SHAPE(tokens));
    arg_fill(rig, "loss_sum", dtype, 5, SHAPE(1));
}

static void check_forward(enum tl_dtype dtype, int64_t tokens, int64_t vocab, double deviation)
{
    struct rig rig;
    open_forward(&rig, dtype, tokens, vocab, deviation);
    rig_param(&rig, "scale", 0.125);
    launch_steady(&rig);
    double *logits = doubles_of(arg_of(&rig, "logits"));
    double *lse = doubles_of(arg_of(&rig, "lse")), *losses = doubles_of(arg_of(&rig, "losses"));
    const int32_t *targets = arg_of(&rig, "targets")->data;
    double total = 5;
    for (int64_t t = 0; t < tokens; t++) {
        long double sum = 0; /* wide enough for exp of these logits */
        for (int64_t v = 0; v < vocab; v++)
            sum += expl(logits[t * vocab + v]);
        lse[t] = (double)logl(sum);
        losses[t] = targets[t] < 0 ? 0 : lse[t] - logits[t * vocab + targets[t]];
        total += losses[t] / 8;
    }
    double tolerance = (dtype == TL_FP64 ? 1e-14 : 1e-6) * (1 + deviation);
    assert_near(arg_of(&rig, "lse"), lse, tolerance, tolerance);
    assert_near(arg_of(&rig, "losses"), losses, 4 * tolerance, tolerance);
    assert_near(arg_of(&rig, "loss_sum"), &total, tolerance, tolerance);
    free(logits);
    free(lse);
    free(losses);
    rig_close(&rig);
}

static void forward_is_the_formula(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SHAPES; i++)
        for (int wide = 0; wide < 2; wide++) {
            check_forward(wide ? TL_FP64 : TL_FP32, shapes[i][0], shapes[i][1], 1);
            check_forward(wide ? TL_FP64 : TL_FP32, shapes[i][0], shapes[i][1], 300);
        }
}

static void nan_reaches_the_sum(void **state)
{
    (void)state;
    struct rig rig;
    open_forward(&rig, TL_FP32, 9, 33, 1);
    ((float *)arg_of(&rig, "logits")->data)[4 * 33 + 7] = NAN;
    assert_ok(rig_launch(&rig));
    assert_true(isnan(((float *)arg_of(&rig, "loss_sum")->data)[0]));
    rig_close(&rig);
}

static void open_backward(struct rig *rig, struct rig *forward, enum tl_dtype dtype)
{
    const struct tl_tensor *logits = arg_of(forward, "logits");
    assert_ok(rig_launch(forward));
    rig_open(rig, "cross_entropy_backward", "cpu_plain");
    arg_share(rig, "logits", logits);
    arg_share(rig, "lse", arg_of(forward, "lse"));
    arg_share(rig, "targets", arg_of(forward, "targets"));
    arg_poison(rig, "dlogits", dtype, logits->rank, logits->shape);
}

static void backward_is_the_gradient(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SHAPES - 1; i++) {
        struct rig forward, backward, holder;
        open_forward(&forward, TL_FP64, shapes[i][0], shapes[i][1], 1);
        open_backward(&backward, &forward, TL_FP64);
        rig_param(&backward, "scale", 3);
        launch_steady(&backward);
        rig_open(&holder, "cross_entropy", "cpu_plain");
        const struct gradient_output outputs[] = {
            {"loss_sum", arg_fill(&holder, "loss_sum", TL_FP64, 3, SHAPE(1))}, {NULL, NULL}};
        gradient_check(&forward, outputs, "logits", arg_of(&backward, "dlogits"));
        rig_close(&forward);
        rig_close(&backward);
        rig_close(&holder);
    }
}

static void backward_in_fp32_and_in_place(void **state)
{
    (void)state;
    struct rig forward[2], backward[2];
    for (int wide = 0; wide < 2; wide++) {
        open_forward(&forward[wide], wide ? TL_FP64 : TL_FP32, 100, 257, 2);
        open_backward(&backward[wide], &forward[wide], wide ? TL_FP64 : TL_FP32);
        launch_steady(&backward[wide]);
    }
    double *narrow = doubles_of(arg_of(&backward[0], "dlogits"));
    assert_near(arg_of(&backward[0], "dlogits"), arg_of(&backward[1], "dlogits")->data, 1e-6, 1e-6);
    arg_share(&backward[0], "dlogits", arg_of(&backward[0], "logits"));
    assert_ok(rig_launch(&backward[0]));
    assert_near(arg_of(&backward[0], "dlogits"), narrow, 0, 0);
    for (int64_t v = 0; v < 257; v++)
        assert_true(narrow[2 * 257 + v] == 0); /* an ignored token */
    free(narrow);
    for (int wide = 0; wide < 2; wide++) {
        rig_close(&forward[wide]);
        rig_close(&backward[wide]);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig forward, backward;
    open_forward(&forward, TL_FP32, 9, 33, 1);
    open_backward(&backward, &forward, TL_FP32);
    int32_t *targets = arg_of(&forward, "targets")->data;
    targets[8] = 33;
    launch_refused(&forward, TL_ERR_ARGUMENT, "targets[8] is 33");
    launch_refused(&backward, TL_ERR_ARGUMENT, "targets[8] is 33");
    targets[8] = 0;
    targets[1] = -2;
    launch_refused(&forward, TL_ERR_ARGUMENT, "targets[1] is -2");
    launch_refused(&backward, TL_ERR_ARGUMENT, "targets[1] is -2");
    rig_close(&forward);
    rig_close(&backward);
    open_forward(&forward, TL_FP32, 2, 1, 1);
    arg_normal(&forward, "logits", TL_FP32, 1, SHAPE(2, 0));
    launch_refused(&forward, TL_ERR_ARGUMENT, "logits has no columns");
    rig_close(&forward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_formula),   cmocka_unit_test(nan_reaches_the_sum),
        cmocka_unit_test(backward_is_the_gradient), cmocka_unit_test(backward_in_fp32_and_in_place),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
