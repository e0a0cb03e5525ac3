/* Asynchronous data movement on sm_90: mbarriers, TMA loads and stores, named barriers, register
 * reallocation. PTX wrappers only (PTX ISA, "Data Movement and Conversion Instructions",
 * "mbarrier", "setmaxnreg").
 */
#ifndef TL_ASYNC_CUH
#define TL_ASYNC_CUH

#include <cuda.h>
#include <stdint.h>

static __device__ __forceinline__ uint32_t tl_shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

static __device__ __forceinline__ void tl_mbarrier_init(uint64_t *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(tl_shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

/* Makes initialised barriers visible to the async proxy; before the block's first barrier. */
static __device__ __forceinline__ void tl_mbarrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ __forceinline__ void tl_mbarrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(tl_shared_address(barrier))
                 : "memory");
}

/* One arrival, and `bytes` that TMA loads will bring. */
static __device__ __forceinline__ void tl_mbarrier_expect(uint64_t *barrier, uint32_t bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(tl_shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

/* True in one lane of a converged warp. What such a lane issues to TMA takes uniform registers when
 * the compiler sees that the warp agrees on the operands; otherwise every instruction comes with a
 * loop over the lanes. The warp must be converged there too (__syncwarp after a wait): the compiler
 * may leave the predicate out, since such instructions run once for a warp. */
static __device__ __forceinline__ bool tl_elect()
{
    uint32_t elected;
    asm volatile("{\n"
                 ".reg .pred elected;\n"
                 "elect.sync _|elected, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, elected;\n"
                 "}\n"
                 : "=r"(elected));
    return elected != 0;
}

/* The value of lane 0, which the compiler then knows to be the same in all lanes. */
static __device__ __forceinline__ int tl_uniform(int value)
{
    return __shfl_sync(0xffffffffu, value, 0);
}

/* Waits until the phase of that parity is complete. */
static __device__ __forceinline__ void tl_mbarrier_wait(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}\n" ::"r"(tl_shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* Box loads into shared memory; out-of-bounds elements arrive as zeros and count as bytes. */
static __device__ __forceinline__ void tl_tma_load_2d(void *shared, const CUtensorMap *map,
                                                      uint64_t *barrier, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4}], [%2];" ::"r"(tl_shared_address(shared)),
                 "l"(map), "r"(tl_shared_address(barrier)), "r"(x), "r"(y)
                 : "memory");
}

static __device__ __forceinline__ void tl_tma_load_3d(void *shared, const CUtensorMap *map,
                                                      uint64_t *barrier, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(tl_shared_address(shared)),
                 "l"(map), "r"(tl_shared_address(barrier)), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* `bytes` contiguous bytes into shared memory; both addresses and the count are multiples of 16. */
static __device__ __forceinline__ void tl_bulk_load(void *shared, const void *global,
                                                    uint32_t bytes, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(tl_shared_address(shared)),
                 "l"(global), "r"(bytes), "r"(tl_shared_address(barrier))
                 : "memory");
}

/* Asks L2 for contiguous bytes and waits for nothing; address and count are multiples of 16. */
static __device__ __forceinline__ void tl_bulk_ask_l2(const void *global, uint32_t bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

/* Box store from shared memory; out-of-bounds elements are dropped. */
static __device__ __forceinline__ void tl_tma_store_4d(const CUtensorMap *map, const void *shared,
                                                       int x, int y, int z, int w)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
            map),
        "r"(tl_shared_address(shared)), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

static __device__ __forceinline__ void tl_tma_store_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until at most PENDING committed stores still read shared memory. */
template <int PENDING> static __device__ __forceinline__ void tl_tma_store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* Waits until all committed stores are complete. */
static __device__ __forceinline__ void tl_tma_store_wait_all()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

static __device__ __forceinline__ void tl_prefetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Barrier `id` (1 to 15) among `threads` threads. */
static __device__ __forceinline__ void tl_named_barrier(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

template <int REGISTERS> static __device__ __forceinline__ void tl_registers_grow()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> static __device__ __forceinline__ void tl_registers_shrink()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* Four 8x8 tiles of 16-bit elements from registers to shared memory, one row address a lane;
 * transposed, the addresses are those of the tiles' columns. */
static __device__ __forceinline__ void tl_stmatrix_x4(void *shared, uint32_t r0, uint32_t r1,
                                                      uint32_t r2, uint32_t r3)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     tl_shared_address(shared)),
                 "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}

static __device__ __forceinline__ void tl_stmatrix_x4_transposed(void *shared, uint32_t r0,
                                                                 uint32_t r1, uint32_t r2,
                                                                 uint32_t r3)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     tl_shared_address(shared)),
                 "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}

#endif
