/* m_grouped_gemm/cpu_ragged and cpu_padded over every case of group sizes. */
#include "arguments.h"
#include "cases.h"

#include "kernels/host/group_offsets.h"
#include "kernels/m_grouped_gemm/op.h"
#include "kernels/table.h"

#include <stdlib.h>

#define TAIL 5 /* rows past the last offset */

static int32_t offsets[CASES_MAX_GROUPS + 1], padded[CASES_MAX_GROUPS + 1];
static struct group_case groups;

struct setup {
    int layout;
    int64_t n, k;
    enum tl_dtype operands, d;
};

static struct tl_tensor *arg(struct rig *rig, int position)
{
    return &rig->args.tensor[position];
}

/* The case in ragged layout, NaN in the tail of a, d poisoned. */
static void open_ragged(struct rig *rig, struct setup s)
{
    int64_t rows = group_case_offsets(&groups, 1, offsets) + TAIL;
    bool nn = s.layout == TL_M_GROUPED_NN;
    rig_open(rig, "m_grouped_gemm", "cpu_ragged");
    rig_param(rig, "layout", s.layout);
    struct tl_tensor *a = rig_normal(rig, "a", s.operands, rows, s.k, -1, 1);
    rig_normal(rig, "b", s.operands, groups.num_groups, nn ? s.k : s.n, nn ? s.n : s.k, 2);
    rig_poison(rig, "d", s.d, rows, s.n, -1);
    rig_i32(rig, "group_offsets", offsets, groups.num_groups + 1);
    if (row_bytes(a))
        memset(row_at(a, groups.rows), 0xff, TAIL * row_bytes(a));
}

/* The same rows in groups padded to 128, pad rows of a poisoned, and all optional arguments. */
static void open_padded(struct rig *rig, struct setup s, const struct rig *ragged)
{
    int64_t rows = group_case_offsets(&groups, TL_GROUP_ALIGNMENT, padded) + TAIL;
    int32_t *row_experts = malloc((size_t)rows * sizeof *row_experts);
    int32_t counts[CASES_MAX_GROUPS];
    const struct tl_tensor *a = &ragged->args.tensor[TL_M_GROUPED_A];
    const struct tl_tensor *b = &ragged->args.tensor[TL_M_GROUPED_B];
    rig_open(rig, "m_grouped_gemm", "cpu_padded");
    rig_param(rig, "layout", s.layout);
    struct tl_tensor *padded_a = rig_poison(rig, "a", s.operands, rows, s.k, -1);
    for (int64_t g = 0; g < groups.num_groups; g++) {
        counts[g] = padded[g + 1] - padded[g];
        for (int32_t r = 0; row_bytes(a) && r < groups.sizes[g]; r++)
            memcpy(row_at(padded_a, padded[g] + r), row_at(a, offsets[g] + r), row_bytes(a));
    }
    struct tl_tensor *padded_b =
        rig_poison(rig, "b", s.operands, b->shape[0], b->shape[1], b->shape[2]);
    assert_ok(tl_tensor_copy(padded_b, b, NULL));
    rig_poison(rig, "d", s.d, rows, s.n, -1);
    rig_i32(rig, "group_offsets", padded, groups.num_groups + 1);
    assert_non_null(row_experts);
    group_case_row_experts(&groups, padded, rows, row_experts);
    rig_i32(rig, "row_experts", row_experts, rows);
    rig_i32(rig, "counts_host", counts, groups.num_groups);
    free(row_experts);
}

static bool is_poison(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0xff)
            return false;
    return true;
}

static void check_ragged(struct rig *rig, struct setup s)
{
    struct tl_tensor *d = arg(rig, TL_M_GROUPED_D), real;
    double *a = doubles_of(arg(rig, TL_M_GROUPED_A)), *b = doubles_of(arg(rig, TL_M_GROUPED_B));
    double *expected = calloc((size_t)(groups.rows * s.n + 1), sizeof *expected);
    double *scale = calloc((size_t)(groups.rows * s.n + 1), sizeof *scale);
    bool nn = s.layout == TL_M_GROUPED_NN;
    for (int64_t g = 0; g < groups.num_groups; g++)
        naive_product(expected + offsets[g] * s.n, scale + offsets[g] * s.n, groups.sizes[g], s.n,
                      s.k, (struct naive_operand){a + offsets[g] * s.k, s.k, 1},
                      (struct naive_operand){b + g * s.n * s.k, nn ? 1 : s.k, nn ? s.n : 1}, 0);
    assert_ok(tl_tensor_rows(&real, d, 0, groups.rows));
    struct tl_comparison result = compare_naive(&real, expected, scale, s.k);
    if (!result.pass)
        fail_msg("%s, layout %d, n %d k %d: %d violations, %d non-finite, worst in row %d",
                 groups.name, s.layout, (int)s.n, (int)s.k, (int)result.violations,
                 (int)result.nonfinite, (int)result.worst_coord[0]);
    assert_true(is_poison(row_at(d, groups.rows), TAIL * row_bytes(d)));
    tl_tensor_done(&real);
    free(a);
    free(b);
    free(expected);
    free(scale);
}

