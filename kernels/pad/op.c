/* Tables of pad_index, pad_rows and unpad_rows; see op.h. */
#include "kernels/pad/op.h"

#include <math.h>

#include "kernels/host/check.h"
#include "kernels/host/group_offsets.h"

#define INDEX TL_DTYPE_BIT(TL_I32)

static double no_flops(const struct tl_problem *problem)
{
    (void)problem;
    return 0;
}

/* Of the padded rows, those that hold a row are read. */
static double unpad_bytes(const struct tl_problem *problem)
{
    double rows = (double)problem->dim[PAD_DIM_M] * (double)problem->dim[PAD_DIM_D];
    double offsets = 2.0 * (double)(problem->dim[PAD_DIM_NUM_GROUPS] + 1);
    return 2 * rows * (double)tl_dtype_size(problem->dtype[PAD_X]) + 4 * offsets;
}

static enum tl_status check_index(const struct tl_problem *problem)
{
    double align = problem->param[PAD_INDEX_PARAM_ALIGN];
    int64_t rows = problem->dim[PAD_INDEX_DIM_PADDED_M];
    if (align != floor(align))
        return TL_FAIL(TL_ERR_ARGUMENT, "pad_index: align is %g, but must be a whole number",
                       align);
    if (rows > INT32_MAX)
        return TL_FAIL(TL_ERR_ARGUMENT, "pad_index: %lld rows are more than i32 offsets reach",
                       (long long)rows);
    return TL_OK;
}

const struct tl_operation tl_op_pad_index = {
    .name = "pad_index",
    .equation = "padded_offsets[g + 1] = padded_offsets[g] + rows of g, up to a multiple of align",
    .dims = "num_groups padded_m",
    .args =
        {
            [PAD_INDEX_GROUP_OFFSETS] = {"group_offsets", TL_IN, false, INDEX, "num_groups+1"},
            [PAD_INDEX_PADDED_OFFSETS] = {"padded_offsets", TL_OUT, false, INDEX, "num_groups+1"},
            [PAD_INDEX_ROW_EXPERTS] = {"row_experts", TL_OUT, false, INDEX, "padded_m"},
        },
    .params = {[PAD_INDEX_PARAM_ALIGN] = {"align", NULL, TL_GROUP_ALIGNMENT, 1, 65536}},
    .flops = no_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_index,
};

const struct tl_operation tl_op_pad_rows = {
    .name = "pad_rows",
    .equation = "y[padded_offsets[g] + i] = x[group_offsets[g] + i], 0 in pad rows",
    .dims = "m padded_m d num_groups",
    .args =
        {
            [PAD_X] = {"x", TL_IN, false, TL_FLOATS, "m d"},
            [PAD_GROUP_OFFSETS] = {"group_offsets", TL_IN, false, INDEX, "num_groups+1"},
            [PAD_PADDED_OFFSETS] = {"padded_offsets", TL_IN, false, INDEX, "num_groups+1"},
            [PAD_Y] = {"y", TL_OUT, false, TL_FLOATS, "padded_m d"},
        },
    .flops = no_flops,
    .bytes = tl_problem_arg_bytes,
    .check = tl_check_one_float,
};

const struct tl_operation tl_op_unpad_rows = {
    .name = "unpad_rows",
    .equation = "y[group_offsets[g] + i] = x[padded_offsets[g] + i]",
    .dims = "m padded_m d num_groups",
    .args =
        {
            [PAD_X] = {"x", TL_IN, false, TL_FLOATS, "padded_m d"},
            [PAD_GROUP_OFFSETS] = {"group_offsets", TL_IN, false, INDEX, "num_groups+1"},
            [PAD_PADDED_OFFSETS] = {"padded_offsets", TL_IN, false, INDEX, "num_groups+1"},
            [PAD_Y] = {"y", TL_OUT, false, TL_FLOATS, "m d"},
        },
    .flops = no_flops,
    .bytes = unpad_bytes,
    .check = tl_check_one_float,
};
