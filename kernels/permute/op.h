/* Permutation of token copies into expert groups, and its index.
 *
 * Slot t top_k + j is the j-th choice of token t. Each slot gets one row; the rows of expert e are
 * group_offsets[e] .. group_offsets[e+1] - 1, in slot order (a stable counting sort).
 *
 *   permute_index:    group starts are multiples of `align`. A group's rows past its slots are pad
 *                     rows: row_slots -1, row_experts -1. Rows past the last offset are the same.
 *   permute:          y[r] = x[row_slots[r] / top_k]; pad rows are zero; rows past the last offset
 *                     are not touched
 *   permute_backward: dx[t] = beta dx[t] + sum over j of dy[slot_rows[t,j]], j ascending
 * All tensors are row-major with d contiguous, and of one float type; rows in the experts' layout
 * (y of permute, dy of permute_backward) may be bf16 beside fp32 tokens, rounded on the way.
 * Experts out of range, and too few rows for the groups, are errors of permute_index, on the GPU
 * too (core/fault.h), and nothing is written. Indices and offsets that do not fit are errors of the
 * others on the CPU; their kernels on the GPU do not look for them, but keep inside the tensors.
 */
#ifndef TL_PERMUTE_OP_H
#define TL_PERMUTE_OP_H

#include "core/kernel.h"

enum {
    PERMUTE_INDEX_EXPERTS,       /* i32 [tokens, top_k] */
    PERMUTE_INDEX_GROUP_OFFSETS, /* i32 [num_experts + 1] */
    PERMUTE_INDEX_ROW_SLOTS,     /* i32 [rows], the slot in each row, -1 without one */
    PERMUTE_INDEX_SLOT_ROWS,     /* i32 [tokens, top_k], the row of each slot */
    PERMUTE_INDEX_ROW_EXPERTS,   /* i32 [rows], the expert of each row, -1 without a slot */
};

enum {
    PERMUTE_X,             /* [tokens, d] */
    PERMUTE_ROW_SLOTS,     /* i32 [rows] */
    PERMUTE_SLOT_ROWS,     /* i32 [tokens, top_k] */
    PERMUTE_GROUP_OFFSETS, /* i32 [num_experts + 1] */
    PERMUTE_Y,             /* [rows, d] */
};

enum {
    PERMUTE_BACKWARD_DY,        /* [rows, d] */
    PERMUTE_BACKWARD_SLOT_ROWS, /* i32 [tokens, top_k] */
    PERMUTE_BACKWARD_DX,        /* [tokens, d]; not read at beta 0 */
};

enum {
    PERMUTE_INDEX_DIM_TOKENS,
    PERMUTE_INDEX_DIM_TOP_K,
    PERMUTE_INDEX_DIM_NUM_EXPERTS,
    PERMUTE_INDEX_DIM_ROWS, /* room for all groups, pad rows included */
};
enum {
    PERMUTE_DIM_TOKENS,
    PERMUTE_DIM_TOP_K,
    PERMUTE_DIM_D,
    PERMUTE_DIM_ROWS,
    PERMUTE_DIM_NUM_EXPERTS, /* not of permute_backward */
};

enum { PERMUTE_INDEX_PARAM_ALIGN };
enum { PERMUTE_BACKWARD_PARAM_BETA };

/* tl_fault.kind of permute_index. */
enum permute_index_fault {
    PERMUTE_INDEX_BAD_EXPERT = 1, /* values: the expert, 0, num_experts */
    PERMUTE_INDEX_TOO_FEW_ROWS,   /* values: rows that the groups take, align, rows */
};

extern const struct tl_operation tl_op_permute_index;
extern const struct tl_operation tl_op_permute;
extern const struct tl_operation tl_op_permute_backward;

#endif
