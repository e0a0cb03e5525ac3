/* SwiGLU on the CPU: element by element. */
#include "kernels/swiglu/op.h"

#include <math.h>

#include "kernels/host/check.h"
#include "kernels/host/parallel.h"

#define TL_BODY "kernels/swiglu/ref.inc"
#include "kernels/host/both_floats.inc"

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(tl_check_offsets(plan, args, SWIGLU_GROUP_OFFSETS, plan->problem.dim[SWIGLU_DIM_ROWS]));
    bool wide = plan->problem.dtype[SWIGLU_X] == TL_FP64;
    (wide ? forward_fp64 : forward_fp32)(plan, args);
    return TL_OK;
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(tl_check_offsets(plan, args, SWIGLU_BACKWARD_GROUP_OFFSETS,
                            plan->problem.dim[SWIGLU_DIM_ROWS]));
    bool wide = plan->problem.dtype[SWIGLU_BACKWARD_DY] == TL_FP64;
    (wide ? backward_fp64 : backward_fp32)(plan, args);
    return TL_OK;
}

const struct tl_kernel tl_kernel_swiglu_cpu_plain = {
    .operation = "swiglu",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: element by element (Shazeer, 2020).",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_forward,
};

const struct tl_kernel tl_kernel_swiglu_backward_cpu_plain = {
    .operation = "swiglu_backward",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: element by element, the sigmoid recomputed.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_backward,
};