/* Real rows bit for bit those of the ragged layout; nothing past the last offset. */
static void check_padded(const struct rig *rig, const struct rig *ragged)
{
    const struct tl_tensor *d = &rig->args.tensor[TL_M_GROUPED_D];
    const struct tl_tensor *expected = &ragged->args.tensor[TL_M_GROUPED_D];
    for (int64_t g = 0; g < groups.num_groups; g++)
        for (int32_t r = 0; r < groups.sizes[g]; r++)
            if (memcmp(row_at(d, padded[g] + r), row_at(expected, offsets[g] + r), row_bytes(d)))
                fail_msg("%s: row %d of group %d differs between the layouts", groups.name, (int)r,
                         (int)g);
    assert_true(is_poison(row_at(d, padded[groups.num_groups]), TAIL * row_bytes(d)));
}

static void check_case(struct setup s)
{
    struct rig ragged, rig;
    open_ragged(&ragged, s);
    assert_ok(rig_launch(&ragged));
    check_ragged(&ragged, s);
    open_padded(&rig, s, &ragged);
    assert_ok(rig_launch(&rig));
    check_padded(&rig, &ragged);
    rig_close(&ragged);
    rig_close(&rig);
}

static void test_every_case(void **state)
{
    (void)state;
    static const struct setup setups[] = {
        {TL_M_GROUPED_NT, 20, 17, TL_FP32, TL_FP32}, {TL_M_GROUPED_NN, 13, 24, TL_FP32, TL_FP32},
        {TL_M_GROUPED_NT, 8, 8, TL_BF16, TL_BF16},   {TL_M_GROUPED_NN, 19, 9, TL_BF16, TL_FP32},
        {TL_M_GROUPED_NN, 5, 11, TL_FP64, TL_FP64},
    };
    for (int i = 0; group_case_at(i, &groups); i++)
        for (size_t j = 0; j < sizeof setups / sizeof setups[0]; j++)
            check_case(setups[j]);
}

/* Widths of real models that are no multiple of a tile, on a few small groups. */
static void test_widths(void **state)
{
    (void)state;
    static const int64_t n[] = {8, 768, 1408}, k[] = {0, 8, 72, 300};
    for (int layout = TL_M_GROUPED_NT; layout <= TL_M_GROUPED_NN; layout++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++) {
                group_case_draw(&groups, CASE_ZIPF, 5, 23, 3);
                check_case((struct setup){layout, n[i], k[j], TL_FP32, TL_FP32});
            }
}

/* Against the naive sum of |a| |b|; rows past the last offset stay as they are. */
static void check_magnitude(struct setup s)
{
    struct rig rig;
    groups = (struct group_case){.num_groups = 4, .rows = 60, .sizes = {20, 0, 1, 39}};
    open_ragged(&rig, s);
    struct tl_tensor *magnitude = rig_poison(&rig, "magnitude", TL_FP64, 60 + TAIL, s.n, -1), real;
    assert_ok(rig_launch(&rig));
    check_ragged(&rig, s);
    double *a = doubles_of(arg(&rig, TL_M_GROUPED_A)), *b = doubles_of(arg(&rig, TL_M_GROUPED_B));
    double *product = calloc((size_t)(60 * s.n), sizeof *product);
    double *expected = calloc((size_t)(60 * s.n), sizeof *expected);
    bool nn = s.layout == TL_M_GROUPED_NN;
    for (int64_t g = 0; g < groups.num_groups; g++)
        naive_product(product + offsets[g] * s.n, expected + offsets[g] * s.n, groups.sizes[g], s.n,
                      s.k, (struct naive_operand){a + offsets[g] * s.k, s.k, 1},
                      (struct naive_operand){b + g * s.n * s.k, nn ? 1 : s.k, nn ? s.n : 1}, 0);
    assert_ok(tl_tensor_rows(&real, magnitude, 0, 60));
    assert_near(&real, expected, 0, 1e-14);
    assert_true(is_poison(row_at(magnitude, 60), TAIL * row_bytes(magnitude)));
    tl_tensor_done(&real);
    free(a);
    free(b);
    free(product);
    free(expected);
    rig_close(&rig);
}

