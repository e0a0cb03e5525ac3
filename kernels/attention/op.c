/* Tables of attention and attention_backward; see op.h. */
#include "kernels/attention/op.h"

#include "kernels/host/check.h"

/* Of one product over the visible pairs: 2 head_dim for each pair (i, j), j <= i. */
static double product_flops(const struct tl_problem *problem)
{
    double sequence = (double)problem->dim[ATTENTION_DIM_SEQUENCE];
    return (double)problem->dim[ATTENTION_DIM_BATCH] * (double)problem->dim[ATTENTION_DIM_HEADS] *
           sequence * (sequence + 1) / 2 * 2 * (double)problem->dim[ATTENTION_DIM_HEAD_DIM];
}

/* q k and p v; the softmax is not counted. */
static double forward_flops(const struct tl_problem *problem)
{
    return 2 * product_flops(problem);
}

/* q k again, dout v, and the three gradients. */
static double backward_flops(const struct tl_problem *problem)
{
    return 5 * product_flops(problem);
}

static enum tl_status check_heads(const struct tl_problem *problem)
{
    int64_t heads = problem->dim[ATTENTION_DIM_HEADS];
    int64_t rest = problem->dim[ATTENTION_DIM_QKV_HEADS] - heads;
    if (heads < 1 || rest < 2 || rest % 2 || heads % (rest / 2))
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: %lld heads of qkv leave %lld for k and v beside %lld of q; they must "
                       "be 2 kv_heads, with heads a multiple of kv_heads",
                       problem->operation->name, (long long)(heads + rest), (long long)rest,
                       (long long)heads);
    return TL_OK;
}

/* lse stays in fp32 beside bf16. */
static enum tl_status check_forward(const struct tl_problem *problem)
{
    TL_TRY(check_heads(problem));
    return tl_check_floats(problem, 1u << ATTENTION_LSE, 0);
}

static enum tl_status check_backward(const struct tl_problem *problem)
{
    TL_TRY(check_heads(problem));
    return tl_check_floats(problem, 1u << ATTENTION_BACKWARD_LSE, 0);
}

const struct tl_operation tl_op_attention = {
    .name = "attention",
    .equation = "s = q k^T / sqrt(head_dim), causal; lse = log(sum(exp(s))); o = exp(s - lse) v",
    .dims = "batch sequence qkv_heads heads head_dim",
    .args =
        {
            [ATTENTION_QKV] = {"qkv", TL_IN, false, TL_FLOATS,
                               "batch sequence qkv_heads head_dim"},
            [ATTENTION_O] = {"o", TL_OUT, false, TL_FLOATS, "batch sequence heads head_dim"},
            [ATTENTION_LSE] = {"lse", TL_OUT, false, TL_WIDE_FLOATS, "batch heads sequence"},
        },
    .flops = forward_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_forward,
};

const struct tl_operation tl_op_attention_backward = {
    .name = "attention_backward",
    .equation = "p = exp(s - lse); ds = p (dout v^T - dout.o) / sqrt(head_dim); dq = ds k; "
                "dk = ds^T q; dv = p^T dout",
    .dims = "batch sequence qkv_heads heads head_dim",
    .args =
        {
            [ATTENTION_BACKWARD_DOUT] = {"dout", TL_IN, false, TL_FLOATS,
                                       "batch sequence heads head_dim"},
            [ATTENTION_BACKWARD_QKV] = {"qkv", TL_IN, false, TL_FLOATS,
                                        "batch sequence qkv_heads head_dim"},
            [ATTENTION_BACKWARD_O] = {"o", TL_IN, false, TL_FLOATS,
                                      "batch sequence heads head_dim"},
            [ATTENTION_BACKWARD_LSE] = {"lse", TL_IN, false, TL_WIDE_FLOATS,
                                        "batch heads sequence"},
            [ATTENTION_BACKWARD_DQKV] = {"dqkv", TL_OUT, false, TL_FLOATS,
                                         "batch sequence qkv_heads head_dim"},
        },
    .flops = backward_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_backward,
};
