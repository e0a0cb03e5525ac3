/* The grouped product of an expert layer's forward pass and data gradient: each group of rows
 * meets its own weights. For rows group_offsets[g] <= r < group_offsets[g + 1]:
 *     d[r, n] = sum over k of a[r, k] b[g]
 *
 * a              [m, k] K-major, the groups one after another
 * b              nt: [num_groups, n, k] K-major (fprop); nn: [num_groups, k, n] MN-major (dgrad
 *                from the same weights)
 * d              [m, n] row-major; rows outside the offsets stay untouched
 * group_offsets  [num_groups + 1], in rows: starts with 0, does not decrease, ends at most at m;
 *                else TL_ERR_ARGUMENT, on a GPU from the next wait (core/fault.h), and nothing is
 *                written
 * row_experts?   [m], the group of each row, -1 for pad rows       } what padded kernels may need;
 * counts_host?   [num_groups] on the CPU, rows per group with pads   } ragged ones ignore them
 * magnitude?     [m, n], sum over k of |a| |b|: the scale of the rounding errors of d. cpu_ragged
 *                and smxx_plain write it, for checks; the other variants refuse it
 * Padded kernels are legal when every offset is a multiple of 128; the rows that pad a group are
 * computed like the others, so they must be finite to give finite rows. Empty groups cost nothing.
 * flops() counts the m of the tensors: bind real rows to get useful FLOPs. Offsets are RapidGEMM's
 * (Mgemm), per-row experts and the alignment DeepGEMM's contiguous layout.
 */
#ifndef TL_M_GROUPED_GEMM_OP_H
#define TL_M_GROUPED_GEMM_OP_H

#include "core/kernel.h"

enum tl_m_grouped_gemm_arg {
    TL_M_GROUPED_A,
    TL_M_GROUPED_B,
    TL_M_GROUPED_D,
    TL_M_GROUPED_OFFSETS,
    TL_M_GROUPED_ROW_EXPERTS,
    TL_M_GROUPED_COUNTS,
    TL_M_GROUPED_MAGNITUDE,
};
enum tl_m_grouped_gemm_dim {
    TL_M_GROUPED_M,
    TL_M_GROUPED_N,
    TL_M_GROUPED_K,
    TL_M_GROUPED_NUM_GROUPS,
};
enum tl_m_grouped_gemm_param { TL_M_GROUPED_LAYOUT };
enum tl_m_grouped_gemm_layout { TL_M_GROUPED_NT, TL_M_GROUPED_NN };

extern const struct tl_operation tl_op_m_grouped_gemm;

#endif
