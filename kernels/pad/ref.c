/* Padding on the CPU: copies of whole rows, so of any type. */
#include "kernels/pad/op.h"

#include <string.h>

#include "kernels/host/check.h"
#include "kernels/host/group_offsets.h"
#include "kernels/host/parallel.h"

static enum tl_status launch_index(const struct tl_plan *plan, const struct tl_args *args,
                                   struct tl_stream *stream)
{
    (void)stream;
    int64_t num_groups = plan->problem.dim[PAD_INDEX_DIM_NUM_GROUPS];
    int64_t rows = plan->problem.dim[PAD_INDEX_DIM_PADDED_M], end = 0;
    int64_t align = (int64_t)plan->problem.param[PAD_INDEX_PARAM_ALIGN];
    const int32_t *group_offsets = args->tensor[PAD_INDEX_GROUP_OFFSETS].data;
    int32_t *padded_offsets = args->tensor[PAD_INDEX_PADDED_OFFSETS].data;
    int32_t *row_experts = args->tensor[PAD_INDEX_ROW_EXPERTS].data;

    TL_TRY(tl_check_offsets(plan, args, PAD_INDEX_GROUP_OFFSETS, INT32_MAX));
    for (int64_t g = 0; g < num_groups; g++)
        end += (group_offsets[g + 1] - group_offsets[g] + align - 1) / align * align;
    if (end > rows)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "pad_index: the groups take %lld rows at align %lld, but row_experts has "
                       "%lld; make it larger",
                       (long long)end, (long long)align, (long long)rows);
    for (int64_t r = 0; r < rows; r++)
        row_experts[r] = -1;
    padded_offsets[0] = 0;
    for (int64_t g = 0; g < num_groups; g++) {
        int64_t count = group_offsets[g + 1] - group_offsets[g], begin = padded_offsets[g];
        padded_offsets[g + 1] = (int32_t)(begin + (count + align - 1) / align * align);
        for (int64_t r = begin; r < begin + count; r++)
            row_experts[r] = (int32_t)g;
    }
    return TL_OK;
}

/* Both offsets cut their tensors, and each group's rows fit in its padded rows. */
static enum tl_status check(const struct tl_plan *plan, const struct tl_args *args)
{
    const int64_t *dim = plan->problem.dim;
    const char *operation = plan->problem.operation->name;
    const int32_t *offset = args->tensor[PAD_GROUP_OFFSETS].data;
    const int32_t *padded = args->tensor[PAD_PADDED_OFFSETS].data;
    int64_t num_groups = dim[PAD_DIM_NUM_GROUPS];
    TL_TRY(tl_check_offsets(plan, args, PAD_GROUP_OFFSETS, dim[PAD_DIM_M]));
    if (padded[0] != 0)
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: padded_offsets[0] is %d; the first group starts at 0",
                       operation, padded[0]);
    for (int64_t g = 0; g < num_groups; g++)
        if ((int64_t)padded[g + 1] - padded[g] < offset[g + 1] - offset[g])
            return TL_FAIL(TL_ERR_ARGUMENT,
                           "%s: padded_offsets[%lld] is %d, %lld rows after padded_offsets[%lld], "
                           "but by group_offsets the group has %d; pad_index gives what fits",
                           operation, (long long)(g + 1), padded[g + 1],
                           (long long)padded[g + 1] - padded[g], (long long)g,
                           offset[g + 1] - offset[g]);
    if (padded[num_groups] > dim[PAD_DIM_PADDED_M])
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: padded_offsets[%lld] is %d, beyond the %lld rows of the tensor",
                       operation, (long long)num_groups, padded[num_groups],
                       (long long)dim[PAD_DIM_PADDED_M]);
    return TL_OK;
}

/* Moves the rows of each group from where `from` puts them to where `to` does; what a group has
 * more there becomes zeros. */
static void move(const struct tl_plan *plan, const struct tl_args *args, const int32_t *from,
                 const int32_t *to)
{
    int64_t num_groups = plan->problem.dim[PAD_DIM_NUM_GROUPS], d = plan->problem.dim[PAD_DIM_D];
    size_t bytes = (size_t)d * tl_dtype_size(plan->problem.dtype[PAD_X]);
    const char *x = args->tensor[PAD_X].data;
    char *y = args->tensor[PAD_Y].data;

#pragma omp parallel for schedule(dynamic) if (to[num_groups] * d > TL_PARALLEL_WORK)
    for (int64_t g = 0; g < num_groups; g++) {
        size_t filled = (size_t)(to[g + 1] - to[g]) * bytes;
        size_t held = (size_t)(from[g + 1] - from[g]) * bytes;
        size_t copied = held < filled ? held : filled;
        if (filled == 0)
            continue;
        if (copied > 0)
            memcpy(y + (size_t)to[g] * bytes, x + (size_t)from[g] * bytes, copied);
        memset(y + (size_t)to[g] * bytes + copied, 0, filled - copied);
    }
}

static enum tl_status launch_pad(const struct tl_plan *plan, const struct tl_args *args,
                                 struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(check(plan, args));
    move(plan, args, args->tensor[PAD_GROUP_OFFSETS].data, args->tensor[PAD_PADDED_OFFSETS].data);
    return TL_OK;
}

static enum tl_status launch_unpad(const struct tl_plan *plan, const struct tl_args *args,
                                   struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(check(plan, args));
    move(plan, args, args->tensor[PAD_PADDED_OFFSETS].data, args->tensor[PAD_GROUP_OFFSETS].data);
    return TL_OK;
}

const struct tl_kernel tl_kernel_pad_index_cpu_plain = {
    .operation = "pad_index",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: group by group.",
    .launch = launch_index,
};

const struct tl_kernel tl_kernel_pad_rows_cpu_plain = {
    .operation = "pad_rows",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: one copy and one run of zeros for each group.",
    .launch = launch_pad,
};

const struct tl_kernel tl_kernel_unpad_rows_cpu_plain = {
    .operation = "unpad_rows",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: one copy for each group.",
    .launch = launch_unpad,
};
