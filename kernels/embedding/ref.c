/* Embedding on the CPU: a gather by tokens, an addition by columns. */
#include "kernels/embedding/op.h"

#include "kernels/host/check.h"
#include "kernels/host/parallel.h"

enum { COLUMNS = 32 }; /* of dtable, in one thread */

#define TL_BODY "kernels/embedding/ref.inc"
#include "kernels/host/both_floats.inc"

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(tl_check_indices(plan, args, EMBEDDING_IDS, 0, plan->problem.dim[EMBEDDING_DIM_VOCAB]));
    bool wide = plan->problem.dtype[EMBEDDING_Y] == TL_FP64;
    (wide ? forward_fp64 : forward_fp32)(plan, args);
    return TL_OK;
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(tl_check_indices(plan, args, EMBEDDING_BACKWARD_IDS, 0,
                            plan->problem.dim[EMBEDDING_DIM_VOCAB]));
    bool wide = plan->problem.dtype[EMBEDDING_BACKWARD_DY] == TL_FP64;
    (wide ? backward_fp64 : backward_fp32)(plan, args);
    return TL_OK;
}

const struct tl_kernel tl_kernel_embedding_cpu_plain = {
    .operation = "embedding",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: each token gathers its row.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_forward,
};

const struct tl_kernel tl_kernel_embedding_backward_cpu_plain = {
    .operation = "embedding_backward",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: each block of columns takes the tokens in order.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_backward,
};
