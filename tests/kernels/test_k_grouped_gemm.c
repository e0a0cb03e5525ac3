/* k_grouped_gemm/cpu_ragged and cpu_padded over every case of group sizes. */
#include "arguments.h"
#include "cases.h"

#include "kernels/host/group_offsets.h"
#include "kernels/k_grouped_gemm/op.h"
#include "kernels/table.h"

#include <stdlib.h>

#define TAIL 5 /* rows past the last offset, which must not be read */

static int32_t offsets[CASES_MAX_GROUPS + 1], padded[CASES_MAX_GROUPS + 1];
static struct group_case groups;

struct setup {
    int64_t m, n;
    enum tl_dtype operands, d;
    double beta;
};

static struct tl_tensor *arg(struct rig *rig, int position)
{
    return &rig->args.tensor[position];
}

/* d poisoned at beta 0 and drawn at beta 1, with some -0 in it. */
static void make_d(struct rig *rig, struct setup s)
{
    if (s.beta == 0) {
        rig_poison(rig, "d", s.d, groups.num_groups, s.m, s.n);
        return;
    }
    struct tl_tensor *d = rig_normal(rig, "d", s.d, groups.num_groups, s.m, s.n, 3);
    for (int64_t i = 0; i < tl_tensor_numel(d); i += 3)
        tl_element_set(d->data, d->dtype, i, -0.0);
}

/* The case in ragged layout, NaN in the tails. */
static void open_ragged(struct rig *rig, struct setup s)
{
    int64_t rows = group_case_offsets(&groups, 1, offsets) + TAIL;
    rig_open(rig, "k_grouped_gemm", "cpu_ragged");
    rig_param(rig, "beta", s.beta);
    struct tl_tensor *a = rig_normal(rig, "a", s.operands, rows, s.m, -1, 1);
    struct tl_tensor *b = rig_normal(rig, "b", s.operands, rows, s.n, -1, 2);
    make_d(rig, s);
    rig_i32(rig, "group_offsets", offsets, groups.num_groups + 1);
    if (row_bytes(a))
        memset(row_at(a, groups.rows), 0xff, TAIL * row_bytes(a));
    if (row_bytes(b))
        memset(row_at(b, groups.rows), 0xff, TAIL * row_bytes(b));
}

/* `name` of `ragged` with its groups moved to the padded offsets, zeros between them. */
static void pad_operand(struct rig *rig, const char *name, const struct tl_tensor *source,
                        int64_t rows)
{
    struct tl_tensor *tensor = rig_poison(rig, name, source->dtype, rows, source->shape[1], -1);
    if (row_bytes(tensor) == 0)
        return;
    memset(tensor->data, 0, (size_t)padded[groups.num_groups] * row_bytes(tensor));
    for (int64_t g = 0; g < groups.num_groups; g++)
        if (groups.sizes[g])
            memcpy(row_at(tensor, padded[g]), row_at(source, offsets[g]),
                   (size_t)groups.sizes[g] * row_bytes(tensor));
}

static void open_padded(struct rig *rig, struct setup s, struct rig *ragged)
{
    int64_t rows = group_case_offsets(&groups, TL_GROUP_ALIGNMENT, padded) + TAIL;
    int32_t *row_experts = malloc((size_t)rows * sizeof *row_experts);
    int32_t counts[CASES_MAX_GROUPS];
    rig_open(rig, "k_grouped_gemm", "cpu_padded");
    rig_param(rig, "beta", s.beta);
    pad_operand(rig, "a", arg(ragged, TL_K_GROUPED_A), rows);
    pad_operand(rig, "b", arg(ragged, TL_K_GROUPED_B), rows);
    make_d(rig, s);
    rig_i32(rig, "group_offsets", padded, groups.num_groups + 1);
    assert_non_null(row_experts);
    group_case_row_experts(&groups, padded, rows, row_experts);
    rig_i32(rig, "row_experts", row_experts, rows);
    for (int64_t g = 0; g < groups.num_groups; g++)
        counts[g] = padded[g + 1] - padded[g];
    rig_i32(rig, "counts_host", counts, groups.num_groups);
    free(row_experts);
}

/* `before`: d before the launch. */
static void check_ragged(struct rig *rig, struct setup s, double *before)
{
    double *a = doubles_of(arg(rig, TL_K_GROUPED_A)), *b = doubles_of(arg(rig, TL_K_GROUPED_B));
    double *scale = doubles_of(arg(rig, TL_K_GROUPED_D));
    int64_t largest = 0;
    for (int64_t g = 0; g < groups.num_groups; g++) {
        naive_product(before + g * s.m * s.n, scale + g * s.m * s.n, s.m, s.n, groups.sizes[g],
                      (struct naive_operand){a + offsets[g] * s.m, 1, s.m},
                      (struct naive_operand){b + offsets[g] * s.n, 1, s.n}, s.beta);
        largest = groups.sizes[g] > largest ? groups.sizes[g] : largest;
    }
    struct tl_comparison result = compare_naive(arg(rig, TL_K_GROUPED_D), before, scale, largest);
    if (!result.pass)
        fail_msg("%s, m %d n %d beta %g: %d violations, %d non-finite, worst in group %d",
                 groups.name, (int)s.m, (int)s.n, s.beta, (int)result.violations,
                 (int)result.nonfinite, (int)result.worst_coord[0]);
    free(a);
    free(b);
    free(scale);
}

