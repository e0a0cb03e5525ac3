/* router against the formula in fp64, the choice of experts, and its backward. */
#include "gradient.h"

#include <stdlib.h>

static void open_forward(struct rig *rig, enum tl_dtype dtype, int64_t tokens, int64_t num_experts,
                         int64_t top_k)
{
    rig_open(rig, "router", "cpu_plain");
    arg_normal(rig, "logits", dtype, 1.5, SHAPE(tokens, num_experts));
    arg_poison(rig, "probs", dtype, SHAPE(tokens, num_experts));
    arg_poison(rig, "experts", TL_I32, SHAPE(tokens, top_k));
    arg_poison(rig, "weights", dtype, SHAPE(tokens, top_k));
    arg_poison(rig, "load", TL_I32, SHAPE(num_experts));
    arg_fill(rig, "aux", dtype, 2, SHAPE(1));
}

/* No expert outside the choice is better than one inside; the choice is in order. */
static void check_choice(const double *logits, int64_t num_experts, const int32_t *experts,
                         int64_t top_k)
{
    for (int64_t j = 0; j + 1 < top_k; j++) {
        double a = logits[experts[j]], b = logits[experts[j + 1]];
        assert_true(a > b || (a == b && experts[j] < experts[j + 1]));
    }
    for (int64_t e = 0; e < num_experts; e++) {
        bool inside = false;
        for (int64_t j = 0; j < top_k; j++)
            inside = inside || experts[j] == e;
        double last = logits[experts[top_k - 1]];
        if (!inside)
            assert_true(logits[e] < last || (logits[e] == last && e > experts[top_k - 1]));
    }
}

/* probs, weights, load and aux from the logits and the experts that were chosen. */
static void check_values(struct rig *rig, double coefficient, double tolerance)
{
    const struct tl_tensor *chosen = arg_of(rig, "experts");
    int64_t tokens = chosen->shape[0], top_k = chosen->shape[1];
    int64_t num_experts = arg_of(rig, "load")->shape[0];
    const int32_t *experts = chosen->data;
    double *probs = doubles_of(arg_of(rig, "logits"));
    double *weights = doubles_of(arg_of(rig, "weights"));
    double *load = calloc((size_t)num_experts, sizeof *load), aux = 2;
    for (int64_t t = 0; t < tokens; t++) {
        double sum = 0, chosen_sum = 0;
        for (int64_t e = 0; e < num_experts; e++)
            sum += exp(probs[t * num_experts + e]);
        for (int64_t e = 0; e < num_experts; e++)
            probs[t * num_experts + e] = exp(probs[t * num_experts + e]) / sum;
        for (int64_t j = 0; j < top_k; j++)
            chosen_sum += probs[t * num_experts + experts[t * top_k + j]];
        for (int64_t j = 0; j < top_k; j++) {
            weights[t * top_k + j] = probs[t * num_experts + experts[t * top_k + j]] / chosen_sum;
            load[experts[t * top_k + j]]++;
        }
    }
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t e = 0; e < num_experts; e++)
            aux += coefficient * (double)num_experts * load[e] / (double)(tokens * top_k) *
                   probs[t * num_experts + e] / (double)tokens;
    assert_near(arg_of(rig, "probs"), probs, 0, tolerance);
    assert_near(arg_of(rig, "weights"), weights, 0, tolerance);
    assert_near(arg_of(rig, "load"), load, 0, 0);
    assert_near(arg_of(rig, "aux"), &aux, 0, tolerance);
    free(probs);
    free(weights);
    free(load);
}

static const int64_t sizes[][3] = {{1, 1, 1}, {1, 5, 2}, {7, 3, 3}, {33, 10, 4}, {300, 129, 8}};
enum { NUM_SIZES = sizeof sizes / sizeof sizes[0] };

