/* Series over time, against a CUPTI that only pretends (fake/cupti.h). */
#include "check.h"
#include "core/pmsampling.h"
#include "fake/cupti.h"

static struct fake_cupti *fake;
static const struct tl_device_api cuda_api = {.name = "cuda"};
static const struct tl_device gpu = {.api = &cuda_api, .name = "cuda:0"};
static const char *const metrics[] = {"dram__bytes_read.sum", "sm__warps_active.avg"};
static const struct tl_sampling_request two = {
    .metrics = metrics, .num_metrics = 2, .interval_us = 20, .max_samples = 100};

static int setup(void **state)
{
    (void)state;
    fake = fake_cupti_open();
    return 0;
}

static struct tl_sampling *open_two(void)
{
    struct tl_sampling *sampling = NULL;
    if (fake)
        fake->passes = 1;
    enum tl_status status = tl_sampling_open(&gpu, &two, &sampling);
    if (status == TL_ERR_UNSUPPORTED) {
        print_message("# %s\n", tl_error_message());
        skip();
    }
    assert_ok(status);
    return sampling;
}

static enum tl_status count_run(void *context)
{
    ++*(int *)context;
    return *(int *)context == 4 ? TL_ERR_IO : TL_OK;
}

static void samples_a_region(void **state)
{
    (void)state;
    struct tl_sampling *sampling = open_two();
    int runs = 0, samples = 0;
    int64_t start_ns, end_ns;
    const struct tl_profile_region region = {.run = count_run, .context = &runs};
    fake->samples = 11;
    fake->value = 42;
    assert_ok(tl_sampling_run(sampling, &region, &samples));
    assert_int_equal(runs, 1);
    assert_int_equal(samples, 10); /* the first covers more than its interval */
    tl_sampling_time(sampling, 0, &start_ns, &end_ns);
    assert_int_equal(start_ns, 1020000);
    assert_int_equal(end_ns, 1040000);
    assert_true(tl_sampling_value(sampling, 9, 1) == 42 + 10);

    fake->overflow = true;
    assert_fails(TL_ERR_DEVICE, "overflowed", tl_sampling_run(sampling, &region, &samples));
    fake->overflow = false;
    fake->full = true;
    assert_fails(TL_ERR_DEVICE, "raise max_samples", tl_sampling_run(sampling, &region, &samples));
    fake->full = false;
    assert_int_equal(tl_sampling_run(sampling, &region, &samples), TL_ERR_IO);
    assert_int_equal(fake->starts, fake->stops);
    fake->samples = 0;
    assert_ok(tl_sampling_run(sampling, &region, &samples));
    assert_int_equal(samples, 0);
    tl_sampling_close(sampling);
    assert_int_equal(fake->sampling, 0);
    tl_sampling_close(NULL);
}

static void refusals(void **state)
{
    (void)state;
    struct tl_sampling *sampling = open_two();
    tl_sampling_close(sampling);
    fake->passes = 2;
    assert_fails(TL_ERR_ARGUMENT, "take 2 passes", tl_sampling_open(&gpu, &two, &sampling));
    fake->passes = 1;
    struct tl_sampling_request request = two;
    request.interval_us = 0;
    assert_fails(TL_ERR_ARGUMENT, "(got 0, 100)", tl_sampling_open(&gpu, &request, &sampling));
    assert_fails(TL_ERR_UNSUPPORTED, "use a CUDA device",
                 tl_sampling_open(cpu_device(), &two, &sampling));
    assert_int_equal(fake->sampling, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_a_region),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
