/* Checks of group_offsets: what a kernel on the device finds with many threads is what the host
 * finds with one, in the same words. */
#include "core/random.h"
#include "kernels/host/group_offsets.h"
#include "rig.h"

#include <stdio.h>

enum { MOST = 1024, ROWS = 2 * MOST * TL_GROUP_ALIGNMENT };

static int32_t offsets[MOST + 1];

/* Groups of 0 or 128 rows. */
static void good(int num_groups)
{
    for (int g = 0; g <= num_groups; g++)
        offsets[g] = (g + g / 3) / 2 * TL_GROUP_ALIGNMENT;
}

/* Whether any of `threads` threads objects. */
static bool bad(int num_groups, int64_t rows, bool aligned, int threads)
{
    int objecting = 0;
    for (int thread = 0; thread < threads; thread++)
        objecting += tl_group_offsets_bad(offsets, num_groups, rows, aligned, thread, threads);
    return objecting > 0;
}

static void agree(int num_groups, int64_t rows, bool aligned, int kind, int64_t position)
{
    static const int threads[] = {1, 2, 32, 96, 256, 384, 1024};
    struct tl_fault fault;
    assert_int_equal(tl_group_offsets_find(offsets, num_groups, rows, aligned, &fault), kind != 0);
    assert_int_equal(fault.kind, kind);
    if (kind)
        assert_int_equal(fault.position, position);
    for (int i = 0; i < 7; i++)
        assert_int_equal(bad(num_groups, rows, aligned, threads[i]), kind != 0);
}

static void test_every_position(void **state)
{
    (void)state;
    static const int counts[] = {0, 1, 2, 31, 255, 256, 1023, MOST};
    for (int i = 0; i < 8; i++) {
        int n = counts[i];
        good(n);
        agree(n, ROWS, false, 0, 0);
        agree(n, ROWS, true, 0, 0);
        agree(n, offsets[n], false, 0, 0);
        agree(n, offsets[n] - 1, false, TL_OFFSETS_BEYOND, n);
        for (int at = 0; at <= n; at += 1 + n / 50) {
            int32_t kept = offsets[at];
            offsets[at] = kept + 1;
            bool above = at > 0 && at < n && offsets[at + 1] == kept; /* now above the next */
            agree(n, ROWS, true,
                  above    ? TL_OFFSETS_DECREASE
                  : at > 0 ? TL_OFFSETS_UNALIGNED
                           : TL_OFFSETS_FIRST,
                  at + above);
            offsets[at] = INT32_MIN;
            agree(n, ROWS, false, at ? TL_OFFSETS_DECREASE : TL_OFFSETS_FIRST, at);
            offsets[at] = INT32_MAX;
            agree(n, ROWS, false,
                  at == 0  ? TL_OFFSETS_FIRST
                  : at < n ? TL_OFFSETS_DECREASE
                           : TL_OFFSETS_BEYOND,
                  at > 0 && at < n ? at + 1 : at);
            offsets[at] = kept;
        }
    }
}

static void test_noise(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 2000; round++) {
        struct tl_fault fault;
        int n = 1 + (int)(tl_random_at(1, 0, round).word[0] % 8);
        for (int g = 0; g <= n; g++)
            offsets[g] = (int32_t)(tl_random_at(2, round, (uint64_t)g).word[0] % 4) * 64 * (g > 0);
        bool wrong = tl_group_offsets_find(offsets, n, 128, round % 2, &fault);
        assert_int_equal(bad(n, 128, round % 2, 3), wrong);
    }
}

/* Found by the host's check or left by a kernel: the words after the name are the same. */
static void same_words(const int32_t *values, int num_groups, bool aligned, const char *words)
{
    struct rig rig;
    struct tl_fault fault;
    char text[256];
    rig_open(&rig, "m_grouped_gemm", aligned ? "cpu_padded" : "cpu_ragged");
    const struct tl_tensor absent = {0},
                           *tensor = rig_i32(&rig, "group_offsets", values, num_groups + 1);
    enum tl_status status =
        aligned ? tl_group_offsets_check_padded("x", tensor, 256, &absent, &absent)
                : tl_group_offsets_check("x", tensor, 256);
    snprintf(text, sizeof text, "x: %s", words);
    assert_string_equal(tl_error_message(), text);
    assert_true(tl_group_offsets_find(values, num_groups, 256, aligned, &fault));

    struct tl_fault record = fault;
    uint32_t claim = 1;
    struct tl_device device = {.fault = &record};
    record.handled = 0;
    record.left = 1;
    record.claim = &claim;
    record.kernel = rig.kernel;
    assert_int_equal(tl_fault_check(&device), status);
    snprintf(text, sizeof text, "m_grouped_gemm/%s: %s; that launch wrote nothing",
             rig.kernel->variant, words);
    assert_string_equal(tl_error_message(), text);
    rig_close(&rig);
}

static void test_words(void **state)
{
    (void)state;
    same_words((const int32_t[]){1, 2}, 1, false,
               "group_offsets[0] is 1; the first group starts at 0");
    same_words((const int32_t[]){0, 40, 12, 5}, 3, false,
               "group_offsets[2] is 12, below group_offsets[1] = 40; offsets must not decrease");
    same_words((const int32_t[]){0, 40, 257}, 2, false,
               "group_offsets[2] is 257, beyond the 256 rows of the tensor");
    same_words((const int32_t[]){0, 64, 128}, 2, true,
               "group_offsets[1] is 64, no multiple of 128; pad the groups, or use a ragged "
               "kernel");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_position),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