static void test_magnitude(void **state)
{
    (void)state;
    check_magnitude((struct setup){TL_M_GROUPED_NT, 20, 17, TL_BF16, TL_BF16});
    check_magnitude((struct setup){TL_M_GROUPED_NN, 13, 24, TL_FP32, TL_FP64});
    check_magnitude((struct setup){TL_M_GROUPED_NT, 9, 31, TL_FP64, TL_FP64});
    struct rig ragged, rig;
    open_ragged(&ragged, (struct setup){TL_M_GROUPED_NT, 8, 8, TL_FP32, TL_FP32});
    open_padded(&rig, (struct setup){TL_M_GROUPED_NT, 8, 8, TL_FP32, TL_FP32}, &ragged);
    rig_poison(&rig, "magnitude", TL_FP64, arg(&rig, TL_M_GROUPED_D)->shape[0], 8, -1);
    assert_refused(rig_launch(&rig), TL_ERR_ILLEGAL,
                   "m_grouped_gemm/cpu_padded: does not give 'magnitude'");
    rig_close(&ragged);
    rig_close(&rig);
}

/* NaN and infinities in the even groups: odd groups keep every bit. */
static void test_neighbours_do_not_leak(void **state)
{
    (void)state;
    struct setup s = {TL_M_GROUPED_NT, 33, 40, TL_FP32, TL_FP32};
    struct rig rig;
    group_case_draw(&groups, CASE_MULTINOMIAL, 33, 1020, 5);
    open_ragged(&rig, s);
    assert_ok(rig_launch(&rig));
    struct tl_tensor *d = arg(&rig, TL_M_GROUPED_D);
    unsigned char *clean = bytes_of(d);
    float *a = arg(&rig, TL_M_GROUPED_A)->data;
    for (int64_t g = 0; g < groups.num_groups; g += 2)
        for (int64_t i = offsets[g] * s.k; i < offsets[g + 1] * s.k; i++)
            a[i] = i % 2 ? NAN : -INFINITY;
    assert_ok(rig_launch(&rig));
    for (int64_t g = 1; g < groups.num_groups; g += 2)
        assert_memory_equal(row_at(d, offsets[g]), clean + (size_t)offsets[g] * row_bytes(d),
                            (size_t)groups.sizes[g] * row_bytes(d));
    free(clean);
    rig_close(&rig);
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    struct rig rig;
    group_case_draw(&groups, CASE_ZIPF, 33, 1020, 5);
    open_ragged(&rig, (struct setup){TL_M_GROUPED_NT, 70, 90, TL_BF16, TL_BF16});
    launch_steady(&rig);
    rig_close(&rig);
}

/* The rows of one group computed with the next one's weights are found, in the right place. */
static void test_planted_error_is_found(void **state)
{
    (void)state;
    struct setup s = {TL_M_GROUPED_NT, 12, 30, TL_FP32, TL_FP32};
    struct rig rig, wrong;
    struct tl_comparison result;
    struct tl_bound bound = {.relative = 1e-5};
    groups = (struct group_case){.num_groups = 3, .rows = 60, .sizes = {20, 1, 39}};
    open_ragged(&rig, s);
    open_ragged(&wrong, s);
    assert_ok(rig_launch(&rig));
    int32_t *moved = arg(&wrong, TL_M_GROUPED_OFFSETS)->data;
    moved[1] = 19;
    assert_ok(rig_launch(&wrong));
    struct tl_tensor value, reference;
    assert_ok(tl_tensor_rows(&value, arg(&wrong, TL_M_GROUPED_D), 0, 60));
    assert_ok(tl_tensor_rows(&reference, arg(&rig, TL_M_GROUPED_D), 0, 60));
    assert_ok(tl_compare(&result, &value, &reference, &bound));
    assert_false(result.pass);
    assert_int_equal(result.mismatched_bits, s.n);
    assert_int_equal(result.worst_coord[0], 19);
    tl_tensor_done(&value);
    tl_tensor_done(&reference);
    rig_close(&rig);
    rig_close(&wrong);
}

