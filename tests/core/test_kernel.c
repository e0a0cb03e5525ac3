/* The registry, binding and plans, on an operation and kernels made up for the purpose. */
#include "check.h"
#include "core/kernel.h"

#include <math.h>

/* --- the operation ------------------------------------------------------------------------ */

enum { ARG_A, ARG_B, ARG_D, ARG_OFFSETS, ARG_PAIR, NUM_ARGS };
enum { DIM_M, DIM_N, DIM_K, DIM_NUM_GROUPS };
enum { PARAM_LAYOUT, PARAM_BETA, PARAM_SCALE };

static double toy_flops(const struct tl_problem *problem)
{
    return 2.0 * (double)(problem->dim[DIM_M] * problem->dim[DIM_N] * problem->dim[DIM_K]);
}

static enum tl_status toy_check(const struct tl_problem *problem)
{
    if (problem->dim[DIM_K] % 2)
        return TL_FAIL(TL_ERR_ARGUMENT, "toy: k is %lld, not even", (long long)problem->dim[DIM_K]);
    return TL_OK;
}

static const struct tl_operation toy = {
    .name = "toy_gemm",
    .equation = "d[m,n] = beta d + scale a b",
    .dims = "m n k num_groups",
    .args = {{"a", TL_IN, false, TL_FLOATS, "m k|m k|k m"},
             {"b", TL_IN, false, TL_FLOATS, "n k|k n|k n"},
             {"d", TL_INOUT, false, TL_WIDE_FLOATS, "m n"},
             {"group_offsets", TL_IN, true, TL_DTYPE_BIT(TL_I32), "num_groups+1"},
             {"pair", TL_OUT, true, TL_FLOATS, "num_groups 2"}},
    .params = {{"layout", "nt nn tn", 0, 0, 0},
               {"beta", NULL, 0, 0, 1},
               {"scale", NULL, NAN, -10, 10}},
    .flops = toy_flops,
    .bytes = tl_problem_arg_bytes,
    .check = toy_check,
};

static const struct tl_operation other = {
    .name = "norm",
    .equation = "y = x",
    .dims = "tokens",
    .args = {{"x", TL_IN, false, TL_FLOATS, "tokens"}},
    .flops = toy_flops,
    .bytes = tl_problem_arg_bytes,
};

/* --- the kernels -------------------------------------------------------------------------- */

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

static void positions_by_name(void **state)
{
    (void)state;
    assert_int_equal(tl_operation_arg(&toy, "a"), ARG_A);
    assert_int_equal(tl_operation_arg(&toy, "pair"), ARG_PAIR);
    assert_int_equal(tl_operation_arg(&toy, "m"), -1);
    assert_int_equal(tl_operation_arg(&toy, ""), -1);
    assert_int_equal(tl_operation_param(&toy, "scale"), PARAM_SCALE);
    assert_int_equal(tl_operation_param(&toy, "scal"), -1);
    assert_int_equal(tl_operation_dim(&toy, "m"), DIM_M);
    assert_int_equal(tl_operation_dim(&toy, "num_groups"), DIM_NUM_GROUPS);
    assert_int_equal(tl_operation_dim(&toy, "num"), -1);
    assert_int_equal(tl_operation_dim(&toy, "num_groups+1"), -1);
    assert_int_equal(tl_operation_dim(&toy, ""), -1);
    assert_int_equal(tl_kernel_tunable(&blocked, "stages"), 1);
    assert_int_equal(tl_kernel_tunable(&plain, "stages"), -1);
    double param[TL_MAX_PARAMS];
    tl_operation_defaults(&toy, param);
    assert_true(param[PARAM_LAYOUT] == 0 && param[PARAM_BETA] == 0 && isnan(param[PARAM_SCALE]));
}

/* --- binding ------------------------------------------------------------------------------ */

struct call {
    struct tl_args args;
    double param[TL_MAX_PARAMS];
    struct tl_problem problem;
};

static void set(struct call *call, int arg, struct tl_device *device, enum tl_dtype dtype, int rank,
                int64_t d0, int64_t d1)
{
    int64_t shape[TL_MAX_RANK] = {d0, d1, 1, 1, 1};
    tl_tensor_done(&call->args.tensor[arg]);
    if (rank)
        assert_ok(tl_tensor_init(&call->args.tensor[arg], device, dtype, rank, shape));
}

/* m = 6, n = 4, k = 8, layout nt, fp32. */
static struct call new_call(struct tl_device *device)
{
    struct call call = {0};
    tl_operation_defaults(&toy, call.param);
    call.param[PARAM_SCALE] = 2;
    set(&call, ARG_A, device, TL_FP32, 2, 6, 8);
    set(&call, ARG_B, device, TL_FP32, 2, 4, 8);
    set(&call, ARG_D, device, TL_FP32, 2, 6, 4);
    return call;
}

static void end(struct call *call)
{
    for (int i = 0; i < NUM_ARGS; i++)
        tl_tensor_done(&call->args.tensor[i]);
}

