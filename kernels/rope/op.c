/* Table of rope; see op.h. */
#include "kernels/rope/op.h"

#include <math.h>

#include "kernels/host/check.h"

static double rotated_elements(const struct tl_problem *problem)
{
    return (double)problem->dim[ROPE_DIM_BATCH] * (double)problem->dim[ROPE_DIM_SEQUENCE] *
           problem->param[ROPE_PARAM_ROTATED_HEADS] * (double)problem->dim[ROPE_DIM_HEAD_DIM];
}

/* Two products and a sum for each element; the angles are a table. */
static double flops(const struct tl_problem *problem)
{
    return 3 * rotated_elements(problem);
}

/* The heads that are not rotated stay where they are. */
static double bytes(const struct tl_problem *problem)
{
    return 2 * rotated_elements(problem) * (double)tl_dtype_size(problem->dtype[ROPE_QKV]);
}

static enum tl_status check(const struct tl_problem *problem)
{
    double rotated = problem->param[ROPE_PARAM_ROTATED_HEADS];
    int64_t heads = problem->dim[ROPE_DIM_QKV_HEADS];
    int64_t head_dim = problem->dim[ROPE_DIM_HEAD_DIM];
    if (!(rotated <= (double)heads) || rotated != floor(rotated))
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "rope: rotated_heads is %g, but must be a whole number of the %lld heads of "
                       "qkv",
                       rotated, (long long)heads);
    if (head_dim % 2)
        return TL_FAIL(TL_ERR_ARGUMENT, "rope: head_dim is %lld, but pairs need an even one",
                       (long long)head_dim);
    return TL_OK;
}

const struct tl_operation tl_op_rope = {
    .name = "rope",
    .equation = "(qkv_i, qkv_j) = (qkv_i cos a - qkv_j sin a, qkv_i sin a + qkv_j cos a), "
                "j = i + head_dim/2, a = position theta^(-2i/head_dim)",
    .dims = "batch sequence qkv_heads head_dim",
    .args = {[ROPE_QKV] = {"qkv", TL_INOUT, false, TL_FLOATS,
                           "batch sequence qkv_heads head_dim"}},
    .params =
        {
            [ROPE_PARAM_ROTATED_HEADS] = {"rotated_heads", NULL, NAN, 0, INFINITY},
            [ROPE_PARAM_THETA] = {"theta", NULL, 10000, 1, INFINITY},
            [ROPE_PARAM_INVERSE] = {"inverse", NULL, 0, 0, 1},
        },
    .flops = flops,
    .bytes = bytes,
    .check = check,
};