static void check_case(struct setup s)
{
    struct rig ragged, rig;
    open_ragged(&ragged, s);
    double *before = doubles_of(arg(&ragged, TL_K_GROUPED_D));
    assert_ok(rig_launch(&ragged));
    check_ragged(&ragged, s, before);
    open_padded(&rig, s, &ragged);
    assert_ok(rig_launch(&rig));
    if (!bytes_equal(arg(&rig, TL_K_GROUPED_D), arg(&ragged, TL_K_GROUPED_D)->data))
        fail_msg("%s: pad rows of zeros changed d", groups.name);
    free(before);
    rig_close(&ragged);
    rig_close(&rig);
}

static void test_every_case(void **state)
{
    (void)state;
    static const struct setup setups[] = {
        {7, 9, TL_FP32, TL_FP32, 0}, {8, 17, TL_FP32, TL_FP32, 1}, {5, 8, TL_BF16, TL_FP32, 0},
        {9, 3, TL_BF16, TL_FP32, 1}, {3, 5, TL_FP64, TL_FP64, 0},  {6, 4, TL_FP64, TL_FP64, 1},
    };
    for (int i = 0; group_case_at(i, &groups); i++)
        for (size_t j = 0; j < sizeof setups / sizeof setups[0]; j++)
            check_case(setups[j]);
}

/* Widths of real models that are no multiple of a tile, on a few small groups. */
static void test_widths(void **state)
{
    (void)state;
    static const int64_t widths[][2] = {{8, 768}, {1408, 8}, {72, 72}, {130, 257}, {0, 8}, {8, 0}};
    for (int i = 0; i < 6; i++)
        for (int beta = 0; beta <= 1; beta++) {
            group_case_draw(&groups, CASE_ZIPF, 5, 23, 3);
            check_case((struct setup){widths[i][0], widths[i][1], TL_FP32, TL_FP32, beta});
        }
}

/* An empty group: zeros over poison at beta 0, every bit kept at beta 1. */
static void test_empty_groups(void **state)
{
    (void)state;
    for (int beta = 0; beta <= 1; beta++) {
        struct rig rig;
        groups = (struct group_case){.num_groups = 3, .rows = 9, .sizes = {4, 0, 5}};
        open_ragged(&rig, (struct setup){6, 10, TL_FP32, TL_FP32, beta});
        struct tl_tensor *d = arg(&rig, TL_K_GROUPED_D);
        float *before = bytes_of(d), zeros[60] = {0};
        assert_ok(rig_launch(&rig));
        assert_memory_equal((float *)d->data + 60, beta ? before + 60 : zeros, sizeof zeros);
        free(before);
        rig_close(&rig);
    }
}

/* Against the naive beta |d| + sum of |a| |b|. */
static void check_magnitude(struct setup s)
{
    struct rig rig;
    groups = (struct group_case){.num_groups = 3, .rows = 60, .sizes = {21, 0, 39}};
    open_ragged(&rig, s);
    struct tl_tensor *magnitude = rig_poison(&rig, "magnitude", TL_FP64, 3, s.m, s.n);
    double *before = doubles_of(arg(&rig, TL_K_GROUPED_D)), *expected = doubles_of(magnitude);
    double *a = doubles_of(arg(&rig, TL_K_GROUPED_A)), *b = doubles_of(arg(&rig, TL_K_GROUPED_B));
    double *d = doubles_of(arg(&rig, TL_K_GROUPED_D));
    assert_ok(rig_launch(&rig));
    check_ragged(&rig, s, before);
    for (int64_t g = 0; g < groups.num_groups; g++)
        naive_product(d + g * s.m * s.n, expected + g * s.m * s.n, s.m, s.n, groups.sizes[g],
                      (struct naive_operand){a + offsets[g] * s.m, 1, s.m},
                      (struct naive_operand){b + offsets[g] * s.n, 1, s.n}, s.beta);
    assert_near(magnitude, expected, 0, 1e-14);
    free(before);
    free(expected);
    free(a);
    free(b);
    free(d);
    rig_close(&rig);
}

