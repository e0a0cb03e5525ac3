/* Table of convert; see op.h. */
#include "kernels/convert/op.h"

static double no_flops(const struct tl_problem *problem)
{
    (void)problem;
    return 0;
}

const struct tl_operation tl_op_convert = {
    .name = "convert",
    .equation = "y = x, in another float type",
    .dims = "count",
    .args =
        {
            [CONVERT_X] = {"x", TL_IN, false, TL_FLOATS, "count"},
            [CONVERT_Y] = {"y", TL_OUT, false, TL_FLOATS, "count"},
        },
    .flops = no_flops,
    .bytes = tl_problem_arg_bytes,
};
