#include "check.h"
#include "core/names.h"

static const char *const words[] = {"gemm", "rmsnorm", "rope", "router", "swiglu", "adamw", "beta"};

static const char *nearest(const char *name)
{
    return tl_name_nearest(name, words, sizeof words / sizeof words[0]);
}

static void finds_the_fewest_edits(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"gemm", "gemm"},       {"gem", "gemm"},        {"gemmm", "gemm"},    {"gamm", "gemm"},
        {"rsmnorm", "rmsnorm"}, {"rmsnrom", "rmsnorm"}, {"rotuer", "router"}, {"roter", "router"},
        {"swigluu", "swiglu"},  {"adam", "adamw"},      {"ebta", "beta"},     {"btea", "beta"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *found = nearest(cases[i][0]);
        assert_non_null(found);
        assert_string_equal(found, cases[i][1]);
    }
}

static void an_adjacent_swap_is_one_edit(void **state)
{
    (void)state;
    /* Length 2 allows one edit: "ab" from "ba" is a swap, "cd" would take two. */
    static const char *const swap[] = {"ab"}, *const far[] = {"cd"}, *const long_swap[] = {"abcd"};
    assert_ptr_equal(tl_name_nearest("ba", swap, 1), swap[0]);
    assert_null(tl_name_nearest("ba", far, 1));
    /* Two swaps are two edits, within half of 4; moving a letter three places is not one edit. */
    assert_ptr_equal(tl_name_nearest("badc", long_swap, 1), long_swap[0]);
    assert_null(tl_name_nearest("dcba", long_swap, 1));
    /* A swap (1) beats two substitutions (2), though those come first. */
    static const char *const both[] = {"lxxr", "lary"};
    assert_ptr_equal(tl_name_nearest("layr", both, 2), both[1]);
}

static void too_far_is_null(void **state)
{
    (void)state;
    assert_null(nearest("xyz"));
    assert_null(nearest("quantize"));
    assert_null(nearest(""));
    assert_null(tl_name_nearest("gemm", NULL, 0));
    /* Half of 5 is 2.5: two edits are within it, three are not. */
    static const char *const one[] = {"abcde"};
    assert_ptr_equal(tl_name_nearest("abcxy", one, 1), one[0]);
    assert_null(tl_name_nearest("abxyz", one, 1));
    /* Half of a name of 1 letter is no edit at all. */
    assert_null(tl_name_nearest("x", one, 1));
}

static void ties_go_to_the_first(void **state)
{
    (void)state;
    static const char *const names[] = {"cart", "cast", "cats"};
    assert_ptr_equal(tl_name_nearest("cat", names, 3), names[0]);
    assert_ptr_equal(tl_name_nearest("cat", names + 1, 2), names[1]);
}

static void long_names_are_fine(void **state)
{
    (void)state;
    char name[5000], twin[5000];
    memset(name, 'a', sizeof name - 1);
    memset(twin, 'a', sizeof twin - 1);
    name[sizeof name - 1] = twin[sizeof twin - 1] = 0;
    twin[2500] = 'b';
    const char *const names[] = {"a", twin};
    assert_ptr_equal(tl_name_nearest(name, names, 2), twin);
    assert_null(tl_name_nearest("ab", names + 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_fewest_edits), cmocka_unit_test(an_adjacent_swap_is_one_edit),
        cmocka_unit_test(too_far_is_null),        cmocka_unit_test(ties_go_to_the_first),
        cmocka_unit_test(long_names_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
