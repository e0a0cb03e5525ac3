/* The router: softmax over experts, top-k, renormalised weights, load-balancing loss.
 *
 *   probs        = softmax(logits)
 *   experts[t,:] = the top_k largest of logits[t,:], largest first, ties to the lower index, NaN
 *                  below everything; or forced[t,:] where it is given
 *   weights[t,j] = probs[t, experts[t,j]] / sum over j of the same
 *   load[e]      = slots (t, j) with experts[t,j] = e
 *   aux         += coefficient num_experts sum over e of f_e P_e,
 *                  f_e = load[e] / (tokens top_k), P_e = mean over tokens of probs[t,e]
 * aux is eq. 4 of the Switch Transformer (Fedus et al., 2021, arXiv:2101.03961), over top_k slots.
 *
 * Backward; f is a constant, and the weights are a softmax over the chosen logits:
 *   dlogits[t,e] = sum over j with experts[t,j] = e of
 *                    weights[t,j] (dweights[t,j] - sum over j of weights[t,j] dweights[t,j])
 *                + scale coefficient num_experts / tokens
 *                    probs[t,e] (f_e - sum over e of f_e probs[t,e])
 * All tensors are row-major, a token's experts contiguous, and of one float type; logits and
 * dlogits may be bf16, the others are fp32 then. A forced expert out of range is an error and
 * nothing is written, on the GPU too (core/fault.h); of the backward operation's experts one out of
 * range is an error on the CPU, and its term is left out on the GPU.
 */
#ifndef TL_ROUTER_OP_H
#define TL_ROUTER_OP_H

#include "core/kernel.h"

enum {
    ROUTER_LOGITS,  /* [tokens, num_experts] */
    ROUTER_FORCED,  /* i32 [tokens, top_k], optional; an expert may repeat */
    ROUTER_PROBS,   /* [tokens, num_experts] */
    ROUTER_EXPERTS, /* i32 [tokens, top_k] */
    ROUTER_WEIGHTS, /* [tokens, top_k] */
    ROUTER_LOAD,    /* i32 [num_experts] */
    ROUTER_AUX,     /* [1], accumulates; no tokens add nothing */
};

enum {
    ROUTER_BACKWARD_PROBS,    /* [tokens, num_experts] */
    ROUTER_BACKWARD_EXPERTS,  /* i32 [tokens, top_k] */
    ROUTER_BACKWARD_WEIGHTS,  /* [tokens, top_k] */
    ROUTER_BACKWARD_DWEIGHTS, /* [tokens, top_k] */
    ROUTER_BACKWARD_LOAD,     /* i32 [num_experts] */
    ROUTER_BACKWARD_DLOGITS,  /* [tokens, num_experts] */
};

enum { ROUTER_DIM_TOKENS, ROUTER_DIM_NUM_EXPERTS, ROUTER_DIM_TOP_K }; /* of both operations */
enum { ROUTER_PARAM_COEFFICIENT };
enum { ROUTER_BACKWARD_PARAM_COEFFICIENT, ROUTER_BACKWARD_PARAM_SCALE };

/* tl_fault.kind of router: a forced expert out of range; values: the expert, 0, num_experts. */
enum { ROUTER_BAD_EXPERT = 1 };

extern const struct tl_operation tl_op_router;
extern const struct tl_operation tl_op_router_backward;

#endif