static void test_magnitude(void **state)
{
    (void)state;
    check_magnitude((struct setup){7, 9, TL_BF16, TL_FP32, 0});
    check_magnitude((struct setup){8, 17, TL_FP32, TL_FP32, 1});
    check_magnitude((struct setup){5, 4, TL_FP64, TL_FP64, 1});
    struct rig ragged, rig;
    open_ragged(&ragged, (struct setup){8, 8, TL_FP32, TL_FP32, 0});
    open_padded(&rig, (struct setup){8, 8, TL_FP32, TL_FP32, 0}, &ragged);
    rig_poison(&rig, "magnitude", TL_FP64, groups.num_groups, 8, 8);
    assert_refused(rig_launch(&rig), TL_ERR_ILLEGAL,
                   "k_grouped_gemm/cpu_padded: does not give 'magnitude'");
    rig_close(&ragged);
    rig_close(&rig);
}

/* NaN and infinities in the even groups: odd groups keep every bit. */
static void test_neighbours_do_not_leak(void **state)
{
    (void)state;
    struct setup s = {14, 33, TL_FP32, TL_FP32, 0};
    struct rig rig;
    group_case_draw(&groups, CASE_MULTINOMIAL, 33, 1020, 5);
    open_ragged(&rig, s);
    assert_ok(rig_launch(&rig));
    float *d = arg(&rig, TL_K_GROUPED_D)->data, *clean = bytes_of(arg(&rig, TL_K_GROUPED_D));
    float *a = arg(&rig, TL_K_GROUPED_A)->data, *b = arg(&rig, TL_K_GROUPED_B)->data;
    for (int64_t g = 0; g < groups.num_groups; g += 2) {
        for (int64_t i = offsets[g] * s.m; i < offsets[g + 1] * s.m; i++)
            a[i] = i % 2 ? NAN : -INFINITY;
        for (int64_t i = offsets[g] * s.n; i < offsets[g + 1] * s.n; i++)
            b[i] = NAN;
    }
    assert_ok(rig_launch(&rig));
    for (int64_t g = 1; g < groups.num_groups; g += 2)
        assert_memory_equal(d + g * s.m * s.n, clean + g * s.m * s.n,
                            (size_t)(s.m * s.n) * sizeof *d);
    free(clean);
    rig_close(&rig);
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    struct rig rig;
    group_case_draw(&groups, CASE_ZIPF, 33, 1020, 5);
    open_ragged(&rig, (struct setup){70, 90, TL_BF16, TL_FP32, 0});
    launch_steady(&rig);
    rig_close(&rig);
}

/* A row that moved to the next group is found, in both groups and nowhere else. */
static void test_planted_error_is_found(void **state)
{
    (void)state;
    struct setup s = {12, 10, TL_FP32, TL_FP32, 0};
    struct rig rig, wrong;
    struct tl_comparison result;
    struct tl_bound bound = {.relative = 1e-5};
    groups = (struct group_case){.num_groups = 3, .rows = 60, .sizes = {20, 1, 39}};
    open_ragged(&rig, s);
    open_ragged(&wrong, s);
    assert_ok(rig_launch(&rig));
    int32_t *moved = arg(&wrong, TL_K_GROUPED_OFFSETS)->data;
    moved[1] = 19;
    assert_ok(rig_launch(&wrong));
    assert_ok(tl_compare(&result, arg(&wrong, TL_K_GROUPED_D), arg(&rig, TL_K_GROUPED_D), &bound));
    assert_false(result.pass);
    assert_in_range(result.mismatched_bits, s.m * s.n + 1, 2 * s.m * s.n);
    assert_in_range(result.worst_coord[0], 0, 1);
    rig_close(&rig);
    rig_close(&wrong);
}

/* One value of an index tensor changed: refused, d as it was. */
static void refuse(struct rig *rig, int position, int64_t at, int32_t value,
                   enum tl_status expected, const char *words)
{
    int32_t *values = arg(rig, position)->data, good = values[at];
    void *before = bytes_of(arg(rig, TL_K_GROUPED_D));
    values[at] = value;
    assert_refused(rig_launch(rig), expected, words);
    assert_true(bytes_equal(arg(rig, TL_K_GROUPED_D), before));
    values[at] = good;
    free(before);
}

