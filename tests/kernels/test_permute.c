/* permute_index by its properties, permute bit for bit, and its backward against differences. */
#include "cases.h"
#include "gradient.h"

#include <stdlib.h>

/* What experts a case sends its slots to. */
enum choice { ANY, ALL_TO_LAST, ALTERNATE };

struct size {
    int64_t tokens, top_k, num_experts;
    enum choice choice;
};
static const struct size sizes[] = {
    {1, 1, 1, ANY},         {1, 3, 5, ANY}, {7, 2, 4, ALL_TO_LAST}, {33, 4, 10, ANY},
    {130, 2, 9, ALTERNATE}, {0, 2, 3, ANY}, {257, 8, 129, ANY},
};
enum { NUM_SIZES = sizeof sizes / sizeof sizes[0] };

/* Rows that hold any outcome. */
static int64_t enough_rows(const struct size *s, int64_t align)
{
    return s->tokens * s->top_k + s->num_experts * (align - 1);
}

static void open_index(struct rig *rig, const struct size *s, int64_t align, int64_t rows)
{
    rig_open(rig, "permute_index", "cpu_plain");
    rig_param(rig, "align", (double)align);
    int32_t *experts =
        arg_below(rig, "experts", (int32_t)s->num_experts, 3, SHAPE(s->tokens, s->top_k))->data;
    for (int64_t slot = 0; slot < s->tokens * s->top_k && s->choice != ANY; slot++)
        experts[slot] = s->choice == ALL_TO_LAST ? (int32_t)s->num_experts - 1 : slot % 2 ? 6 : 2;
    arg_poison(rig, "group_offsets", TL_I32, SHAPE(s->num_experts + 1));
    arg_poison(rig, "row_slots", TL_I32, SHAPE(rows));
    arg_poison(rig, "slot_rows", TL_I32, SHAPE(s->tokens, s->top_k));
    arg_poison(rig, "row_experts", TL_I32, SHAPE(rows));
}

static void check_index(struct rig *rig, const struct size *s, int64_t align, int64_t rows)
{
    const int32_t *experts = arg_of(rig, "experts")->data;
    const int32_t *offsets = arg_of(rig, "group_offsets")->data;
    const int32_t *row_slots = arg_of(rig, "row_slots")->data;
    const int32_t *slot_rows = arg_of(rig, "slot_rows")->data;
    const int32_t *row_experts = arg_of(rig, "row_experts")->data;
    int64_t num_slots = s->tokens * s->top_k, seen = 0;

    assert_int_equal(offsets[0], 0);
    for (int64_t e = 0; e < s->num_experts; e++) {
        int64_t count = 0, last = -1;
        for (int64_t slot = 0; slot < num_slots; slot++)
            count += experts[slot] == e;
        assert_int_equal(offsets[e + 1] - offsets[e], (count + align - 1) / align * align);
        for (int64_t r = offsets[e]; r < offsets[e] + count; r++) {
            assert_true(row_slots[r] > last && row_slots[r] < num_slots); /* stable */
            last = row_slots[r];
            assert_int_equal(experts[last], e);
            assert_int_equal(slot_rows[last], r);
            assert_int_equal(row_experts[r], e);
            seen++;
        }
        for (int64_t r = offsets[e] + count; r < offsets[e + 1]; r++)
            assert_true(row_slots[r] == -1 && row_experts[r] == -1);
    }
    assert_int_equal(seen, num_slots);
    for (int64_t r = offsets[s->num_experts]; r < rows; r++)
        assert_true(row_slots[r] == -1 && row_experts[r] == -1);
}

static void index_is_a_stable_sort(void **state)
{
    (void)state;
    static const int64_t aligns[] = {1, 3, 128};
    for (int i = 0; i < 3 * NUM_SIZES; i++) {
        struct rig rig;
        const struct size *s = &sizes[i / 3];
        int64_t rows = enough_rows(s, aligns[i % 3]) + 5;
        open_index(&rig, s, aligns[i % 3], rows);
        launch_steady(&rig);
        check_index(&rig, s, aligns[i % 3], rows);
        rig_close(&rig);
    }
}

