/* Permutation on the CPU: the index serially, the rows in parallel. */
#include "kernels/permute/op.h"

#include "kernels/host/check.h"
#include "kernels/host/parallel.h"

#define TL_BODY "kernels/permute/ref.inc"
#include "kernels/host/both_floats.inc"

/* One counter for each expert. */
static size_t index_workspace(const struct tl_plan *plan)
{
    return (size_t)plan->problem.dim[PERMUTE_INDEX_DIM_NUM_EXPERTS] * sizeof(int64_t);
}

/* Counts the slots of each expert into `next`, and turns the counts into group starts; `end`
 * receives the end of the last group. TL_ERR_ARGUMENT when the rows do not hold all groups. */
static enum tl_status place_groups(const struct tl_plan *plan, const struct tl_args *args,
                                   int64_t *next, int64_t *end)
{
    const int64_t *dim = plan->problem.dim;
    int64_t align = (int64_t)plan->problem.param[PERMUTE_INDEX_PARAM_ALIGN];
    int64_t num_experts = dim[PERMUTE_INDEX_DIM_NUM_EXPERTS];
    int64_t num_slots = dim[PERMUTE_INDEX_DIM_TOKENS] * dim[PERMUTE_INDEX_DIM_TOP_K];
    const int32_t *experts = args->tensor[PERMUTE_INDEX_EXPERTS].data;

    for (int64_t e = 0; e < num_experts; e++)
        next[e] = 0;
    for (int64_t slot = 0; slot < num_slots; slot++)
        next[experts[slot]]++;
    *end = 0;
    for (int64_t e = 0; e < num_experts; e++) {
        int64_t start = *end;
        *end += (next[e] + align - 1) / align * align;
        next[e] = start;
    }
    struct tl_fault fault = {.kind = PERMUTE_INDEX_TOO_FEW_ROWS,
                             .value = {*end, align, dim[PERMUTE_INDEX_DIM_ROWS]}};
    if (*end > dim[PERMUTE_INDEX_DIM_ROWS])
        return plan->problem.operation->explain("permute_index", &fault);
    return TL_OK;
}

static enum tl_status launch_index(const struct tl_plan *plan, const struct tl_args *args,
                                   struct tl_stream *stream)
{
    (void)stream;
    const int64_t *dim = plan->problem.dim;
    int64_t num_experts = dim[PERMUTE_INDEX_DIM_NUM_EXPERTS], rows = dim[PERMUTE_INDEX_DIM_ROWS];
    int64_t num_slots = dim[PERMUTE_INDEX_DIM_TOKENS] * dim[PERMUTE_INDEX_DIM_TOP_K];
    const int32_t *experts = args->tensor[PERMUTE_INDEX_EXPERTS].data;
    int32_t *group_offsets = args->tensor[PERMUTE_INDEX_GROUP_OFFSETS].data;
    int32_t *row_slots = args->tensor[PERMUTE_INDEX_ROW_SLOTS].data;
    int32_t *slot_rows = args->tensor[PERMUTE_INDEX_SLOT_ROWS].data;
    int32_t *row_experts = args->tensor[PERMUTE_INDEX_ROW_EXPERTS].data;
    int64_t *next = args->workspace, end; /* row of each expert's next slot */

    TL_TRY(tl_check_indices(plan, args, PERMUTE_INDEX_EXPERTS, 0, num_experts));
    TL_TRY(place_groups(plan, args, next, &end));
    for (int64_t e = 0; e < num_experts; e++)
        group_offsets[e] = (int32_t)next[e];
    group_offsets[num_experts] = (int32_t)end;
    for (int64_t r = 0; r < rows; r++) {
        row_slots[r] = -1;
        row_experts[r] = -1;
    }
    for (int64_t slot = 0; slot < num_slots; slot++) {
        int64_t row = next[experts[slot]]++;
        row_slots[row] = (int32_t)slot;
        row_experts[row] = experts[slot];
        slot_rows[slot] = (int32_t)row;
    }
    return TL_OK;
}

static enum tl_status launch_permute(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    (void)stream;
    const int64_t *dim = plan->problem.dim;
    int64_t rows = dim[PERMUTE_DIM_ROWS];
    TL_TRY(tl_check_indices(plan, args, PERMUTE_ROW_SLOTS, -1,
                            dim[PERMUTE_DIM_TOKENS] * dim[PERMUTE_DIM_TOP_K]));
    TL_TRY(tl_check_indices(plan, args, PERMUTE_SLOT_ROWS, 0, rows));
    TL_TRY(tl_check_offsets(plan, args, PERMUTE_GROUP_OFFSETS, rows));
    bool wide = plan->problem.dtype[PERMUTE_X] == TL_FP64;
    (wide ? permute_fp64 : permute_fp32)(plan, args);
    return TL_OK;
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    (void)stream;
    TL_TRY(tl_check_indices(plan, args, PERMUTE_BACKWARD_SLOT_ROWS, 0,
                            plan->problem.dim[PERMUTE_DIM_ROWS]));
    bool wide = plan->problem.dtype[PERMUTE_BACKWARD_DY] == TL_FP64;
    (wide ? backward_fp64 : backward_fp32)(plan, args);
    return TL_OK;
}

const struct tl_kernel tl_kernel_permute_index_cpu_plain = {
    .operation = "permute_index",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: stable counting sort.",
    .workspace = index_workspace,
    .launch = launch_index,
};

const struct tl_kernel tl_kernel_permute_cpu_plain = {
    .operation = "permute",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: each row gathers its token.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_permute,
};

const struct tl_kernel tl_kernel_permute_backward_cpu_plain = {
    .operation = "permute_backward",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: each token adds up its rows in slot order.",
    .dtypes = TL_WIDE_FLOATS,
    .launch = launch_backward,
};
