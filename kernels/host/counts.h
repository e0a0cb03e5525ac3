/* counts_host: the rows of each group, where the host must know them. */
#ifndef TL_HOST_COUNTS_H
#define TL_HOST_COUNTS_H

#include "core/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For `legal`: TL_ERR_ILLEGAL where counts_host is not bound; `reason` says why the variant needs
 * it. */
enum tl_status tl_counts_require(const struct tl_problem *problem, const char *variant,
                                 const char *reason);

/* For `launch`: adds the counts up. TL_ERR_ARGUMENT names the first that is negative or leads
 * beyond `rows`, TL_ERR_ILLEGAL the first that is no multiple of `alignment`. */
enum tl_status tl_counts_sum(const struct tl_plan *plan, const struct tl_tensor *counts,
                             int64_t rows, int alignment, int64_t *out);

#ifdef __cplusplus
}
#endif
#endif
