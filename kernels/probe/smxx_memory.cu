/* Memory probes: copy, strided loads, bank conflicts; see op.h. Loads are volatile, in C++ and in
 * PTX, so that neither compiler merges or hoists one.
 */
#include <cuda_runtime.h>

#include "kernels/device/launch.h"
#include "kernels/device/vectors.h"
#include "kernels/probe/op.h"

enum { THREADS = 256 };

/* 16 bytes a thread and four loads in flight; whole warps cover whole sectors. */
static __global__ void __launch_bounds__(THREADS)
    copy_kernel(const uint4 *__restrict__ src, uint4 *__restrict__ dst, int64_t count)
{
    int64_t first = (int64_t)blockIdx.x * THREADS * 4 + threadIdx.x;
    uint4 value[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (first + i * THREADS < count)
            value[i] = __ldcs(src + first + i * THREADS);
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (first + i * THREADS < count)
            __stcs(dst + first + i * THREADS, value[i]);
}

static enum tl_status copy_launch(const struct tl_plan *plan, const struct tl_args *args,
                                  struct tl_stream *stream)
{
    int64_t count = plan->problem.dim[0] / 4;
    TL_TRY(tl_vectors_aligned(plan, args, ~0u));
    if (count == 0)
        return TL_OK;
    unsigned blocks = (unsigned)((count + THREADS * 4 - 1) / (THREADS * 4));
    copy_kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(
        (const uint4 *)args->tensor[TL_PROBE_COPY_SRC].data,
        (uint4 *)args->tensor[TL_PROBE_COPY_DST].data, count);
    return TL_CUDA_LAUNCHED(plan, "copy_kernel");
}

static __global__ void __launch_bounds__(THREADS)
    stride_kernel(const float *src, float *dst, int stride, int loads)
{
    int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const float *address = src + thread * stride;
    float sum = 0;
    for (int i = 0; i < loads; i++) {
        float value;
        asm volatile("ld.volatile.global.f32 %0, [%1];" : "=f"(value) : "l"(address) : "memory");
        sum += value;
    }
    dst[thread] = sum;
}

static enum tl_status stride_launch(const struct tl_plan *plan, const struct tl_args *args,
                                    struct tl_stream *stream)
{
    unsigned blocks = (unsigned)(plan->problem.dim[TL_PROBE_STRIDE_THREADS] / THREADS);
    if (blocks == 0)
        return TL_OK;
    stride_kernel<<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(
        (const float *)args->tensor[TL_PROBE_STRIDE_SRC].data,
        (float *)args->tensor[TL_PROBE_STRIDE_DST].data,
        (int)plan->problem.param[TL_PROBE_STRIDE_STRIDE],
        (int)plan->problem.param[TL_PROBE_STRIDE_LOADS]);
    return TL_CUDA_LAUNCHED(plan, "stride_kernel");
}

/* Lanes below `ways` read bank 0, each another row; the rest read row 0 of the bank that is their
 * number. Words hold their own index. */
static __global__ void __launch_bounds__(32) conflict_kernel(float *dst, int ways, int loads)
{
    __shared__ float words[32 * 32];
    for (int i = threadIdx.x; i < 32 * 32; i += 32)
        words[i] = (float)i;
    __syncwarp();
    int lane = threadIdx.x, word = lane < ways ? 32 * lane : lane;
    unsigned address = (unsigned)__cvta_generic_to_shared(words + word);
    float sum = 0;
    for (int i = 0; i < loads; i++) {
        float value;
        asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
        sum += value;
    }
    dst[lane] = sum;
}

static enum tl_status conflict_launch(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    conflict_kernel<<<1, 32, 0, tl_cuda_stream(stream)>>>(
        (float *)args->tensor[TL_PROBE_CONFLICT_DST].data,
        (int)plan->problem.param[TL_PROBE_CONFLICT_WAYS],
        (int)plan->problem.param[TL_PROBE_CONFLICT_LOADS]);
    return TL_CUDA_LAUNCHED(plan, "conflict_kernel");
}

extern "C" const struct tl_kernel tl_kernel_probe_copy_smxx_vec16 = {
    .operation = "probe_copy",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "16-byte streaming loads and stores, four in flight a thread.",
    .launch = copy_launch,
};

extern "C" const struct tl_kernel tl_kernel_probe_stride_smxx_plain = {
    .operation = "probe_stride",
    .variant = "smxx_plain",
    .arch = "smxx",
    .summary = "One 4-byte load an iteration and thread, neighbours `stride` words apart.",
    .launch = stride_launch,
};

extern "C" const struct tl_kernel tl_kernel_probe_conflict_smxx_plain = {
    .operation = "probe_conflict",
    .variant = "smxx_plain",
    .arch = "smxx",
    .summary = "One warp, one 4-byte shared load an iteration, `ways` words in one bank.",
    .launch = conflict_launch,
};
