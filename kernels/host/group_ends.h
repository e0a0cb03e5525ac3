/* Checks of group_ends, the relatives of group_offsets without a leading zero: group g reaches from
 * the end of the group before it (from 0 when it is the first) up to, not including, group_ends[g].
 * What lies past the last end belongs to nobody. For the host, and for kernels on the device
 * (kernels/device/group_ends.cuh), which so find the same fault first and say the same words.
 */
#ifndef TL_GROUP_ENDS_H
#define TL_GROUP_ENDS_H

#include "core/kernel.h"
#include "kernels/host/group_offsets.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tl_fault.kind; tl_fault.value is the end, the one before it, and what the groups share. */
enum tl_group_ends_fault {
    TL_ENDS_DECREASE = 1, /* or the first is below 0 */
    TL_ENDS_BEYOND,       /* the last one is beyond what the groups share */
};

/* Describes the first thing that is wrong with the ends of groups that share `total`; false when
 * all is well. */
static inline TL_HOST_DEVICE bool tl_group_ends_find(const int32_t *ends, int64_t num_groups,
                                                     int64_t total, struct tl_fault *out)
{
    int32_t before = 0;
    for (int64_t g = 0; g < num_groups; g++) {
        bool decreases = ends[g] < before, beyond = g == num_groups - 1 && ends[g] > total;
        if (decreases || beyond) {
            out->kind = decreases ? TL_ENDS_DECREASE : TL_ENDS_BEYOND;
            out->position = g;
            out->value[0] = ends[g];
            out->value[1] = before;
            out->value[2] = total;
            return true;
        }
        before = ends[g];
    }
    return false;
}

/* Records the words for a fault of ends: tl_operation.explain. */
enum tl_status tl_group_ends_explain(const char *who, const struct tl_fault *fault);

/* TL_ERR_ARGUMENT with the position and the values where the ends decrease, begin below 0, or pass
 * `total`. `operation` begins the message. */
enum tl_status tl_group_ends_check(const char *operation, const struct tl_tensor *group_ends,
                                   int64_t total);

#ifdef __cplusplus
}
#endif
#endif
