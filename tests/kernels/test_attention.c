/* attention against the formula, row by row in fp64, and its backward against differences. */
#include "gradient.h"

#include <stdlib.h>

struct size {
    int64_t batch, sequence, heads, kv_heads, head_dim;
};
static const struct size sizes[] = {
    {1, 1, 1, 1, 1},  {2, 7, 6, 1, 5},    {1, 33, 6, 6, 3},  {1, 16, 2, 1, 16},
    {2, 17, 4, 2, 8}, {1, 100, 6, 1, 16}, {1, 257, 1, 1, 7}, {1, 19, 2, 2, 256},
};
enum { NUM_SIZES = sizeof sizes / sizeof sizes[0] };

static void open_forward(struct rig *rig, enum tl_dtype dtype, const struct size *s)
{
    rig_open(rig, "attention", "cpu_plain");
    arg_normal(rig, "qkv", dtype, 1,
               SHAPE(s->batch, s->sequence, s->heads + 2 * s->kv_heads, s->head_dim));
    arg_poison(rig, "o", dtype, SHAPE(s->batch, s->sequence, s->heads, s->head_dim));
    arg_poison(rig, "lse", dtype, SHAPE(s->batch, s->heads, s->sequence));
}

static const double *row_of(const double *qkv, const struct size *s, int64_t b, int64_t i,
                            int64_t head)
{
    int64_t heads = s->heads + 2 * s->kv_heads;
    return qkv + ((b * s->sequence + i) * heads + head) * s->head_dim;
}

/* One query: the scores, their softmax, the mean of the values. */
static void naive_row(const double *qkv, const struct size *s, int64_t b, int64_t h, int64_t i,
                      double *o, double *lse)
{
    double *score = malloc((size_t)(i + 1) * sizeof *score), top = -INFINITY, sum = 0;
    int64_t kv = h * s->kv_heads / s->heads;
    for (int64_t j = 0; j <= i; j++) {
        const double *q = row_of(qkv, s, b, i, h), *k = row_of(qkv, s, b, j, s->heads + kv);
        score[j] = 0;
        for (int64_t c = 0; c < s->head_dim; c++)
            score[j] += q[c] * k[c] / sqrt((double)s->head_dim);
        top = fmax(top, score[j]);
    }
    for (int64_t j = 0; j <= i; j++)
        sum += exp(score[j] - top);
    *lse = top + log(sum);
    for (int64_t c = 0; c < s->head_dim; c++) {
        o[c] = 0;
        for (int64_t j = 0; j <= i; j++)
            o[c] += exp(score[j] - *lse) * row_of(qkv, s, b, j, s->heads + s->kv_heads + kv)[c];
    }
    free(score);
}

static void check_forward(enum tl_dtype dtype, const struct size *s, double deviation)
{
    struct rig rig;
    open_forward(&rig, dtype, s);
    arg_normal(&rig, "qkv", dtype, deviation,
               SHAPE(s->batch, s->sequence, s->heads + 2 * s->kv_heads, s->head_dim));
    launch_steady(&rig);
    double *qkv = doubles_of(arg_of(&rig, "qkv"));
    double *o = doubles_of(arg_of(&rig, "o")), *lse = doubles_of(arg_of(&rig, "lse"));
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t h = 0; h < s->heads; h++)
            for (int64_t i = 0; i < s->sequence; i++)
                naive_row(qkv, s, b, h, i, o + ((b * s->sequence + i) * s->heads + h) * s->head_dim,
                          lse + (b * s->heads + h) * s->sequence + i);
    double tolerance = (dtype == TL_FP64 ? 1e-13 : 2e-6) * fmax(1, deviation * deviation);
    assert_near(arg_of(&rig, "o"), o, tolerance * deviation, tolerance);
    assert_near(arg_of(&rig, "lse"), lse, tolerance, tolerance);
    free(qkv);
    free(o);
    free(lse);
    rig_close(&rig);
}

static void forward_is_the_formula(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SIZES; i++) {
        check_forward(TL_FP64, &sizes[i], 1);
        check_forward(TL_FP32, &sizes[i], 1);
        check_forward(TL_FP32, &sizes[i], 6); /* one key takes all, the rest underflows */
    }
}

static void the_future_is_not_seen(void **state)
{
    (void)state;
    struct rig rig;
    const struct size s = {1, 50, 2, 1, 8};
    open_forward(&rig, TL_FP32, &s);
    assert_ok(rig_launch(&rig));
    float *before = bytes_of(arg_of(&rig, "o")), *qkv = arg_of(&rig, "qkv")->data;
    for (int64_t i = 21 * 4 * 8; i < 50 * 4 * 8; i++)
        qkv[i] = -50 * qkv[i];
    assert_ok(rig_launch(&rig));
    assert_memory_equal(before, arg_of(&rig, "o")->data, 21 * 2 * 8 * sizeof(float));
    free(before);
    rig_close(&rig);
}

