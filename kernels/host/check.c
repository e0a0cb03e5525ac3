/* See check.h. */
#include "check.h"

#include "group_offsets.h"

enum tl_status tl_check_one_float(const struct tl_problem *problem)
{
    const struct tl_arg_spec *spec = problem->operation->args;
    int first = -1;
    for (int i = 0; i < TL_MAX_ARGS && spec[i].name; i++) {
        if (!problem->present[i] || !(spec[i].dtypes & TL_FLOATS))
            continue;
        if (first < 0)
            first = i;
        if (problem->dtype[i] != problem->dtype[first])
            return TL_FAIL(TL_ERR_ARGUMENT, "%s: %s is %s but %s is %s; convert one of them",
                           problem->operation->name, spec[i].name, tl_dtype_name(problem->dtype[i]),
                           spec[first].name, tl_dtype_name(problem->dtype[first]));
    }
    return TL_OK;
}

enum tl_status tl_check_indices(const struct tl_plan *plan, const struct tl_args *args, int arg,
                                int64_t low, int64_t bound)
{
    const struct tl_operation *operation = plan->problem.operation;
    if (!plan->problem.present[arg])
        return TL_OK;
    const int32_t *index = args->tensor[arg].data;
    int64_t count = tl_tensor_numel(&args->tensor[arg]);
    for (int64_t i = 0; i < count; i++) {
        if (index[i] < low || index[i] >= bound)
            return TL_FAIL(TL_ERR_ARGUMENT,
                           "%s: %s[%lld] is %d, but must be at least %lld and below %lld",
                           operation->name, operation->args[arg].name, (long long)i, index[i],
                           (long long)low, (long long)bound);
    }
    return TL_OK;
}

enum tl_status tl_check_offsets(const struct tl_plan *plan, const struct tl_args *args, int arg,
                                int64_t rows)
{
    if (!plan->problem.present[arg])
        return TL_OK;
    return tl_group_offsets_check(plan->problem.operation->name, &args->tensor[arg], rows);
}

int64_t tl_used_rows(const struct tl_plan *plan, const struct tl_args *args, int arg, int64_t rows)
{
    if (!plan->problem.present[arg])
        return rows;
    const int32_t *offset = args->tensor[arg].data;
    return offset[tl_tensor_numel(&args->tensor[arg]) - 1];
}
