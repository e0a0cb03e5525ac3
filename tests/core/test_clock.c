/* The SM clock from marks that are whole, partial, stale or out of order. */
#include "check.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/nvml.h"

#include <math.h>

enum { NUM_SMS = 5 };

static struct tl_clock_note before[NUM_SMS], after[NUM_SMS];

/* Every SM counts from its own start and runs at 1500 MHz for 200 us. */
static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SMS; i++) {
        before[i] = (struct tl_clock_note){1000000u * (unsigned)i, 5000, 7};
        after[i] = (struct tl_clock_note){before[i].cycles + 300000, 205000, 8};
    }
    return 0;
}

static void the_mean_frequency(void **state)
{
    (void)state;
    double mhz = 0;
    assert_ok(tl_clock_frequency(before, 7, after, 8, NUM_SMS, &mhz));
    assert_true(fabs(mhz - 1500) < 1e-9);
}

static void one_odd_sm_does_not_matter(void **state)
{
    (void)state;
    double mhz = 0;
    after[2].cycles += 1000000;
    assert_ok(tl_clock_frequency(before, 7, after, 8, NUM_SMS, &mhz));
    assert_true(fabs(mhz - 1500) < 1e-9);
}

static void sms_that_a_mark_missed(void **state)
{
    (void)state;
    double mhz = 0;
    for (int i = 0; i < 3; i++)
        before[i].sequence = after[i + 1].sequence = 3; /* only SM 4 has both */
    after[0].cycles = 0;
    after[4].cycles += 60000;
    assert_ok(tl_clock_frequency(before, 7, after, 8, NUM_SMS, &mhz));
    assert_true(fabs(mhz - 1800) < 1e-9);
    assert_fails(TL_ERR_DEVICE, "no SM of 5",
                 tl_clock_frequency(before, 6, after, 8, NUM_SMS, &mhz));
}

static void marks_the_wrong_way_round(void **state)
{
    (void)state;
    double mhz = 0;
    assert_fails(TL_ERR_DEVICE, "in order", tl_clock_frequency(after, 8, before, 7, NUM_SMS, &mhz));
    assert_fails(TL_ERR_DEVICE, "in order",
                 tl_clock_frequency(before, 7, before, 7, NUM_SMS, &mhz));
    assert_fails(TL_ERR_DEVICE, "no SM of 0", tl_clock_frequency(before, 7, after, 8, 0, &mhz));
}

static void reasons_have_words(void **state)
{
    (void)state;
    assert_string_equal(tl_throttle_name(2), "power_cap");
    assert_string_equal(tl_throttle_name(6), "hw_thermal");
    assert_null(tl_throttle_name(9));
    assert_null(tl_throttle_name(-1));
    /* Slowdowns of the machine: hardware, software thermal, hardware thermal, power brake. */
    assert_int_equal(TL_THROTTLE_SLOWDOWN, 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7);
}

/* With or without a driver there is no GPU at this address. */
static void nvml_says_what_it_lacks(void **state)
{
    (void)state;
    struct tl_device_state now;
    struct tl_device_detail lines[4];
    int count = 1;
    assert_fails(TL_ERR_UNSUPPORTED, "NVML", tl_nvml_state("ffff:ff:1f.0", &now));
    assert_true(isnan(now.power_w) && isnan(now.sm_clock_mhz) && now.throttle == 0);
    assert_fails(TL_ERR_UNSUPPORTED, "NVML", tl_nvml_details("ffff:ff:1f.0", lines, 4, &count));
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_mean_frequency, fill),
        cmocka_unit_test_setup(one_odd_sm_does_not_matter, fill),
        cmocka_unit_test_setup(sms_that_a_mark_missed, fill),
        cmocka_unit_test_setup(marks_the_wrong_way_round, fill),
        cmocka_unit_test(reasons_have_words),
        cmocka_unit_test(nvml_says_what_it_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
