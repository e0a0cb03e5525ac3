/* The life cycle of a profiling session, against a CUPTI that only pretends (fake/cupti.h). */
#include "check.h"
#include "core/profiler.h"
#include "fake/cupti.h"

#include <math.h>

static struct fake_cupti *fake;
static const struct tl_device_api cuda_api = {.name = "cuda"};
static struct tl_device gpu = {.api = &cuda_api, .name = "cuda:0"};

static const char *const metrics[] = {"dram__bytes_read.sum", "lts__t_sector_hit_rate.pct"};
static const struct tl_profile_request two = {.metrics = metrics, .num_metrics = 2};

static int setup(void **state)
{
    (void)state;
    fake = fake_cupti_open();
    return 0;
}

/* Back to a CUPTI that works, or a skip where this build has none. */
static int begin(void **state)
{
    (void)state;
    if (fake)
        *fake = (struct fake_cupti){.passes = 1, .ranges = 1, .value = 42, .hosts = fake->hosts};
    return 0;
}

static void need_cupti(void)
{
    const char *chip;
    if (tl_profiler_probe(&gpu, &chip) == TL_OK)
        return;
    print_message("# %s\n", tl_error_message());
    skip();
}

struct calls {
    int runs, flushes;
    enum tl_status result;
    struct tl_profiler *inner; /* what the region tries to run or close */
};

static enum tl_status count_run(void *context)
{
    struct calls *calls = context;
    assert_true(tl_profiler_running());
    calls->runs++;
    return calls->result;
}

static enum tl_status count_flush(void *context)
{
    struct calls *calls = context;
    assert_false(fake->range_open); /* a flush is not counted */
    calls->flushes++;
    return TL_OK;
}

static struct tl_profiler *open_two(void)
{
    struct tl_profiler *profiler;
    assert_ok(tl_profiler_open(&gpu, &two, &profiler));
    return profiler;
}

static void a_region_runs_once_a_pass(void **state)
{
    (void)state;
    need_cupti();
    fake->passes = 3;
    struct tl_profiler *profiler = open_two();
    struct calls calls = {.runs = 0};
    const struct tl_profile_region region = {count_run, count_flush, &calls};
    int ranges = 0;
    assert_int_equal(tl_profiler_passes(profiler), 3);
    for (int i = 1; i <= 2; i++) {
        assert_ok(tl_profiler_run(profiler, &region, &ranges));
        assert_int_equal(ranges, 1);
        assert_int_equal(calls.runs, 3 * i);
        assert_int_equal(calls.flushes, 3 * i);
        assert_int_equal(fake->configs, i);
        assert_true(tl_profiler_value(profiler, 0, 0) == 42);
    }
    assert_int_equal(fake->starts, 6);
    assert_int_equal(fake->pushes, 6);
    assert_int_equal(fake->pops, 6);
    assert_true(fake->synchronized >= 6); /* after every flush */
    tl_profiler_close(profiler);
    assert_int_equal(fake->enabled, 0);
    assert_false(tl_profiler_running());
}

static void kernels_are_ranges_of_their_own(void **state)
{
    (void)state;
    need_cupti();
    fake->passes = 4;
    fake->stops_needed = 1; /* CUPTI replays by itself */
    fake->ranges = 3;
    struct tl_profile_request request = two;
    request.mode = TL_PROFILE_KERNELS;
    request.max_kernels = 8;
    struct tl_profiler *profiler;
    struct calls calls = {.runs = 0};
    const struct tl_profile_region region = {count_run, count_flush, &calls};
    int ranges = 0;
    assert_ok(tl_profiler_open(&gpu, &request, &profiler));
    assert_ok(tl_profiler_run(profiler, &region, &ranges));
    assert_int_equal(ranges, 3);
    assert_int_equal(calls.runs, 1);
    assert_int_equal(calls.flushes, 0);
    assert_int_equal(fake->pushes, 0);
    assert_true(tl_profiler_value(profiler, 2, 1) == 44);
    fake->dropped = 5;
    assert_fails(TL_ERR_DEVICE, "5 kernels did not fit into the 8",
                 tl_profiler_run(profiler, &region, &ranges));
    fake->dropped = 0;
    fake->ranges = 0;
    assert_fails(TL_ERR_DEVICE, "does the region launch a kernel",
                 tl_profiler_run(profiler, &region, &ranges));
    tl_profiler_close(profiler);
}

static void what_is_counted_wrongly_is_an_error(void **state)
{
    (void)state;
    need_cupti();
    struct tl_profiler *profiler = open_two();
    struct calls calls = {.runs = 0};
    const struct tl_profile_region region = {count_run, NULL, &calls};
    int ranges;
    fake->value = NAN;
    assert_fails(TL_ERR_DEVICE, "dram__bytes_read.sum is",
                 tl_profiler_run(profiler, &region, &ranges));
    fake->value = 42;
    fake->ranges = 2;
    assert_fails(TL_ERR_DEVICE, "returned 2 ranges", tl_profiler_run(profiler, &region, &ranges));
    fake->ranges = 1;
    fake->stops_needed = 1000;
    assert_fails(TL_ERR_DEVICE, "asks for ever more", tl_profiler_run(profiler, &region, &ranges));
    fake->stops_needed = 0;
    assert_ok(tl_profiler_run(profiler, &region, &ranges));
    tl_profiler_close(profiler);

    /* A ratio of nothing by nothing is no value, and no error. */
    static const struct tl_profile_request ratio = {.metrics = metrics + 1, .num_metrics = 1};
    assert_ok(tl_profiler_open(&gpu, &ratio, &profiler));
    fake->value = NAN;
    assert_ok(tl_profiler_run(profiler, &region, &ranges));
    assert_true(isnan(tl_profiler_value(profiler, 0, 0)));
    tl_profiler_close(profiler);
}

