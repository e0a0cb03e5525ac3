/* AdamW (Loshchilov and Hutter, 2017, arXiv:1711.05101) with clipping by the global norm.
 *
 *   squared_norm: sum += sum over i of x_i^2          (one call a tensor gives the global norm)
 *   adamw:        g     = grad min(1, max_norm / sqrt(norm_squared)), unclipped at max_norm 0
 *                 m     = beta1 m + (1 - beta1) g
 *                 v     = beta2 v + (1 - beta2) g^2
 *                 param = param - lr (m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + eps)
 *                                     + weight_decay param)
 *                 param_bf16 = param, rounded: the working copy that GEMMs in bf16 read
 * Tensors of any rank are passed as flat views. A NaN norm makes every parameter NaN. A step below
 * 1 is an error on the CPU; kernels on the GPU make every parameter NaN.
 */
#ifndef TL_ADAMW_OP_H
#define TL_ADAMW_OP_H

#include "core/kernel.h"

enum {
    SQUARED_NORM_X,   /* [count] */
    SQUARED_NORM_SUM, /* [1], accumulates */
};

enum {
    ADAMW_PARAM,        /* [count] */
    ADAMW_GRAD,         /* [count] */
    ADAMW_M,            /* [count], 0 before the first step */
    ADAMW_V,            /* [count], 0 before the first step */
    ADAMW_STEP,         /* i32 [1], 1 at the first step */
    ADAMW_NORM_SQUARED, /* [1], optional; required when max_norm is not 0 */
    ADAMW_PARAM_BF16,   /* bf16 [count], optional; whatever the float type of the others is */
};

enum { SQUARED_NORM_DIM_COUNT };
enum { ADAMW_DIM_COUNT };
enum {
    ADAMW_PARAM_LR,
    ADAMW_PARAM_BETA1,
    ADAMW_PARAM_BETA2,
    ADAMW_PARAM_EPS,
    ADAMW_PARAM_WEIGHT_DECAY,
    ADAMW_PARAM_MAX_NORM,
};

extern const struct tl_operation tl_op_squared_norm;
extern const struct tl_operation tl_op_adamw;

#endif
