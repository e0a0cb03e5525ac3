#include "check.h"
#include "core/activity.h"

#include <stdlib.h>

static void shortens(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"plain_c", "plain_c"},
        {"_Z7free_fnPf", "free_fn"},
        {"_ZL7free_fnPf", "free_fn"},
        {"_Z5tstatILi64ELb1EdEvPT1_", "tstat"},
        {"_ZN39_GLOBAL__N__a489b932_8_names_cu_plain_c4anonEPf", "anon"},
        {"_ZN7cutlass13device_kernelIN1S1IELNS_1LE1EJLi1ELin2ELi3EEEEv1PILi3ET_EPf",
         "device_kernel"},
        {"_ZN3foo11gemm_kernelILi64EEEvPf", "gemm_kernel"},
        {"_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfEEEEvT1_", "reduce_kernel"},
        {"_ZN3abcIXadL_Z5identPfEEE4lastEv", "last"},
        {"_ZN33_INTERNAL_0f3c_12_pad_cu_66a05d2b5innerIdEEvPf", "inner"},
        /* What is no mangled name, or is cut short, stays. */
        {"", ""},
        {"_Z", "_Z"},
        {"_Z99short", "_Z99short"},
        {"ampere_bf16_s16816gemm_bf16_64x64", "ampere_bf16_s16816gemm_bf16_64x64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[64];
        tl_kernel_name_short(cases[i][0], name, sizeof name);
        assert_string_equal(name, cases[i][1]);
    }
}

static void never_reads_past_the_end(void **state)
{
    (void)state;
    const char *whole = "_ZN7cutlass13device_kernelIN1S1IELNS_1LE1EJLi1ELin2ELi3EEEEv1PILi3ET_EPf";
    for (size_t length = 0; length <= strlen(whole); length++) {
        char *cut = strndup(whole, length), name[16];
        tl_kernel_name_short(cut, name, sizeof name);
        assert_true(strlen(name) < sizeof name);
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortens),
        cmocka_unit_test(never_reads_past_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
