/* Rotary position embedding (Su et al., 2021, arXiv:2104.09864), half-split pairs, in place.
 *
 * For the first rotated_heads heads, position p (the index in the sequence) and pair i:
 *   angle        = p theta^(-2 i / head_dim)
 *   (u_i, u_j)   = (u_i cos - u_j sin, u_i sin + u_j cos),   j = i + head_dim / 2
 * `inverse` turns the other way, which is the backward operation: rotations are orthogonal.
 * In the layout of attention (heads q, then k, then v) rotated_heads is heads + kv_heads.
 */
#ifndef TL_ROPE_OP_H
#define TL_ROPE_OP_H

#include "core/kernel.h"

enum {
    ROPE_QKV, /* [batch, sequence, qkv_heads, head_dim], head_dim contiguous and even */
};

enum { ROPE_DIM_BATCH, ROPE_DIM_SEQUENCE, ROPE_DIM_QKV_HEADS, ROPE_DIM_HEAD_DIM };
enum { ROPE_PARAM_ROTATED_HEADS, ROPE_PARAM_THETA, ROPE_PARAM_INVERSE };

extern const struct tl_operation tl_op_rope;

#endif
