/* Launcher of the kernel in cuda_random.cu; returns a cudaError_t. */
#ifndef TL_CUDA_RANDOM_H
#define TL_CUDA_RANDOM_H

#include "core/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dtype: TL_FP64, TL_FP32 or TL_BF16; count at least 1. */
int tl_cuda_random_normal(void *data, enum tl_dtype dtype, int64_t count,
                          const struct tl_normal *normal, int num_sms, void *stream);

#ifdef __cplusplus
}
#endif
#endif
