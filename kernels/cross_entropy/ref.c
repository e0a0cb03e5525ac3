/* Cross-entropy on the CPU: one token a row, the sum over tokens in order and in fp64. */
#include "kernels/cross_entropy/op.h"

#include <math.h>

#include "kernels/host/check.h"
#include "kernels/host/parallel.h"

#define TL_BODY "kernels/cross_entropy/ref.inc"
#include "kernels/host/both_floats.inc"

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(tl_check_indices(plan, args, CROSS_ENTROPY_TARGETS, -1,
                            plan->problem.dim[CROSS_ENTROPY_DIM_VOCAB]));
    bool wide = plan->problem.dtype[CROSS_ENTROPY_LOGITS] == TL_FP64;
    (wide ? forward_fp64 : forward_fp32)(plan, args);
    return TL_OK;
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(tl_check_indices(plan, args, CROSS_ENTROPY_BACKWARD_TARGETS, -1,
                            plan->problem.dim[CROSS_ENTROPY_DIM_VOCAB]));
    bool wide = plan->problem.dtype[CROSS_ENTROPY_BACKWARD_LOGITS] == TL_FP64;
    (wide ? backward_fp64 : backward_fp32)(plan, args);
    return TL_OK;
}

const struct tl_kernel tl_kernel_cross_entropy_cpu_plain = {
    .operation = "cross_entropy",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: one row a token, sums in fp64.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_forward,
};

const struct tl_kernel tl_kernel_cross_entropy_backward_cpu_plain = {
    .operation = "cross_entropy_backward",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: softmax from lse, one row a token.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_backward,
};