/* The sizes that the grouped kernels are tested with, as slots of top_k 1. */
static void index_of_the_shared_cases(void **state)
{
    (void)state;
    static struct group_case groups;
    for (int position = 0; group_case_at(position, &groups); position++) {
        struct rig rig;
        const struct size s = {groups.rows, 1, groups.num_groups, ANY};
        int32_t *offsets = calloc((size_t)groups.num_groups + 1, sizeof *offsets);
        int64_t rows = group_case_offsets(&groups, 128, offsets);
        open_index(&rig, &s, 128, rows); /* exactly as many as needed */
        int32_t *experts = arg_of(&rig, "experts")->data;
        for (int64_t g = 0, slot = 0; g < groups.num_groups; g++)
            for (int32_t i = 0; i < groups.sizes[g]; i++)
                experts[slot++] = (int32_t)g;
        assert_ok(rig_launch(&rig));
        assert_true(bytes_equal(arg_of(&rig, "group_offsets"), offsets));
        free(offsets);
        rig_close(&rig);
    }
}

static void index_mistakes_are_named(void **state)
{
    (void)state;
    struct rig rig;
    const struct size *s = &sizes[2]; /* 14 slots for one of four experts */
    open_index(&rig, s, 128, 127);
    launch_refused(&rig, TL_ERR_ARGUMENT, "take 128 rows at align 128, but row_slots has 127");
    rig_close(&rig);
    open_index(&rig, s, 1, 13);
    launch_refused(&rig, TL_ERR_ARGUMENT, "take 14 rows at align 1, but row_slots has 13");
    rig_param(&rig, "align", 1.5);
    launch_refused(&rig, TL_ERR_ARGUMENT, "align is 1.5");
    rig_close(&rig);
    open_index(&rig, s, 1, 14);
    ((int32_t *)arg_of(&rig, "experts")->data)[3] = 4;
    launch_refused(&rig, TL_ERR_ARGUMENT, "experts[3] is 4");
    ((int32_t *)arg_of(&rig, "experts")->data)[3] = -2;
    launch_refused(&rig, TL_ERR_ARGUMENT, "experts[3] is -2");
    rig_close(&rig);
}

static void open_permute(struct rig *rig, struct rig *index, enum tl_dtype dtype,
                         const struct size *s, int64_t align, int64_t d)
{
    int64_t rows = enough_rows(s, align) + 5;
    open_index(index, s, align, rows);
    assert_ok(rig_launch(index));
    rig_open(rig, "permute", "cpu_plain");
    arg_normal(rig, "x", dtype, 1, SHAPE(s->tokens, d));
    arg_share(rig, "row_slots", arg_of(index, "row_slots"));
    arg_share(rig, "slot_rows", arg_of(index, "slot_rows"));
    arg_share(rig, "group_offsets", arg_of(index, "group_offsets"));
    arg_poison(rig, "y", dtype, SHAPE(rows, d));
}

static void rows_are_copies(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * NUM_SIZES; i++) {
        struct rig rig, index;
        const struct size *s = &sizes[i / 4];
        int64_t d = 37;
        open_permute(&rig, &index, i % 2 ? TL_FP64 : TL_FP32, s, i % 4 < 2 ? 1 : 128, d);
        launch_steady(&rig);
        double *x = doubles_of(arg_of(&rig, "x")), *y = doubles_of(arg_of(&rig, "y"));
        const int32_t *row_slots = arg_of(&rig, "row_slots")->data;
        int64_t used = ((int32_t *)arg_of(&rig, "group_offsets")->data)[s->num_experts];
        for (int64_t at = 0; at < used * d; at++) {
            int32_t slot = row_slots[at / d];
            assert_true(y[at] == (slot < 0 ? 0 : x[slot / s->top_k * d + at % d]));
        }
        assert_poison(arg_of(&rig, "y"), used * d, tl_tensor_numel(arg_of(&rig, "y")));
        free(x);
        free(y);
        rig_close(&rig);
        rig_close(&index);
    }
}

