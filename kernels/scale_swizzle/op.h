/* Scales between row-major order and the blocked layout that block-scaled tensor cores read.
 *
 *   scale_swizzle:    blocked[base(g) + at(row, column)] = scales[row, column] of group g
 *   scale_unswizzle:  the same the other way
 * A group is an array of its own, blocked into tiles of 128 rows by 4 columns (layout.h has at).
 * Its extent, and so the base of the next one, are rows up to a multiple of 128 times columns up to
 * a multiple of 4. scale_swizzle writes every byte of the extents, zeros in the padding, and none
 * past the last one; scale_unswizzle reads no padding. The four groupings:
 *   dense         one group, all of scales
 *   m_groups      group g has rows [group_ends[g - 1], group_ends[g]), all columns
 *   k_groups      group g has columns [group_ends[g - 1], group_ends[g]), all rows
 *   per_group_3d  group g has scales[g]
 * group_ends has num_groups entries, as torch._grouped_mm's offs: the end of each group, while
 * group 0 starts at 0, and the last end is what is in use: scales past it are neither read nor
 * written. What computed the tokens of each expert leaves it on the device, and any group may be
 * empty. Ends that decrease or pass the end of scales are errors and nothing is written, on the GPU
 * too (core/fault.h).
 */
#ifndef TL_SCALE_SWIZZLE_OP_H
#define TL_SCALE_SWIZZLE_OP_H

#include "core/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tl_scale_arg {
    TL_SCALE_SCALES,     /* u8 or e8m0 [rows, columns]; per_group_3d [num_groups, rows, columns] */
    TL_SCALE_GROUP_ENDS, /* i32 [num_groups], of m_groups and k_groups only */
    TL_SCALE_BLOCKED,    /* the dtype of scales [bytes], at least tl_scale_blocked_bytes */
};

enum tl_scale_dim {
    TL_SCALE_ROWS,
    TL_SCALE_COLUMNS,
    TL_SCALE_NUM_GROUPS, /* 0 when dense */
    TL_SCALE_BYTES,
};

enum tl_scale_param { TL_SCALE_GROUPING };
enum tl_scale_grouping {
    TL_SCALE_DENSE,
    TL_SCALE_M_GROUPS,
    TL_SCALE_K_GROUPS,
    TL_SCALE_PER_GROUP_3D,
};

/* The most bytes that the extents of a problem can take, whatever the group ends are. */
int64_t tl_scale_blocked_bytes(const struct tl_problem *problem);

extern const struct tl_operation tl_op_scale_swizzle, tl_op_scale_unswizzle;

#ifdef __cplusplus
}
#endif
#endif
