/* Tables of router and router_backward; see op.h. */
#include "kernels/router/op.h"

#include <math.h>

#include "kernels/host/check.h"

#define INDEX TL_DTYPE_BIT(TL_I32)

static double per_token(const struct tl_problem *problem, double per_expert, double per_slot)
{
    return (double)problem->dim[ROUTER_DIM_TOKENS] *
           (per_expert * (double)problem->dim[ROUTER_DIM_NUM_EXPERTS] +
            per_slot * (double)problem->dim[ROUTER_DIM_TOP_K]);
}

/* Subtract, exp, sum, scale and the mean for aux; comparisons are not counted. */
static double forward_flops(const struct tl_problem *problem)
{
    return per_token(problem, 5, 2);
}

static double backward_flops(const struct tl_problem *problem)
{
    return per_token(problem, 5, 5);
}

/* `logits` is the position of the one float argument that may be bf16. */
static enum tl_status check(const struct tl_problem *problem, int logits)
{
    int64_t num_experts = problem->dim[ROUTER_DIM_NUM_EXPERTS];
    int64_t top_k = problem->dim[ROUTER_DIM_TOP_K];
    if (top_k < 1 || top_k > num_experts)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: top_k is %lld, but must lie between 1 and the %lld experts",
                       problem->operation->name, (long long)top_k, (long long)num_experts);
    if (problem->dim[ROUTER_DIM_TOKENS] > INT32_MAX / top_k)
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: %lld tokens have more slots than an i32 load holds",
                       problem->operation->name, (long long)problem->dim[ROUTER_DIM_TOKENS]);
    return tl_check_floats(problem, ~(1u << logits), 0);
}

static enum tl_status check_forward(const struct tl_problem *problem)
{
    return check(problem, ROUTER_LOGITS);
}

static enum tl_status check_backward(const struct tl_problem *problem)
{
    return check(problem, ROUTER_BACKWARD_DLOGITS);
}

static enum tl_status explain(const char *who, const struct tl_fault *fault)
{
    return tl_index_explain(who, "forced", fault);
}

const struct tl_operation tl_op_router = {
    .name = "router",
    .equation = "probs = softmax(logits); experts = top_k(logits) or forced; weights = "
                "probs[experts] / sum(probs[experts]); aux += coefficient num_experts sum(f P)",
    .dims = "tokens num_experts top_k",
    .args =
        {
            [ROUTER_LOGITS] = {"logits", TL_IN, false, TL_FLOATS, "tokens num_experts"},
            [ROUTER_FORCED] = {"forced", TL_IN, true, INDEX, "tokens top_k"},
            [ROUTER_PROBS] = {"probs", TL_OUT, false, TL_WIDE_FLOATS, "tokens num_experts"},
            [ROUTER_EXPERTS] = {"experts", TL_OUT, false, INDEX, "tokens top_k"},
            [ROUTER_WEIGHTS] = {"weights", TL_OUT, false, TL_WIDE_FLOATS, "tokens top_k"},
            [ROUTER_LOAD] = {"load", TL_OUT, false, INDEX, "num_experts"},
            [ROUTER_AUX] = {"aux", TL_INOUT, false, TL_WIDE_FLOATS, "1"},
        },
    .params = {[ROUTER_PARAM_COEFFICIENT] = {"coefficient", NULL, 0.01, 0, INFINITY}},
    .flops = forward_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_forward,
    .explain = explain,
};

const struct tl_operation tl_op_router_backward = {
    .name = "router_backward",
    .equation = "dlogits[experts] += weights (dweights - weights.dweights); "
                "dlogits += scale coefficient num_experts / tokens probs (f - f.probs)",
    .dims = "tokens num_experts top_k",
    .args =
        {
            [ROUTER_BACKWARD_PROBS] = {"probs", TL_IN, false, TL_WIDE_FLOATS, "tokens num_experts"},
            [ROUTER_BACKWARD_EXPERTS] = {"experts", TL_IN, false, INDEX, "tokens top_k"},
            [ROUTER_BACKWARD_WEIGHTS] = {"weights", TL_IN, false, TL_WIDE_FLOATS, "tokens top_k"},
            [ROUTER_BACKWARD_DWEIGHTS] = {"dweights", TL_IN, false, TL_WIDE_FLOATS, "tokens top_k"},
            [ROUTER_BACKWARD_LOAD] = {"load", TL_IN, false, INDEX, "num_experts"},
            [ROUTER_BACKWARD_DLOGITS] = {"dlogits", TL_OUT, false, TL_FLOATS,
                                         "tokens num_experts"},
        },
    .params =
        {
            [ROUTER_BACKWARD_PARAM_COEFFICIENT] = {"coefficient", NULL, 0.01, 0, INFINITY},
            [ROUTER_BACKWARD_PARAM_SCALE] = {"scale", NULL, 1, -INFINITY, INFINITY},
        },
    .flops = backward_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_backward,
};
