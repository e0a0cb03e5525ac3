/* Tables of embedding and embedding_backward; see op.h. */
#include "kernels/embedding/op.h"

#include "kernels/host/check.h"

#define INDEX TL_DTYPE_BIT(TL_I32)

static double elements(const struct tl_problem *problem)
{
    return (double)problem->dim[EMBEDDING_DIM_TOKENS] * (double)problem->dim[EMBEDDING_DIM_D];
}

static double no_flops(const struct tl_problem *problem)
{
    (void)problem;
    return 0;
}

/* A row of the tokens and `passes` of the table for each token: its other rows do not move. */
static double bytes(const struct tl_problem *problem, int of_tokens, int of_table, int passes)
{
    double row = (double)tl_dtype_size(problem->dtype[of_tokens]) +
                 passes * (double)tl_dtype_size(problem->dtype[of_table]);
    return elements(problem) * row + 4 * (double)problem->dim[EMBEDDING_DIM_TOKENS];
}

static double forward_bytes(const struct tl_problem *problem)
{
    return bytes(problem, EMBEDDING_Y, EMBEDDING_TABLE, 1);
}

static double backward_bytes(const struct tl_problem *problem)
{
    return bytes(problem, EMBEDDING_BACKWARD_DY, EMBEDDING_BACKWARD_DTABLE, 2);
}

static enum tl_status check_forward(const struct tl_problem *problem)
{
    return tl_check_floats(problem, 1u << EMBEDDING_TABLE, 0);
}

static enum tl_status check_backward(const struct tl_problem *problem)
{
    return tl_check_floats(problem, 1u << EMBEDDING_BACKWARD_DTABLE, 0);
}

const struct tl_operation tl_op_embedding = {
    .name = "embedding",
    .equation = "y[t] = table[ids[t]]",
    .dims = "tokens d vocab",
    .args =
        {
            [EMBEDDING_IDS] = {"ids", TL_IN, false, INDEX, "tokens"},
            [EMBEDDING_TABLE] = {"table", TL_IN, false, TL_WIDE_FLOATS, "vocab d"},
            [EMBEDDING_Y] = {"y", TL_OUT, false, TL_FLOATS, "tokens d"},
        },
    .flops = no_flops,
    .bytes = forward_bytes,
    .check = check_forward,
};

const struct tl_operation tl_op_embedding_backward = {
    .name = "embedding_backward",
    .equation = "dtable[ids[t]] += dy[t]",
    .dims = "tokens d vocab",
    .args =
        {
            [EMBEDDING_BACKWARD_IDS] = {"ids", TL_IN, false, INDEX, "tokens"},
            [EMBEDDING_BACKWARD_DY] = {"dy", TL_IN, false, TL_FLOATS, "tokens d"},
            [EMBEDDING_BACKWARD_DTABLE] = {"dtable", TL_INOUT, false, TL_WIDE_FLOATS, "vocab d"},
        },
    .flops = elements,
    .bytes = backward_bytes,
    .check = check_backward,
};
