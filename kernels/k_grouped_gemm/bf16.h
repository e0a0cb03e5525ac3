/* What the GPU variants of k_grouped_gemm have in common: bf16 to fp32, rows of 16 bytes. */
#ifndef TL_K_GROUPED_GEMM_BF16_H
#define TL_K_GROUPED_GEMM_BF16_H

#include "kernels/device/vectors.h"
#include "kernels/host/magnitude.h"
#include "op.h"

/* For `legal`: TL_ERR_ILLEGAL with the reason. */
static inline enum tl_status k_grouped_legal_bf16(const struct tl_problem *problem,
                                                  const char *variant)
{
    static const enum tl_dtype wanted[] = {TL_BF16, TL_BF16, TL_FP32}; /* a, b, d */
    int64_t m = problem->dim[TL_K_GROUPED_M], n = problem->dim[TL_K_GROUPED_N];
    TL_TRY(tl_magnitude_refuse(problem, variant));
    for (int i = 0; i < 3; i++)
        if (problem->dtype[i] != wanted[i])
            return TL_FAIL(TL_ERR_ILLEGAL, "k_grouped_gemm/%s: '%s' is %s; it must be %s", variant,
                           problem->operation->args[i].name, tl_dtype_name(problem->dtype[i]),
                           tl_dtype_name(wanted[i]));
    if (m % 8 != 0 || n % 8 != 0)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "k_grouped_gemm/%s: m = %lld and n = %lld must be multiples of 8, so that "
                       "rows and groups begin at 16 bytes",
                       variant, (long long)m, (long long)n);
    return tl_vectors_small(problem, variant);
}

#endif