/* One value of an index tensor changed: refused, d as it was. */
static void refuse(struct rig *rig, int position, int64_t at, int32_t value,
                   enum tl_status expected, const char *words)
{
    int32_t *values = arg(rig, position)->data, good = values[at];
    values[at] = value;
    struct tl_tensor *d = arg(rig, TL_M_GROUPED_D);
    assert_ok(tl_tensor_poison(d));
    assert_refused(rig_launch(rig), expected, words);
    assert_true(is_poison(d->data, tl_tensor_bytes(d)));
    values[at] = good;
}

static void test_bad_offsets(void **state)
{
    (void)state;
    struct setup s = {TL_M_GROUPED_NT, 8, 8, TL_FP32, TL_FP32};
    struct rig rig, ragged;
    groups = (struct group_case){.num_groups = 3, .rows = 300, .sizes = {100, 130, 70}};
    open_ragged(&ragged, s);
    int offsets_at = TL_M_GROUPED_OFFSETS, experts_at = TL_M_GROUPED_ROW_EXPERTS;
    refuse(&ragged, offsets_at, 0, 1, TL_ERR_ARGUMENT, "group_offsets[0] is 1");
    refuse(&ragged, offsets_at, 0, -1, TL_ERR_ARGUMENT, "group_offsets[0] is -1");
    refuse(&ragged, offsets_at, 2, 99, TL_ERR_ARGUMENT,
           "group_offsets[2] is 99, below group_offsets[1] = 100");
    refuse(&ragged, offsets_at, 1, -5, TL_ERR_ARGUMENT, "group_offsets[1] is -5");
    refuse(&ragged, offsets_at, 3, 306, TL_ERR_ARGUMENT,
           "group_offsets[3] is 306, beyond the 305 rows");
    assert_ok(rig_launch(&ragged));

    open_padded(&rig, s, &ragged);
    refuse(&rig, offsets_at, 1, 120, TL_ERR_ILLEGAL, "group_offsets[1] is 120, no multiple of 128");
    refuse(&rig, offsets_at, 2, 127, TL_ERR_ARGUMENT, "below group_offsets[1] = 128");
    refuse(&rig, offsets_at, 1, 256, TL_ERR_ARGUMENT, "counts_host[0] is 128");
    refuse(&rig, TL_M_GROUPED_COUNTS, 1, 130, TL_ERR_ARGUMENT, "counts_host[1] is 130");
    refuse(&rig, experts_at, 3, 2, TL_ERR_ARGUMENT, "row_experts[3] is 2");
    refuse(&rig, experts_at, 512, 0, TL_ERR_ARGUMENT, "row_experts[512] is 0");
    refuse(&rig, experts_at, 128, -1, TL_ERR_ARGUMENT, "row_experts[129] is 1 after the pad row");
    assert_ok(rig_launch(&rig));
    rig_close(&rig);
    rig_close(&ragged);
}

/* What the variants for GPUs refuse, which needs none. */
static void test_gpu_variants_refuse(void **state)
{
    (void)state;
#if TL_CUDA
    static const char *const names[] = {"sm90_ragged", "sm90_padded", "cublaslt_loop"};
    assert_ok(tl_kernels_register());
    for (int i = 0; i < 3; i++) {
        const struct tl_kernel *kernel;
        struct tl_problem good = {.operation = &tl_op_m_grouped_gemm}, bad;
        assert_ok(tl_kernel_find("m_grouped_gemm", names[i], &kernel));
        for (int j = 0; j <= TL_M_GROUPED_COUNTS; j++) {
            good.present[j] = true;
            good.dtype[j] = TL_BF16;
        }
        for (int j = 0; j <= TL_M_GROUPED_NUM_GROUPS; j++)
            good.dim[j] = 16;
        assert_ok(kernel->legal(&good));
        for (int j = 0; j <= TL_M_GROUPED_NUM_GROUPS; j++) {
            bad = good;
            bad.dim[j] = (int64_t)1 << 32;
            assert_refused(kernel->legal(&bad), TL_ERR_ILLEGAL, "4294967296 is beyond i32");
        }
        bad = good;
        bad.dim[TL_M_GROUPED_N] = 20;
        assert_refused(kernel->legal(&bad), TL_ERR_ILLEGAL, "multiples of 8");
        bad = good;
        bad.present[TL_M_GROUPED_MAGNITUDE] = true;
        assert_refused(kernel->legal(&bad), TL_ERR_ILLEGAL, "does not give 'magnitude'");
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
        cmocka_unit_test(test_neighbours_do_not_leak),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_planted_error_is_found),
        cmocka_unit_test(test_bad_offsets),
        cmocka_unit_test(test_gpu_variants_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
