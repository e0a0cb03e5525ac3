/* AdamW and the squared norm on the CPU, in chunks whose size does not depend on the threads. */
#include "kernels/adamw/op.h"

#include <math.h>

#include "kernels/host/parallel.h"

enum { CHUNK = 4096, LANES = 8 }; /* elements; partial sums of a chunk */

static int64_t num_chunks(int64_t count)
{
    return (count + CHUNK - 1) / CHUNK;
}

#define TL_BODY "kernels/adamw/ref.inc"
#include "kernels/host/both_floats.inc"

/* A partial sum for each chunk. */
static size_t norm_workspace(const struct tl_plan *plan)
{
    return (size_t)num_chunks(plan->problem.dim[SQUARED_NORM_DIM_COUNT]) * sizeof(double);
}

static enum tl_status launch_norm(const struct tl_plan *plan, const struct tl_args *args,
                                  struct tl_stream *stream)
{
    (void)stream;
    bool wide = plan->problem.dtype[SQUARED_NORM_X] == TL_FP64;
    (wide ? squared_norm_fp64 : squared_norm_fp32)(plan, args);
    return TL_OK;
}

static enum tl_status launch_adamw(const struct tl_plan *plan, const struct tl_args *args,
                                   struct tl_stream *stream)
{
    (void)stream;
    int32_t step = *(const int32_t *)args->tensor[ADAMW_STEP].data;
    if (step < 1)
        return TL_FAIL(TL_ERR_ARGUMENT, "adamw: step is %d, but the first step is 1", step);
    bool wide = plan->problem.dtype[ADAMW_PARAM] == TL_FP64;
    (wide ? adamw_fp64 : adamw_fp32)(plan, args);
    return TL_OK;
}

const struct tl_kernel tl_kernel_squared_norm_cpu_plain = {
    .operation = "squared_norm",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: fp64 partial sums of 4096 elements, added in order.",
    .workspace = norm_workspace,
    .launch = launch_norm,
};

const struct tl_kernel tl_kernel_adamw_cpu_plain = {
    .operation = "adamw",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: element by element (Loshchilov and Hutter, 2017).",
    .launch = launch_adamw,
};
