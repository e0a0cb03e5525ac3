/* RMSNorm (Zhang and Sennrich, 2019, arXiv:1910.07467), with the residual addition before it.
 *
 *   sum  = x + residual                      (x alone where there is no residual)
 *   rstd = 1 / sqrt(mean over d of sum^2 + eps)
 *   y    = sum rstd weight
 *
 * Backward, with g = dy weight and n = sum rstd:
 *   dx       = rstd (g - n mean over d of (g n)) + dsum
 *   dweight += sum over tokens of dy n
 * All tensors are row-major with d contiguous, and of one float type; where the activations are
 * bf16, weight, rstd and dweight are fp32, and a sum is rounded before it is normalised.
 */
#ifndef TL_RMSNORM_OP_H
#define TL_RMSNORM_OP_H

#include "core/kernel.h"

enum {
    RMSNORM_X,        /* [tokens, d] */
    RMSNORM_RESIDUAL, /* [tokens, d], optional */
    RMSNORM_WEIGHT,   /* [d] */
    RMSNORM_Y,        /* [tokens, d] */
    RMSNORM_RSTD,     /* [tokens] */
    RMSNORM_SUM,      /* [tokens, d]; required with a residual; may be x or residual itself */
};

enum {
    RMSNORM_BACKWARD_DY,      /* [tokens, d] */
    RMSNORM_BACKWARD_X,       /* [tokens, d], what was normalised: sum */
    RMSNORM_BACKWARD_WEIGHT,  /* [d] */
    RMSNORM_BACKWARD_RSTD,    /* [tokens] */
    RMSNORM_BACKWARD_DSUM,    /* [tokens, d], optional: gradient of sum from its other uses */
    RMSNORM_BACKWARD_DX,      /* [tokens, d], gradient of x and of residual; may be dsum itself */
    RMSNORM_BACKWARD_DWEIGHT, /* [d], accumulates */
};

enum { RMSNORM_DIM_TOKENS, RMSNORM_DIM_D }; /* of both operations */
enum { RMSNORM_PARAM_EPS };                 /* of the forward operation */

extern const struct tl_operation tl_op_rmsnorm;
extern const struct tl_operation tl_op_rmsnorm_backward;

#endif
