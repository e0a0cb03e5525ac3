/* Tables of permute_index, permute and permute_backward; see op.h. */
#include "kernels/permute/op.h"

#include <math.h>

#include "kernels/host/check.h"

#define INDEX TL_DTYPE_BIT(TL_I32)

static double no_flops(const struct tl_problem *problem)
{
    (void)problem;
    return 0;
}

static double slot_elements(const struct tl_problem *problem)
{
    return (double)problem->dim[PERMUTE_DIM_TOKENS] * (double)problem->dim[PERMUTE_DIM_TOP_K] *
           (double)problem->dim[PERMUTE_DIM_D];
}

/* The additions. */
static double backward_flops(const struct tl_problem *problem)
{
    return slot_elements(problem);
}

/* Rows that hold a slot are written; how many more are pad rows only the index knows. */
static double permute_bytes(const struct tl_problem *problem)
{
    double x = (double)problem->dim[PERMUTE_DIM_TOKENS] * (double)problem->dim[PERMUTE_DIM_D];
    double index = (double)problem->dim[PERMUTE_DIM_ROWS];
    return x * (double)tl_dtype_size(problem->dtype[PERMUTE_X]) +
           slot_elements(problem) * (double)tl_dtype_size(problem->dtype[PERMUTE_Y]) + 4 * index;
}

static double backward_bytes(const struct tl_problem *problem)
{
    double row_element = (double)tl_dtype_size(problem->dtype[PERMUTE_BACKWARD_DY]);
    double element = (double)tl_dtype_size(problem->dtype[PERMUTE_BACKWARD_DX]);
    double slots =
        (double)problem->dim[PERMUTE_DIM_TOKENS] * (double)problem->dim[PERMUTE_DIM_TOP_K];
    double dx = (double)problem->dim[PERMUTE_DIM_TOKENS] * (double)problem->dim[PERMUTE_DIM_D];
    double passes = problem->param[PERMUTE_BACKWARD_PARAM_BETA] != 0 ? 2 : 1;
    return row_element * slot_elements(problem) + element * passes * dx + 4 * slots;
}

static enum tl_status check_index(const struct tl_problem *problem)
{
    double align = problem->param[PERMUTE_INDEX_PARAM_ALIGN];
    int64_t rows = problem->dim[PERMUTE_INDEX_DIM_ROWS];
    if (align != floor(align))
        return TL_FAIL(TL_ERR_ARGUMENT, "permute_index: align is %g, but must be a whole number",
                       align);
    if (rows > INT32_MAX)
        return TL_FAIL(TL_ERR_ARGUMENT, "permute_index: %lld rows are more than i32 offsets reach",
                       (long long)rows);
    return TL_OK;
}

static enum tl_status explain_index(const char *who, const struct tl_fault *fault)
{
    if (fault->kind == PERMUTE_INDEX_BAD_EXPERT)
        return tl_index_explain(who, "experts", fault);
    return TL_FAIL(TL_ERR_ARGUMENT,
                   "%s: the groups take %lld rows at align %lld, but row_slots has %lld; make it "
                   "larger",
                   who, (long long)fault->value[0], (long long)fault->value[1],
                   (long long)fault->value[2]);
}

static enum tl_status check_permute(const struct tl_problem *problem)
{
    return tl_check_floats(problem, 0, 1u << PERMUTE_Y);
}

static enum tl_status check_backward(const struct tl_problem *problem)
{
    return tl_check_floats(problem, 0, 1u << PERMUTE_BACKWARD_DY);
}

const struct tl_operation tl_op_permute_index = {
    .name = "permute_index",
    .equation = "stable counting sort of the slots by experts, group starts at multiples of align",
    .dims = "tokens top_k num_experts rows",
    .args =
        {
            [PERMUTE_INDEX_EXPERTS] = {"experts", TL_IN, false, INDEX, "tokens top_k"},
            [PERMUTE_INDEX_GROUP_OFFSETS] = {"group_offsets", TL_OUT, false, INDEX,
                                             "num_experts+1"},
            [PERMUTE_INDEX_ROW_SLOTS] = {"row_slots", TL_OUT, false, INDEX, "rows"},
            [PERMUTE_INDEX_SLOT_ROWS] = {"slot_rows", TL_OUT, false, INDEX, "tokens top_k"},
            [PERMUTE_INDEX_ROW_EXPERTS] = {"row_experts", TL_OUT, false, INDEX, "rows"},
        },
    .params = {[PERMUTE_INDEX_PARAM_ALIGN] = {"align", NULL, 1, 1, 65536}},
    .flops = no_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_index,
    .explain = explain_index,
};

const struct tl_operation tl_op_permute = {
    .name = "permute",
    .equation = "y[r] = x[row_slots[r] / top_k], 0 in pad rows",
    .dims = "tokens top_k d rows num_experts",
    .args =
        {
            [PERMUTE_X] = {"x", TL_IN, false, TL_FLOATS, "tokens d"},
            [PERMUTE_ROW_SLOTS] = {"row_slots", TL_IN, false, INDEX, "rows"},
            [PERMUTE_SLOT_ROWS] = {"slot_rows", TL_IN, false, INDEX, "tokens top_k"},
            [PERMUTE_GROUP_OFFSETS] = {"group_offsets", TL_IN, false, INDEX, "num_experts+1"},
            [PERMUTE_Y] = {"y", TL_OUT, false, TL_FLOATS, "rows d"},
        },
    .flops = no_flops,
    .bytes = permute_bytes,
    .check = check_permute,
};

const struct tl_operation tl_op_permute_backward = {
    .name = "permute_backward",
    .equation = "dx[t] = beta dx[t] + sum_j dy[slot_rows[t,j]]",
    .dims = "tokens top_k d rows",
    .args =
        {
            [PERMUTE_BACKWARD_DY] = {"dy", TL_IN, false, TL_FLOATS, "rows d"},
            [PERMUTE_BACKWARD_SLOT_ROWS] = {"slot_rows", TL_IN, false, INDEX, "tokens top_k"},
            [PERMUTE_BACKWARD_DX] = {"dx", TL_INOUT, false, TL_FLOATS, "tokens d"},
        },
    .params = {[PERMUTE_BACKWARD_PARAM_BETA] = {"beta", NULL, 0, 0, 1}},
    .flops = backward_flops,
    .bytes = backward_bytes,
    .check = check_backward,
};
