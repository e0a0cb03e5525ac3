/* The catalogue of chips' metrics: everything here runs without a GPU. */
#include "check.h"
#include "core/cupti_host.h"

#include <stdlib.h>

static struct tl_cupti_host *open_chip(const char *chip, enum tl_cupti_use use)
{
    struct tl_cupti_host *host;
    enum tl_status status = tl_cupti_host_open(chip, use, &host);
    if (status == TL_ERR_UNSUPPORTED) {
        print_message("# %s\n", tl_error_message());
        skip();
    }
    assert_ok(status);
    return host;
}

static struct tl_cupti_host *gh100(void)
{
    return open_chip("GH100", TL_CUPTI_RANGES);
}

static int passes(struct tl_cupti_host *host, const char *const *names, int count)
{
    struct tl_cupti_config *config;
    assert_ok(tl_cupti_config_new(host, NULL, names, count, &config));
    int result = config->passes;
    assert_int_equal(config->num_names, count);
    tl_cupti_config_free(config);
    return result;
}

static void lists_metrics_of_chips(void **state)
{
    (void)state;
    struct tl_cupti_host *host = gh100();
    char chips[1024];
    int count = 0;
    while (tl_cupti_host_name_at(host, count)) {
        if (count)
            assert_true(strcmp(tl_cupti_host_name_at(host, count - 1),
                               tl_cupti_host_name_at(host, count)) < 0);
        count++;
    }
    assert_true(count > 3000);
    assert_null(tl_cupti_host_name_at(host, -1));
    assert_ptr_equal(gh100(), host);
    assert_ok(tl_cupti_host_chips(chips, sizeof chips));
    assert_non_null(strstr(chips, "GH100"));
    assert_non_null(strstr(chips, "GB100"));
}

static void describes(void **state)
{
    (void)state;
    struct tl_cupti_metric metric;
    assert_ok(tl_cupti_host_describe(gh100(), "dram__bytes_read.sum", &metric));
    assert_string_equal(metric.base, "dram__bytes_read");
    assert_string_equal(metric.kind, "counter");
    assert_string_equal(metric.hardware, "dram");
    assert_string_equal(metric.unit, "byte");
    assert_string_equal(metric.description, "# of bytes read from DRAM");
    assert_ok(tl_cupti_host_describe(gh100(), "lts__t_sector_hit_rate", &metric));
    assert_string_equal(metric.kind, "ratio");
    assert_ok(tl_cupti_host_describe(gh100(), "sm__throughput", &metric));
    assert_string_equal(metric.kind, "throughput");
}

static void checks_names(void **state)
{
    (void)state;
    struct tl_cupti_host *host = gh100();
    const char *const *rollups;
    int count;
    assert_ok(tl_cupti_host_check(host, "sm__warps_active.avg.pct_of_peak_sustained_active"));
    assert_ok(tl_cupti_host_rollups(host, "lts__t_sector_hit_rate", &rollups, &count));
    assert_int_equal(count, 3);
    assert_fails(TL_ERR_ARGUMENT, "near names: sm__warps_active,",
                 tl_cupti_host_check(host, "sm__warp_active.avg"));
    assert_fails(TL_ERR_ARGUMENT, "has no roll-up .sums; did you mean .sum?",
                 tl_cupti_host_check(host, "dram__bytes_read.sums"));
    assert_fails(TL_ERR_ARGUMENT, "needs a roll-up such as",
                 tl_cupti_host_check(host, "dram__bytes_read"));
    assert_fails(TL_ERR_ARGUMENT, "unknown metric ''", tl_cupti_host_check(host, ""));
    char long_name[600];
    memset(long_name, 'a', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    assert_fails(TL_ERR_ARGUMENT, "unknown metric", tl_cupti_host_check(host, long_name));
    assert_fails(TL_ERR_ARGUMENT, "unknown chip 'GH1'; this libcupti knows",
                 tl_cupti_host_open("GH1", TL_CUPTI_RANGES, &host));
}

static void schedules(void **state)
{
    (void)state;
    static const char *const paper[] = {
        "sm__warps_active.avg.pct_of_peak_sustained_active", "dram__bytes_read.sum",
        "dram__bytes_write.sum", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "sm__cycles_elapsed.avg.per_second"};
    static const char *const software[] = {"smsp__sass_inst_executed_op_local.sum"};
    assert_int_equal(passes(gh100(), paper, 5), 1);
    assert_true(passes(gh100(), software, 1) >= 1);
    /* A refused configuration leaves nothing behind. */
    static const char *const bad[] = {"dram__bytes_read.sum", "dram__bytes_raed.sum"};
    static const char *const twice[] = {"dram__bytes_read.sum", "dram__bytes_read.sum"};
    struct tl_cupti_config *config;
    assert_fails(TL_ERR_ARGUMENT, "dram__bytes_raed",
                 tl_cupti_config_new(gh100(), NULL, bad, 2, &config));
    assert_fails(TL_ERR_ARGUMENT, "twice", tl_cupti_config_new(gh100(), NULL, twice, 2, &config));
    assert_fails(TL_ERR_ARGUMENT, "no metric",
                 tl_cupti_config_new(gh100(), NULL, NULL, 0, &config));
    assert_int_equal(passes(gh100(), paper, 5), 1);
    tl_cupti_config_free(NULL);
}

static void other_chips_and_uses(void **state)
{
    (void)state;
    struct tl_cupti_host *blackwell = open_chip("GB100", TL_CUPTI_RANGES);
    assert_ok(tl_cupti_host_check(blackwell, "dram__bytes_read.sum"));
    struct tl_cupti_host *samples = open_chip("GH100", TL_CUPTI_SAMPLES);
    assert_ok(tl_cupti_host_check(samples, "sm__cycles_active.avg"));
    /* A base with dots. */
    struct tl_cupti_metric metric;
    const char *dotted = "FBSP.TriageCompute.dramc__read_throughput"
                         ".avg.pct_of_peak_sustained_elapsed";
    assert_ok(tl_cupti_host_check(samples, dotted));
    assert_ok(tl_cupti_host_describe(samples, dotted, &metric));
    assert_string_equal(metric.base, "FBSP.TriageCompute.dramc__read_throughput");
    assert_fails(TL_ERR_ARGUMENT, "near names: FBSP.TriageCompute.dramc__read_throughput",
                 tl_cupti_host_check(samples, "FBSP.TriageCompute.dramc__raed_throughput.avg"));
    assert_ptr_not_equal(samples, gh100());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_metrics_of_chips), cmocka_unit_test(describes),
        cmocka_unit_test(checks_names),           cmocka_unit_test(schedules),
        cmocka_unit_test(other_chips_and_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
