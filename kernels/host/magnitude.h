/* The optional output `magnitude` of the grouped products: for each element of d the sum of |a| |b|
 * behind it (and |d| where the product is added), in fp64. Checks hold rounding errors against it.
 * It costs a second product, so of all variants only the references write it.
 */
#ifndef TL_HOST_MAGNITUDE_H
#define TL_HOST_MAGNITUDE_H

#include "core/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_gemm_call;

/* For `legal` of a variant that does not give it: TL_ERR_ILLEGAL where it is bound. */
enum tl_status tl_magnitude_refuse(const struct tl_problem *problem, const char *variant);

/* Bytes that tl_magnitude_run needs for operands of a_numel and b_numel elements; 0 where
 * `magnitude` is not bound. */
size_t tl_magnitude_workspace(const struct tl_problem *problem, int64_t a_numel, int64_t b_numel);

/* Runs the call on |a|, |b| and |d| into `magnitude`; does nothing where that is absent (rank 0).
 * To be called before the product itself, which may change d. */
void tl_magnitude_run(const struct tl_gemm_call *call, const struct tl_tensor *a,
                      const struct tl_tensor *b, const struct tl_tensor *magnitude,
                      void *workspace);

#ifdef __cplusplus
}
#endif
#endif
