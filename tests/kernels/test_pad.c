/* pad_index against the shared cases, pad_rows row by row, and unpad_rows as its inverse. */
#include "arguments.h"
#include "cases.h"

#include <stdlib.h>

enum { TAIL = 3 };

static struct group_case groups;
static int32_t offsets[CASES_MAX_GROUPS + 1], padded[CASES_MAX_GROUPS + 1];

/* The case at `position` with its offsets, and the rows they take. */
static bool next_case(int position, int32_t align, int64_t *rows, int64_t *padded_rows)
{
    if (!group_case_at(position, &groups))
        return false;
    *rows = group_case_offsets(&groups, 1, offsets);
    *padded_rows = group_case_offsets(&groups, align, padded);
    return true;
}

static void arg_i32(struct rig *rig, const char *arg, const int32_t *values, int64_t count)
{
    memcpy(arg_poison(rig, arg, TL_I32, SHAPE(count))->data, values,
           (size_t)count * sizeof *values);
}

static void open_index(struct rig *rig, int32_t align, int64_t padded_rows)
{
    rig_open(rig, "pad_index", "cpu_plain");
    if (align != 128) /* the default */
        rig_param(rig, "align", align);
    arg_i32(rig, "group_offsets", offsets, groups.num_groups + 1);
    arg_poison(rig, "padded_offsets", TL_I32, SHAPE(groups.num_groups + 1));
    arg_poison(rig, "row_experts", TL_I32, SHAPE(padded_rows));
}

static void index_of_the_shared_cases(void **state)
{
    (void)state;
    static const int32_t aligns[] = {1, 3, 128};
    int64_t rows = 0, padded_rows = 0;
    for (int a = 0; a < 3; a++)
        for (int i = 0; next_case(i, aligns[a], &rows, &padded_rows); i++) {
            struct rig rig;
            int64_t room = padded_rows + (i % 2 ? TAIL : 0);
            int32_t *experts = calloc((size_t)room + 1, sizeof *experts);
            group_case_row_experts(&groups, padded, room, experts);
            open_index(&rig, aligns[a], room);
            assert_ok(rig_launch(&rig));
            assert_true(bytes_equal(arg_of(&rig, "padded_offsets"), padded));
            assert_true(bytes_equal(arg_of(&rig, "row_experts"), experts));
            free(experts);
            rig_close(&rig);
        }
}

static void open_rows(struct rig *rig, const char *operation, int64_t from_rows, int64_t to_rows,
                      enum tl_dtype dtype, int64_t d)
{
    rig_open(rig, operation, "cpu_plain");
    arg_normal(rig, "x", dtype, 1, SHAPE(from_rows, d));
    arg_i32(rig, "group_offsets", offsets, groups.num_groups + 1);
    arg_i32(rig, "padded_offsets", padded, groups.num_groups + 1);
    arg_poison(rig, "y", dtype, SHAPE(to_rows, d));
}

/* Every row of y is the one of x that belongs there, or zeros in pad rows. */
static void check_padded(struct rig *rig, int64_t padded_rows)
{
    struct tl_tensor *x = arg_of(rig, "x"), *y = arg_of(rig, "y");
    unsigned char *zeros = calloc(1, row_bytes(y) + 1);
    for (int64_t g = 0; g < groups.num_groups; g++)
        for (int64_t r = padded[g]; r < padded[g + 1]; r++) {
            int64_t i = r - padded[g];
            const unsigned char *row =
                i < groups.sizes[g] ? row_at(x, offsets[g] + i) : zeros;
            if (memcmp(row_at(y, r), row, row_bytes(y)))
                fail_msg("%s: row %d of group %d", groups.name, (int)i, (int)g);
        }
    assert_poison(y, padded_rows * y->shape[1], tl_tensor_numel(y));
    free(zeros);
}