static enum tl_status bind(struct call *call)
{
    return tl_problem_bind(&call->problem, &toy, &call->args, call->param);
}

static void dimensions_are_solved(void **state)
{
    (void)state;
    struct call call = new_call(cpu_device());
    assert_ok(bind(&call));
    const struct tl_problem *p = &call.problem;
    assert_ptr_equal(p->operation, &toy);
    assert_true(p->dim[DIM_M] == 6 && p->dim[DIM_N] == 4 && p->dim[DIM_K] == 8);
    assert_true(p->param[PARAM_LAYOUT] == 0 && p->param[PARAM_SCALE] == 2);
    assert_true(p->present[ARG_A] && p->present[ARG_D]);
    assert_true(!p->present[ARG_OFFSETS] && !p->present[ARG_PAIR]);
    assert_int_equal(p->dtype[ARG_B], TL_FP32);
    assert_true(toy.flops(p) == 2 * 6 * 4 * 8);
    /* a and b read, d read and written. */
    assert_true(tl_problem_arg_bytes(p) == 4 * (6 * 8 + 4 * 8 + 2 * 6 * 4));
    set(&call, ARG_OFFSETS, cpu_device(), TL_I32, 1, 6, 0);
    set(&call, ARG_PAIR, cpu_device(), TL_BF16, 2, 5, 2);
    assert_ok(bind(&call));
    assert_true(p->dim[DIM_NUM_GROUPS] == 5 && p->present[ARG_OFFSETS]);
    assert_true(tl_problem_arg_bytes(p) == 4 * (6 * 8 + 4 * 8 + 2 * 6 * 4) + 4 * 6 + 2 * 10);
    /* Without groups: one offset. */
    set(&call, ARG_OFFSETS, cpu_device(), TL_I32, 1, 1, 0);
    set(&call, ARG_PAIR, cpu_device(), TL_BF16, 2, 0, 2);
    assert_ok(bind(&call));
    assert_int_equal(p->dim[DIM_NUM_GROUPS], 0);
    end(&call);
}

static void the_first_parameter_selects_shapes(void **state)
{
    (void)state;
    struct call call = new_call(cpu_device());
    call.param[PARAM_LAYOUT] = 1; /* nn */
    assert_fails(TL_ERR_ARGUMENT, "'b'", bind(&call));
    set(&call, ARG_B, cpu_device(), TL_FP32, 2, 8, 4);
    assert_ok(bind(&call));
    assert_true(call.problem.dim[DIM_N] == 4 && call.problem.dim[DIM_K] == 8);
    call.param[PARAM_LAYOUT] = 2; /* tn */
    assert_fails(TL_ERR_ARGUMENT, "", bind(&call));
    set(&call, ARG_A, cpu_device(), TL_FP32, 2, 8, 6);
    assert_ok(bind(&call));
    assert_true(call.problem.dim[DIM_M] == 6 && call.problem.dim[DIM_K] == 8);
    assert_true(tl_problem_arg_bytes(&call.problem) == 4 * (6 * 8 + 4 * 8 + 2 * 6 * 4));
    end(&call);
}

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    struct tl_device *cpu = cpu_device();
    static const struct {
        int arg;
        enum tl_dtype dtype;
        int rank;
        int64_t d0, d1;
        const char *words[3];
    } bad[] = {
        {ARG_B, TL_FP32, 0, 0, 0, {"'b'", "missing", ""}},
        {ARG_D, TL_BF16, 2, 6, 4, {"'d'", "fp32", "bf16"}},
        {ARG_OFFSETS, TL_FP32, 1, 3, 0, {"group_offsets", "i32", "fp32"}},
        {ARG_B, TL_FP32, 1, 4, 0, {"'b'", "[4]", "n k"}},
        {ARG_D, TL_FP32, 3, 6, 4, {"'d'", "[6, 4, 1]", "m n"}},
        {ARG_B, TL_FP32, 2, 4, 10, {"'b'", "[4, 10]", "8"}},
        {ARG_D, TL_FP32, 2, 4, 4, {"'d'", "[4, 4]", "6"}},
        {ARG_OFFSETS, TL_I32, 1, 0, 0, {"group_offsets", "[0]", "num_groups+1"}},
        {ARG_PAIR, TL_FP32, 2, 5, 3, {"'pair'", "[5, 3]", "2"}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct call call = new_call(cpu);
        set(&call, bad[i].arg, cpu, bad[i].dtype, bad[i].rank, bad[i].d0, bad[i].d1);
        for (int word = 0; word < 3; word++)
            assert_fails(TL_ERR_ARGUMENT, bad[i].words[word], bind(&call));
        assert_message("toy_gemm");
        end(&call);
    }
    /* group_offsets and pair must agree on num_groups. */
    struct call call = new_call(cpu);
    set(&call, ARG_OFFSETS, cpu, TL_I32, 1, 6, 0);
    set(&call, ARG_PAIR, cpu, TL_FP32, 2, 6, 2);
    assert_fails(TL_ERR_ARGUMENT, "'pair'", bind(&call));
    end(&call);
    call = new_call(cpu); /* strided memory */
    call.args.tensor[ARG_B].stride[0] = 1, call.args.tensor[ARG_B].stride[1] = 4;
    assert_fails(TL_ERR_ARGUMENT, "'b'", bind(&call));
    assert_message("contiguous");
    end(&call);
    call = new_call(cpu); /* two devices */
    set(&call, ARG_D, fake_device(), TL_FP32, 2, 6, 4);
    assert_fails(TL_ERR_ARGUMENT, "'d'", bind(&call));
    assert_message("fake");
    assert_message("cpu");
    end(&call);
    call = new_call(cpu); /* the operation's own relation */
    set(&call, ARG_A, cpu, TL_FP32, 2, 6, 7);
    set(&call, ARG_B, cpu, TL_FP32, 2, 4, 7);
    assert_fails(TL_ERR_ARGUMENT, "k is 7", bind(&call));
    end(&call);
}

