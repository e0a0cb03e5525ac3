/* The table of agreement; its contract is in op.h. */
#include "op.h"

static double no_flops(const struct tl_problem *problem)
{
    (void)problem;
    return 0;
}

#define I32  TL_DTYPE_BIT(TL_I32)
#define FP64 TL_DTYPE_BIT(TL_FP64)

const struct tl_operation tl_op_agreement = {
    .name = "agreement",
    .equation = "worst[g] = max |value - reference| / (relative |reference| + scaled magnitude)",
    .dims = "m n num_groups",
    .args = {{.name = "value", .role = TL_IN, .dtypes = TL_FLOATS, .shape = "m n"},
             {.name = "reference", .role = TL_IN, .dtypes = FP64, .shape = "m n"},
             {.name = "magnitude", .role = TL_IN, .dtypes = FP64, .shape = "m n"},
             {.name = "group_offsets", .role = TL_IN, .dtypes = I32, .shape = "num_groups+1"},
             {.name = "worst", .role = TL_OUT, .dtypes = FP64, .shape = "num_groups"},
             {.name = "worst_row", .role = TL_OUT, .dtypes = I32, .shape = "num_groups"},
             {.name = "worst_column", .role = TL_OUT, .dtypes = I32, .shape = "num_groups"},
             {.name = "violations", .role = TL_OUT, .dtypes = FP64, .shape = "num_groups"}},
    .params = {{.name = "relative", .fallback = 0, .min = 0, .max = 1e300},
               {.name = "scaled", .fallback = 0, .min = 0, .max = 1e300}},
    .flops = no_flops,
    .bytes = tl_problem_arg_bytes,
};
