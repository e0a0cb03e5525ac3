/* Tables of squared_norm and adamw; see op.h. */
#include "kernels/adamw/op.h"

#include <math.h>

#include "kernels/host/check.h"

static double norm_flops(const struct tl_problem *problem)
{
    return 2 * (double)problem->dim[SQUARED_NORM_DIM_COUNT];
}

/* Clipping 1, m 3, v 4, the step 8. */
static double adamw_flops(const struct tl_problem *problem)
{
    return 16 * (double)problem->dim[ADAMW_DIM_COUNT];
}

/* All floats but the bf16 copy have one type. */
static enum tl_status check_floats(const struct tl_problem *problem)
{
    struct tl_problem masters = *problem;
    masters.present[ADAMW_PARAM_BF16] = false;
    return tl_check_one_float(&masters);
}

static enum tl_status check_adamw(const struct tl_problem *problem)
{
    const double *param = problem->param;
    if (param[ADAMW_PARAM_MAX_NORM] > 0 && !problem->present[ADAMW_NORM_SQUARED])
        return TL_FAIL(TL_ERR_ARGUMENT, "adamw: max_norm is %g, but norm_squared is missing",
                       param[ADAMW_PARAM_MAX_NORM]);
    if (param[ADAMW_PARAM_BETA1] >= 1 || param[ADAMW_PARAM_BETA2] >= 1)
        return TL_FAIL(TL_ERR_ARGUMENT, "adamw: beta1 is %g and beta2 %g, but both must be below 1",
                       param[ADAMW_PARAM_BETA1], param[ADAMW_PARAM_BETA2]);
    return check_floats(problem);
}

const struct tl_operation tl_op_squared_norm = {
    .name = "squared_norm",
    .equation = "sum += sum_i x_i^2",
    .dims = "count",
    .args =
        {
            [SQUARED_NORM_X] = {"x", TL_IN, false, TL_WIDE_FLOATS, "count"},
            [SQUARED_NORM_SUM] = {"sum", TL_INOUT, false, TL_WIDE_FLOATS, "1"},
        },
    .flops = norm_flops,
    .bytes = tl_problem_arg_bytes,
    .check = tl_check_one_float,
};

const struct tl_operation tl_op_adamw = {
    .name = "adamw",
    .equation = "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; param -= lr (mhat / "
                "(sqrt(vhat) + eps) + weight_decay param), g = grad min(1, max_norm / norm)",
    .dims = "count",
    .args =
        {
            [ADAMW_PARAM] = {"param", TL_INOUT, false, TL_WIDE_FLOATS, "count"},
            [ADAMW_GRAD] = {"grad", TL_IN, false, TL_WIDE_FLOATS, "count"},
            [ADAMW_M] = {"m", TL_INOUT, false, TL_WIDE_FLOATS, "count"},
            [ADAMW_V] = {"v", TL_INOUT, false, TL_WIDE_FLOATS, "count"},
            [ADAMW_STEP] = {"step", TL_IN, false, TL_DTYPE_BIT(TL_I32), "1"},
            [ADAMW_NORM_SQUARED] = {"norm_squared", TL_IN, true, TL_WIDE_FLOATS, "1"},
            [ADAMW_PARAM_BF16] = {"param_bf16", TL_OUT, true, TL_DTYPE_BIT(TL_BF16), "count"},
        },
    .params =
        {
            [ADAMW_PARAM_LR] = {"lr", NULL, NAN, 0, INFINITY},
            [ADAMW_PARAM_BETA1] = {"beta1", NULL, 0.9, 0, 1},
            [ADAMW_PARAM_BETA2] = {"beta2", NULL, 0.95, 0, 1},
            [ADAMW_PARAM_EPS] = {"eps", NULL, 1e-8, 0, INFINITY},
            [ADAMW_PARAM_WEIGHT_DECAY] = {"weight_decay", NULL, 0, 0, INFINITY},
            [ADAMW_PARAM_MAX_NORM] = {"max_norm", NULL, 0, 0, INFINITY},
        },
    .flops = adamw_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check_adamw,
};
