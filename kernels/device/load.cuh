/* Vector loads. tl_load_constant is for memory that nobody writes during the kernel; where `wanted`
 * is false the words stay as they are, so that no register is copied for it. PREFETCH: bytes around
 * the address that L2 may fetch as well, 0 or 256 (PTX ISA, "ld.global.nc", .level::prefetch_size).
 */
#ifndef TL_DEVICE_LOAD_CUH
#define TL_DEVICE_LOAD_CUH

#include <stdint.h>

template <int PREFETCH>
static __device__ __forceinline__ void tl_load_constant(uint32_t (&word)[4], const void *address,
                                                        bool wanted)
{
    if (PREFETCH == 256)
        asm volatile("{.reg .pred wanted;\n"
                     "setp.ne.u32 wanted, %5, 0;\n"
                     "@wanted ld.global.nc.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];}"
                     : "+r"(word[0]), "+r"(word[1]), "+r"(word[2]), "+r"(word[3])
                     : "l"(address), "r"((uint32_t)wanted));
    else
        asm volatile("{.reg .pred wanted;\n"
                     "setp.ne.u32 wanted, %5, 0;\n"
                     "@wanted ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];}"
                     : "+r"(word[0]), "+r"(word[1]), "+r"(word[2]), "+r"(word[3])
                     : "l"(address), "r"((uint32_t)wanted));
}

template <int PREFETCH>
static __device__ __forceinline__ void tl_load_constant(uint32_t (&word)[2], const void *address,
                                                        bool wanted)
{
    static_assert(PREFETCH == 0, "no 8-byte load with a hint");
    asm volatile("{.reg .pred wanted;\n"
                 "setp.ne.u32 wanted, %3, 0;\n"
                 "@wanted ld.global.nc.v2.u32 {%0, %1}, [%2];}"
                 : "+r"(word[0]), "+r"(word[1])
                 : "l"(address), "r"((uint32_t)wanted));
}

/* Asks L2 for the sector at an address of global memory, and waits for nothing. */
static __device__ __forceinline__ void tl_ask_l2(const void *address)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address) : "memory");
}

/* 16 bytes of shared memory, volatile lest they are cut to those in use: what a warp reads is free
 * of bank conflicts where its words alone would not be. */
static __device__ __forceinline__ void tl_load_shared(uint32_t (&word)[4], const void *address)
{
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(address))
                 : "memory");
}

#endif
