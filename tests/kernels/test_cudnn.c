/* Attention through cuDNN without a GPU: the hand-written part of its interface against NVIDIA's
 * header, where there is one; what is refused; and plans and launches against a cuDNN that only
 * pretends (fake/cudnn.h). */
#include "kernels/attention/op.h"
#include "kernels/table.h"
#include "tests/core/check.h"

#if TL_CUDA
#include "fake/cudnn.h"
#include "kernels/attention/cudnn_abi.h"
#include "kernels/attention/cudnn_sdpa.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#define HAVE_HEADER 1
#endif
#endif

static struct fake_cudnn *fake;

/* Opened before any test, so that every later search finds it first. */
static int open_fake(void **state)
{
    char path[4096], file[4200];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    (void)state;
    path[length > 0 ? length : 0] = 0;
    char *slash = strrchr(path, '/');
    if (!slash)
        return 1;
    strcpy(slash + 1, "fake");
    snprintf(file, sizeof file, "%s/libcudnn.so.9", path);
    setenv("TILELAB_LIBRARY_PATH", path, 1);
    void *library = dlopen(file, RTLD_NOW);
    fake = library ? dlsym(library, "fake_cudnn") : NULL;
    return fake && tl_kernels_register() == TL_OK ? 0 : 1;
}

static int before_each(void **state)
{
    (void)state;
    int live = fake->live;
    *fake = (struct fake_cudnn){
        .version = 91900, .configs = 2, .workspace_bytes = 1000, .status = 2000, .live = live};
    return 0;
}

/* --- against the header ---------------------------------------------------------------------- */

