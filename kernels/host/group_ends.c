/* Checks of group_ends; see group_ends.h. */
#include "group_ends.h"

enum tl_status tl_group_ends_explain(const char *who, const struct tl_fault *fault)
{
    long long at = fault->position, end = fault->value[0], before = fault->value[1];
    if (fault->kind == TL_ENDS_BEYOND)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: group_ends[%lld] is %lld, beyond the %lld that the groups share",
                       who, at, end, (long long)fault->value[2]);
    if (at == 0)
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: group_ends[0] is %lld; the first group starts at 0",
                       who, end);
    return TL_FAIL(TL_ERR_ARGUMENT,
                   "%s: group_ends[%lld] is %lld, below group_ends[%lld] = %lld; ends must not "
                   "decrease",
                   who, at, end, at - 1, before);
}

enum tl_status tl_group_ends_check(const char *operation, const struct tl_tensor *group_ends,
                                   int64_t total)
{
    struct tl_fault fault;
    if (!tl_group_ends_find(group_ends->data, group_ends->shape[0], total, &fault))
        return TL_OK;
    return tl_group_ends_explain(operation, &fault);
}