static void forward_is_the_formula(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * NUM_SIZES; i++) {
        struct rig rig;
        const int64_t *size = sizes[i / 2];
        open_forward(&rig, i % 2 ? TL_FP64 : TL_FP32, size[0], size[1], size[2]);
        rig_param(&rig, "coefficient", 0.3);
        launch_steady(&rig);
        double *logits = doubles_of(arg_of(&rig, "logits"));
        for (int64_t t = 0; t < size[0]; t++)
            check_choice(logits + t * size[1], size[1],
                         (const int32_t *)arg_of(&rig, "experts")->data + t * size[2], size[2]);
        check_values(&rig, 0.3, i % 2 ? 1e-13 : 3e-6);
        free(logits);
        rig_close(&rig);
    }
}

static void forced_experts_are_taken(void **state)
{
    (void)state;
    struct rig rig;
    open_forward(&rig, TL_FP64, 33, 10, 4);
    arg_below(&rig, "forced", 10, 3, SHAPE(33, 4)); /* some repeat within a token */
    launch_steady(&rig);
    assert_memory_equal(arg_of(&rig, "experts")->data, arg_of(&rig, "forced")->data,
                        33 * 4 * sizeof(int32_t));
    check_values(&rig, 0.01, 1e-13);

    /* Experts whose probs vanish still share the weight. */
    double logits[4] = {900, 0, 0, 0}, half[2] = {0.5, 0.5};
    const double forced[2] = {1, 3};
    rig_close(&rig);
    open_forward(&rig, TL_FP32, 1, 4, 2);
    arg_values(&rig, "logits", TL_FP32, logits, SHAPE(1, 4));
    arg_values(&rig, "forced", TL_I32, forced, SHAPE(1, 2));
    launch_steady(&rig);
    assert_near(arg_of(&rig, "weights"), half, 0, 0);
    rig_close(&rig);
}

static void check_picks(const double *logits, int64_t num_experts, const double *expected,
                        int64_t top_k)
{
    for (int wide = 0; wide < 2; wide++) {
        struct rig rig;
        open_forward(&rig, wide ? TL_FP64 : TL_FP32, 1, num_experts, top_k);
        arg_values(&rig, "logits", wide ? TL_FP64 : TL_FP32, logits, SHAPE(1, num_experts));
        assert_ok(rig_launch(&rig));
        assert_near(arg_of(&rig, "experts"), expected, 0, 0);
        rig_close(&rig);
    }
}

static void ties_go_to_the_lower_index(void **state)
{
    (void)state;
    check_picks((double[]){3, 3, 3, 3, 3}, 5, (double[]){0, 1, 2}, 3);
    check_picks((double[]){1, 2, 5, 2, 2}, 5, (double[]){2, 1, 3}, 3);
    check_picks((double[]){-0.0, 0.0, -1}, 3, (double[]){0, 1}, 2);
}

static void nan_comes_last(void **state)
{
    (void)state;
    check_picks((double[]){NAN, NAN, NAN}, 3, (double[]){0, 1, 2}, 3);
    check_picks((double[]){NAN, -INFINITY, 4, NAN}, 4, (double[]){2, 1, 0, 3}, 4);
    check_picks((double[]){INFINITY, NAN, INFINITY}, 3, (double[]){0, 2}, 2);
    struct rig rig;
    open_forward(&rig, TL_FP32, 2, 3, 2);
    ((float *)arg_of(&rig, "logits")->data)[4] = NAN;
    assert_ok(rig_launch(&rig));
    assert_true(isnan(((float *)arg_of(&rig, "aux")->data)[0])); /* is seen, not hidden */
    rig_close(&rig);
}

static void no_tokens_leave_aux(void **state)
{
    (void)state;
    struct rig rig;
    double two = 2, zeros[3] = {0};
    open_forward(&rig, TL_FP32, 0, 3, 2);
    assert_ok(rig_launch(&rig));
    assert_near(arg_of(&rig, "aux"), &two, 0, 0);
    assert_near(arg_of(&rig, "load"), zeros, 0, 0);
    rig_close(&rig);
}

