/* The registry and plans, on an operation and kernels made up for the purpose. */
#include "toy_gemm.h"

/* --- operations and kernels --------------------------------------------------------------- */

static const struct tl_operation other = {
    .name = "norm",
    .equation = "y = x",
    .dims = "tokens",
    .args = {{"x", TL_IN, false, TL_FLOATS, "tokens"}},
    .flops = toy_flops,
    .bytes = tl_problem_arg_bytes,
};

static enum tl_status no_odd_n(const struct tl_problem *problem)
{
    if (problem->dim[DIM_N] % 2)
        return TL_FAIL(TL_ERR_ILLEGAL, "n = %lld is odd", (long long)problem->dim[DIM_N]);
    return TL_OK;
}

static enum tl_status plan_by_size(struct tl_plan *plan)
{
    return tl_plan_set(plan, "block_m", plan->problem.dim[DIM_M] > 100 ? 128 : 64);
}

static size_t some_workspace(const struct tl_plan *plan)
{
    return (size_t)plan->tunable[0] * 4;
}

static enum tl_status remember_d(struct tl_plan *plan, const struct tl_args *args)
{
    if (plan->problem.dim[DIM_M] == 13)
        return TL_FAIL(TL_ERR_DEVICE, "unlucky");
    plan->scratch[0] = (uintptr_t)args->tensor[ARG_D].data;
    return TL_OK;
}

static struct tl_stream *launched_on;
static int launches;

static enum tl_status fill_d(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    launches++;
    launched_on = stream;
    if (plan->problem.dim[DIM_M] == 13)
        return TL_FAIL(TL_ERR_DEVICE, "unlucky");
    ((float *)args->tensor[ARG_D].data)[0] = 42;
    return TL_OK;
}

static const struct tl_kernel plain = {
    .operation = "toy_gemm", .variant = "cpu_plain", .arch = "cpu", .launch = fill_d};

static const struct tl_kernel blocked = {
    .operation = "toy_gemm",
    .variant = "cpu_blocked",
    .arch = "cpu",
    .dtypes = TL_DTYPE_BIT(TL_FP32),
    .tunables = {{"block_m", 64, (const int[]){64, 128, 0}}, {"stages", 3, (const int[]){2, 3, 0}}},
    .legal = no_odd_n,
    .plan = plan_by_size,
    .workspace = some_workspace,
    .bind = remember_d,
    .launch = fill_d,
};

static const struct tl_kernel any_gpu = {
    .operation = "toy_gemm", .variant = "smxx_wide", .arch = "smxx", .launch = fill_d};
static const struct tl_kernel hopper = {
    .operation = "toy_gemm", .variant = "sm90_tma", .arch = "sm90", .launch = fill_d};
static const struct tl_kernel vendor = {
    .operation = "toy_gemm", .variant = "cublaslt_dense", .arch = "cublaslt", .launch = fill_d};
static const struct tl_kernel norm = {
    .operation = "norm", .variant = "cpu_plain", .arch = "cpu", .launch = fill_d};

static const struct tl_operation *const operations[] = {&toy, &other};
static const struct tl_kernel *const kernels[] = {&plain, &blocked, &any_gpu, &hopper, &norm};

static int register_all(void **state)
{
    (void)state;
    return tl_registry_set(operations, 2, kernels, 5) != TL_OK;
}

/* --- the registry ------------------------------------------------------------------------- */

