/* The grouped product of an expert layer's weight gradient: groups cut the reduction dimension.
 *     d[g, m, n] = beta d[g, m, n] + sum over rows r of group g of a[r, m] b[r, n]
 *
 * a              [k, m] MN-major, the rows of the groups one after another (output gradients)
 * b              [k, n] MN-major (inputs)
 * d              [num_groups, m, n] row-major, fp32 or fp64; a and b share a dtype
 * group_offsets  [num_groups + 1], in rows: starts with 0, does not decrease, ends at most at k;
 *                else TL_ERR_ARGUMENT, on a GPU from the next wait (core/fault.h), and nothing is
 *                written
 * row_experts?   [k], the group of each row, -1 for pad rows       } what padded kernels may need;
 * counts_host?   [num_groups] on the CPU, rows per group with pads   } ragged ones ignore them
 * magnitude?     [num_groups, m, n], beta |d| + sum over r of |a| |b|: the scale of the rounding
 *                errors of d. cpu_ragged and smxx_plain write it, for checks; others refuse it
 * beta is 0 (d is only written; an empty group gets zeros) or 1 (an empty group stays as it is).
 * Rows outside the offsets are not read. Padded kernels are legal when every offset is a multiple
 * of 128; the caller zeroes the pad rows of both operands, and zero rows change no bit of d.
 * Offsets are RapidGEMM's (Kgemm, which always has beta 0), alignment and counts DeepGEMM's
 * k_grouped contiguous layout (which always has beta 1).
 */
#ifndef TL_K_GROUPED_GEMM_OP_H
#define TL_K_GROUPED_GEMM_OP_H

#include "core/kernel.h"

enum tl_k_grouped_gemm_arg {
    TL_K_GROUPED_A,
    TL_K_GROUPED_B,
    TL_K_GROUPED_D,
    TL_K_GROUPED_OFFSETS,
    TL_K_GROUPED_ROW_EXPERTS,
    TL_K_GROUPED_COUNTS,
    TL_K_GROUPED_MAGNITUDE,
};
enum tl_k_grouped_gemm_dim {
    TL_K_GROUPED_M,
    TL_K_GROUPED_N,
    TL_K_GROUPED_K,
    TL_K_GROUPED_NUM_GROUPS,
};
enum tl_k_grouped_gemm_param { TL_K_GROUPED_BETA };

extern const struct tl_operation tl_op_k_grouped_gemm;

#endif