static void open_backward(struct rig *rig, struct rig *forward, enum tl_dtype dtype, int64_t tokens,
                          int64_t num_experts, int64_t top_k)
{
    rig_open(rig, "router_backward", "cpu_plain");
    arg_share(rig, "probs", arg_of(forward, "probs"));
    arg_share(rig, "experts", arg_of(forward, "experts"));
    arg_share(rig, "weights", arg_of(forward, "weights"));
    arg_share(rig, "load", arg_of(forward, "load"));
    arg_normal(rig, "dweights", dtype, 1, SHAPE(tokens, top_k));
    arg_poison(rig, "dlogits", dtype, SHAPE(tokens, num_experts));
}

/* With the experts held fixed, as forced ones; `scale` is the gradient arriving at aux. */
static void check_backward(int64_t tokens, int64_t num_experts, int64_t top_k, double scale)
{
    struct rig forward, backward;
    open_forward(&forward, TL_FP64, tokens, num_experts, top_k);
    rig_param(&forward, "coefficient", 0.7);
    arg_below(&forward, "forced", (int32_t)num_experts, 9, SHAPE(tokens, top_k));
    assert_ok(rig_launch(&forward));
    open_backward(&backward, &forward, TL_FP64, tokens, num_experts, top_k);
    rig_param(&backward, "coefficient", 0.7);
    rig_param(&backward, "scale", scale);
    launch_steady(&backward);

    struct rig holder; /* of the cotangent of aux */
    rig_open(&holder, "router", "cpu_plain");
    const struct gradient_output outputs[] = {
        {"weights", arg_of(&backward, "dweights")},
        {"aux", arg_fill(&holder, "aux", TL_FP64, scale, SHAPE(1))},
        {NULL, NULL},
    };
    gradient_check(&forward, outputs, "logits", arg_of(&backward, "dlogits"));
    rig_close(&forward);
    rig_close(&backward);
    rig_close(&holder);
}

static void backward_is_the_gradient(void **state)
{
    (void)state;
    check_backward(1, 1, 1, 1);
    check_backward(1, 5, 2, 1);
    check_backward(7, 3, 3, 0);
    check_backward(13, 11, 4, -2.5);
}

static void backward_in_fp32_follows_fp64(void **state)
{
    (void)state;
    struct rig forward[2], backward[2];
    for (int wide = 0; wide < 2; wide++) {
        enum tl_dtype dtype = wide ? TL_FP64 : TL_FP32;
        open_forward(&forward[wide], dtype, 300, 129, 8);
        assert_ok(rig_launch(&forward[wide]));
        open_backward(&backward[wide], &forward[wide], dtype, 300, 129, 8);
        launch_steady(&backward[wide]);
    }
    assert_near(arg_of(&backward[0], "dlogits"), arg_of(&backward[1], "dlogits")->data, 1e-6, 1e-5);
    for (int wide = 0; wide < 2; wide++) {
        rig_close(&forward[wide]);
        rig_close(&backward[wide]);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig forward, backward;
    open_forward(&forward, TL_FP32, 4, 3, 2);
    assert_ok(rig_launch(&forward));
    open_backward(&backward, &forward, TL_FP32, 4, 3, 2);
    ((int32_t *)arg_of(&forward, "experts")->data)[7] = -1;
    launch_refused(&backward, TL_ERR_ARGUMENT, "experts[7] is -1");
    arg_below(&forward, "forced", 3, 1, SHAPE(4, 2));
    ((int32_t *)arg_of(&forward, "forced")->data)[5] = 3;
    launch_refused(&forward, TL_ERR_ARGUMENT, "forced[5] is 3, but must be at least 0 and below 3");
    rig_close(&forward);
    rig_close(&backward);
    open_forward(&forward, TL_FP32, 4, 3, 4);
    launch_refused(&forward, TL_ERR_ARGUMENT, "top_k is 4");
    rig_close(&forward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_formula),        cmocka_unit_test(forced_experts_are_taken),
        cmocka_unit_test(ties_go_to_the_lower_index),    cmocka_unit_test(nan_comes_last),
        cmocka_unit_test(no_tokens_leave_aux),           cmocka_unit_test(backward_is_the_gradient),
        cmocka_unit_test(backward_in_fp32_follows_fp64), cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
