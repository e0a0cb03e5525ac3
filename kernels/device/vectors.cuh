/* Neighbouring elements of float tensors, moved 16 bytes at a time and computed on in fp32.
 *
 *   constexpr int N = tl_vector_width<T>();             elements that one access of a lane moves
 *   tl_vector<T, N> raw = tl_vector_load<T, N>(x + column);
 *   float value[N]; tl_vector_widen(raw, value);
 *   tl_vector_store(y + column, tl_vector_narrow<T, N>(value));
 *
 * Where tensors of two types meet, N follows the wider type and the narrower moves 8 bytes. Loads
 * are for what is read once (evict first), and several are to be in flight before the first use.
 */
#ifndef TL_DEVICE_VECTORS_CUH
#define TL_DEVICE_VECTORS_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

template <int BYTES> struct tl_words;
template <> struct tl_words<8> {
    typedef uint2 type;
};
template <> struct tl_words<16> {
    typedef uint4 type;
};

/* As in memory. */
template <typename T, int N> struct tl_vector {
    static_assert(N * sizeof(T) == 8 || N * sizeof(T) == 16, "an access moves 8 or 16 bytes");
    typedef typename tl_words<N * sizeof(T)>::type words_type;
    union {
        words_type words;
        unsigned word[N * sizeof(T) / 4];
    };
};

template <typename T, typename U = T> static __host__ __device__ constexpr int tl_vector_width()
{
    return 16 / (int)(sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U));
}

template <typename T, int N> static __device__ __forceinline__ tl_vector<T, N> tl_vector_zero()
{
    tl_vector<T, N> vector;
#pragma unroll
    for (int i = 0; i < (int)(N * sizeof(T) / 4); i++)
        vector.word[i] = 0;
    return vector;
}

template <typename T, int N>
static __device__ __forceinline__ tl_vector<T, N> tl_vector_load(const T *at)
{
    tl_vector<T, N> vector;
    vector.words = __ldcs((const typename tl_vector<T, N>::words_type *)at);
    return vector;
}

template <typename T, int N>
static __device__ __forceinline__ void tl_vector_store(T *at, const tl_vector<T, N> &vector)
{
    __stcs((typename tl_vector<T, N>::words_type *)at, vector.words);
}

template <int N>
static __device__ __forceinline__ void tl_vector_widen(const tl_vector<float, N> &vector,
                                                       float (&value)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] = __uint_as_float(vector.word[i]);
}

/* A bf16 is the upper half of its fp32. */
template <int N>
static __device__ __forceinline__ void tl_vector_widen(const tl_vector<__nv_bfloat16, N> &vector,
                                                       float (&value)[N])
{
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        value[i] = __uint_as_float(vector.word[i / 2] << 16);
        value[i + 1] = __uint_as_float(vector.word[i / 2] & 0xffff0000u);
    }
}

/* Rounds to nearest even. */
template <typename T, int N>
static __device__ __forceinline__ tl_vector<T, N> tl_vector_narrow(const float (&value)[N])
{
    tl_vector<T, N> vector;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < N; i++)
            vector.word[i] = __float_as_uint(value[i]);
    } else {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            __nv_bfloat162 pair = __floats2bfloat162_rn(value[i], value[i + 1]);
            vector.word[i / 2] = *(const unsigned *)&pair;
        }
    }
    return vector;
}

/* The same elements as another type; bit for bit where it is no other. */
template <typename T, typename U, int N>
static __device__ __forceinline__ tl_vector<T, N> tl_vector_convert(const tl_vector<U, N> &vector)
{
    if constexpr (sizeof(T) == sizeof(U)) {
        return vector;
    } else {
        float value[N];
        tl_vector_widen(vector, value);
        return tl_vector_narrow<T, N>(value);
    }
}

/* Between two uses that are far apart: the compiler keeps these words in registers, not the wider
 * values that it made of them before. */
template <typename T, int N>
static __device__ __forceinline__ void tl_vector_keep(tl_vector<T, N> &vector)
{
#pragma unroll
    for (int i = 0; i < (int)(N * sizeof(T) / 4); i++)
        asm volatile("" : "+r"(vector.word[i]));
}

/* N fp32 that many threads read (weights of a norm): they stay in L1. */
template <int N> static __device__ __forceinline__ void tl_vector_shared(const float *at,
                                                                         float (&value)[N])
{
    static_assert(N % 4 == 0, "whole float4");
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        float4 four = __ldg((const float4 *)(at + i));
        value[i] = four.x;
        value[i + 1] = four.y;
        value[i + 2] = four.z;
        value[i + 3] = four.w;
    }
}

/* Over the lanes of a warp, for all of them, in an order that does not change. */
static __device__ __forceinline__ float tl_warp_sum(float value)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(~0u, value, step);
    return value;
}

/* NaN counts as nothing. */
static __device__ __forceinline__ float tl_warp_max(float value)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
    return value;
}

#endif