static void open_backward(struct rig *rig, struct rig *forward, enum tl_dtype dtype)
{
    const struct tl_tensor *x = arg_of(forward, "x"), *y = arg_of(forward, "y");
    rig_open(rig, "permute_backward", "cpu_plain");
    arg_normal(rig, "dy", dtype, 1, y->rank, y->shape);
    arg_share(rig, "slot_rows", arg_of(forward, "slot_rows"));
    arg_poison(rig, "dx", dtype, x->rank, x->shape);
}

static void backward_is_the_gradient(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct rig forward, index, backward;
        open_permute(&forward, &index, TL_FP64, &sizes[i / 2], i % 2 ? 1 : 128, 3);
        open_backward(&backward, &forward, TL_FP64);
        launch_steady(&backward); /* beta 0: the poison in dx is not read */
        /* Nothing arrives at rows that hold no slot. */
        double *dy = arg_of(&backward, "dy")->data;
        const int32_t *row_slots = arg_of(&forward, "row_slots")->data;
        for (int64_t at = 0; at < tl_tensor_numel(arg_of(&backward, "dy")); at++)
            dy[at] = row_slots[at / 3] < 0 ? 0 : dy[at];
        const struct gradient_output outputs[] = {{"y", arg_of(&backward, "dy")}, {NULL, NULL}};
        gradient_check(&forward, outputs, "x", arg_of(&backward, "dx"));
        rig_close(&forward);
        rig_close(&index);
        rig_close(&backward);
    }
}

static void backward_adds_at_beta_1(void **state)
{
    (void)state;
    struct rig forward, index, backward;
    open_permute(&forward, &index, TL_FP32, &sizes[6], 1, 37);
    open_backward(&backward, &forward, TL_FP32);
    assert_ok(rig_launch(&backward));
    double *expected = doubles_of(arg_of(&backward, "dx"));
    arg_fill(&backward, "dx", TL_FP32, 3, SHAPE(257, 37));
    rig_param(&backward, "beta", 1);
    launch_steady(&backward);
    for (int64_t i = 0; i < 257 * 37; i++)
        expected[i] += 3;
    assert_near(arg_of(&backward, "dx"), expected, 1e-5, 0);
    free(expected);
    rig_close(&forward);
    rig_close(&index);
    rig_close(&backward);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig forward, index, backward;
    open_permute(&forward, &index, TL_FP32, &sizes[3], 1, 5); /* 132 slots, 137 rows */
    index_refused(&forward, "row_slots", 9, 132, "row_slots[9] is 132");
    index_refused(&forward, "row_slots", 0, -2, "row_slots[0] is -2");
    index_refused(&forward, "slot_rows", 131, 137, "slot_rows[131] is 137");
    index_refused(&forward, "slot_rows", 2, -1, "slot_rows[2] is -1");
    index_refused(&forward, "group_offsets", 0, 1, "group_offsets[0] is 1");
    index_refused(&forward, "group_offsets", 4, -1, "group_offsets[4] is -1");
    index_refused(&forward, "group_offsets", 10, 138, "group_offsets[10] is 138");
    open_backward(&backward, &forward, TL_FP32);
    index_refused(&backward, "slot_rows", 7, 137, "slot_rows[7] is 137");
    rig_close(&forward);
    rig_close(&index);
    rig_close(&backward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_is_a_stable_sort),   cmocka_unit_test(index_of_the_shared_cases),
        cmocka_unit_test(index_mistakes_are_named), cmocka_unit_test(rows_are_copies),
        cmocka_unit_test(backward_is_the_gradient), cmocka_unit_test(backward_adds_at_beta_1),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
