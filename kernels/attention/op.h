/* Causal grouped-query attention (Vaswani et al., 2017, arXiv:1706.03762; Ainslie et al., 2023,
 * arXiv:2305.13245).
 *
 *   s_ij  = q_i . k_j / sqrt(head_dim), j <= i
 *   lse_i = log(sum over j of exp(s_ij)),  p_ij = exp(s_ij - lse_i),  o_i = sum over j of p_ij v_j
 *
 * Backward from lse instead of p, as FlashAttention has it (Dao et al., 2022, arXiv:2205.14135):
 *   delta_i = do_i . o_i,  ds_ij = p_ij (do_i . v_j - delta_i) / sqrt(head_dim)
 *   dq_i = sum_j ds_ij k_j,  dk_j = sum_i ds_ij q_i,  dv_j = sum_i p_ij do_i
 *
 * The heads of qkv: `heads` of q, then kv_heads of k, then kv_heads of v, where kv_heads =
 * (qkv_heads - heads) / 2 divides heads. Head h of q reads head h / (heads / kv_heads) of k and v.
 * head_dim is contiguous. All tensors are of one float type; where that is bf16, lse is fp32.
 */
#ifndef TL_ATTENTION_OP_H
#define TL_ATTENTION_OP_H

#include "core/kernel.h"

enum {
    ATTENTION_QKV, /* [batch, sequence, qkv_heads, head_dim] */
    ATTENTION_O,   /* [batch, sequence, heads, head_dim] */
    ATTENTION_LSE, /* [batch, heads, sequence], natural logarithm */
};

enum {
    ATTENTION_BACKWARD_DOUT, /* [batch, sequence, heads, head_dim] */
    ATTENTION_BACKWARD_QKV,  /* [batch, sequence, qkv_heads, head_dim] */
    ATTENTION_BACKWARD_O,    /* [batch, sequence, heads, head_dim] */
    ATTENTION_BACKWARD_LSE,  /* [batch, heads, sequence] */
    ATTENTION_BACKWARD_DQKV, /* [batch, sequence, qkv_heads, head_dim], all of it written */
};

/* Of both operations. */
enum {
    ATTENTION_DIM_BATCH,
    ATTENTION_DIM_SEQUENCE,
    ATTENTION_DIM_QKV_HEADS,
    ATTENTION_DIM_HEADS,
    ATTENTION_DIM_HEAD_DIM,
};

extern const struct tl_operation tl_op_attention;
extern const struct tl_operation tl_op_attention_backward;

#endif
