/* SwiGLU (Shazeer, 2020, arXiv:2002.05202) on the joint output of the gate and up projections.
 *
 *   y = silu(gate) up,   silu(z) = z sigmoid(z),   x = [gate, up] along its columns
 *
 * Backward: dgate = dy up sigmoid(gate) (1 + gate (1 - sigmoid(gate))), dup = dy silu(gate).
 * With group_offsets, rows past the last offset are neither read nor written. Offsets that do not
 * fit are an error on the CPU; kernels on the GPU read the last one only, and keep inside the
 * tensors.
 * Row-major, columns contiguous: the first f columns of x are the gate, the last f are up.
 */
#ifndef TL_SWIGLU_OP_H
#define TL_SWIGLU_OP_H

#include "core/kernel.h"

enum {
    SWIGLU_X,             /* [rows, 2 f] */
    SWIGLU_Y,             /* [rows, f] */
    SWIGLU_GROUP_OFFSETS, /* i32 [num_groups + 1], optional */
};

enum {
    SWIGLU_BACKWARD_DY,            /* [rows, f] */
    SWIGLU_BACKWARD_X,             /* [rows, 2 f] */
    SWIGLU_BACKWARD_DX,            /* [rows, 2 f]; may be x itself */
    SWIGLU_BACKWARD_GROUP_OFFSETS, /* i32 [num_groups + 1], optional */
};

/* Of both operations; two_f is checked to be 2 f, num_groups is there only with group_offsets. */
enum { SWIGLU_DIM_ROWS, SWIGLU_DIM_F, SWIGLU_DIM_TWO_F, SWIGLU_DIM_NUM_GROUPS };

extern const struct tl_operation tl_op_swiglu;
extern const struct tl_operation tl_op_swiglu_backward;

#endif
