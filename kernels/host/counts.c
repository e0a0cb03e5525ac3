/* See counts.h. */
#include "counts.h"

enum tl_status tl_counts_require(const struct tl_problem *problem, const char *variant,
                                 const char *reason)
{
    if (problem->present[tl_operation_arg(problem->operation, "counts_host")])
        return TL_OK;
    return TL_FAIL(TL_ERR_ILLEGAL, "%s/%s: 'counts_host' [num_groups] is missing: %s",
                   problem->operation->name, variant, reason);
}

enum tl_status tl_counts_sum(const struct tl_plan *plan, const struct tl_tensor *counts,
                             int64_t rows, int alignment, int64_t *out)
{
    const char *operation = plan->kernel->operation, *variant = plan->kernel->variant;
    const int32_t *count = counts->data;
    *out = 0;
    for (int64_t g = 0; g < counts->shape[0]; g++) {
        if (count[g] < 0)
            return TL_FAIL(TL_ERR_ARGUMENT, "%s/%s: counts_host[%lld] is %d, below 0", operation,
                           variant, (long long)g, count[g]);
        if (count[g] % alignment != 0)
            return TL_FAIL(TL_ERR_ILLEGAL,
                           "%s/%s: counts_host[%lld] is %d, no multiple of %d; pad the groups, or "
                           "use a ragged kernel",
                           operation, variant, (long long)g, count[g], alignment);
        *out += count[g];
        if (*out > rows)
            return TL_FAIL(TL_ERR_ARGUMENT,
                           "%s/%s: counts_host[0] to [%lld] add up to %lld, beyond the %lld rows "
                           "of the tensor",
                           operation, variant, (long long)g, (long long)*out, (long long)rows);
    }
    return TL_OK;
}
