/* Dense matrix product: d[m, n] = beta d[m, n] + sum over k of a b.
 *
 * layout  a                 b
 * nt      [m, k] K-major    [n, k] K-major     (the default)
 * nn      [m, k] K-major    [k, n] MN-major
 * tn      [k, m] MN-major   [k, n] MN-major
 * d is [m, n] row-major and overlaps neither operand. a and b share a dtype among fp64, fp32 and
 * bf16; d is any of them. Sums are in fp64 where d is fp64 and in fp32 elsewhere, rounded to d
 * once. beta is 0 (d is only written) or 1. The letters are BLAS's, as DeepGEMM uses them.
 */
#ifndef TL_GEMM_OP_H
#define TL_GEMM_OP_H

#include "core/kernel.h"

enum tl_gemm_arg { TL_GEMM_A, TL_GEMM_B, TL_GEMM_D };
enum tl_gemm_dim { TL_GEMM_M, TL_GEMM_N, TL_GEMM_K };
enum tl_gemm_param { TL_GEMM_LAYOUT, TL_GEMM_BETA };
enum tl_gemm_layout { TL_GEMM_NT, TL_GEMM_NN, TL_GEMM_TN };

extern const struct tl_operation tl_op_gemm;

#endif
