/* The table of the row-grouped matrix product; its contract is in op.h. */
#include "op.h"

#include "kernels/host/group_offsets.h"

static double m_grouped_flops(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    return 2.0 * (double)dim[TL_M_GROUPED_M] * (double)dim[TL_M_GROUPED_N] *
           (double)dim[TL_M_GROUPED_K];
}

static enum tl_status m_grouped_check(const struct tl_problem *problem)
{
    enum tl_dtype a = problem->dtype[TL_M_GROUPED_A], b = problem->dtype[TL_M_GROUPED_B];
    if (a != b)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "m_grouped_gemm: 'a' is %s and 'b' is %s; they must share a dtype",
                       tl_dtype_name(a), tl_dtype_name(b));
    return TL_OK;
}

#define I32 TL_DTYPE_BIT(TL_I32)

const struct tl_operation tl_op_m_grouped_gemm = {
    .name = "m_grouped_gemm",
    .equation = "d[r, n] = sum_k a[r, k] b[g, n, k], group_offsets[g] <= r < group_offsets[g + 1]",
    .dims = "m n k num_groups",
    .args = {{.name = "a", .role = TL_IN, .dtypes = TL_FLOATS, .shape = "m k"},
             {.name = "b",
              .role = TL_IN,
              .dtypes = TL_FLOATS,
              .shape = "num_groups n k|num_groups k n"},
             {.name = "d", .role = TL_OUT, .dtypes = TL_FLOATS, .shape = "m n"},
             {.name = "group_offsets", .role = TL_IN, .dtypes = I32, .shape = "num_groups+1"},
             {.name = "row_experts", .role = TL_IN, .optional = true, .dtypes = I32, .shape = "m"},
             {.name = "counts_host",
              .role = TL_IN_HOST,
              .optional = true,
              .dtypes = I32,
              .shape = "num_groups"},
             {.name = "magnitude",
              .role = TL_OUT,
              .optional = true,
              .dtypes = TL_DTYPE_BIT(TL_FP64),
              .shape = "m n"}},
    .params = {{.name = "layout", .choices = "nt nn", .fallback = TL_M_GROUPED_NT}},
    .flops = m_grouped_flops,
    .bytes = tl_problem_arg_bytes,
    .check = m_grouped_check,
    .explain = tl_group_offsets_explain,
};
