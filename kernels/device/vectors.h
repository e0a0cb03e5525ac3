/* What kernels that move rows in pieces of 16 bytes, and count in i32, ask of a problem and of its
 * tensors. */
#ifndef TL_DEVICE_VECTORS_H
#define TL_DEVICE_VECTORS_H

#include "core/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For `legal`: TL_ERR_ILLEGAL where dimension `dim`, in elements of `dtype`, is no whole number of
 * 16-byte accesses; the message says what it must be a multiple of. */
enum tl_status tl_vectors_legal(const struct tl_problem *problem, const char *variant,
                                const char *dim, int64_t size, enum tl_dtype dtype);

/* For `legal`: TL_ERR_ILLEGAL where a dimension is beyond what i32 numbers count, with room for a
 * step of 1024 past the end. */
enum tl_status tl_vectors_small(const struct tl_problem *problem, const char *variant);

/* For `launch`: TL_ERR_ARGUMENT names an argument of `set` (bits by position) that does not begin
 * at a multiple of 16 bytes. Absent arguments pass. */
enum tl_status tl_vectors_aligned(const struct tl_plan *plan, const struct tl_args *args,
                                  unsigned set);

#ifdef __cplusplus
}
#endif
#endif
