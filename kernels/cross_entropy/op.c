/* Tables of cross_entropy and cross_entropy_backward; see op.h. */
#include "kernels/cross_entropy/op.h"

#include <math.h>

#include "kernels/host/check.h"

#define INDEX TL_DTYPE_BIT(TL_I32)

/* Forward: subtract, exp, sum. Backward: subtract, exp, scale. */
static double flops(const struct tl_problem *problem)
{
    return 3 * (double)problem->dim[CROSS_ENTROPY_DIM_TOKENS] *
           (double)problem->dim[CROSS_ENTROPY_DIM_VOCAB];
}

/* Of arguments, `statistics` stay in fp32 beside bf16. */
static enum tl_status check(const struct tl_problem *problem, unsigned statistics)
{
    if (problem->dim[CROSS_ENTROPY_DIM_VOCAB] < 1)
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: logits has no columns; vocab must be at least 1",
                       problem->operation->name);
    return tl_check_floats(problem, statistics, 0);
}

static enum tl_status check_forward(const struct tl_problem *problem)
{
    return check(problem, 1u << CROSS_ENTROPY_LSE | 1u << CROSS_ENTROPY_LOSSES |
                              1u << CROSS_ENTROPY_LOSS_SUM);
}

static enum tl_status check_backward(const struct tl_problem *problem)
{
    return check(problem, 1u << CROSS_ENTROPY_BACKWARD_LSE);
}

const struct tl_operation tl_op_cross_entropy = {
    .name = "cross_entropy",
    .equation = "lse = log(sum(exp(logits))); losses = lse - logits[targets]; "
                "loss_sum += scale sum(losses)",
    .dims = "tokens vocab",
    .args =
        {
            [CROSS_ENTROPY_LOGITS] = {"logits", TL_IN, false, TL_FLOATS, "tokens vocab"},
            [CROSS_ENTROPY_TARGETS] = {"targets", TL_IN, false, INDEX, "tokens"},
            [CROSS_ENTROPY_LSE] = {"lse", TL_OUT, false, TL_WIDE_FLOATS, "tokens"},
            [CROSS_ENTROPY_LOSSES] = {"losses", TL_OUT, false, TL_WIDE_FLOATS, "tokens"},
            [CROSS_ENTROPY_LOSS_SUM] = {"loss_sum", TL_INOUT, false, TL_WIDE_FLOATS, "1"},
        },
    .params = {[CROSS_ENTROPY_PARAM_SCALE] = {"scale", NULL, 1, -INFINITY, INFINITY}},
    .flops = flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_forward,
};

const struct tl_operation tl_op_cross_entropy_backward = {
    .name = "cross_entropy_backward",
    .equation = "dlogits = scale (exp(logits - lse) - onehot(targets))",
    .dims = "tokens vocab",
    .args =
        {
            [CROSS_ENTROPY_BACKWARD_LOGITS] = {"logits", TL_IN, false, TL_FLOATS, "tokens vocab"},
            [CROSS_ENTROPY_BACKWARD_LSE] = {"lse", TL_IN, false, TL_WIDE_FLOATS, "tokens"},
            [CROSS_ENTROPY_BACKWARD_TARGETS] = {"targets", TL_IN, false, INDEX, "tokens"},
            [CROSS_ENTROPY_BACKWARD_DLOGITS] = {"dlogits", TL_OUT, false, TL_FLOATS,
                                                "tokens vocab"},
        },
    .params = {[CROSS_ENTROPY_PARAM_SCALE] = {"scale", NULL, 1, -INFINITY, INFINITY}},
    .in_place = {{CROSS_ENTROPY_BACKWARD_DLOGITS, CROSS_ENTROPY_BACKWARD_LOGITS}},
    .flops = flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_backward,
};
