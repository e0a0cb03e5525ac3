#include "core/fault.h"
#include "toy_gemm.h"

#include <stdio.h>

static int launches;

static enum tl_status count(const struct tl_plan *plan, const struct tl_args *args,
                            struct tl_stream *stream)
{
    (void)plan, (void)args, (void)stream;
    launches++;
    return TL_OK;
}

static enum tl_status explain(const char *who, const struct tl_fault *fault)
{
    return TL_FAIL(fault->kind == 1 ? TL_ERR_ARGUMENT : TL_ERR_ILLEGAL,
                   "%s: d[%lld] is %lld of %lld", who, (long long)fault->position,
                   (long long)fault->value[0], (long long)fault->value[2]);
}

static struct tl_operation explaining; /* toy with words for its faults */
static const struct tl_operation silent = {.name = "silent", .dims = ""};
static const struct tl_kernel tma = {
    .operation = "toy_gemm", .variant = "sm90_tma", .arch = "sm90", .launch = count};
static const struct tl_kernel quiet = {
    .operation = "silent", .variant = "sm90_quiet", .arch = "sm90", .launch = count};

static struct tl_fault record;
static uint32_t claim;

/* What kernels/device/group_offsets.cuh does. */
static void leave(const struct tl_kernel *kernel, int kind, int64_t position, int64_t value)
{
    uint32_t round = record.handled + 1;
    if (*record.claim >= round)
        return;
    *record.claim = round;
    record.kernel = kernel;
    record.kind = kind;
    record.position = position;
    record.value[0] = value;
    record.value[2] = 77;
    record.left = round;
}

static int open_fault(void **state)
{
    (void)state;
    memset(&record, 0, sizeof record);
    claim = 0;
    record.claim = &claim;
    fake_device()->fault = &record;
    return 0;
}

static int close_fault(void **state)
{
    (void)state;
    fake_device()->fault = NULL;
    return 0;
}

static void no_fault_is_no_error(void **state)
{
    (void)state;
    assert_ok(tl_fault_check(cpu_device())); /* has nowhere to leave one */
    assert_ok(tl_fault_check(fake_device()));
}

static void a_fault_is_an_error_once(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        leave(&tma, 1, 5 + round, 1LL << 40);
        assert_fails(TL_ERR_ARGUMENT, "", tl_fault_check(fake_device()));
        char words[128];
        snprintf(words, sizeof words,
                 "toy_gemm/sm90_tma: d[%d] is 1099511627776 of 77; that launch wrote nothing",
                 5 + round);
        assert_string_equal(tl_error_message(), words);
        assert_ok(tl_fault_check(fake_device()));
    }
    leave(&tma, 2, 0, 0); /* the status is the operation's */
    assert_fails(TL_ERR_ILLEGAL, "d[0]", tl_fault_check(fake_device()));
}

static void the_first_fault_stays(void **state)
{
    (void)state;
    leave(&tma, 1, 1, 10);
    leave(&quiet, 1, 2, 20);
    assert_fails(TL_ERR_ARGUMENT, "toy_gemm/sm90_tma: d[1] is 10", tl_fault_check(fake_device()));
    assert_ok(tl_fault_check(fake_device()));
    leave(&quiet, 3, 2, 20);
    assert_fails(TL_ERR_ARGUMENT, "silent/sm90_quiet: refused its arguments (3 at 2)",
                 tl_fault_check(fake_device()));
}

/* A record that is being written, its `left` still to come. */
static void half_a_fault_waits(void **state)
{
    (void)state;
    leave(&tma, 1, 1, 10);
    record.left = record.handled;
    assert_ok(tl_fault_check(fake_device()));
    record.left = record.handled + 1;
    assert_fails(TL_ERR_ARGUMENT, "d[1] is 10", tl_fault_check(fake_device()));
}

static void the_next_launch_says_so(void **state)
{
    (void)state;
    struct toy_call call = toy_call_new(fake_device());
    struct tl_plan plan;
    assert_ok(toy_bind(&call));
    assert_ok(tl_plan_init(&plan, &tma, fake_device(), &call.problem));
    launches = 0;
    assert_ok(tl_plan_launch(&plan, &call.args, NULL));
    leave(&tma, 1, 4, 3);
    assert_fails(TL_ERR_ARGUMENT, "d[4] is 3", tl_plan_launch(&plan, &call.args, NULL));
    assert_int_equal(launches, 1);
    assert_ok(tl_plan_launch(&plan, &call.args, NULL));
    assert_int_equal(launches, 2);
    toy_end(&call);
}

int main(void)
{
    static const struct tl_operation *operations[] = {&explaining, &silent};
    static const struct tl_kernel *kernels[] = {&tma, &quiet};
    explaining = toy;
    explaining.explain = explain;
    if (tl_registry_set(operations, 2, kernels, 2) != TL_OK)
        return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fault, close_fault)
    const struct CMUnitTest tests[] = {
        TEST(no_fault_is_no_error),  TEST(a_fault_is_an_error_once), TEST(the_first_fault_stays),
        TEST(half_a_fault_waits),    TEST(the_next_launch_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
