/* The table of the dense matrix product; its contract is in op.h. */
#include "op.h"

static double gemm_flops(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    return 2.0 * (double)dim[TL_GEMM_M] * (double)dim[TL_GEMM_N] * (double)dim[TL_GEMM_K];
}

/* d is read only at beta 1. */
static double gemm_bytes(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    double d_bytes = (double)dim[TL_GEMM_M] * (double)dim[TL_GEMM_N] *
                     (double)tl_dtype_size(problem->dtype[TL_GEMM_D]);
    return tl_problem_arg_bytes(problem) - (problem->param[TL_GEMM_BETA] == 0 ? d_bytes : 0);
}

static enum tl_status gemm_check(const struct tl_problem *problem)
{
    double beta = problem->param[TL_GEMM_BETA];
    enum tl_dtype a = problem->dtype[TL_GEMM_A], b = problem->dtype[TL_GEMM_B];
    if (beta != 0 && beta != 1)
        return TL_FAIL(TL_ERR_ARGUMENT, "gemm: parameter 'beta' is %g; it must be 0 or 1", beta);
    if (a != b)
        return TL_FAIL(TL_ERR_ARGUMENT, "gemm: 'a' is %s and 'b' is %s; they must share a dtype",
                       tl_dtype_name(a), tl_dtype_name(b));
    return TL_OK;
}

const struct tl_operation tl_op_gemm = {
    .name = "gemm",
    .equation = "d[m, n] = beta d[m, n] + sum_k a[m, k] b[n, k]",
    .dims = "m n k",
    .args = {{.name = "a", .role = TL_IN, .dtypes = TL_FLOATS, .shape = "m k|m k|k m"},
             {.name = "b", .role = TL_IN, .dtypes = TL_FLOATS, .shape = "n k|k n|k n"},
             {.name = "d", .role = TL_INOUT, .dtypes = TL_FLOATS, .shape = "m n"}},
    .params = {{.name = "layout", .choices = "nt nn tn", .fallback = TL_GEMM_NT},
               {.name = "beta", .fallback = 0, .min = 0, .max = 1}},
    .flops = gemm_flops,
    .bytes = gemm_bytes,
    .check = gemm_check,
};
