/* Binding tensors to an operation that is made up for the purpose. */
#include "toy_gemm.h"

#include <math.h>

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
    double param[TL_MAX_PARAMS];
    tl_operation_defaults(&toy, param);
    assert_true(param[PARAM_LAYOUT] == 0 && param[PARAM_BETA] == 0 && isnan(param[PARAM_SCALE]));
}

static void dimensions_are_solved(void **state)
{
    (void)state;
    struct toy_call call = toy_call_new(cpu_device());
    assert_ok(toy_bind(&call));
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
    toy_set(&call, ARG_OFFSETS, cpu_device(), TL_I32, 1, 6, 0);
    toy_set(&call, ARG_PAIR, cpu_device(), TL_BF16, 2, 5, 2);
    assert_ok(toy_bind(&call));
    assert_true(p->dim[DIM_NUM_GROUPS] == 5 && p->present[ARG_OFFSETS]);
    assert_true(tl_problem_arg_bytes(p) == 4 * (6 * 8 + 4 * 8 + 2 * 6 * 4) + 4 * 6 + 2 * 10);
    /* Without groups: one offset. */
    toy_set(&call, ARG_OFFSETS, cpu_device(), TL_I32, 1, 1, 0);
    toy_set(&call, ARG_PAIR, cpu_device(), TL_BF16, 2, 0, 2);
    assert_ok(toy_bind(&call));
    assert_int_equal(p->dim[DIM_NUM_GROUPS], 0);
    toy_end(&call);
}

static void what_the_host_reads_stays_there(void **state)
{
    (void)state;
    struct toy_call call = toy_call_new(fake_device());
    toy_set(&call, ARG_OFFSETS, fake_device(), TL_I32, 1, 6, 0);
    toy_set(&call, ARG_COUNTS, cpu_device(), TL_I32, 1, 5, 0);
    assert_ok(toy_bind(&call));
    assert_true(call.problem.present[ARG_COUNTS]);
    /* It moves no byte of the device. */
    assert_true(tl_problem_arg_bytes(&call.problem) == 4 * (6 * 8 + 4 * 8 + 2 * 6 * 4) + 4 * 6);
    toy_set(&call, ARG_COUNTS, cpu_device(), TL_I32, 1, 4, 0);
    assert_fails(TL_ERR_ARGUMENT, "'counts'", toy_bind(&call));
    toy_set(&call, ARG_COUNTS, fake_device(), TL_I32, 1, 5, 0);
    assert_fails(TL_ERR_ARGUMENT, "'counts' is on fake", toy_bind(&call));
    assert_message("must be on the cpu");
    toy_end(&call);
}

static void the_first_parameter_selects_shapes(void **state)
{
    (void)state;
    struct toy_call call = toy_call_new(cpu_device());
    call.param[PARAM_LAYOUT] = 1; /* nn */
    assert_fails(TL_ERR_ARGUMENT, "'b'", toy_bind(&call));
    toy_set(&call, ARG_B, cpu_device(), TL_FP32, 2, 8, 4);
    assert_ok(toy_bind(&call));
    assert_true(call.problem.dim[DIM_N] == 4 && call.problem.dim[DIM_K] == 8);
    call.param[PARAM_LAYOUT] = 2; /* tn */
    assert_fails(TL_ERR_ARGUMENT, "", toy_bind(&call));
    toy_set(&call, ARG_A, cpu_device(), TL_FP32, 2, 8, 6);
    assert_ok(toy_bind(&call));
    assert_true(call.problem.dim[DIM_M] == 6 && call.problem.dim[DIM_K] == 8);
    assert_true(tl_problem_arg_bytes(&call.problem) == 4 * (6 * 8 + 4 * 8 + 2 * 6 * 4));
    toy_end(&call);
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
        struct toy_call call = toy_call_new(cpu);
        toy_set(&call, bad[i].arg, cpu, bad[i].dtype, bad[i].rank, bad[i].d0, bad[i].d1);
        for (int word = 0; word < 3; word++)
            assert_fails(TL_ERR_ARGUMENT, bad[i].words[word], toy_bind(&call));
        assert_message("toy_gemm");
        toy_end(&call);
    }
    /* group_offsets and pair must agree on num_groups. */
    struct toy_call call = toy_call_new(cpu);
    toy_set(&call, ARG_OFFSETS, cpu, TL_I32, 1, 6, 0);
    toy_set(&call, ARG_PAIR, cpu, TL_FP32, 2, 6, 2);
    assert_fails(TL_ERR_ARGUMENT, "'pair'", toy_bind(&call));
    toy_end(&call);
    call = toy_call_new(cpu); /* strided memory */
    call.args.tensor[ARG_B].stride[0] = 1, call.args.tensor[ARG_B].stride[1] = 4;
    assert_fails(TL_ERR_ARGUMENT, "'b'", toy_bind(&call));
    assert_message("contiguous");
    toy_end(&call);
    call = toy_call_new(cpu); /* two devices */
    toy_set(&call, ARG_D, fake_device(), TL_FP32, 2, 6, 4);
    assert_fails(TL_ERR_ARGUMENT, "'d'", toy_bind(&call));
    assert_message("fake");
    assert_message("cpu");
    toy_end(&call);
    call = toy_call_new(cpu); /* the operation's own relation */
    toy_set(&call, ARG_A, cpu, TL_FP32, 2, 6, 7);
    toy_set(&call, ARG_B, cpu, TL_FP32, 2, 4, 7);
    assert_fails(TL_ERR_ARGUMENT, "k is 7", toy_bind(&call));
    toy_end(&call);
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
        struct toy_call call = toy_call_new(cpu_device());
        call.param[bad[i].param] = bad[i].value;
        assert_fails(TL_ERR_ARGUMENT, bad[i].name, toy_bind(&call));
        assert_message("toy_gemm");
        toy_end(&call);
    }
    struct toy_call call = toy_call_new(cpu_device()); /* the ends are inside */
    call.param[PARAM_BETA] = 1;
    call.param[PARAM_SCALE] = -10;
    assert_ok(toy_bind(&call));
    toy_end(&call);
}

