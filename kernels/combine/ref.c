/* Combination on the CPU: tokens forward, slots and rows backward, all independent. */
#include "kernels/combine/op.h"

#include "kernels/host/check.h"
#include "kernels/host/parallel.h"

#define TL_BODY "kernels/combine/ref.inc"
#include "kernels/host/both_floats.inc"

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(tl_check_indices(plan, args, COMBINE_SLOT_ROWS, 0, plan->problem.dim[COMBINE_DIM_ROWS]));
    bool wide = plan->problem.dtype[COMBINE_X] == TL_FP64;
    (wide ? forward_fp64 : forward_fp32)(plan, args);
    return TL_OK;
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    (void)stream;
    const int64_t *dim = plan->problem.dim;
    int64_t rows = dim[COMBINE_DIM_ROWS];
    TL_TRY(tl_check_indices(plan, args, COMBINE_BACKWARD_ROW_SLOTS, -1,
                            dim[COMBINE_DIM_TOKENS] * dim[COMBINE_DIM_TOP_K]));
    TL_TRY(tl_check_indices(plan, args, COMBINE_BACKWARD_SLOT_ROWS, 0, rows));
    TL_TRY(tl_check_offsets(plan, args, COMBINE_BACKWARD_GROUP_OFFSETS, rows));
    bool wide = plan->problem.dtype[COMBINE_BACKWARD_DY] == TL_FP64;
    (wide ? backward_fp64 : backward_fp32)(plan, args);
    return TL_OK;
}

const struct tl_kernel tl_kernel_combine_cpu_plain = {
    .operation = "combine",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: each token adds up its weighted rows in slot order.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_forward,
};

const struct tl_kernel tl_kernel_combine_backward_cpu_plain = {
    .operation = "combine_backward",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: a dot product for each slot, a scaled row for each row.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_backward,
};
