/* Element types and their host conversions, bit-exact to IEEE 754 round-to-nearest-even.
 *
 * fp64 is for references and gradient checks. e4m3 and e8m0 can be stored and
 * copied; their conversions belong to the MXFP8 kernels.
 */
#ifndef TL_DTYPE_H
#define TL_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tl_dtype {
    TL_FP64,
    TL_FP32,
    TL_BF16,
    TL_I32,
    TL_U8,
    TL_E4M3,
    TL_E8M0,
    TL_NUM_DTYPES,
};

/* Sets of dtypes, as in struct tl_arg_spec. */
#define TL_DTYPE_BIT(dtype) (1u << (dtype))
#define TL_FLOATS (TL_DTYPE_BIT(TL_FP64) | TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16))
#define TL_WIDE_FLOATS (TL_DTYPE_BIT(TL_FP64) | TL_DTYPE_BIT(TL_FP32))

size_t tl_dtype_size(enum tl_dtype dtype);

/* "fp64" "fp32" "bf16" "i32" "u8" "e4m3" "e8m0". */
const char *tl_dtype_name(enum tl_dtype dtype);

/* TL_ERR_ARGUMENT lists the valid names. */
enum tl_status tl_dtype_parse(const char *name, enum tl_dtype *out);

/* Round to nearest even; overflow gives infinity; NaN stays NaN (quiet, sign kept). */
uint16_t tl_bf16_from_fp32(float value);
/* One rounding from fp64, not two by way of fp32. */
uint16_t tl_bf16_from_fp64(double value);
float tl_bf16_to_fp32(uint16_t bits);

/* Converts `count` contiguous host elements. Floats to i32 and u8 truncate towards zero and
 * saturate, NaN gives 0. Between floats: round to nearest even. TL_ERR_UNSUPPORTED for e4m3 and
 * e8m0 unless both sides are the same. `dst` and `src` must not overlap. */
enum tl_status tl_convert(void *dst, enum tl_dtype dst_dtype, const void *src,
                          enum tl_dtype src_dtype, size_t count);

/* One element as a double (u8, i32 and all floats are exact), and back. */
double tl_element_get(const void *data, enum tl_dtype dtype, int64_t index);
void tl_element_set(void *data, enum tl_dtype dtype, int64_t index, double value);

#ifdef __cplusplus
}
#endif
#endif
