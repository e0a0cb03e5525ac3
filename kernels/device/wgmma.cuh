/* wgmma, once: fences, descriptors and the shapes in use (PTX ISA, "Asynchronous Warpgroup Level
 * Matrix Multiply-Accumulate"; sm_90a only).
 */
#ifndef TL_WGMMA_CUH
#define TL_WGMMA_CUH

#include <stdint.h>

#include "kernels/device/wgmma_shapes.cuh"

/* Orders ordinary writes to shared memory before reads by the async proxy (wgmma, TMA); each
 * writing thread, before the barrier. */
static __device__ __forceinline__ void tl_fence_async_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Before the first wgmma of a sequence: registers and shared memory as written so far. */
static __device__ __forceinline__ void tl_wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void tl_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most PENDING committed groups are unfinished. */
template <int PENDING> static __device__ __forceinline__ void tl_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Descriptor of a K-major operand in the 128-byte swizzle: rows of 128 bytes, groups of eight rows
 * 1024 bytes apart, start aligned to 1024. The leading offset is unused in this mode. */
static __device__ __forceinline__ uint64_t tl_wgmma_desc_128b(const void *shared)
{
    uint64_t address = (uint64_t)__cvta_generic_to_shared(shared);
    return ((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

/* Descriptor of an MN-major operand in the 128-byte swizzle: panels of 64 columns (128 bytes) by 64
 * rows along K, `panel_bytes` apart; eight rows along K are 1024 bytes, so a k-step of 16 advances
 * the start by 2048. */
static __device__ __forceinline__ uint64_t tl_wgmma_desc_128b_mn(const void *shared,
                                                                 int panel_bytes)
{
    uint64_t address = (uint64_t)__cvta_generic_to_shared(shared);
    return ((address & 0x3ffff) >> 4) | (uint64_t)(panel_bytes >> 4) << 16 |
           (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

#endif