static void open_backward(struct rig *rig, struct rig *forward, enum tl_dtype dtype,
                          const struct size *s)
{
    open_forward(forward, dtype, s);
    assert_ok(rig_launch(forward));
    rig_open(rig, "attention_backward", "cpu_plain");
    arg_normal(rig, "dout", dtype, 1, SHAPE(s->batch, s->sequence, s->heads, s->head_dim));
    arg_share(rig, "qkv", arg_of(forward, "qkv"));
    arg_share(rig, "o", arg_of(forward, "o"));
    arg_share(rig, "lse", arg_of(forward, "lse"));
    arg_poison(rig, "dqkv", dtype,
               SHAPE(s->batch, s->sequence, s->heads + 2 * s->kv_heads, s->head_dim));
}

static void backward_is_the_gradient(void **state)
{
    (void)state;
    static const struct size cases[] = {
        {1, 1, 1, 1, 1},  {2, 1, 6, 1, 4},  {2, 7, 6, 1, 5},  {1, 7, 6, 6, 2},
        {1, 33, 6, 1, 2}, {1, 33, 2, 2, 3}, {1, 40, 2, 1, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig forward, backward;
        open_backward(&backward, &forward, TL_FP64, &cases[i]);
        launch_steady(&backward);
        const struct gradient_output outputs[] = {{"o", arg_of(&backward, "dout")}, {NULL, NULL}};
        gradient_check(&forward, outputs, "qkv", arg_of(&backward, "dqkv"));
        rig_close(&forward);
        rig_close(&backward);
    }
}

static void backward_in_fp32_follows_fp64(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SIZES; i++) {
        struct rig wide_forward, wide, narrow_forward, narrow;
        open_backward(&wide, &wide_forward, TL_FP64, &sizes[i]);
        open_backward(&narrow, &narrow_forward, TL_FP32, &sizes[i]);
        assert_ok(rig_launch(&wide));
        launch_steady(&narrow);
        assert_near(arg_of(&narrow, "dqkv"), arg_of(&wide, "dqkv")->data, 2e-5, 1e-5);
        rig_close(&wide_forward);
        rig_close(&wide);
        rig_close(&narrow_forward);
        rig_close(&narrow);
    }
}

static void nan_spreads(void **state)
{
    (void)state;
    struct rig rig;
    const struct size s = {1, 40, 1, 1, 4};
    open_forward(&rig, TL_FP32, &s);
    ((float *)arg_of(&rig, "qkv")->data)[16 * 12] = NAN; /* q of position 16 */
    assert_ok(rig_launch(&rig));
    const float *lse = arg_of(&rig, "lse")->data;
    for (int i = 0; i < 40; i++)
        assert_int_equal(isnan(lse[i]) != 0, i == 16);
    rig_close(&rig);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig rig;
    const struct size s = {1, 3, 6, 4, 2}, wide = {1, 2, 1, 1, 257}, single = {1, 2, 1, 1, 8};
    open_forward(&rig, TL_FP32, &s);
    launch_refused(&rig, TL_ERR_ARGUMENT, "multiple of kv_heads");
    arg_normal(&rig, "qkv", TL_FP32, 1, SHAPE(1, 3, 6, 2));
    launch_refused(&rig, TL_ERR_ARGUMENT, "leave 0 for k and v");
    arg_normal(&rig, "qkv", TL_FP32, 1, SHAPE(1, 3, 9, 2));
    launch_refused(&rig, TL_ERR_ARGUMENT, "leave 3 for k and v");
    rig_close(&rig);
    open_forward(&rig, TL_FP32, &wide);
    launch_refused(&rig, TL_ERR_ILLEGAL, "head_dim is 257");
    rig_close(&rig);
    open_forward(&rig, TL_BF16, &single);
    arg_poison(&rig, "lse", TL_FP64, SHAPE(1, 1, 2));
    launch_refused(&rig, TL_ERR_ARGUMENT, "lse is fp64 but qkv is bf16");
    arg_poison(&rig, "lse", TL_FP32, SHAPE(1, 1, 2));
    launch_refused(&rig, TL_ERR_ILLEGAL, "cpu_plain does not compute on bf16");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_formula),
        cmocka_unit_test(the_future_is_not_seen),
        cmocka_unit_test(backward_is_the_gradient),
        cmocka_unit_test(backward_in_fp32_follows_fp64),
        cmocka_unit_test(nan_spreads),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
