/* The router on the CPU: one token a row; load and aux in token order. */
#include "kernels/router/op.h"

#include <math.h>
#include <string.h>

#include "kernels/host/check.h"
#include "kernels/host/parallel.h"

enum { COLUMNS = 32 }; /* experts whose probs are summed together */

#define TL_BODY "kernels/router/ref.inc"
#include "kernels/host/both_floats.inc"

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(
        tl_check_indices(plan, args, ROUTER_FORCED, 0, plan->problem.dim[ROUTER_DIM_NUM_EXPERTS]));
    bool wide = plan->problem.dtype[ROUTER_LOGITS] == TL_FP64;
    (wide ? forward_fp64 : forward_fp32)(plan, args);
    return TL_OK;
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(tl_check_indices(plan, args, ROUTER_BACKWARD_EXPERTS, 0,
                            plan->problem.dim[ROUTER_DIM_NUM_EXPERTS]));
    bool wide = plan->problem.dtype[ROUTER_BACKWARD_PROBS] == TL_FP64;
    (wide ? backward_fp64 : backward_fp32)(plan, args);
    return TL_OK;
}

const struct tl_kernel tl_kernel_router_cpu_plain = {
    .operation = "router",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: softmax and selection token by token, loss of Fedus et al. (2021).",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_forward,
};

const struct tl_kernel tl_kernel_router_backward_cpu_plain = {
    .operation = "router_backward",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: token by token, load held constant.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_backward,
};
