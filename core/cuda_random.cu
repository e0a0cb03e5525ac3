/* Normal numbers made where they are wanted: the elements that tensor_random.c makes on the host,
 * in the same steps, each rounded on its own. */
#include "core/cuda_random.h"
#include "core/random.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

static __device__ __forceinline__ void put(double *to, double value)
{
    *to = value;
}

static __device__ __forceinline__ void put(float *to, double value)
{
    *to = __double2float_rn(value);
}

static __device__ __forceinline__ void put(__nv_bfloat16 *to, double value)
{
    *to = __double2bfloat16(value); /* one rounding */
}

template <typename T>
static __global__ void __launch_bounds__(256)
draw_normal(T *data, int64_t count, double mean, double deviation, uint64_t seed, uint64_t sequence)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        double z = (double)tl_random_normal(tl_random_at(seed, sequence, (uint64_t)i));
        put(data + i, __dadd_rn(mean, __dmul_rn(deviation, z)));
    }
}

template <typename T>
static int launch(void *data, int64_t count, const struct tl_normal *normal, int blocks,
                  void *stream)
{
    draw_normal<<<blocks, 256, 0, (cudaStream_t)stream>>>((T *)data, count, normal->mean,
                                                          normal->deviation, normal->seed,
                                                          normal->sequence);
    return (int)cudaGetLastError();
}

extern "C" int tl_cuda_random_normal(void *data, enum tl_dtype dtype, int64_t count,
                                     const struct tl_normal *normal, int num_sms, void *stream)
{
    switch (dtype) {
    case TL_FP64: return launch<double>(data, count, normal, num_sms * 8, stream);
    case TL_FP32: return launch<float>(data, count, normal, num_sms * 8, stream);
    default: return launch<__nv_bfloat16>(data, count, normal, num_sms * 8, stream);
    }
}
