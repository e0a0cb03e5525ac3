/* See toy_gemm.h. */
#include "toy_gemm.h"

#include <math.h>

double toy_flops(const struct tl_problem *problem)
{
    return 2.0 * (double)(problem->dim[DIM_M] * problem->dim[DIM_N] * problem->dim[DIM_K]);
}

static enum tl_status toy_check(const struct tl_problem *problem)
{
    if (problem->dim[DIM_K] % 2)
        return TL_FAIL(TL_ERR_ARGUMENT, "toy: k is %lld, not even", (long long)problem->dim[DIM_K]);
    return TL_OK;
}

const struct tl_operation toy = {
    .name = "toy_gemm",
    .equation = "d[m,n] = beta d + scale a b",
    .dims = "m n k num_groups",
    .args = {{"a", TL_IN, false, TL_FLOATS, "m k|m k|k m"},
             {"b", TL_IN, false, TL_FLOATS, "n k|k n|k n"},
             {"d", TL_INOUT, false, TL_WIDE_FLOATS, "m n"},
             {"group_offsets", TL_IN, true, TL_DTYPE_BIT(TL_I32), "num_groups+1"},
             {"pair", TL_OUT, true, TL_FLOATS, "num_groups 2"},
             {"counts", TL_IN_HOST, true, TL_DTYPE_BIT(TL_I32), "num_groups"}},
    .params = {{"layout", "nt nn tn", 0, 0, 0},
               {"beta", NULL, 0, 0, 1},
               {"scale", NULL, NAN, -10, 10}},
    .in_place = {{ARG_D, ARG_A}},
    .flops = toy_flops,
    .bytes = tl_problem_arg_bytes,
    .check = toy_check,
};

void toy_set(struct toy_call *call, int arg, struct tl_device *device, enum tl_dtype dtype,
             int rank, int64_t d0, int64_t d1)
{
    int64_t shape[TL_MAX_RANK] = {d0, d1, 1, 1, 1};
    tl_tensor_done(&call->args.tensor[arg]);
    if (rank)
        assert_ok(tl_tensor_init(&call->args.tensor[arg], device, dtype, rank, shape));
}

struct toy_call toy_call_new(struct tl_device *device)
{
    struct toy_call call = {0};
    tl_operation_defaults(&toy, call.param);
    call.param[PARAM_SCALE] = 2;
    toy_set(&call, ARG_A, device, TL_FP32, 2, 6, 8);
    toy_set(&call, ARG_B, device, TL_FP32, 2, 4, 8);
    toy_set(&call, ARG_D, device, TL_FP32, 2, 6, 4);
    return call;
}

void toy_end(struct toy_call *call)
{
    for (int i = 0; i < NUM_ARGS; i++)
        tl_tensor_done(&call->args.tensor[i]);
}

enum tl_status toy_bind(struct toy_call *call)
{
    return tl_problem_bind(&call->problem, &toy, &call->args, call->param);
}
