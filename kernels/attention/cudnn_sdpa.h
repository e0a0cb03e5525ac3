/* Causal grouped-query attention and its gradients as graphs for cuDNN.
 *
 * The library knows the pattern, not the operation: products, scale, mask by comparing the indices
 * of row and column, softmax as maximum, exponential and sum. What it fuses are these very
 * operations (cuDNN's developer guide, "fused attention"), so their order and types are kept to.
 */
#ifndef TL_ATTENTION_CUDNN_SDPA_H
#define TL_ATTENTION_CUDNN_SDPA_H

#include "cudnn_graph.h"

/* Sizes, q, k, v and their gradients standing in one tensor as op.h has it; bf16. */
struct tl_sdpa {
    int64_t batch, sequence, heads, kv_heads, head_dim;
};

/* Ids of the tensors in a run. DQ_SUM is fp32 memory of batch heads sequence head_dim elements,
 * DELTA of batch heads sequence; LOWEST, SCALE and ONE are on the host: -inf, 1/sqrt(head_dim), 1.
 */
enum {
    SDPA_Q = 1,
    SDPA_K,
    SDPA_V,
    SDPA_O,
    SDPA_LSE,
    SDPA_SCALE,
    SDPA_LOWEST,
    SDPA_DOUT,
    SDPA_DQ,
    SDPA_DK,
    SDPA_DV,
    SDPA_ONE,
    SDPA_DELTA,
    SDPA_DQ_SUM, /* not in an ordered plan */
};

/* `who` begins messages. Statuses are those of cudnn_plan_find. */
enum tl_status tl_sdpa_forward(const char *who, const struct tl_sdpa *size, void *handle,
                               struct tl_cudnn_plan *out);

/* Adds up dq over the keys in fp32 as blocks come along, in DQ_SUM; `ordered`: in one order and so
 * to the same bits each time, with ds of batch heads sequence sequence elements in the workspace.
 */
enum tl_status tl_sdpa_backward(const char *who, const struct tl_sdpa *size, bool ordered,
                                void *handle, struct tl_cudnn_plan *out);

#endif
