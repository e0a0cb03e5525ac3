/* Sums of wgmma on their way to global memory in fp32: from registers into shared memory that TMA
 * stores from.
 */
#ifndef TL_SUMS_BOX_CUH
#define TL_SUMS_BOX_CUH

#include "kernels/device/async.cuh"

/* By address in the shared window; from a generic pointer the compiler may not see where it points.
 */
static __device__ __forceinline__ void tl_shared_store(uint32_t address, float2 pair)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(pair.x), "f"(pair.y)
                 : "memory");
}

static __device__ __forceinline__ float2 tl_shared_load(uint32_t address)
{
    float2 pair;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(pair.x), "=f"(pair.y)
                 : "r"(address)
                 : "memory");
    return pair;
}

/* 64 rows by 32 columns of a warpgroup's sums into a box of the 128-byte swizzle at `to`, ADD: plus
 * those of a box at `from`. `acc` points to 16 floats as wgmma leaves them. Odd rows take their
 * blocks of eight columns in another order, so that four rows by eight columns, which a half-warp
 * writes at once, meet all banks. */
template <bool ADD>
static __device__ __forceinline__ void tl_sums_to_box(uint32_t to, uint32_t from, const float *acc)
{
    int thread = threadIdx.x % 128, lane = thread % 32;
    int row = thread / 32 * 16 + lane / 4;
    bool odd = row % 2;
    uint32_t at[4];
    float2 old[2][4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int chunk = 2 * (odd ? i ^ 2 : i) + lane % 4 / 2;
        at[i] = row * 128 + (chunk ^ row % 8) * 16 + lane % 2 * 8;
        for (int half = 0; ADD && half < 2; half++)
            old[half][i] = tl_shared_load(from + at[i] + half * 8 * 128);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int mine = 4 * i + 2 * half, other = 4 * (i ^ 2) + 2 * half;
            float2 pair = {odd ? acc[other] : acc[mine], odd ? acc[other + 1] : acc[mine + 1]};
            if (ADD)
                pair = {pair.x + old[half][i].x, pair.y + old[half][i].y};
            tl_shared_store(to + at[i] + half * 8 * 128, pair);
        }
}

/* Eight rows by 128 columns of a warp's sums, the upper or the lower half of the rows that it
 * holds, into a box of four swizzled panels a row at `to`, 4096-byte aligned. `acc` points to 64
 * floats as wgmma leaves them. Here every other pair of rows takes its blocks of eight columns in
 * another order, since the swizzle already tells odd rows from even ones. */
static __device__ __forceinline__ void tl_sums_to_rows(uint32_t to, const float *acc, int half)
{
    int lane = threadIdx.x % 32, row = lane / 4;
    bool swapped = row & 2;
    uint32_t line = to + row * 512 + lane % 2 * 8;
    int chunk = lane % 4 / 2 ^ (swapped ? 2 : 0) ^ row % 2 * 4;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const int panel = i / 4, mine = 4 * i + 2 * half, other = 4 * (i ^ 1) + 2 * half;
        float2 pair = {swapped ? acc[other] : acc[mine], swapped ? acc[other + 1] : acc[mine + 1]};
        tl_shared_store(line + panel * 128 + (chunk ^ (i % 4 * 2 ^ panel)) * 16, pair);
    }
}

#endif
