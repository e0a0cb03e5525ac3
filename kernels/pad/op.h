/* Padding of grouped rows for kernels that want every group to start at a multiple of some number
 * of rows, and back.
 *
 *   pad_index:   padded_offsets[g + 1] = padded_offsets[g] + rows of g, rounded up to `align`;
 *                row_experts[r] is the group of padded row r, -1 for pad rows and past the last
 *                offset
 *   pad_rows:    y[padded_offsets[g] + i] = x[group_offsets[g] + i]; pad rows get zeros; rows past
 *                the last padded offset stay untouched
 *   unpad_rows:  y[group_offsets[g] + i] = x[padded_offsets[g] + i]; rows past the last group
 *                offset stay untouched
 * All tensors are row-major with d contiguous. The padded offsets are those of pad_index, or any
 * that give each group its rows. On the CPU offsets that do not fit are errors and nothing is
 * written; kernels on the GPU do not look for them, but keep inside the tensors.
 */
#ifndef TL_PAD_OP_H
#define TL_PAD_OP_H

#include "core/kernel.h"

enum {
    PAD_INDEX_GROUP_OFFSETS,  /* i32 [num_groups + 1] */
    PAD_INDEX_PADDED_OFFSETS, /* i32 [num_groups + 1] */
    PAD_INDEX_ROW_EXPERTS,    /* i32 [padded_m] */
};

/* Of pad_rows and unpad_rows. */
enum {
    PAD_X,              /* [m, d]; of unpad_rows [padded_m, d] */
    PAD_GROUP_OFFSETS,  /* i32 [num_groups + 1] */
    PAD_PADDED_OFFSETS, /* i32 [num_groups + 1] */
    PAD_Y,              /* [padded_m, d]; of unpad_rows [m, d] */
};

enum {
    PAD_INDEX_DIM_NUM_GROUPS,
    PAD_INDEX_DIM_PADDED_M, /* room for all groups, pad rows included */
};
enum {
    PAD_DIM_M,
    PAD_DIM_PADDED_M,
    PAD_DIM_D,
    PAD_DIM_NUM_GROUPS,
};

enum { PAD_INDEX_PARAM_ALIGN };

extern const struct tl_operation tl_op_pad_index;
extern const struct tl_operation tl_op_pad_rows;
extern const struct tl_operation tl_op_unpad_rows;

#endif
