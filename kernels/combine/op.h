/* Weighted combination of the expert rows of each token, with the shared expert's output.
 *
 *   y[t] = shared[t] + sum over j of weights[t,j] x[slot_rows[t,j]], j ascending
 *
 * Backward (the gradient of shared is dy itself):
 *   dx[r]         = weights[s] dy[s / top_k], s = row_slots[r]; pad rows are zero; rows past the
 *                   last offset are not touched
 *   dweights[t,j] = dy[t] . x[slot_rows[t,j]]
 * The indices are those of permute_index (kernels/permute/op.h). All tensors are row-major with d
 * contiguous, and of one float type; beside bf16, weights and dweights are fp32; rows in the
 * experts' layout (x and dx) may be bf16 beside fp32 tokens.
 * Indices and offsets that do not fit are errors on the CPU and nothing is written; kernels on the
 * GPU do not look for them, but keep inside the tensors.
 */
#ifndef TL_COMBINE_OP_H
#define TL_COMBINE_OP_H

#include "core/kernel.h"

enum {
    COMBINE_X,         /* [rows, d] */
    COMBINE_SLOT_ROWS, /* i32 [tokens, top_k] */
    COMBINE_WEIGHTS,   /* [tokens, top_k] */
    COMBINE_SHARED,    /* [tokens, d], optional; may be y itself */
    COMBINE_Y,         /* [tokens, d] */
};

enum {
    COMBINE_BACKWARD_DY,            /* [tokens, d] */
    COMBINE_BACKWARD_X,             /* [rows, d] */
    COMBINE_BACKWARD_ROW_SLOTS,     /* i32 [rows] */
    COMBINE_BACKWARD_SLOT_ROWS,     /* i32 [tokens, top_k] */
    COMBINE_BACKWARD_WEIGHTS,       /* [tokens, top_k] */
    COMBINE_BACKWARD_GROUP_OFFSETS, /* i32 [num_experts + 1] */
    COMBINE_BACKWARD_DX,            /* [rows, d]; may be x itself */
    COMBINE_BACKWARD_DWEIGHTS,      /* [tokens, top_k] */
};

enum {
    COMBINE_DIM_TOKENS,
    COMBINE_DIM_TOP_K,
    COMBINE_DIM_D,
    COMBINE_DIM_ROWS,
    COMBINE_DIM_NUM_EXPERTS, /* of combine_backward only */
};

extern const struct tl_operation tl_op_combine;
extern const struct tl_operation tl_op_combine_backward;

#endif
