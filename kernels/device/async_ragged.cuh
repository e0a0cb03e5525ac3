/* TMA loads through ragged maps (tensor_map.h), and stores and sums into three-dimensional ones.
 * PTX wrappers only, like async.cuh.
 */
#ifndef TL_ASYNC_RAGGED_CUH
#define TL_ASYNC_RAGGED_CUH

#include "kernels/device/async.cuh"

static __device__ __forceinline__ void tl_tma_load_4d(void *shared, const CUtensorMap *map,
                                                      uint64_t *barrier, int x, int y, int z, int w)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(tl_shared_address(shared)),
                 "l"(map), "r"(tl_shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

static __device__ __forceinline__ void tl_tma_load_5d(void *shared, const CUtensorMap *map,
                                                      uint64_t *barrier, int x, int y, int z, int w,
                                                      int v)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(tl_shared_address(shared)),
                 "l"(map), "r"(tl_shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
                 : "memory");
}

static __device__ __forceinline__ void tl_tma_store_3d(const CUtensorMap *map, const void *shared,
                                                       int x, int y, int z)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
            map),
        "r"(tl_shared_address(shared)), "r"(x), "r"(y), "r"(z)
        : "memory");
}

/* Adds to what is there, element by element, each sum rounded once. */
static __device__ __forceinline__ void tl_tma_add_3d(const CUtensorMap *map, const void *shared,
                                                     int x, int y, int z)
{
    asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.bulk_group"
                 " [%0, {%2, %3, %4}], [%1];" ::"l"(map),
                 "r"(tl_shared_address(shared)), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

#endif
