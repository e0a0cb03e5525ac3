/* Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11, doi 10.1145/2063384.2063405).
 *
 * Element i of a tensor is a pure function of (seed, sequence, i), with integer arithmetic, one
 * exact conversion and separately rounded steps, so that every device and every thread count gives
 * the same bits. This header compiles as C and as CUDA.
 */
#ifndef TL_RANDOM_H
#define TL_RANDOM_H

#include <stdint.h>

#ifdef __CUDACC__
#define TL_HOST_DEVICE __host__ __device__
#else
#define TL_HOST_DEVICE
#endif

struct tl_random_block {
    uint32_t word[4];
};

/* The 128-bit block at `index` of stream (seed, sequence). The key is the seed; the counter is
 * {index low, index high, sequence low, sequence high}. */
static TL_HOST_DEVICE inline struct tl_random_block tl_random_at(uint64_t seed, uint64_t sequence,
                                                                 uint64_t index)
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)sequence, c3 = (uint32_t)(sequence >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xd2511f53u * c0;
        uint64_t product1 = (uint64_t)0xcd9e8d57u * c2;
        uint32_t next0 = (uint32_t)(product1 >> 32) ^ c1 ^ key0;
        uint32_t next2 = (uint32_t)(product0 >> 32) ^ c3 ^ key1;
        c1 = (uint32_t)product1;
        c3 = (uint32_t)product0;
        c0 = next0;
        c2 = next2;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    struct tl_random_block block = {{c0, c1, c2, c3}};
    return block;
}

/* 24 random bits scaled to [0, 1): exact in fp32. */
static TL_HOST_DEVICE inline float tl_random_uniform(struct tl_random_block block)
{
    return (float)(block.word[0] >> 8) * 5.9604644775390625e-8f; /* 2^-24 */
}

/* Mean 0, variance 1: the sum of eight 16-bit uniforms (Irwin-Hall), |z| <= 4.9. Chosen over
 * Box-Muller because log and cos differ between maths libraries in the last bit; the sum is an
 * integer, and the one multiplication rounds once. */
static TL_HOST_DEVICE inline float tl_random_normal(struct tl_random_block block)
{
    int32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int32_t)(block.word[i] & 0xffffu) + (int32_t)(block.word[i] >> 16);
    /* mean 8 * 65535 / 2 = 262140, variance 8 * (2^32 - 1) / 12 */
    return (float)(sum - 262140) * 1.8688123650118534e-5f;
}

/* An integer in [0, bound), bound >= 1, by multiply-shift on 64 bits: bias below 2^-32 for any
 * bound up to 2^32. */
static TL_HOST_DEVICE inline uint32_t tl_random_below(struct tl_random_block block, uint32_t bound)
{
    uint64_t wide = (uint64_t)block.word[1] * bound + (((uint64_t)block.word[0] * bound) >> 32);
    return (uint32_t)(wide >> 32);
}

#endif
