/* Comparison of a result with its reference. */
#ifndef TL_COMPARE_H
#define TL_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element bound: |value - reference| <= absolute + relative * |reference| + scaled * scale[i],
 * where scale (optional, same shape) holds e.g. the sum of |a||b| behind the element. */
struct tl_bound {
    double absolute, relative, scaled;
    const struct tl_tensor *scale; /* or NULL */
};

struct tl_comparison {
    int64_t count;
    int64_t nonfinite;         /* in `value` where the reference is finite, or vice versa */
    int64_t mismatched_bits;   /* elements that differ bitwise; -1 when the dtypes differ */
    int64_t violations;        /* elements for which "within the bound" is not true, NaN included */
    double relative_frobenius; /* ||value - reference|| / ||reference||, finite pairs; inf when the
                                  reference is zero and the value is not */
    double worst_ratio;        /* largest error / bound */
    int64_t worst_index;       /* row-major position of it; -1 when count is 0 */
    int64_t worst_coord[TL_MAX_RANK];
    double worst_value, worst_reference;
    bool pass; /* violations == 0 and nonfinite == 0 */
};

/* Compares two contiguous tensors of the same shape, copied to the host where needed; dtypes may
 * differ. Equal infinities are equal; NaN against NaN counts as equal only bitwise. */
enum tl_status tl_compare(struct tl_comparison *out, const struct tl_tensor *value,
                          const struct tl_tensor *reference, const struct tl_bound *bound);

/* The same for each group of rows [offsets[g], offsets[g + 1]) of the outermost dimension, so that
 * an error shows in the group that it is in; positions are those of the whole tensor. `out` holds
 * num_groups, `offsets` num_groups + 1 values on the host. TL_ERR_ARGUMENT names an offset that
 * decreases or runs past the rows. */
enum tl_status tl_compare_groups(struct tl_comparison *out, const struct tl_tensor *value,
                                 const struct tl_tensor *reference, const struct tl_bound *bound,
                                 const int32_t *offsets, int64_t num_groups);

#ifdef __cplusplus
}
#endif
#endif
