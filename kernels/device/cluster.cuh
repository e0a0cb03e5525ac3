/* Clusters of thread blocks on sm_90: ranks, the cluster's barrier, arrivals at a peer's mbarrier,
 * and loads that write to several blocks (PTX ISA, "mapa", "barrier.cluster", "mbarrier.arrive",
 * "cp.async.bulk.tensor").
 *
 * A block must not end while a peer may still write to its shared memory or arrive at its barriers:
 * kernels end with tl_cluster_sync.
 */
#ifndef TL_CLUSTER_CUH
#define TL_CLUSTER_CUH

#include "kernels/device/async.cuh"

static __device__ __forceinline__ int tl_cluster_rank()
{
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Barrier among all threads of the cluster; whole warps. What was written before it, mbarriers
 * that were initialised and fenced included, is seen after it by all blocks. */
static __device__ __forceinline__ void tl_cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* Where `shared` of this block lies in block `rank`, as an address of the cluster's window. */
static __device__ __forceinline__ uint32_t tl_cluster_address(const void *shared, int rank)
{
    uint32_t address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(address)
                 : "r"(tl_shared_address(shared)), "r"(rank));
    return address;
}

/* One arrival at a barrier of any block of the cluster. Left at its default scope: arrivals that
 * say .release.cluster stall the warp, and cost a GEMM a third of its speed on an H200. */
static __device__ __forceinline__ void tl_mbarrier_arrive_cluster(uint32_t address)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address) : "memory");
}

/* Writes a word of a block of the cluster, and counts four bytes at a barrier of that block; both
 * addresses in the cluster's window. */
static __device__ __forceinline__ void tl_cluster_send(uint32_t word, int value, uint32_t barrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                     word),
                 "r"(value), "r"(barrier)
                 : "memory");
}

/* Box load into every block whose bit of `blocks` is set, at this offset of its shared memory; the
 * bytes count at the barrier of this offset in each. */
static __device__ __forceinline__ void tl_tma_multicast_2d(void *shared, const CUtensorMap *map,
                                                           uint64_t *barrier, int x, int y,
                                                           uint16_t blocks)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(
                     tl_shared_address(shared)),
                 "l"(map), "r"(tl_shared_address(barrier)), "r"(x), "r"(y), "h"(blocks)
                 : "memory");
}

static __device__ __forceinline__ void tl_tma_multicast_3d(void *shared, const CUtensorMap *map,
                                                           uint64_t *barrier, int x, int y, int z,
                                                           uint16_t blocks)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(
                     tl_shared_address(shared)),
                 "l"(map), "r"(tl_shared_address(barrier)), "r"(x), "r"(y), "r"(z), "h"(blocks)
                 : "memory");
}

static __device__ __forceinline__ void tl_tma_multicast_4d(void *shared, const CUtensorMap *map,
                                                           uint64_t *barrier, int x, int y, int z,
                                                           int w, uint16_t blocks)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(
                     tl_shared_address(shared)),
                 "l"(map), "r"(tl_shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w),
                 "h"(blocks)
                 : "memory");
}

static __device__ __forceinline__ void tl_tma_multicast_5d(void *shared, const CUtensorMap *map,
                                                           uint64_t *barrier, int x, int y, int z,
                                                           int w, int v, uint16_t blocks)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(
                     tl_shared_address(shared)),
                 "l"(map), "r"(tl_shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v),
                 "h"(blocks)
                 : "memory");
}

/* Box store of one block, without a bound of its own; out-of-bounds elements are dropped. */
static __device__ __forceinline__ void tl_tma_store_2d(const CUtensorMap *map, const void *shared,
                                                       int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"
                 " [%0, {%2, %3}], [%1];" ::"l"(map),
                 "r"(tl_shared_address(shared)), "r"(x), "r"(y)
                 : "memory");
}

#endif