static void bad_rows_are_named(void **state)
{
    (void)state;
    struct tl_kernel row = plain;
    const struct tl_kernel *table[] = {&plain, &row};
    static const struct {
        const char *operation, *variant, *arch;
    } bad[] = {{"toy_gemm", "sm90_plain", "cpu"}, {"toy_gemm", "plain", "cpu"},
               {"toy_gemm", "cpuplain", "cpu"},   {"toy_gemm", "cpu_plain2", "sm90"},
               {"toy_gemm", "tpu_plain", "tpu"},  {"toy_gemm", "cpu_plain", "cpu"},
               {"toy_gemm", "dense", "cublaslt"}, {"toy_gemm", "cublas_dense", "cublas"},
               {"toy_gemm", "cublaslt", "cublaslt"}, {"no_gemm", "cpu_new", "cpu"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        row.operation = bad[i].operation;
        row.variant = bad[i].variant;
        row.arch = bad[i].arch;
        const char *culprit = i == 9 ? bad[i].operation : bad[i].variant;
        assert_fails(TL_ERR_ARGUMENT, culprit, tl_registry_set(operations, 2, table, 2));
    }
    row = norm; /* the same variant of another operation is no twin */
    assert_ok(tl_registry_set(operations, 2, table, 2));
    assert_ok(tl_registry_set(operations, 2, kernels, 5));
}

static void positions_enumerate(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_ptr_equal(tl_operation_at(i), operations[i]);
    for (int i = 0; i < 5; i++)
        assert_ptr_equal(tl_kernel_at(i), kernels[i]);
    assert_null(tl_operation_at(2));
    assert_null(tl_operation_at(-1));
    assert_null(tl_kernel_at(5));
    assert_null(tl_kernel_at(-1));
}

static void names_are_found(void **state)
{
    (void)state;
    const struct tl_operation *operation = NULL;
    const struct tl_kernel *kernel = NULL;
    assert_ok(tl_operation_find("norm", &operation));
    assert_ptr_equal(operation, &other);
    assert_ok(tl_kernel_find("toy_gemm", "sm90_tma", &kernel));
    assert_ptr_equal(kernel, &hopper);
    assert_ok(tl_kernel_find("norm", "cpu_plain", &kernel));
    assert_ptr_equal(kernel, &norm);
    assert_fails(TL_ERR_ARGUMENT, "toy_gemm", tl_operation_find("toy_gmem", &operation));
    assert_message("toy_gmem");
    assert_fails(TL_ERR_ARGUMENT, "toy_gemm", tl_kernel_find("toygemm", "cpu_plain", &kernel));
    assert_fails(TL_ERR_ARGUMENT, "cpu_blocked",
                 tl_kernel_find("toy_gemm", "cpu_blokced", &kernel));
    assert_message("cpu_blokced");
    assert_fails(TL_ERR_ARGUMENT, "sm90_tma", tl_kernel_find("norm", "sm90_tma", &kernel));
}

static void tunables_by_name(void **state)
{
    (void)state;
    assert_int_equal(tl_kernel_tunable(&blocked, "stages"), 1);
    assert_int_equal(tl_kernel_tunable(&plain, "stages"), -1);
}

/* --- plans -------------------------------------------------------------------------------- */

static void kernels_run_on_their_arch(void **state)
{
    (void)state;
    struct tl_device *cpu = cpu_device(), *fake = fake_device();
    struct tl_device ampere = *fake;
    ampere.arch = 80;
    assert_ok(tl_kernel_usable(&plain, cpu));
    assert_fails(TL_ERR_ILLEGAL, "cpu_plain", tl_kernel_usable(&plain, fake));
    assert_ok(tl_kernel_usable(&any_gpu, fake));
    assert_fails(TL_ERR_ILLEGAL, "smxx_wide", tl_kernel_usable(&any_gpu, &ampere));
    assert_message("sm_90a only");
    assert_message("--device cpu");
    assert_fails(TL_ERR_ILLEGAL, "smxx_wide", tl_kernel_usable(&any_gpu, cpu));
    assert_ok(tl_kernel_usable(&hopper, fake));
    assert_fails(TL_ERR_ILLEGAL, "sm90_tma", tl_kernel_usable(&hopper, &ampere));
    assert_message("80");
    assert_fails(TL_ERR_ILLEGAL, "sm90_tma", tl_kernel_usable(&hopper, cpu));
}

static void a_kernel_with_its_problem(void **state)
{
    (void)state;
    const int64_t dim[TL_MAX_DIMS] = {8, 16, 32, 3};
    struct tl_kernel stray = plain;
    char text[64];
    stray.operation = "stray";
    assert_string_equal(tl_kernel_describe(&plain, dim, text, sizeof text),
                        "toy_gemm/cpu_plain (m 8, n 16, k 32, num_groups 3)");
    assert_string_equal(tl_kernel_describe(&norm, dim, text, sizeof text),
                        "norm/cpu_plain (tokens 8)");
    assert_string_equal(tl_kernel_describe(&stray, dim, text, sizeof text), "stray/cpu_plain");
    assert_string_equal(tl_kernel_describe(&plain, dim, text, 12), "toy_gemm/cp");
}

/* A vendor's library brings code for every GPU. */
static void vendors_run_on_any_gpu(void **state)
{
    (void)state;
    const struct tl_kernel *table[] = {&plain, &vendor};
    struct tl_device *fake = fake_device();
    struct tl_device ampere = *fake;
    ampere.arch = 80;
    assert_ok(tl_registry_set(operations, 2, table, 2));
    assert_ok(tl_kernel_usable(&vendor, fake));
    assert_ok(tl_kernel_usable(&vendor, &ampere));
    assert_fails(TL_ERR_ILLEGAL, "cublaslt_dense", tl_kernel_usable(&vendor, cpu_device()));
    assert_message("NVIDIA GPU");
    assert_ok(tl_registry_set(operations, 2, kernels, 5));
}

static void plans_keep_defaults_or_choose(void **state)
{
    (void)state;
    struct toy_call call = toy_call_new(cpu_device());
    struct tl_plan plan;
    assert_ok(toy_bind(&call));
    assert_ok(tl_plan_init(&plan, &blocked, cpu_device(), &call.problem));
    assert_ptr_equal(plan.kernel, &blocked);
    assert_ptr_equal(plan.device, cpu_device());
    assert_memory_equal(plan.problem.dim, call.problem.dim, sizeof plan.problem.dim);
    assert_true(plan.tunable[0] == 64 && plan.tunable[1] == 3);
    assert_int_equal(tl_plan_workspace(&plan), 256);
    call.problem.dim[DIM_M] = 101;
    assert_ok(tl_plan_init(&plan, &blocked, cpu_device(), &call.problem));
    assert_int_equal(plan.tunable[0], 128);
    assert_int_equal(tl_plan_workspace(&plan), 512);
    assert_ok(tl_plan_init(&plan, &plain, cpu_device(), &call.problem));
    assert_int_equal(tl_plan_workspace(&plan), 0);
    toy_end(&call);
}

static void illegal_plans_say_why(void **state)
{
    (void)state;
    struct toy_call call = toy_call_new(cpu_device());
    struct tl_plan plan;
    assert_ok(toy_bind(&call));
    assert_fails(TL_ERR_ILLEGAL, "sm90_tma",
                 tl_plan_init(&plan, &hopper, cpu_device(), &call.problem));
    toy_set(&call, ARG_A, cpu_device(), TL_BF16, 2, 6, 8); /* blocked computes on fp32 */
    assert_ok(toy_bind(&call));
    assert_fails(TL_ERR_ILLEGAL, "bf16",
                 tl_plan_init(&plan, &blocked, cpu_device(), &call.problem));
    assert_ok(tl_plan_init(&plan, &plain, cpu_device(), &call.problem));
    toy_set(&call, ARG_A, cpu_device(), TL_FP32, 2, 6, 8);
    /* No float, so not what it computes on. */
    toy_set(&call, ARG_OFFSETS, cpu_device(), TL_I32, 1, 3, 0);
    assert_ok(toy_bind(&call));
    assert_ok(tl_plan_init(&plan, &blocked, cpu_device(), &call.problem));
    toy_set(&call, ARG_B, cpu_device(), TL_FP32, 2, 5, 8);
    toy_set(&call, ARG_D, cpu_device(), TL_FP32, 2, 6, 5);
    assert_ok(toy_bind(&call));
    assert_fails(TL_ERR_ILLEGAL, "n = 5 is odd",
                 tl_plan_init(&plan, &blocked, cpu_device(), &call.problem));
    toy_end(&call);
}

static void tunables_take_their_choices(void **state)
{
    (void)state;
    struct toy_call call = toy_call_new(cpu_device());
    struct tl_plan plan;
    assert_ok(toy_bind(&call));
    assert_ok(tl_plan_init(&plan, &blocked, cpu_device(), &call.problem));
    assert_ok(tl_plan_set(&plan, "stages", 2));
    assert_int_equal(plan.tunable[1], 2);
    assert_fails(TL_ERR_ARGUMENT, "stages", tl_plan_set(&plan, "stages", 4));
    assert_message("4");
    assert_fails(TL_ERR_ARGUMENT, "stages", tl_plan_set(&plan, "stages", 0));
    assert_fails(TL_ERR_ARGUMENT, "blockm", tl_plan_set(&plan, "blockm", 64));
    assert_message("block_m");
    assert_true(plan.tunable[0] == 64 && plan.tunable[1] == 2); /* as before */
    assert_ok(tl_plan_init(&plan, &plain, cpu_device(), &call.problem));
    assert_fails(TL_ERR_ARGUMENT, "stages", tl_plan_set(&plan, "stages", 2));
    toy_end(&call);
}

static void plans_may_be_bound(void **state)
{
    (void)state;
    struct toy_call call = toy_call_new(cpu_device());
    struct tl_plan plan;
    uintptr_t d = (uintptr_t)call.args.tensor[ARG_D].data;
    assert_ok(toy_bind(&call));
    assert_ok(tl_plan_init(&plan, &plain, cpu_device(), &call.problem));
    assert_ok(tl_plan_bind(&plan, &call.args)); /* has nothing to prepare */
    assert_ok(tl_plan_init(&plan, &blocked, cpu_device(), &call.problem));
    assert_true(plan.scratch[0] == 0);
    assert_ok(tl_plan_bind(&plan, &call.args));
    assert_ok(tl_plan_set(&plan, "stages", 2));
    assert_true(plan.scratch[0] == d);
    plan.problem.dim[DIM_M] = 13;
    assert_fails(TL_ERR_DEVICE, "unlucky", tl_plan_bind(&plan, &call.args));
    toy_end(&call);
}

static void launches_reach_the_kernel(void **state)
{
    (void)state;
    struct tl_device *cpu = cpu_device();
    struct toy_call call = toy_call_new(cpu);
    struct tl_plan plan;
    struct tl_stream *stream;
    assert_ok(cpu->api->stream_new(cpu, &stream));
    assert_ok(toy_bind(&call));
    assert_ok(tl_plan_init(&plan, &plain, cpu, &call.problem));
    launches = 0;
    assert_ok(tl_plan_launch(&plan, &call.args, stream));
    assert_ptr_equal(launched_on, stream);
    assert_true(((float *)call.args.tensor[ARG_D].data)[0] == 42);
    assert_ok(tl_plan_launch(&plan, &call.args, NULL)); /* the default stream */
    assert_true(!launched_on || launched_on == cpu->default_stream);
    plan.problem.dim[DIM_M] = 13;
    assert_fails(TL_ERR_DEVICE, "unlucky", tl_plan_launch(&plan, &call.args, stream));
    assert_int_equal(launches, 3);
    cpu->api->stream_free(stream);
    toy_end(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_rows_are_named),
        cmocka_unit_test(positions_enumerate),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(tunables_by_name),
        cmocka_unit_test(kernels_run_on_their_arch),
        cmocka_unit_test(a_kernel_with_its_problem),
        cmocka_unit_test(vendors_run_on_any_gpu),
        cmocka_unit_test(plans_keep_defaults_or_choose),
        cmocka_unit_test(illegal_plans_say_why),
        cmocka_unit_test(tunables_take_their_choices),
        cmocka_unit_test(plans_may_be_bound),
        cmocka_unit_test(launches_reach_the_kernel),
    };
    return cmocka_run_group_tests(tests, register_all, NULL);
}
