/* group_ends: the first fault is found and named, wherever it is, and what is right passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/host/group_ends.h"

enum { MOST = 70, TOTAL = 210 };

static void good_ends_pass(void **state)
{
    (void)state;
    int32_t ends[MOST];
    struct tl_fault fault;
    for (int g = 0; g < MOST; g++)
        ends[g] = 3 * (g + 1);
    for (int n = 0; n <= MOST; n++)
        assert_false(tl_group_ends_find(ends, n, TOTAL, &fault));
    assert_false(tl_group_ends_find((int32_t[]){0, 0, 0}, 3, 0, &fault));
    assert_false(tl_group_ends_find((int32_t[]){7, 7, INT32_MAX}, 3, INT32_MAX, &fault));
}

static void the_first_fault_is_found(void **state)
{
    (void)state;
    int32_t ends[MOST];
    struct tl_fault fault;
    for (int at = 0; at < MOST; at++) {
        for (int g = 0; g < MOST; g++)
            ends[g] = 3 * (g + 1);
        ends[at] = at > 0 ? ends[at - 1] - 1 : -1;
        ends[MOST - 1] += at < MOST - 1 ? 1 : 0; /* a later fault */
        assert_true(tl_group_ends_find(ends, MOST, TOTAL, &fault));
        assert_int_equal(fault.kind, TL_ENDS_DECREASE);
        assert_int_equal(fault.position, at);
        assert_int_equal(fault.value[0], ends[at]);
        assert_int_equal(fault.value[1], at > 0 ? ends[at - 1] : 0);
    }
    assert_true(tl_group_ends_find((int32_t[]){3, 9, 9}, 3, 8, &fault));
    assert_int_equal(fault.kind, TL_ENDS_BEYOND);
    assert_int_equal(fault.position, 2);
    assert_int_equal(fault.value[2], 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ends_pass),
        cmocka_unit_test(the_first_fault_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
