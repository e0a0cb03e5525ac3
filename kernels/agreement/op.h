/* How well a result agrees with its reference, group by group, where both are:
 *     bound[r, c] = relative |reference[r, c]| + scaled magnitude[r, c]
 *     worst[g]    = largest |value - reference| / bound over the rows of group g
 *
 * value          [m, n], any float dtype
 * reference      [m, n] fp64
 * magnitude      [m, n] fp64: the scale of rounding errors, as the references of the grouped
 *                products give it
 * group_offsets  [num_groups + 1], in rows: starts with 0, does not decrease, ends at most at m
 * worst          [num_groups] fp64; 0 for an empty group
 * worst_row, worst_column  [num_groups] i32, where it is, counted from 0; of equal ratios the first
 *                in row-major order; -1 in an empty group
 * violations     [num_groups] fp64: how many elements are not within the bound
 * Equal values have the ratio 0, equal infinities included. A value that is not finite where it
 * should be, NaN anywhere, and a bound that is not finite are violations with an infinite ratio.
 * Rows outside the offsets are not looked at. Offsets that do not fit are an error on the CPU and
 * nothing is written; the kernel on the GPU does not look for them, but keeps inside the tensors.
 * Results are the same from run to run. An output that has a group axis of its own is flattened:
 * [num_groups m, n] with offsets 0, m, 2 m, ...
 */
#ifndef TL_AGREEMENT_OP_H
#define TL_AGREEMENT_OP_H

#include "core/kernel.h"

enum tl_agreement_arg {
    TL_AGREEMENT_VALUE,
    TL_AGREEMENT_REFERENCE,
    TL_AGREEMENT_MAGNITUDE,
    TL_AGREEMENT_OFFSETS,
    TL_AGREEMENT_WORST,
    TL_AGREEMENT_WORST_ROW,
    TL_AGREEMENT_WORST_COLUMN,
    TL_AGREEMENT_VIOLATIONS,
};
enum tl_agreement_dim { TL_AGREEMENT_M, TL_AGREEMENT_N, TL_AGREEMENT_NUM_GROUPS };
enum tl_agreement_param { TL_AGREEMENT_RELATIVE, TL_AGREEMENT_SCALED };

extern const struct tl_operation tl_op_agreement;

#endif
