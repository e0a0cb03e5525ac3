/* Tables of rmsnorm and rmsnorm_backward; see op.h. */
#include "kernels/rmsnorm/op.h"

#include <math.h>

#include "kernels/host/check.h"

static double elements(const struct tl_problem *problem)
{
    return (double)problem->dim[RMSNORM_DIM_TOKENS] * (double)problem->dim[RMSNORM_DIM_D];
}

/* Square and add, two scalings, and the residual. */
static double forward_flops(const struct tl_problem *problem)
{
    return elements(problem) * (problem->present[RMSNORM_RESIDUAL] ? 5 : 4);
}

/* g, its product with sum and the addition, two terms of dx, their sum; dweight takes three. */
static double backward_flops(const struct tl_problem *problem)
{
    return elements(problem) * (problem->present[RMSNORM_BACKWARD_DSUM] ? 10 : 9);
}

/* weight and rstd stay in fp32 beside bf16. */
static enum tl_status check_forward(const struct tl_problem *problem)
{
    if (problem->present[RMSNORM_RESIDUAL] && !problem->present[RMSNORM_SUM])
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "rmsnorm: with residual, sum must be given to receive x + residual");
    return tl_check_floats(problem, 1u << RMSNORM_WEIGHT | 1u << RMSNORM_RSTD, 0);
}

static enum tl_status check_backward(const struct tl_problem *problem)
{
    return tl_check_floats(problem,
                           1u << RMSNORM_BACKWARD_WEIGHT | 1u << RMSNORM_BACKWARD_RSTD |
                               1u << RMSNORM_BACKWARD_DWEIGHT,
                           0);
}

const struct tl_operation tl_op_rmsnorm = {
    .name = "rmsnorm",
    .equation = "sum = x + residual; rstd = 1 / sqrt(mean(sum^2) + eps); y = sum rstd weight",
    .dims = "tokens d",
    .args =
        {
            [RMSNORM_X] = {"x", TL_IN, false, TL_FLOATS, "tokens d"},
            [RMSNORM_RESIDUAL] = {"residual", TL_IN, true, TL_FLOATS, "tokens d"},
            [RMSNORM_WEIGHT] = {"weight", TL_IN, false, TL_WIDE_FLOATS, "d"},
            [RMSNORM_Y] = {"y", TL_OUT, false, TL_FLOATS, "tokens d"},
            [RMSNORM_RSTD] = {"rstd", TL_OUT, false, TL_WIDE_FLOATS, "tokens"},
            [RMSNORM_SUM] = {"sum", TL_OUT, true, TL_FLOATS, "tokens d"},
        },
    .params = {[RMSNORM_PARAM_EPS] = {"eps", NULL, 1e-6, 0, INFINITY}},
    .in_place = {{RMSNORM_SUM, RMSNORM_X}, {RMSNORM_SUM, RMSNORM_RESIDUAL}},
    .flops = forward_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_forward,
};

const struct tl_operation tl_op_rmsnorm_backward = {
    .name = "rmsnorm_backward",
    .equation = "dx = rstd (dy weight - n mean(dy weight n)) + dsum, n = x rstd; "
                "dweight += sum(dy n)",
    .dims = "tokens d",
    .args =
        {
            [RMSNORM_BACKWARD_DY] = {"dy", TL_IN, false, TL_FLOATS, "tokens d"},
            [RMSNORM_BACKWARD_X] = {"x", TL_IN, false, TL_FLOATS, "tokens d"},
            [RMSNORM_BACKWARD_WEIGHT] = {"weight", TL_IN, false, TL_WIDE_FLOATS, "d"},
            [RMSNORM_BACKWARD_RSTD] = {"rstd", TL_IN, false, TL_WIDE_FLOATS, "tokens"},
            [RMSNORM_BACKWARD_DSUM] = {"dsum", TL_IN, true, TL_FLOATS, "tokens d"},
            [RMSNORM_BACKWARD_DX] = {"dx", TL_OUT, false, TL_FLOATS, "tokens d"},
            [RMSNORM_BACKWARD_DWEIGHT] = {"dweight", TL_INOUT, false, TL_WIDE_FLOATS, "d"},
        },
    .in_place = {{RMSNORM_BACKWARD_DX, RMSNORM_BACKWARD_DSUM}},
    .flops = backward_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_backward,
};
