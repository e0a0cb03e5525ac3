/* combine against the formula in fp64, and its backward against differences. */
#include "gradient.h"

#include <stdlib.h>

struct size {
    int64_t tokens, top_k, num_experts, d, align;
};
static const struct size sizes[] = {
    {1, 1, 1, 1, 1}, {1, 3, 5, 7, 128}, {9, 2, 4, 3, 1}, {33, 4, 10, 5, 16}, {257, 8, 20, 37, 128},
};
enum { NUM_SIZES = sizeof sizes / sizeof sizes[0] };

/* Indices from permute_index, with five rows to spare. */
static void open_index(struct rig *rig, const struct size *s)
{
    int64_t rows = s->tokens * s->top_k + s->num_experts * (s->align - 1) + 5;
    rig_open(rig, "permute_index", "cpu_plain");
    rig_param(rig, "align", (double)s->align);
    arg_below(rig, "experts", (int32_t)s->num_experts, 3, SHAPE(s->tokens, s->top_k));
    arg_poison(rig, "group_offsets", TL_I32, SHAPE(s->num_experts + 1));
    arg_poison(rig, "row_slots", TL_I32, SHAPE(rows));
    arg_poison(rig, "slot_rows", TL_I32, SHAPE(s->tokens, s->top_k));
    arg_poison(rig, "row_experts", TL_I32, SHAPE(rows));
    assert_ok(rig_launch(rig));
}

/* Rows without a slot hold poison, which must not reach any output. */
static void open_forward(struct rig *rig, struct rig *index, enum tl_dtype dtype,
                         const struct size *s, bool shared)
{
    int64_t rows = arg_of(index, "row_slots")->shape[0];
    const int32_t *row_slots = arg_of(index, "row_slots")->data;
    rig_open(rig, "combine", "cpu_plain");
    struct tl_tensor *x = arg_normal(rig, "x", dtype, 1, SHAPE(rows, s->d));
    for (int64_t at = 0; at < rows * s->d; at++)
        if (row_slots[at / s->d] < 0)
            tl_element_set(x->data, dtype, at, NAN);
    arg_share(rig, "slot_rows", arg_of(index, "slot_rows"));
    arg_normal(rig, "weights", dtype, 1, SHAPE(s->tokens, s->top_k));
    if (shared)
        arg_normal(rig, "shared", dtype, 1, SHAPE(s->tokens, s->d));
    arg_poison(rig, "y", dtype, SHAPE(s->tokens, s->d));
}

static void check_forward(enum tl_dtype dtype, const struct size *s, bool shared)
{
    struct rig rig, index;
    open_index(&index, s);
    open_forward(&rig, &index, dtype, s, shared);
    launch_steady(&rig);
    double *x = doubles_of(arg_of(&rig, "x")), *weights = doubles_of(arg_of(&rig, "weights"));
    double *y =
        shared ? doubles_of(arg_of(&rig, "shared")) : calloc((size_t)(s->tokens * s->d), sizeof *y);
    const int32_t *slot_rows = arg_of(&rig, "slot_rows")->data;
    for (int64_t slot = 0; slot < s->tokens * s->top_k; slot++)
        for (int64_t c = 0; c < s->d; c++)
            y[slot / s->top_k * s->d + c] += weights[slot] * x[slot_rows[slot] * s->d + c];
    double tolerance = dtype == TL_FP64 ? 1e-14 : 3e-6;
    assert_near(arg_of(&rig, "y"), y, tolerance, tolerance);
    if (shared) { /* in place */
        arg_share(&rig, "y", arg_of(&rig, "shared"));
        assert_ok(rig_launch(&rig));
        assert_near(arg_of(&rig, "y"), y, tolerance, tolerance);
    }
    free(x);
    free(weights);
    free(y);
    rig_close(&rig);
    rig_close(&index);
}

static void forward_is_the_formula(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * NUM_SIZES; i++)
        check_forward(i % 2 ? TL_FP64 : TL_FP32, &sizes[i / 4], i % 4 < 2);
}

