/* See check.h. */
#include "check.h"

#include "group_offsets.h"

static enum tl_status mismatch(const struct tl_problem *problem, int arg, int first)
{
    const struct tl_arg_spec *spec = problem->operation->args;
    return TL_FAIL(TL_ERR_ARGUMENT, "%s: %s is %s but %s is %s; convert one of them",
                   problem->operation->name, spec[arg].name, tl_dtype_name(problem->dtype[arg]),
                   spec[first].name, tl_dtype_name(problem->dtype[first]));
}

/* The first float argument that is present and in none of the sets, -1 without one. */
static int first_float(const struct tl_problem *problem, unsigned sets)
{
    const struct tl_arg_spec *spec = problem->operation->args;
    for (int i = 0; i < TL_MAX_ARGS && spec[i].name; i++)
        if (problem->present[i] && (spec[i].dtypes & TL_FLOATS) && !(sets >> i & 1))
            return i;
    return -1;
}

enum tl_status tl_check_floats(const struct tl_problem *problem, unsigned statistics,
                               unsigned rows)
{
    const struct tl_arg_spec *spec = problem->operation->args;
    int first = first_float(problem, statistics | rows), first_row = first_float(problem, ~rows);
    if (first < 0)
        return TL_OK;
    enum tl_dtype dtype = problem->dtype[first], row_dtype = dtype;
    if (first_row >= 0 && dtype == TL_FP32 && problem->dtype[first_row] == TL_BF16)
        row_dtype = TL_BF16;
    for (int i = 0; i < TL_MAX_ARGS && spec[i].name; i++) {
        enum tl_dtype expected = dtype;
        if (statistics >> i & 1)
            expected = dtype == TL_BF16 ? TL_FP32 : dtype;
        else if (rows >> i & 1)
            expected = row_dtype;
        if (problem->present[i] && (spec[i].dtypes & TL_FLOATS) && problem->dtype[i] != expected)
            return mismatch(problem, i, rows >> i & 1 && i != first_row ? first_row : first);
    }
    return TL_OK;
}

enum tl_status tl_check_one_float(const struct tl_problem *problem)
{
    return tl_check_floats(problem, 0, 0);
}

enum tl_status tl_index_explain(const char *who, const char *arg, const struct tl_fault *fault)
{
    return TL_FAIL(TL_ERR_ARGUMENT,
                   "%s: %s[%lld] is %lld, but must be at least %lld and below %lld", who, arg,
                   (long long)fault->position, (long long)fault->value[0],
                   (long long)fault->value[1], (long long)fault->value[2]);
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
        struct tl_fault fault = {.position = i, .value = {index[i], low, bound}};
        if (index[i] < low || index[i] >= bound)
            return tl_index_explain(operation->name, operation->args[arg].name, &fault);
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
