/* Tables of swiglu and swiglu_backward; see op.h. */
#include "kernels/swiglu/op.h"

#include "kernels/host/check.h"

#define INDEX TL_DTYPE_BIT(TL_I32)

static double elements(const struct tl_problem *problem)
{
    return (double)problem->dim[SWIGLU_DIM_ROWS] * (double)problem->dim[SWIGLU_DIM_F];
}

/* exp, sum, quotient, two products. */
static double forward_flops(const struct tl_problem *problem)
{
    return 5 * elements(problem);
}

/* The sigmoid in three, silu, dup, and five more for dgate. */
static double backward_flops(const struct tl_problem *problem)
{
    return 10 * elements(problem);
}

static enum tl_status check(const struct tl_problem *problem)
{
    int64_t f = problem->dim[SWIGLU_DIM_F], two_f = problem->dim[SWIGLU_DIM_TWO_F];
    if (two_f != 2 * f)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: x has %lld columns, but must have gate and up, 2 x %lld",
                       problem->operation->name, (long long)two_f, (long long)f);
    return tl_check_one_float(problem);
}

const struct tl_operation tl_op_swiglu = {
    .name = "swiglu",
    .equation = "y = silu(gate) up, x = [gate, up]",
    .dims = "rows f two_f num_groups",
    .args =
        {
            [SWIGLU_X] = {"x", TL_IN, false, TL_FLOATS, "rows two_f"},
            [SWIGLU_Y] = {"y", TL_OUT, false, TL_FLOATS, "rows f"},
            [SWIGLU_GROUP_OFFSETS] = {"group_offsets", TL_IN, true, INDEX, "num_groups+1"},
        },
    .flops = forward_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check,
};

const struct tl_operation tl_op_swiglu_backward = {
    .name = "swiglu_backward",
    .equation = "dx = [dy up sigmoid(gate) (1 + gate (1 - sigmoid(gate))), dy silu(gate)]",
    .dims = "rows f two_f num_groups",
    .args =
        {
            [SWIGLU_BACKWARD_DY] = {"dy", TL_IN, false, TL_FLOATS, "rows f"},
            [SWIGLU_BACKWARD_X] = {"x", TL_IN, false, TL_FLOATS, "rows two_f"},
            [SWIGLU_BACKWARD_DX] = {"dx", TL_OUT, false, TL_FLOATS, "rows two_f"},
            [SWIGLU_BACKWARD_GROUP_OFFSETS] = {"group_offsets", TL_IN, true, INDEX, "num_groups+1"},
        },
    .in_place = {{SWIGLU_BACKWARD_DX, SWIGLU_BACKWARD_X}},
    .flops = backward_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check,
};