static void open_backward(struct rig *rig, struct rig *forward, struct rig *index,
                          enum tl_dtype dtype, const struct size *s)
{
    int64_t rows = arg_of(index, "row_slots")->shape[0];
    rig_open(rig, "combine_backward", "cpu_plain");
    arg_normal(rig, "dy", dtype, 1, SHAPE(s->tokens, s->d));
    arg_share(rig, "x", arg_of(forward, "x"));
    arg_share(rig, "row_slots", arg_of(index, "row_slots"));
    arg_share(rig, "slot_rows", arg_of(index, "slot_rows"));
    arg_share(rig, "weights", arg_of(forward, "weights"));
    arg_share(rig, "group_offsets", arg_of(index, "group_offsets"));
    arg_poison(rig, "dx", dtype, SHAPE(rows, s->d));
    arg_poison(rig, "dweights", dtype, SHAPE(s->tokens, s->top_k));
}

static void backward_is_the_gradient(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SIZES - 1; i++) {
        struct rig forward, index, backward;
        const struct size *s = &sizes[i];
        open_index(&index, s);
        open_forward(&forward, &index, TL_FP64, s, true);
        open_backward(&backward, &forward, &index, TL_FP64, s);
        launch_steady(&backward);

        /* Pad rows get zeros, rows past the last offset nothing. */
        struct tl_tensor *dx = arg_of(&backward, "dx");
        int64_t used = ((int32_t *)arg_of(&index, "group_offsets")->data)[s->num_experts];
        assert_poison(dx, used * s->d, tl_tensor_numel(dx));
        memset((double *)dx->data + used * s->d, 0,
               (size_t)(tl_tensor_numel(dx) - used * s->d) * sizeof(double));
        const struct gradient_output outputs[] = {{"y", arg_of(&backward, "dy")}, {NULL, NULL}};
        gradient_check(&forward, outputs, "x", dx);
        gradient_check(&forward, outputs, "weights", arg_of(&backward, "dweights"));
        gradient_check(&forward, outputs, "shared", arg_of(&backward, "dy"));
        rig_close(&forward);
        rig_close(&index);
        rig_close(&backward);
    }
}

static void backward_in_fp32_follows_fp64(void **state)
{
    (void)state;
    struct rig index, forward[2], backward[2];
    const struct size *s = &sizes[NUM_SIZES - 1];
    open_index(&index, s);
    for (int wide = 0; wide < 2; wide++) {
        enum tl_dtype dtype = wide ? TL_FP64 : TL_FP32;
        open_forward(&forward[wide], &index, dtype, s, false);
        open_backward(&backward[wide], &forward[wide], &index, dtype, s);
        launch_steady(&backward[wide]);
    }
    assert_near(arg_of(&backward[0], "dweights"), arg_of(&backward[1], "dweights")->data, 1e-5,
                1e-6);
    double *in_place = doubles_of(arg_of(&backward[0], "dx"));
    int64_t used = ((int32_t *)arg_of(&index, "group_offsets")->data)[s->num_experts];
    double *dx = arg_of(&backward[1], "dx")->data;
    for (int64_t i = 0; i < used * s->d; i++)
        assert_true(fabs(in_place[i] - dx[i]) <= 1e-5);

    arg_share(&backward[0], "dx", arg_of(&backward[0], "x"));
    double *dweights = doubles_of(arg_of(&backward[0], "dweights"));
    assert_ok(rig_launch(&backward[0]));
    assert_near(arg_of(&backward[0], "dweights"), dweights, 0, 0);
    for (int64_t i = 0; i < used * s->d; i++)
        assert_true(tl_element_get(arg_of(&backward[0], "dx")->data, TL_FP32, i) == in_place[i]);
    free(in_place);
    free(dweights);
    rig_close(&index);
    for (int wide = 0; wide < 2; wide++) {
        rig_close(&forward[wide]);
        rig_close(&backward[wide]);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig forward, index, backward;
    const struct size *s = &sizes[2]; /* 18 slots, 23 rows */
    open_index(&index, s);
    open_forward(&forward, &index, TL_FP32, s, true);
    open_backward(&backward, &forward, &index, TL_FP32, s);
    index_refused(&forward, "slot_rows", 17, 23, "slot_rows[17] is 23");
    index_refused(&backward, "slot_rows", 0, -1, "slot_rows[0] is -1");
    index_refused(&backward, "row_slots", 22, 18, "row_slots[22] is 18");
    index_refused(&backward, "row_slots", 1, -7, "row_slots[1] is -7");
    index_refused(&backward, "group_offsets", 4, 24, "group_offsets[4] is 24");
    rig_close(&forward);
    rig_close(&index);
    rig_close(&backward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_formula),
        cmocka_unit_test(backward_is_the_gradient),
        cmocka_unit_test(backward_in_fp32_follows_fp64),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
