/* Tables of combine and combine_backward; see op.h. */
#include "kernels/combine/op.h"

#include "kernels/host/check.h"

#define INDEX TL_DTYPE_BIT(TL_I32)

static double slots(const struct tl_problem *problem)
{
    return (double)problem->dim[COMBINE_DIM_TOKENS] * (double)problem->dim[COMBINE_DIM_TOP_K];
}

static double forward_flops(const struct tl_problem *problem)
{
    return 2 * slots(problem) * (double)problem->dim[COMBINE_DIM_D];
}

static double backward_flops(const struct tl_problem *problem)
{
    return 3 * slots(problem) * (double)problem->dim[COMBINE_DIM_D];
}

static double size_of(const struct tl_problem *problem, int arg)
{
    return (double)tl_dtype_size(problem->dtype[arg]);
}

/* One row for each slot, one for each token of y and of shared, weights, indices. */
static double forward_bytes(const struct tl_problem *problem)
{
    double d = (double)problem->dim[COMBINE_DIM_D];
    double passes = problem->present[COMBINE_SHARED] ? 2 : 1;
    return slots(problem) * (d * size_of(problem, COMBINE_X) + size_of(problem, COMBINE_WEIGHTS)) +
           passes * (double)problem->dim[COMBINE_DIM_TOKENS] * d * size_of(problem, COMBINE_Y) +
           4 * slots(problem);
}

/* dy once, a row of x and one of dx for each slot, weights and dweights, both indices. */
static double backward_bytes(const struct tl_problem *problem)
{
    double d = (double)problem->dim[COMBINE_DIM_D];
    return (double)problem->dim[COMBINE_DIM_TOKENS] * d * size_of(problem, COMBINE_BACKWARD_DY) +
           2 * slots(problem) *
               (d * size_of(problem, COMBINE_BACKWARD_X) +
                size_of(problem, COMBINE_BACKWARD_WEIGHTS)) +
           4 * (slots(problem) + (double)problem->dim[COMBINE_DIM_ROWS]);
}

static enum tl_status check_forward(const struct tl_problem *problem)
{
    return tl_check_floats(problem, 1u << COMBINE_WEIGHTS, 1u << COMBINE_X);
}

static enum tl_status check_backward(const struct tl_problem *problem)
{
    return tl_check_floats(problem,
                           1u << COMBINE_BACKWARD_WEIGHTS | 1u << COMBINE_BACKWARD_DWEIGHTS,
                           1u << COMBINE_BACKWARD_X | 1u << COMBINE_BACKWARD_DX);
}

const struct tl_operation tl_op_combine = {
    .name = "combine",
    .equation = "y[t] = shared[t] + sum_j weights[t,j] x[slot_rows[t,j]]",
    .dims = "tokens top_k d rows",
    .args =
        {
            [COMBINE_X] = {"x", TL_IN, false, TL_FLOATS, "rows d"},
            [COMBINE_SLOT_ROWS] = {"slot_rows", TL_IN, false, INDEX, "tokens top_k"},
            [COMBINE_WEIGHTS] = {"weights", TL_IN, false, TL_WIDE_FLOATS, "tokens top_k"},
            [COMBINE_SHARED] = {"shared", TL_IN, true, TL_FLOATS, "tokens d"},
            [COMBINE_Y] = {"y", TL_OUT, false, TL_FLOATS, "tokens d"},
        },
    .in_place = {{COMBINE_Y, COMBINE_SHARED}},
    .flops = forward_flops,
    .bytes = forward_bytes,
    .check = check_forward,
};

const struct tl_operation tl_op_combine_backward = {
    .name = "combine_backward",
    .equation = "dx[r] = weights[row_slots[r]] dy[row_slots[r] / top_k], 0 in pad rows; "
                "dweights[t,j] = dy[t] . x[slot_rows[t,j]]",
    .dims = "tokens top_k d rows num_experts",
    .args =
        {
            [COMBINE_BACKWARD_DY] = {"dy", TL_IN, false, TL_FLOATS, "tokens d"},
            [COMBINE_BACKWARD_X] = {"x", TL_IN, false, TL_FLOATS, "rows d"},
            [COMBINE_BACKWARD_ROW_SLOTS] = {"row_slots", TL_IN, false, INDEX, "rows"},
            [COMBINE_BACKWARD_SLOT_ROWS] = {"slot_rows", TL_IN, false, INDEX, "tokens top_k"},
            [COMBINE_BACKWARD_WEIGHTS] = {"weights", TL_IN, false, TL_WIDE_FLOATS, "tokens top_k"},
            [COMBINE_BACKWARD_GROUP_OFFSETS] = {"group_offsets", TL_IN, false, INDEX,
                                                "num_experts+1"},
            [COMBINE_BACKWARD_DX] = {"dx", TL_OUT, false, TL_FLOATS, "rows d"},
            [COMBINE_BACKWARD_DWEIGHTS] = {"dweights", TL_OUT, false, TL_WIDE_FLOATS,
                                           "tokens top_k"},
        },
    .in_place = {{COMBINE_BACKWARD_DX, COMBINE_BACKWARD_X}},
    .flops = backward_flops,
    .bytes = backward_bytes,
    .check = check_backward,
};
