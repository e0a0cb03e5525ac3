/* Regions of kernel records, against a CUPTI that only pretends (fake/cupti.h). */
#include "check.h"
#include "core/activity.h"
#include "fake/cupti.h"

#include <math.h>

static struct fake_cupti *fake;
static fake_launch_function *launch;
static const struct tl_device_api cuda_api = {.name = "cuda"};
static const struct tl_device gpu = {.api = &cuda_api, .name = "cuda:0"};

static int setup(void **state)
{
    (void)state;
    fake = fake_cupti_open();
    launch = fake_cupti_launch();
    return 0;
}

static void begin(void)
{
    enum tl_status status = tl_activity_begin(&gpu, false);
    if (status == TL_ERR_UNSUPPORTED) {
        print_message("# %s\n", tl_error_message());
        skip();
    }
    assert_ok(status);
}

static void records_what_is_launched_inside(void **state)
{
    (void)state;
    begin();
    launch("_Z4lastPf", 9000, 11500, 9);
    launch("_ZN3foo11gemm_kernelILi64EEEvPf", 2000, 4250, 3);
    launch("_Z6WaitNsm", 5000, 90000, 4); /* CUPTI's own */
    launch("untimed", 0, 0, 5);
    assert_ok(tl_activity_end());
    launch("_Z7outsidePf", 20000, 30000, 10);
    const struct tl_kernel_record *record = tl_activity_record_at(0);
    assert_string_equal(record->name, "gemm_kernel");
    assert_string_equal(record->symbol, "_ZN3foo11gemm_kernelILi64EEEvPf");
    assert_true(record->duration_us == 2.25);
    assert_int_equal(record->grid[0], 132);
    assert_int_equal(record->grid[1], 2);
    assert_int_equal(record->block[0], 384);
    assert_int_equal(record->cluster[0], 1); /* CUPTI says 0 */
    assert_int_equal(record->registers, 168);
    assert_int_equal(record->dynamic_shared_bytes, 200 * 1024);
    assert_true(isnan(tl_activity_record_at(1)->duration_us)); /* not 0 */
    assert_int_equal(tl_activity_record_at(1)->start_ns, 0);
    assert_string_equal(tl_activity_record_at(2)->name, "last");
    assert_null(tl_activity_record_at(3));
    assert_null(tl_activity_record_at(-1));
}

static void copies_are_recorded_where_wanted(void **state)
{
    (void)state;
    begin();
    launch("memcpy", 1000, 2500, 1);
    assert_ok(tl_activity_end());
    assert_null(tl_activity_record_at(0));
    assert_ok(tl_activity_begin(&gpu, true));
    launch("_Z1xPf", 4000, 5000, 2);
    launch("memcpy", 1000, 2500, 1);
    assert_ok(tl_activity_end());
    const struct tl_kernel_record *record = tl_activity_record_at(0);
    assert_string_equal(record->name, TL_ACTIVITY_COPY);
    assert_string_equal(record->symbol, TL_ACTIVITY_COPY);
    assert_true(record->duration_us == 1.5);
    assert_int_equal(record->grid[0], 0);
    assert_string_equal(tl_activity_record_at(1)->name, "x");
    assert_null(tl_activity_record_at(2));
    begin(); /* off again */
    launch("memcpy", 1000, 2500, 1);
    assert_ok(tl_activity_end());
    assert_null(tl_activity_record_at(0));
}

static void regions_follow_each_other(void **state)
{
    (void)state;
    for (int i = 1; i <= 20; i++) {
        begin();
        for (int k = 0; k < i; k++)
            launch("_Z1xPf", 1000, 2000, (uint32_t)k);
        assert_ok(tl_activity_end());
        assert_non_null(tl_activity_record_at(i - 1));
        assert_null(tl_activity_record_at(i));
        assert_false(fake->recording);
    }
    assert_int_equal(fake->registrations, 1);
    begin();
    assert_ok(tl_activity_end());
    assert_null(tl_activity_record_at(0));
}

static void lost_records_and_nesting_are_errors(void **state)
{
    (void)state;
    begin();
    assert_fails(TL_ERR_ARGUMENT, "recorded already", tl_activity_begin(&gpu, false));
    launch("_Z1xPf", 1000, 2000, 1);
    fake->lost = 7;
    assert_fails(TL_ERR_DEVICE, "7 kernel records were lost", tl_activity_end());
    assert_fails(TL_ERR_ARGUMENT, "no region is recorded", tl_activity_end());
    begin();
    assert_ok(tl_activity_end());
    assert_fails(TL_ERR_UNSUPPORTED, "use a CUDA device", tl_activity_begin(cpu_device(), false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_what_is_launched_inside),
        cmocka_unit_test(copies_are_recorded_where_wanted),
        cmocka_unit_test(regions_follow_each_other),
        cmocka_unit_test(lost_records_and_nesting_are_errors),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
