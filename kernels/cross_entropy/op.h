/* Cross-entropy of logits with target ids.
 *
 *   lse[t]    = log(sum over v of exp(logits[t,v]))
 *   losses[t] = lse[t] - logits[t, targets[t]], 0 where targets[t] = -1
 *   loss_sum += scale sum over t of losses[t]
 *   backward: dlogits[t,v] = scale (exp(logits[t,v] - lse[t]) - [v = targets[t]]),
 *             0 where targets[t] = -1
 * A mean over counted tokens is scale = 1 / their number. Row-major, vocab contiguous; one float
 * type, or bf16 logits and dlogits beside fp32. A target out of range is an error on the CPU and
 * nothing is written; kernels on the GPU make its loss and its row of dlogits NaN.
 */
#ifndef TL_CROSS_ENTROPY_OP_H
#define TL_CROSS_ENTROPY_OP_H

#include "core/kernel.h"

enum {
    CROSS_ENTROPY_LOGITS,   /* [tokens, vocab] */
    CROSS_ENTROPY_TARGETS,  /* i32 [tokens], each in 0 .. vocab - 1 or -1 */
    CROSS_ENTROPY_LSE,      /* [tokens], natural logarithm; of ignored tokens too */
    CROSS_ENTROPY_LOSSES,   /* [tokens], nats */
    CROSS_ENTROPY_LOSS_SUM, /* [1], accumulates */
};

enum {
    CROSS_ENTROPY_BACKWARD_LOGITS,  /* [tokens, vocab] */
    CROSS_ENTROPY_BACKWARD_LSE,     /* [tokens] */
    CROSS_ENTROPY_BACKWARD_TARGETS, /* i32 [tokens] */
    CROSS_ENTROPY_BACKWARD_DLOGITS, /* [tokens, vocab]; may be logits itself */
};

enum { CROSS_ENTROPY_DIM_TOKENS, CROSS_ENTROPY_DIM_VOCAB }; /* of both operations */
enum { CROSS_ENTROPY_PARAM_SCALE };                         /* of both operations */

extern const struct tl_operation tl_op_cross_entropy;
extern const struct tl_operation tl_op_cross_entropy_backward;

#endif
