/* RoPE on the CPU: angles in fp64 on the fly, one position after the other. */
#include "kernels/rope/op.h"

#include <math.h>

#include "kernels/host/parallel.h"

#define TL_BODY "kernels/rope/ref.inc"
#include "kernels/host/both_floats.inc"

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    (void)stream;
    bool wide = plan->problem.dtype[ROPE_QKV] == TL_FP64;
    (wide ? rotate_fp64 : rotate_fp32)(plan, args);
    return TL_OK;
}

const struct tl_kernel tl_kernel_rope_cpu_plain = {
    .operation = "rope",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: half-split pairs, angles in fp64 (Su et al., 2021).",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch,
};
