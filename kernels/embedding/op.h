/* Embedding: rows of a table by token id.
 *
 *   y[t] = table[ids[t]]
 *   backward: dtable[v] += sum over t with ids[t] = v of dy[t], t ascending
 * Row-major, d contiguous; one float type, or bf16 tokens (y, dy) beside fp32 tables. An id out of
 * range is an error on the CPU and nothing is written; kernels on the GPU make its row of y NaN and
 * leave its row of dy out.
 */
#ifndef TL_EMBEDDING_OP_H
#define TL_EMBEDDING_OP_H

#include "core/kernel.h"

enum {
    EMBEDDING_IDS,   /* i32 [tokens], each in 0 .. vocab - 1 */
    EMBEDDING_TABLE, /* [vocab, d] */
    EMBEDDING_Y,     /* [tokens, d] */
};

enum {
    EMBEDDING_BACKWARD_IDS,    /* i32 [tokens], each in 0 .. vocab - 1 */
    EMBEDDING_BACKWARD_DY,     /* [tokens, d] */
    EMBEDDING_BACKWARD_DTABLE, /* [vocab, d], accumulates */
};

enum { EMBEDDING_DIM_TOKENS, EMBEDDING_DIM_D, EMBEDDING_DIM_VOCAB }; /* of both operations */

extern const struct tl_operation tl_op_embedding;
extern const struct tl_operation tl_op_embedding_backward;

#endif