static void test_bad_offsets(void **state)
{
    (void)state;
    struct setup s = {8, 8, TL_FP32, TL_FP32, 0};
    struct rig rig, ragged;
    groups = (struct group_case){.num_groups = 3, .rows = 300, .sizes = {100, 130, 70}};
    open_ragged(&ragged, s);
    int offsets_at = TL_K_GROUPED_OFFSETS;
    refuse(&ragged, offsets_at, 0, 1, TL_ERR_ARGUMENT, "k_grouped_gemm: group_offsets[0] is 1");
    refuse(&ragged, offsets_at, 2, 99, TL_ERR_ARGUMENT, "below group_offsets[1] = 100");
    refuse(&ragged, offsets_at, 3, 306, TL_ERR_ARGUMENT, "is 306, beyond the 305 rows");

    open_padded(&rig, s, &ragged);
    refuse(&rig, offsets_at, 1, 120, TL_ERR_ILLEGAL, "group_offsets[1] is 120, no multiple of 128");
    refuse(&rig, TL_K_GROUPED_COUNTS, 1, 130, TL_ERR_ARGUMENT, "counts_host[1] is 130");
    refuse(&rig, TL_K_GROUPED_ROW_EXPERTS, 3, 2, TL_ERR_ARGUMENT, "row_experts[3] is 2");
    assert_ok(rig_launch(&rig));
    rig_close(&rig);
    rig_close(&ragged);
}

static void test_contract(void **state)
{
    (void)state;
    struct rig rig;
    struct tl_problem problem;
    groups = (struct group_case){.num_groups = 2, .rows = 25, .sizes = {20, 5}};
    open_ragged(&rig, (struct setup){10, 20, TL_BF16, TL_FP32, 0});
    assert_ok(tl_problem_bind(&problem, rig.operation, &rig.args, rig.param));
    assert_true(rig.operation->flops(&problem) == 2 * 10 * 20 * 30);
    assert_true(rig.operation->bytes(&problem) == 2 * 30 * (10 + 20) + 4 * 2 * 200 + 4 * 3);
    rig_param(&rig, "beta", 1);
    assert_ok(tl_problem_bind(&problem, rig.operation, &rig.args, rig.param));
    assert_true(rig.operation->bytes(&problem) == 2 * 30 * (10 + 20) + 8 * 2 * 200 + 4 * 3);
    rig_param(&rig, "beta", 0.5);
    assert_refused(rig_launch(&rig), TL_ERR_ARGUMENT, "'beta' is 0.5");
    rig_close(&rig);
}

/* What the variants for GPUs refuse, which needs none. */
static void test_gpu_variants_refuse(void **state)
{
    (void)state;
#if TL_CUDA
    static const char *const names[] = {"sm90_ragged", "sm90_padded", "cublaslt_loop",
                                        "sm90_cooperative"};
    assert_ok(tl_kernels_register());
    for (int i = 0; i < 4; i++) {
        const struct tl_kernel *kernel;
        struct tl_problem good = {.operation = &tl_op_k_grouped_gemm, .param = {1}}, bad;
        assert_ok(tl_kernel_find("k_grouped_gemm", names[i], &kernel));
        for (int j = 0; j <= TL_K_GROUPED_COUNTS; j++)
            good.present[j] = true;
        good.dtype[TL_K_GROUPED_A] = good.dtype[TL_K_GROUPED_B] = TL_BF16;
        good.dtype[TL_K_GROUPED_D] = TL_FP32;
        good.dim[TL_K_GROUPED_M] = good.dim[TL_K_GROUPED_N] = 16;
        assert_ok(kernel->legal(&good));
        bad = good;
        bad.dim[TL_K_GROUPED_M] = 20;
        assert_refused(kernel->legal(&bad), TL_ERR_ILLEGAL, "multiples of 8");
        bad = good;
        bad.dtype[TL_K_GROUPED_D] = TL_FP64;
        assert_refused(kernel->legal(&bad), TL_ERR_ILLEGAL, "'d' is fp64");
        bad = good;
        bad.present[TL_K_GROUPED_MAGNITUDE] = true;
        assert_refused(kernel->legal(&bad), TL_ERR_ILLEGAL, "does not give 'magnitude'");
        for (int j = 0; j <= TL_K_GROUPED_NUM_GROUPS; j++) {
            bad = good;
            bad.dim[j] = (int64_t)1 << 32;
            assert_refused(kernel->legal(&bad), TL_ERR_ILLEGAL, "4294967296 is beyond i32");
        }
        bad = good;
        bad.param[TL_K_GROUPED_BETA] = 0;
        if (i == 1)
            assert_refused(kernel->legal(&bad), TL_ERR_ILLEGAL, "fill 'd' with zeros");
        else
            assert_ok(kernel->legal(&bad));
        bad = good;
        bad.present[TL_K_GROUPED_COUNTS] = false;
        if (i == 1 || i == 2)
            assert_refused(kernel->legal(&bad), TL_ERR_ILLEGAL,
                           "'counts_host' [num_groups] is missing");
        else
            assert_ok(kernel->legal(&bad));
    }
#else
    print_message("# built without CUDA\n");
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_case),
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_magnitude),
        cmocka_unit_test(test_empty_groups),
        cmocka_unit_test(test_neighbours_do_not_leak),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_planted_error_is_found),
        cmocka_unit_test(test_bad_offsets),
        cmocka_unit_test(test_contract),
        cmocka_unit_test(test_gpu_variants_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
