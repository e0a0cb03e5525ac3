/* Elements of float tensors as doubles, whatever their dtype is: for references and checks, which
 * take any. Doubles round once on their way out. */
#ifndef TL_ELEMENT_CUH
#define TL_ELEMENT_CUH

#include <cuda_bf16.h>

#include "core/dtype.h"

static __device__ __forceinline__ double tl_element_load(const void *data, enum tl_dtype dtype,
                                                         int64_t index)
{
    switch (dtype) {
    case TL_FP64: return ((const double *)data)[index];
    case TL_FP32: return ((const float *)data)[index];
    default: return __bfloat162float(((const __nv_bfloat16 *)data)[index]);
    }
}

static __device__ __forceinline__ void tl_element_store(void *data, enum tl_dtype dtype,
                                                        int64_t index, double value)
{
    switch (dtype) {
    case TL_FP64: ((double *)data)[index] = value; break;
    case TL_FP32: ((float *)data)[index] = (float)value; break;
    default: ((__nv_bfloat16 *)data)[index] = __double2bfloat16(value);
    }
}

#endif