static void a_failing_region_is_ended(void **state)
{
    (void)state;
    need_cupti();
    fake->passes = 3;
    struct tl_profiler *profiler = open_two();
    struct calls calls = {.result = TL_ERR_IO};
    const struct tl_profile_region region = {count_run, NULL, &calls};
    int ranges;
    assert_int_equal(tl_profiler_run(profiler, &region, &ranges), TL_ERR_IO);
    assert_int_equal(calls.runs, 1);
    assert_int_equal(fake->pops, 1);
    assert_int_equal(fake->stops, 1);
    assert_false(tl_profiler_running());
    tl_profiler_close(profiler);
    assert_int_equal(fake->enabled, 0);
}

static enum tl_status run_inner(void *context)
{
    struct calls *calls = context;
    const struct tl_profile_region region = {count_run, NULL, calls};
    struct tl_profiler *other;
    int ranges;
    assert_fails(TL_ERR_ARGUMENT, "inside a profiled region",
                 tl_profiler_run(calls->inner, &region, &ranges));
    assert_fails(TL_ERR_ARGUMENT, "inside a profiled region", tl_profiler_open(&gpu, &two, &other));
    assert_int_equal(calls->runs, 0);
    return TL_OK;
}

static enum tl_status close_inner(void *context)
{
    struct calls *calls = context;
    tl_profiler_close(calls->inner);
    assert_int_equal(fake->enabled, 1); /* put off */
    return TL_OK;
}

static void nesting_and_closing_inside(void **state)
{
    (void)state;
    need_cupti();
    struct tl_profiler *profiler = open_two(), *second;
    struct calls calls = {.inner = profiler};
    const struct tl_profile_region nested = {run_inner, NULL, &calls};
    const struct tl_profile_region closing = {close_inner, NULL, &calls};
    int ranges;
    assert_fails(TL_ERR_ARGUMENT, "session is open", tl_profiler_open(&gpu, &two, &second));
    assert_ok(tl_profiler_run(profiler, &nested, &ranges));
    assert_ok(tl_profiler_run(profiler, &closing, &ranges));
    assert_int_equal(fake->enabled, 0);
    tl_profiler_close(open_two()); /* the next one opens */
    tl_profiler_close(NULL);
}

static void refusals_say_what_to_do(void **state)
{
    (void)state;
    need_cupti();
    static const struct {
        int code;
        const char *words;
    } cases[] = {{35, "NVreg_RestrictProfilingToAdminUsers=0"}, {26, "dcgmi profile --pause"},
                 {39, "nsys, ncu"}, {33, "virtual GPU"}, {40, "enable_profiling=1"},
                 {41, "confidential"}, {42, "CMP"}, {43, "MIG off"}, {44, "SLI"}, {45, "WSL"},
                 {46, "does not know the chip"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tl_device other = gpu;
        const char *chip;
        other.index = (int)i + 1; /* each GPU is asked once */
        fake->failing = "cuptiProfilerGetCounterAvailability";
        fake->code = cases[i].code;
        assert_fails(TL_ERR_UNSUPPORTED, cases[i].words, tl_profiler_probe(&other, &chip));
        fake->failing = NULL;
        assert_fails(TL_ERR_UNSUPPORTED, cases[i].words, tl_profiler_probe(&other, &chip));
    }
    struct tl_profiler *profiler;
    assert_fails(TL_ERR_UNSUPPORTED, "use a CUDA device",
                 tl_profiler_open(cpu_device(), &two, &profiler));
}

static void a_refused_session_leaves_nothing(void **state)
{
    (void)state;
    need_cupti();
    static const char *const calls[] = {"cuptiRangeProfilerEnable",
                                        "cuptiRangeProfilerGetCounterDataSize",
                                        "cuptiProfilerHostConfigAddMetrics",
                                        "cuptiProfilerHostGetNumOfPasses"};
    struct tl_profiler *profiler;
    tl_profiler_close(open_two()); /* the chip's own list stays open */
    int hosts = fake->hosts;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        fake->failing = calls[i];
        fake->code = 8;
        assert_fails(TL_ERR_MEMORY, calls[i], tl_profiler_open(&gpu, &two, &profiler));
        assert_int_equal(fake->hosts, hosts);
    }
    fake->failing = NULL;
    fake->passes = 5;
    struct tl_profile_request few = two;
    few.max_passes = 4;
    assert_fails(TL_ERR_ARGUMENT, "take 5 passes and max_passes is 4",
                 tl_profiler_open(&gpu, &few, &profiler));
    fake->passes = 0;
    assert_fails(TL_ERR_DEVICE, "over 0 passes", tl_profiler_open(&gpu, &two, &profiler));
    assert_int_equal(fake->hosts, hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_region_runs_once_a_pass, begin),
        cmocka_unit_test_setup(kernels_are_ranges_of_their_own, begin),
        cmocka_unit_test_setup(what_is_counted_wrongly_is_an_error, begin),
        cmocka_unit_test_setup(a_failing_region_is_ended, begin),
        cmocka_unit_test_setup(nesting_and_closing_inside, begin),
        cmocka_unit_test_setup(refusals_say_what_to_do, begin),
        cmocka_unit_test_setup(a_refused_session_leaves_nothing, begin),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
