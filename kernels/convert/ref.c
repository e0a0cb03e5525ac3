/* convert on the CPU. */
#include "kernels/convert/op.h"

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const struct tl_tensor *x = &args->tensor[CONVERT_X], *y = &args->tensor[CONVERT_Y];
    (void)stream;
    return tl_convert(y->data, y->dtype, x->data, x->dtype,
                      (size_t)plan->problem.dim[CONVERT_DIM_COUNT]);
}

const struct tl_kernel tl_kernel_convert_cpu_plain = {
    .operation = "convert",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: element by element.",
    .launch = launch,
};
