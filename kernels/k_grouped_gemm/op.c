/* The table of the reduction-grouped matrix product; its contract is in op.h. */
#include "op.h"

#include "kernels/host/group_offsets.h"

static double k_grouped_flops(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    return 2.0 * (double)dim[TL_K_GROUPED_M] * (double)dim[TL_K_GROUPED_N] *
           (double)dim[TL_K_GROUPED_K];
}

/* d is read only at beta 1. */
static double k_grouped_bytes(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    double d_bytes = (double)dim[TL_K_GROUPED_NUM_GROUPS] * (double)dim[TL_K_GROUPED_M] *
                     (double)dim[TL_K_GROUPED_N] *
                     (double)tl_dtype_size(problem->dtype[TL_K_GROUPED_D]);
    return tl_problem_arg_bytes(problem) - (problem->param[TL_K_GROUPED_BETA] == 0 ? d_bytes : 0);
}

static enum tl_status k_grouped_check(const struct tl_problem *problem)
{
    double beta = problem->param[TL_K_GROUPED_BETA];
    enum tl_dtype a = problem->dtype[TL_K_GROUPED_A], b = problem->dtype[TL_K_GROUPED_B];
    if (beta != 0 && beta != 1)
        return TL_FAIL(TL_ERR_ARGUMENT, "k_grouped_gemm: parameter 'beta' is %g; it must be 0 or 1",
                       beta);
    if (a != b)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "k_grouped_gemm: 'a' is %s and 'b' is %s; they must share a dtype",
                       tl_dtype_name(a), tl_dtype_name(b));
    return TL_OK;
}

#define I32 TL_DTYPE_BIT(TL_I32)

const struct tl_operation tl_op_k_grouped_gemm = {
    .name = "k_grouped_gemm",
    .equation = "d[g, m, n] = beta d[g, m, n] + sum_r a[r, m] b[r, n], "
                "group_offsets[g] <= r < group_offsets[g + 1]",
    .dims = "m n k num_groups",
    .args = {{.name = "a", .role = TL_IN, .dtypes = TL_FLOATS, .shape = "k m"},
             {.name = "b", .role = TL_IN, .dtypes = TL_FLOATS, .shape = "k n"},
             {.name = "d", .role = TL_INOUT, .dtypes = TL_WIDE_FLOATS, .shape = "num_groups m n"},
             {.name = "group_offsets", .role = TL_IN, .dtypes = I32, .shape = "num_groups+1"},
             {.name = "row_experts", .role = TL_IN, .optional = true, .dtypes = I32, .shape = "k"},
             {.name = "counts_host",
              .role = TL_IN_HOST,
              .optional = true,
              .dtypes = I32,
              .shape = "num_groups"},
             {.name = "magnitude",
              .role = TL_OUT,
              .optional = true,
              .dtypes = TL_DTYPE_BIT(TL_FP64),
              .shape = "num_groups m n"}},
    .params = {{.name = "beta", .fallback = 0, .min = 0, .max = 1}},
    .flops = k_grouped_flops,
    .bytes = k_grouped_bytes,
    .check = k_grouped_check,
    .explain = tl_group_offsets_explain,
};