#ifdef HAVE_HEADER
static void types_and_modes_are_the_librarys(void **state)
{
    (void)state;
    assert_int_equal(CUDNN_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED);
    assert_int_equal(CUDNN_NOT_SUPPORTED_END, CUDNN_STATUS_INTERNAL_ERROR);
    assert_int_equal(CUDNN_FP32, CUDNN_DATA_FLOAT);
    assert_int_equal(CUDNN_INT32, CUDNN_DATA_INT32);
    assert_int_equal(CUDNN_BF16, CUDNN_DATA_BFLOAT16);
    assert_int_equal(CUDNN_BOOL, CUDNN_DATA_BOOLEAN);
    assert_int_equal(CUDNN_OF_HANDLE, CUDNN_TYPE_HANDLE);
    assert_int_equal(CUDNN_OF_DATA_TYPE, CUDNN_TYPE_DATA_TYPE);
    assert_int_equal(CUDNN_OF_BOOL, CUDNN_TYPE_BOOLEAN);
    assert_int_equal(CUDNN_OF_INT64, CUDNN_TYPE_INT64);
    assert_int_equal(CUDNN_OF_POINTER, CUDNN_TYPE_VOID_PTR);
    assert_int_equal(CUDNN_OF_HEURISTIC, CUDNN_TYPE_HEUR_MODE);
    assert_int_equal(CUDNN_OF_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
    assert_int_equal(CUDNN_OF_POINTWISE, CUDNN_TYPE_POINTWISE_MODE);
    assert_int_equal(CUDNN_OF_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR);
    assert_int_equal(CUDNN_OF_REDUCTION, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
    assert_int_equal(CUDNN_ADD, CUDNN_POINTWISE_ADD);
    assert_int_equal(CUDNN_MUL, CUDNN_POINTWISE_MUL);
    assert_int_equal(CUDNN_DIV, CUDNN_POINTWISE_DIV);
    assert_int_equal(CUDNN_SUB, CUDNN_POINTWISE_SUB);
    assert_int_equal(CUDNN_EXP, CUDNN_POINTWISE_EXP);
    assert_int_equal(CUDNN_LOG, CUDNN_POINTWISE_LOG);
    assert_int_equal(CUDNN_IDENTITY, CUDNN_POINTWISE_IDENTITY);
    assert_int_equal(CUDNN_GREATER_EQUAL, CUDNN_POINTWISE_CMP_GE);
    assert_int_equal(CUDNN_INDEX, CUDNN_POINTWISE_GEN_INDEX);
    assert_int_equal(CUDNN_SELECT, CUDNN_POINTWISE_BINARY_SELECT);
    assert_int_equal(CUDNN_REDUCE_ADD, CUDNN_REDUCE_TENSOR_ADD);
    assert_int_equal(CUDNN_REDUCE_MAX, CUDNN_REDUCE_TENSOR_MAX);
    assert_int_equal(CUDNN_HEURISTIC_FALLBACK, CUDNN_HEUR_MODE_FALLBACK);
    assert_int_equal(CUDNN_HEURISTIC_A, CUDNN_HEUR_MODE_A);
    assert_int_equal(CUDNN_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    assert_in_range(CUDNN_NUMERICAL_NOTE_TYPE_COUNT, 1, CUDNN_NOTES);
    assert_int_equal(sizeof(cudnnDataType_t), sizeof(int));
}

static void descriptors_are_the_librarys(void **state)
{
    (void)state;
    assert_int_equal(CUDNN_POINTWISE, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    assert_int_equal(CUDNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    assert_int_equal(CUDNN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    assert_int_equal(CUDNN_HEURISTIC, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    assert_int_equal(CUDNN_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    assert_int_equal(CUDNN_OP_POINTWISE, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    assert_int_equal(CUDNN_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    assert_int_equal(CUDNN_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    assert_int_equal(CUDNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    assert_int_equal(CUDNN_MATMUL, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    assert_int_equal(CUDNN_OP_MATMUL, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    assert_int_equal(CUDNN_REDUCTION, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    assert_int_equal(CUDNN_OP_REDUCTION, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    assert_int_equal(CUDNN_OP_RESHAPE, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
}

static void attributes_are_the_librarys(void **state)
{
    (void)state;
    assert_int_equal(CUDNN_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MODE);
    assert_int_equal(CUDNN_POINTWISE_PRECISION, CUDNN_ATTR_POINTWISE_MATH_PREC);
    assert_int_equal(CUDNN_POINTWISE_AXIS, CUDNN_ATTR_POINTWISE_AXIS);
    assert_int_equal(CUDNN_HEURISTIC_MODE, CUDNN_ATTR_ENGINEHEUR_MODE);
    assert_int_equal(CUDNN_HEURISTIC_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    assert_int_equal(CUDNN_HEURISTIC_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS);
    assert_int_equal(CUDNN_ENGINE_CONFIG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE);
    assert_int_equal(CUDNN_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
    assert_int_equal(CUDNN_PLAN_ENGINE_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    assert_int_equal(CUDNN_PLAN_WORKSPACE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    assert_int_equal(CUDNN_OP_POINTWISE_DESC, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    assert_int_equal(CUDNN_OP_POINTWISE_X, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    assert_int_equal(CUDNN_OP_POINTWISE_B, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    assert_int_equal(CUDNN_OP_POINTWISE_Y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    assert_int_equal(CUDNN_OP_POINTWISE_T, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    assert_int_equal(CUDNN_GRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
    assert_int_equal(CUDNN_GRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    assert_int_equal(CUDNN_TENSOR_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    assert_int_equal(CUDNN_TENSOR_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE);
    assert_int_equal(CUDNN_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_DIMENSIONS);
    assert_int_equal(CUDNN_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES);
    assert_int_equal(CUDNN_TENSOR_ID, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    assert_int_equal(CUDNN_TENSOR_VIRTUAL, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    assert_int_equal(CUDNN_TENSOR_BY_VALUE, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    assert_int_equal(CUDNN_PACK_IDS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    assert_int_equal(CUDNN_PACK_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    assert_int_equal(CUDNN_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    assert_int_equal(CUDNN_ENGINE_INDEX, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    assert_int_equal(CUDNN_ENGINE_NUMERICAL_NOTE, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
    assert_int_equal(CUDNN_MATMUL_PRECISION, CUDNN_ATTR_MATMUL_COMP_TYPE);
    assert_int_equal(CUDNN_OP_MATMUL_A, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    assert_int_equal(CUDNN_OP_MATMUL_B, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    assert_int_equal(CUDNN_OP_MATMUL_C, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    assert_int_equal(CUDNN_OP_MATMUL_DESC, CUDNN_ATTR_OPERATION_MATMUL_DESC);
    assert_int_equal(CUDNN_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_OPERATOR);
    assert_int_equal(CUDNN_REDUCTION_PRECISION, CUDNN_ATTR_REDUCTION_COMP_TYPE);
    assert_int_equal(CUDNN_OP_REDUCTION_X, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    assert_int_equal(CUDNN_OP_REDUCTION_Y, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    assert_int_equal(CUDNN_OP_REDUCTION_DESC, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    assert_int_equal(CUDNN_OP_RESHAPE_X, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    assert_int_equal(CUDNN_OP_RESHAPE_Y, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
}
#endif

/* --- plans ----------------------------------------------------------------------------------- */

static struct tl_problem problem_of(const struct tl_operation *operation, int64_t sequence)
{
    struct tl_problem problem = {.operation = operation};
    problem.dim[ATTENTION_DIM_BATCH] = 2;
    problem.dim[ATTENTION_DIM_SEQUENCE] = sequence;
    problem.dim[ATTENTION_DIM_HEADS] = 6;
    problem.dim[ATTENTION_DIM_QKV_HEADS] = 6 + 2 * 3;
    problem.dim[ATTENTION_DIM_HEAD_DIM] = 128;
    for (int i = 0; i < TL_MAX_ARGS && operation->args[i].name; i++) {
        problem.present[i] = true;
        problem.dtype[i] = strcmp(operation->args[i].name, "lse") == 0 ? TL_FP32 : TL_BF16;
    }
    return problem;
}

static enum tl_status plan_of(struct tl_plan *plan, const char *operation, const char *variant,
                              int64_t sequence)
{
    const struct tl_kernel *kernel;
    const struct tl_operation *found;
    assert_ok(tl_operation_find(operation, &found));
    assert_ok(tl_kernel_find(operation, variant, &kernel));
    struct tl_problem problem = problem_of(found, sequence);
    return tl_plan_init(plan, kernel, fake_device(), &problem);
}

static void what_is_refused(void **state)
{
    (void)state;
    const struct tl_kernel *kernel;
    struct tl_plan plan;
    struct tl_problem problem = problem_of(&tl_op_attention, 64);
    assert_ok(tl_kernel_find("attention", "cudnn_sdpa", &kernel));
    assert_fails(TL_ERR_ILLEGAL, "attention/cudnn_sdpa needs an NVIDIA GPU",
                 tl_kernel_usable(kernel, cpu_device()));
    assert_ok(kernel->legal(&problem));
    problem.dim[ATTENTION_DIM_HEAD_DIM] = 100;
    assert_fails(TL_ERR_ILLEGAL, "head_dim is 100", kernel->legal(&problem));
    problem.dim[ATTENTION_DIM_HEAD_DIM] = 136;
    assert_fails(TL_ERR_ILLEGAL, "multiples of 8 up to 128", kernel->legal(&problem));
    problem.dtype[ATTENTION_QKV] = TL_FP32;
    assert_fails(TL_ERR_ILLEGAL, "'qkv' is fp32", kernel->legal(&problem));
    assert_fails(TL_ERR_ILLEGAL, "sequence of 1",
                 plan_of(&plan, "attention_backward", "cudnn_sdpa", 1));
    assert_int_equal(fake->calls, 0);
}

static void an_old_library(void **state)
{
    (void)state;
    struct tl_plan plan;
    fake->version = 91001;
    assert_fails(TL_ERR_UNSUPPORTED, "91002 (9.10.2) or later", tl_cudnn_open());
    assert_message("TILELAB_LIBRARY_PATH");
    assert_message("fake/libcudnn.so.9");
    assert_fails(TL_ERR_ILLEGAL,
                 "attention/cudnn_sdpa: cuDNN: ", plan_of(&plan, "attention", "cudnn_sdpa", 64));
    assert_string_equal(tl_cudnn_version(), "");
}

static void odd_sequences(void **state)
{
    (void)state;
    struct tl_plan plan;
    fake->version = 91500;
    assert_ok(plan_of(&plan, "attention", "cudnn_sdpa", 130));
    assert_ok(plan_of(&plan, "attention_backward", "cudnn_sdpa", 256));
    assert_fails(TL_ERR_ILLEGAL, "sequence 130",
                 plan_of(&plan, "attention_backward", "cudnn_sdpa", 130));
    assert_message("multiple of 128");
    fake->version = 91501;
    assert_ok(plan_of(&plan, "attention_backward", "cudnn_sdpa", 130));
}

static void made_once(void **state)
{
    (void)state;
    struct tl_plan first, second;
    assert_ok(plan_of(&first, "attention", "cudnn_sdpa", 70));
    int calls = fake->calls, live = fake->live;
    assert_ok(plan_of(&second, "attention", "cudnn_sdpa", 70));
    assert_int_equal(fake->calls, calls);
    assert_int_equal(first.scratch[0], second.scratch[0]);
    assert_ok(plan_of(&second, "attention", "cudnn_sdpa", 71));
    assert_true(fake->calls > calls);
    assert_int_equal(fake->live, live + 1); /* the plan itself */
    assert_true(strstr(tl_cudnn_version(), "91900 (") == tl_cudnn_version());
}

static void no_plan(void **state)
{
    (void)state;
    struct tl_plan plan;
    int live = fake->live;
    fake->configs = 0;
    assert_fails(TL_ERR_ILLEGAL, "has no plan", plan_of(&plan, "attention", "cudnn_sdpa", 72));
    assert_message("attention/cudnn_sdpa (batch 2, sequence 72, qkv_heads 12, heads 6, head_dim");
    assert_message("CUDNN_LOGLEVEL_DBG");
    fake->configs = 2;
    fake->nondeterministic = true;
    assert_fails(TL_ERR_ILLEGAL, "has no deterministic plan",
                 plan_of(&plan, "attention_backward", "cudnn_ordered", 72));
    assert_int_equal(fake->live, live);
    assert_ok(plan_of(&plan, "attention_backward", "cudnn_sdpa", 72));
}

/* Whichever call fails: the error says which descriptor, and nothing is left; or another suggestion
 * of the library stands in. */
static void every_failure(void **state)
{
    (void)state;
    static const char *const kernels[][2] = {{"attention", "cudnn_sdpa"},
                                             {"attention_backward", "cudnn_sdpa"},
                                             {"attention_backward", "cudnn_ordered"}};
    for (int i = 0; i < 3; i++) {
        int named = 0, stood_in = 0, live = fake->live;
        bool reached = true;
        for (fake->failing = 1; reached; fake->failing++) {
            struct tl_plan plan;
            fake->calls = 0;
            enum tl_status result =
                plan_of(&plan, kernels[i][0], kernels[i][1], 1000 + fake->failing);
            assert_int_equal(fake->live, result == TL_OK ? ++live : live);
            reached = fake->calls >= fake->failing;
            if (result == TL_OK) {
                stood_in += reached;
                continue;
            }
            assert_int_equal(result, TL_ERR_DEVICE);
            assert_message("call");
            assert_message("FAKE_BAD_PARAM");
            named += strstr(tl_error_message(), "refused '") != NULL;
        }
        assert_true(named > 200);
        assert_int_equal(stood_in, 8); /* three look at an engine, five make its plan */
    }
}

/* --- launches -------------------------------------------------------------------------------- */

static void *pointer_of(int64_t id)
{
    for (int i = 0; i < fake->count; i++)
        if (fake->id[i] == id)
            return fake->at[i];
    fail_msg("no pointer for id %d", (int)id);
    return NULL;
}

static float number_of(int64_t id)
{
    for (int i = 0; i < fake->count; i++)
        if (fake->id[i] == id)
            return fake->number[i];
    fail_msg("no number for id %d", (int)id);
    return 0;
}

/* Tensor i at (i + 1) 2^20; nothing looks behind the addresses. */
static struct tl_args made_up_args(const struct tl_operation *operation)
{
    struct tl_args args = {.workspace = (void *)0x80000000};
    for (int i = 0; i < TL_MAX_ARGS && operation->args[i].name; i++)
        args.tensor[i].data = (void *)((uintptr_t)(i + 1) << 20);
    return args;
}

static struct tl_stream made_up_stream(void)
{
    return (struct tl_stream){fake_device(), (void *)0x5000};
}

static void forward_launch(void **state)
{
    (void)state;
    struct tl_plan plan;
    struct tl_args args = made_up_args(&tl_op_attention);
    struct tl_stream stream = made_up_stream();
    assert_ok(plan_of(&plan, "attention", "cudnn_sdpa", 90));
    assert_int_equal(plan.kernel->workspace(&plan), 1000);
    int live = fake->live;
    assert_ok(plan.kernel->launch(&plan, &args, &stream));
    assert_int_equal(fake->live, live);
    assert_int_equal(fake->operations, 14);
    assert_ptr_equal(fake->stream, stream.native);
    assert_ptr_equal(fake->workspace, args.workspace);
    assert_int_equal(fake->count, 7);
    assert_ptr_equal(pointer_of(SDPA_Q), 0x100000);
    assert_ptr_equal(pointer_of(SDPA_K), 0x100000 + 6 * 128 * 2);
    assert_ptr_equal(pointer_of(SDPA_V), 0x100000 + 9 * 128 * 2);
    assert_ptr_equal(pointer_of(SDPA_O), 0x200000);
    assert_ptr_equal(pointer_of(SDPA_LSE), 0x300000);
    assert_true(number_of(SDPA_SCALE) == (float)(1 / sqrt(128.0)));
    assert_true(number_of(SDPA_LOWEST) == -INFINITY);
}

static void backward_launch(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        struct tl_plan plan;
        struct tl_args args = made_up_args(&tl_op_attention_backward);
        struct tl_stream stream = made_up_stream();
        size_t rows = 2 * 6 * 64 * 4;
        assert_ok(
            plan_of(&plan, "attention_backward", ordered ? "cudnn_ordered" : "cudnn_sdpa", 64));
        assert_int_equal(plan.kernel->workspace(&plan), 1024 + rows + (ordered ? 0 : rows * 128));
        assert_ok(plan.kernel->launch(&plan, &args, &stream));
        assert_int_equal(fake->operations, ordered ? 23 : 24);
        assert_int_equal(fake->count, ordered ? 13 : 14);
        assert_ptr_equal(pointer_of(SDPA_DOUT), 0x100000);
        assert_ptr_equal(pointer_of(SDPA_V), 0x200000 + 9 * 128 * 2);
        assert_ptr_equal(pointer_of(SDPA_O), 0x300000);
        assert_ptr_equal(pointer_of(SDPA_LSE), 0x400000);
        assert_ptr_equal(pointer_of(SDPA_DQ), 0x500000);
        assert_ptr_equal(pointer_of(SDPA_DK), 0x500000 + 6 * 128 * 2);
        assert_ptr_equal(pointer_of(SDPA_DV), 0x500000 + 9 * 128 * 2);
        assert_ptr_equal(pointer_of(SDPA_DELTA), 0x80000000 + 1024);
        if (!ordered)
            assert_ptr_equal(pointer_of(SDPA_DQ_SUM), 0x80000000 + 1024 + rows);
        assert_true(number_of(SDPA_ONE) == 1);
    }
}

static void launches_that_fail(void **state)
{
    (void)state;
    struct tl_plan plan;
    struct tl_args args = made_up_args(&tl_op_attention);
    struct tl_stream stream = made_up_stream();
    assert_ok(plan_of(&plan, "attention", "cudnn_sdpa", 90));
    int live = fake->live;
    for (fake->failing = 1; fake->failing <= 7; fake->failing++) {
        fake->calls = 0;
        assert_fails(TL_ERR_DEVICE, "attention/cudnn_sdpa: cuDNN 91900: launch: FAKE_BAD_PARAM",
                     plan.kernel->launch(&plan, &args, &stream));
        assert_int_equal(fake->live, live);
    }
    fake->calls = 0;
    assert_ok(plan.kernel->launch(&plan, &args, &stream));
    assert_int_equal(fake->calls, 7);
    args.tensor[ATTENTION_O].data = (void *)0x200008;
    assert_fails(TL_ERR_ILLEGAL, "'o' at 0x200008 must be aligned to 16 bytes",
                 plan.kernel->launch(&plan, &args, &stream));
}

static void no_tokens(void **state)
{
    (void)state;
    struct tl_plan plan;
    struct tl_args args = made_up_args(&tl_op_attention);
    struct tl_stream stream = made_up_stream();
    assert_ok(plan_of(&plan, "attention", "cudnn_sdpa", 0));
    assert_int_equal(plan.kernel->workspace(&plan), 0);
    assert_ok(plan.kernel->launch(&plan, &args, &stream));
    assert_int_equal(fake->calls, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, before_each)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_old_library), /* first: it is asked once */
#ifdef HAVE_HEADER
        TEST(types_and_modes_are_the_librarys),
        TEST(descriptors_are_the_librarys),
        TEST(attributes_are_the_librarys),
#endif
        TEST(what_is_refused),
        TEST(odd_sequences),
        TEST(made_once),
        TEST(no_plan),
        TEST(every_failure),
        TEST(forward_launch),
        TEST(backward_launch),
        TEST(launches_that_fail),
        TEST(no_tokens),
    };
    return cmocka_run_group_tests(tests, open_fake, NULL);
}
#else
static void the_build_has_none(void **state)
{
    (void)state;
    const struct tl_kernel *kernel;
    assert_ok(tl_kernels_register());
    assert_fails(TL_ERR_ARGUMENT, "cpu_plain", tl_kernel_find("attention", "cudnn_sdpa", &kernel));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_build_has_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