static void wrong_parameters_are_named(void **state)
{
    (void)state;
    static const struct {
        int param;
        double value;
        const char *name;
    } bad[] = {
        {PARAM_BETA, -0.5, "'beta'"},      {PARAM_BETA, 1.5, "'beta'"},
        {PARAM_BETA, INFINITY, "'beta'"},  {PARAM_SCALE, NAN, "'scale'"},
        {PARAM_SCALE, 11, "'scale'"},      {PARAM_LAYOUT, 3, "'layout'"},
        {PARAM_LAYOUT, -1, "'layout'"},    {PARAM_LAYOUT, 0.5, "'layout'"},
        {PARAM_LAYOUT, 1e300, "'layout'"}, {PARAM_LAYOUT, NAN, "'layout'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct call call = new_call(cpu_device());
        call.param[bad[i].param] = bad[i].value;
        assert_fails(TL_ERR_ARGUMENT, bad[i].name, bind(&call));
        assert_message("toy_gemm");
        end(&call);
    }
    struct call call = new_call(cpu_device()); /* the ends are inside */
    call.param[PARAM_BETA] = 1;
    call.param[PARAM_SCALE] = -10;
    assert_ok(bind(&call));
    end(&call);
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
    struct call call = new_call(cpu_device());
    struct tl_plan plan;
    assert_ok(bind(&call));
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
    end(&call);
}

static void illegal_plans_say_why(void **state)
{
    (void)state;
    struct call call = new_call(cpu_device());
    struct tl_plan plan;
    assert_ok(bind(&call));
    assert_fails(TL_ERR_ILLEGAL, "sm90_tma",
                 tl_plan_init(&plan, &hopper, cpu_device(), &call.problem));
    set(&call, ARG_A, cpu_device(), TL_BF16, 2, 6, 8); /* blocked computes on fp32 */
    assert_ok(bind(&call));
    assert_fails(TL_ERR_ILLEGAL, "bf16",
                 tl_plan_init(&plan, &blocked, cpu_device(), &call.problem));
    assert_ok(tl_plan_init(&plan, &plain, cpu_device(), &call.problem));
    set(&call, ARG_A, cpu_device(), TL_FP32, 2, 6, 8);
    set(&call, ARG_OFFSETS, cpu_device(), TL_I32, 1, 3, 0); /* no float: not what it computes on */
    assert_ok(bind(&call));
    assert_ok(tl_plan_init(&plan, &blocked, cpu_device(), &call.problem));
    set(&call, ARG_B, cpu_device(), TL_FP32, 2, 5, 8);
    set(&call, ARG_D, cpu_device(), TL_FP32, 2, 6, 5);
    assert_ok(bind(&call));
    assert_fails(TL_ERR_ILLEGAL, "n = 5 is odd",
                 tl_plan_init(&plan, &blocked, cpu_device(), &call.problem));
    end(&call);
}

static void tunables_take_their_choices(void **state)
{
    (void)state;
    struct call call = new_call(cpu_device());
    struct tl_plan plan;
    assert_ok(bind(&call));
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
    end(&call);
}

static void launches_reach_the_kernel(void **state)
{
    (void)state;
    struct tl_device *cpu = cpu_device();
    struct call call = new_call(cpu);
    struct tl_plan plan;
    struct tl_stream *stream;
    assert_ok(cpu->api->stream_new(cpu, &stream));
    assert_ok(bind(&call));
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
    end(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_rows_are_named),
        cmocka_unit_test(positions_enumerate),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(positions_by_name),
        cmocka_unit_test(dimensions_are_solved),
        cmocka_unit_test(the_first_parameter_selects_shapes),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(wrong_parameters_are_named),
        cmocka_unit_test(kernels_run_on_their_arch),
        cmocka_unit_test(a_kernel_with_its_problem),
        cmocka_unit_test(vendors_run_on_any_gpu),
        cmocka_unit_test(plans_keep_defaults_or_choose),
        cmocka_unit_test(illegal_plans_say_why),
        cmocka_unit_test(tunables_take_their_choices),
        cmocka_unit_test(launches_reach_the_kernel),
    };
    return cmocka_run_group_tests(tests, register_all, NULL);
}
