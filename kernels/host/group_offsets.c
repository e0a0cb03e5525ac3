/* Checks of group_offsets and of the tensors that repeat what they say; see group_offsets.h. */
#include "group_offsets.h"

enum tl_status tl_group_offsets_explain(const char *who, const struct tl_fault *fault)
{
    long long at = fault->position, offset = fault->value[0], before = fault->value[1];
    switch (fault->kind) {
    case TL_OFFSETS_FIRST:
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: group_offsets[0] is %lld; the first group starts at 0",
                       who, offset);
    case TL_OFFSETS_DECREASE:
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: group_offsets[%lld] is %lld, below group_offsets[%lld] = %lld; offsets "
                       "must not decrease",
                       who, at, offset, at - 1, before);
    case TL_OFFSETS_BEYOND:
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: group_offsets[%lld] is %lld, beyond the %lld rows of the tensor", who,
                       at, offset, (long long)fault->value[2]);
    default:
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "%s: group_offsets[%lld] is %lld, no multiple of %d; pad the groups, or use "
                       "a ragged kernel",
                       who, at, offset, TL_GROUP_ALIGNMENT);
    }
}

static enum tl_status check(const char *operation, const struct tl_tensor *group_offsets,
                            int64_t rows, bool aligned)
{
    struct tl_fault fault;
    if (!tl_group_offsets_find(group_offsets->data, group_offsets->shape[0] - 1, rows, aligned,
                               &fault))
        return TL_OK;
    return tl_group_offsets_explain(operation, &fault);
}

enum tl_status tl_group_offsets_check(const char *operation, const struct tl_tensor *group_offsets,
                                      int64_t rows)
{
    return check(operation, group_offsets, rows, false);
}

/* Rows [begin, end) of row_experts: `expert` or -1, and whole tiles decided by their first row. */
static enum tl_status check_row_experts(const char *operation, const int32_t *row_experts,
                                        int64_t begin, int64_t end, int64_t expert)
{
    for (int64_t r = begin; r < end; r++) {
        if (row_experts[r] == -1)
            continue;
        if (expert < 0)
            return TL_FAIL(TL_ERR_ARGUMENT,
                           "%s: row_experts[%lld] is %d past the last of group_offsets; it must "
                           "be -1 there",
                           operation, (long long)r, row_experts[r]);
        if (row_experts[r] != expert)
            return TL_FAIL(TL_ERR_ARGUMENT,
                           "%s: row_experts[%lld] is %d; by group_offsets it must be %lld, or -1 "
                           "for a pad row",
                           operation, (long long)r, row_experts[r], (long long)expert);
        if (r % TL_GROUP_ALIGNMENT != 0 && row_experts[r - 1] == -1)
            return TL_FAIL(TL_ERR_ARGUMENT,
                           "%s: row_experts[%lld] is %d after the pad row before it; pad rows must "
                           "come last in a tile of %d rows",
                           operation, (long long)r, row_experts[r], TL_GROUP_ALIGNMENT);
    }
    return TL_OK;
}

enum tl_status tl_group_offsets_check_padded(const char *operation,
                                             const struct tl_tensor *group_offsets, int64_t rows,
                                             const struct tl_tensor *row_experts,
                                             const struct tl_tensor *counts_host)
{
    TL_TRY(check(operation, group_offsets, rows, true));
    const int32_t *offsets = group_offsets->data;
    const int32_t *counts = counts_host->rank ? counts_host->data : NULL;
    int64_t num_groups = group_offsets->shape[0] - 1;
    for (int64_t g = 0; counts && g < num_groups; g++)
        if (counts[g] != offsets[g + 1] - offsets[g])
            return TL_FAIL(TL_ERR_ARGUMENT,
                           "%s: counts_host[%lld] is %d, but group_offsets give the group %d rows",
                           operation, (long long)g, counts[g], offsets[g + 1] - offsets[g]);
    if (!row_experts->rank)
        return TL_OK;
    for (int64_t g = 0; g < num_groups; g++)
        TL_TRY(check_row_experts(operation, row_experts->data, offsets[g], offsets[g + 1], g));
    return check_row_experts(operation, row_experts->data, offsets[num_groups], rows, -1);
}
