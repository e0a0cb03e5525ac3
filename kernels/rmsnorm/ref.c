/* RMSNorm on the CPU: one token a row, row sums in fp64. */
#include "kernels/rmsnorm/op.h"

#include <math.h>

#include "kernels/host/parallel.h"

enum { COLUMNS = 32 }; /* of dweight, summed together */

#define TL_BODY "kernels/rmsnorm/ref.inc"
#include "kernels/host/both_floats.inc"

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    (void)stream;
    bool wide = plan->problem.dtype[RMSNORM_X] == TL_FP64;
    (wide ? forward_fp64 : forward_fp32)(plan, args);
    return TL_OK;
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    (void)stream;
    bool wide = plan->problem.dtype[RMSNORM_BACKWARD_DY] == TL_FP64;
    (wide ? backward_fp64 : backward_fp32)(plan, args);
    return TL_OK;
}

const struct tl_kernel tl_kernel_rmsnorm_cpu_plain = {
    .operation = "rmsnorm",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: one row a token, sums in fp64 (Zhang and Sennrich, 2019).",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_forward,
};

const struct tl_kernel tl_kernel_rmsnorm_backward_cpu_plain = {
    .operation = "rmsnorm_backward",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: one row a token, then each column of dweight over the tokens in order.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_backward,
};
