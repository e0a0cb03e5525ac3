/* probe_mma: wgmma m64n256k16, bf16 to fp32, on operands that stay in shared memory.
 *
 * Both operands lie in shared memory as TMA's 128-byte swizzle would leave them: rows of 64 bf16,
 * 16-byte chunk c of row r at chunk c xor (r mod 8). One warpgroup issues `repeats` times the four
 * k-steps of 16. PTX ISA 8.x, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate".
 */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "kernels/device/launch.h"
#include "kernels/device/vectors.h"
#include "kernels/device/wgmma.cuh"
#include "kernels/probe/op.h"

enum { M = 64, N = 256, K = 64, THREADS = 128 };
static const int SHARED_BYTES = (M + N) * K * 2 + 1024; /* and room to align to 1024 */

/* Rows of K bf16 from global memory into the swizzled layout. */
static __device__ void load_swizzled(char *shared, const __nv_bfloat16 *source, int rows)
{
    for (int i = threadIdx.x; i < rows * 8; i += THREADS) {
        int row = i / 8, chunk = i % 8;
        *(uint4 *)(shared + row * 128 + ((chunk ^ (row % 8)) * 16)) =
            *(const uint4 *)(source + row * K + chunk * 8);
    }
}

static __global__ void __launch_bounds__(THREADS)
    mma_kernel(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *d, int repeats)
{
    extern __shared__ char raw[];
    char *shared_a = (char *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023);
    char *shared_b = shared_a + M * 128;
    load_swizzled(shared_a, a, M);
    load_swizzled(shared_b, b, N);
    tl_fence_async_shared();
    __syncthreads();

    float acc[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; i++)
        acc[i] = 0;
    uint64_t desc_a = tl_wgmma_desc_128b(shared_a), desc_b = tl_wgmma_desc_128b(shared_b);
    for (int repeat = 0; repeat < repeats; repeat++) {
        tl_wgmma_fence();
#pragma unroll
        for (int k = 0; k < K / 16; k++) /* 16 bf16 are 32 bytes, two units of the address field */
            tl_wgmma_bf16<256>(acc, desc_a + 2 * k, desc_b + 2 * k);
        tl_wgmma_commit();
        tl_wgmma_wait<0>();
    }

    float *out = d + (int64_t)blockIdx.x * M * N;
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < N / 8; i++) {
        *(float2 *)(out + row * N + 8 * i + column) = make_float2(acc[4 * i], acc[4 * i + 1]);
        *(float2 *)(out + (row + 8) * N + 8 * i + column) =
            make_float2(acc[4 * i + 2], acc[4 * i + 3]);
    }
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    unsigned blocks = (unsigned)plan->problem.dim[TL_PROBE_MMA_BLOCKS];
    TL_TRY(tl_vectors_aligned(plan, args, ~0u));
    if (blocks == 0)
        return TL_OK;
    TL_TRY(
        TL_CUDA_STATUS(plan, "shared memory of mma_kernel",
                       cudaFuncSetAttribute(mma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            SHARED_BYTES)));
    mma_kernel<<<blocks, THREADS, SHARED_BYTES, tl_cuda_stream(stream)>>>(
        (const __nv_bfloat16 *)args->tensor[TL_PROBE_MMA_A].data,
        (const __nv_bfloat16 *)args->tensor[TL_PROBE_MMA_B].data,
        (float *)args->tensor[TL_PROBE_MMA_D].data, (int)plan->problem.param[TL_PROBE_MMA_REPEATS]);
    return TL_CUDA_LAUNCHED(plan, "mma_kernel");
}

extern "C" const struct tl_kernel tl_kernel_probe_mma_sm90_wgmma = {
    .operation = "probe_mma",
    .variant = "sm90_wgmma",
    .arch = "sm90",
    .summary = "wgmma m64n256k16 from shared memory, one warpgroup a block.",
    .launch = launch,
};