/* An argument becomes a view of `source` from element `offset` on, in its own shape. */
static void lay(struct toy_call *call, int arg, const struct tl_tensor *source, int64_t offset)
{
    struct tl_tensor *tensor = &call->args.tensor[arg], before = *tensor;
    assert_ok(tl_tensor_view(tensor, source, offset, before.rank, before.shape));
    tl_tensor_done(&before);
}

static void outputs_overlap_nothing(void **state)
{
    (void)state;
    struct tl_device *cpu = cpu_device();
    struct tl_tensor memory, first;
    int64_t all = 6 * 8 + 6 * 8 + 8 * 8, square[] = {8, 8};
    assert_ok(tl_tensor_init(&memory, cpu, TL_FP32, 1, &all));
    struct toy_call call = toy_call_new(cpu); /* a and d are [6, 8], b is [8, 8] */
    toy_set(&call, ARG_B, cpu, TL_FP32, 2, 8, 8);
    toy_set(&call, ARG_D, cpu, TL_FP32, 2, 6, 8);
    lay(&call, ARG_A, &memory, 0);
    lay(&call, ARG_B, &memory, 6 * 8);
    lay(&call, ARG_D, &memory, 6 * 8 + 8 * 8); /* side by side */
    assert_ok(toy_bind(&call));
    lay(&call, ARG_D, &memory, 6 * 8 + 8 * 8 - 1); /* the first of d is the last of b */
    assert_fails(TL_ERR_ARGUMENT, "input and output 'd' overlaps input 'b'; give it memory of its own",
                 toy_bind(&call));
    lay(&call, ARG_D, &memory, 6 * 8); /* begins where b does */
    assert_fails(TL_ERR_ARGUMENT, "'d' overlaps input 'b'", toy_bind(&call));
    lay(&call, ARG_D, &memory, 1);
    assert_fails(TL_ERR_ARGUMENT, "'d' overlaps input 'a'", toy_bind(&call));
    assert_message("memory of its own, or all of that tensor's");
    lay(&call, ARG_D, &memory, 0); /* which the operation allows */
    assert_ok(toy_bind(&call));
    assert_ok(tl_tensor_view(&first, &memory, 0, 2, square));
    tl_tensor_done(&call.args.tensor[ARG_B]);
    call.args.tensor[ARG_B] = first; /* inputs may overlap, but d still lies in b */
    assert_fails(TL_ERR_ARGUMENT, "'d' overlaps input 'b'", toy_bind(&call));
    toy_set(&call, ARG_D, cpu, TL_FP32, 2, 6, 8);
    assert_ok(toy_bind(&call));
    toy_set(&call, ARG_OFFSETS, cpu, TL_I32, 1, 1, 0); /* outputs without elements are nowhere */
    toy_set(&call, ARG_PAIR, cpu, TL_FP32, 2, 0, 2);
    lay(&call, ARG_PAIR, &memory, 5);
    assert_ok(toy_bind(&call));
    toy_end(&call);
    tl_tensor_done(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_by_name),
        cmocka_unit_test(dimensions_are_solved),
        cmocka_unit_test(what_the_host_reads_stays_there),
        cmocka_unit_test(the_first_parameter_selects_shapes),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(wrong_parameters_are_named),
        cmocka_unit_test(outputs_overlap_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