static void rows_there_and_back(void **state)
{
    (void)state;
    static const enum tl_dtype dtypes[] = {TL_BF16, TL_FP32, TL_FP64};
    int64_t rows = 0, padded_rows = 0, d = 5;
    for (int i = 0; next_case(i, i % 4 ? 128 : 3, &rows, &padded_rows); i++) {
        struct rig pad, unpad;
        enum tl_dtype dtype = dtypes[i % 3];
        open_rows(&pad, "pad_rows", rows + TAIL, padded_rows + TAIL, dtype, d);
        launch_steady(&pad);
        check_padded(&pad, padded_rows);

        open_rows(&unpad, "unpad_rows", padded_rows + TAIL, rows + TAIL, dtype, d);
        arg_share(&unpad, "x", arg_of(&pad, "y"));
        launch_steady(&unpad);
        struct tl_tensor *back = arg_of(&unpad, "y");
        if (rows > 0)
            assert_memory_equal(back->data, arg_of(&pad, "x")->data,
                                (size_t)rows * row_bytes(back));
        assert_poison(back, rows * d, tl_tensor_numel(back));
        rig_close(&pad);
        rig_close(&unpad);
    }
}

/* What is in pad rows and past the end never reaches a row: they hold NaN here. */
static void pad_rows_are_not_read(void **state)
{
    (void)state;
    int64_t rows = 0, padded_rows = 0;
    struct rig unpad;
    assert_true(next_case(11, 128, &rows, &padded_rows));
    open_rows(&unpad, "unpad_rows", padded_rows + TAIL, rows, TL_FP32, 4);
    float *x = arg_of(&unpad, "x")->data;
    for (int64_t g = 0, r = 0; r < padded_rows + TAIL; r++) {
        while (g + 1 < groups.num_groups && r >= padded[g + 1])
            g++;
        for (int c = 0; c < 4 && r - padded[g] >= groups.sizes[g]; c++)
            x[r * 4 + c] = NAN;
    }
    assert_ok(rig_launch(&unpad));
    const float *y = arg_of(&unpad, "y")->data;
    for (int64_t i = 0; i < rows * 4; i++)
        assert_true(isfinite(y[i]));
    rig_close(&unpad);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig rig;
    groups = (struct group_case){.num_groups = 3, .rows = 300, .sizes = {100, 130, 70}};
    group_case_offsets(&groups, 1, offsets);
    group_case_offsets(&groups, 128, padded);
    open_index(&rig, 128, 511);
    launch_refused(&rig, TL_ERR_ARGUMENT, "take 512 rows at align 128, but row_experts has 511");
    rig_param(&rig, "align", 2.5);
    launch_refused(&rig, TL_ERR_ARGUMENT, "align is 2.5");
    rig_close(&rig);
    open_index(&rig, 128, 512);
    index_refused(&rig, "group_offsets", 0, 1, "group_offsets[0] is 1");
    index_refused(&rig, "group_offsets", 2, 99, "group_offsets[2] is 99, below");
    rig_close(&rig);

    open_rows(&rig, "pad_rows", 305, 515, TL_BF16, 8);
    index_refused(&rig, "group_offsets", 3, 306, "group_offsets[3] is 306, beyond the 305 rows");
    index_refused(&rig, "padded_offsets", 0, 128, "padded_offsets[0] is 128");
    index_refused(&rig, "padded_offsets", 1, 99, "padded_offsets[1] is 99, 99 rows after");
    index_refused(&rig, "padded_offsets", 2, 100, "padded_offsets[2] is 100, -28 rows after");
    index_refused(&rig, "padded_offsets", 3, 516, "padded_offsets[3] is 516, beyond the 515 rows");
    rig_close(&rig);
    open_rows(&rig, "unpad_rows", 512, 300, TL_BF16, 8);
    index_refused(&rig, "group_offsets", 3, 301, "group_offsets[3] is 301, beyond the 300 rows");
    index_refused(&rig, "padded_offsets", 3, 513, "padded_offsets[3] is 513, beyond the 512 rows");
    rig_close(&rig);

    open_rows(&rig, "pad_rows", 305, 515, TL_BF16, 8);
    arg_poison(&rig, "y", TL_FP32, SHAPE(515, 8));
    launch_refused(&rig, TL_ERR_ARGUMENT, "y is fp32 but x is bf16");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_of_the_shared_cases),
        cmocka_unit_test(rows_there_and_back),
        cmocka_unit_test(pad_rows_are_not_read),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
