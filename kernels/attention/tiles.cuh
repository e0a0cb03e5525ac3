/* Tiles of attention/smxx_plain: 64 rows of a head in shared memory as fp32, and products of two of
 * them by 256 threads.
 *
 * Thread (y, x) of 16 x 16 has rows y + 16 i and columns x + 16 j of every product. Rows in shared
 * memory are D + 4 floats apart: 16 bytes of neighbouring rows then lie in neighbouring banks. D is
 * head_dim rounded up; what is beyond it, or beyond the sequence, is zero.
 */
#ifndef TL_ATTENTION_TILES_CUH
#define TL_ATTENTION_TILES_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

enum {
    TL_TILE = 64,           /* rows */
    TL_TILE_THREADS = 256,
    TL_TILE_SIDE = 16,      /* threads along rows and along columns */
    TL_TILE_PART = TL_TILE / TL_TILE_SIDE, /* rows, and columns of a score, of a thread */
    TL_SCORE_STRIDE = TL_TILE + 1,
};

template <int D> struct tl_tile {
    enum {
        STRIDE = D + 4,
        FLOATS = TL_TILE * STRIDE,
        PART = D / TL_TILE_SIDE, /* columns of a thread in a product with D columns */
    };
    static_assert(D % TL_TILE_SIDE == 0, "columns split over the threads");
};

static __device__ __forceinline__ float tl_wide(float value)
{
    return value;
}

static __device__ __forceinline__ float tl_wide(__nv_bfloat16 value)
{
    return __bfloat162float(value);
}

static __device__ __forceinline__ void tl_narrow(float value, float *out)
{
    *out = value;
}

static __device__ __forceinline__ void tl_narrow(float value, __nv_bfloat16 *out)
{
    *out = __float2bfloat16(value);
}

/* Rows first .. first + 63 of a head, `stride` elements apart, times `scale`. */
template <int D, typename T>
static __device__ void tl_tile_load(float *tile, const T *head, int64_t stride, int first, int rows,
                                    int head_dim, float scale)
{
    for (int i = (int)threadIdx.x; i < TL_TILE * D; i += TL_TILE_THREADS) {
        int row = i / D, column = i % D;
        bool inside = first + row < rows && column < head_dim;
        tile[row * tl_tile<D>::STRIDE + column] =
            inside ? scale * tl_wide(head[(first + row) * stride + column]) : 0;
    }
}

/* acc[i][j] = a[row i] . b[row j] */
template <int D>
static __device__ __forceinline__ void tl_tile_dot(const float *a, const float *b,
                                                   float (&acc)[TL_TILE_PART][TL_TILE_PART])
{
    int x = (int)threadIdx.x % TL_TILE_SIDE, y = (int)threadIdx.x / TL_TILE_SIDE;
#pragma unroll
    for (int i = 0; i < TL_TILE_PART; i++)
#pragma unroll
        for (int j = 0; j < TL_TILE_PART; j++)
            acc[i][j] = 0;
#pragma unroll 4
    for (int k = 0; k < D; k += 4) {
        float4 row[TL_TILE_PART], column[TL_TILE_PART];
#pragma unroll
        for (int i = 0; i < TL_TILE_PART; i++) {
            row[i] = *(const float4 *)(a + (y + TL_TILE_SIDE * i) * tl_tile<D>::STRIDE + k);
            column[i] = *(const float4 *)(b + (x + TL_TILE_SIDE * i) * tl_tile<D>::STRIDE + k);
        }
#pragma unroll
        for (int i = 0; i < TL_TILE_PART; i++)
#pragma unroll
            for (int j = 0; j < TL_TILE_PART; j++) {
                acc[i][j] += row[i].x * column[j].x;
                acc[i][j] += row[i].y * column[j].y;
                acc[i][j] += row[i].z * column[j].z;
                acc[i][j] += row[i].w * column[j].w;
            }
    }
}

/* acc[i][c] += sum over the 64 rows k of b: scores[row i][k] b[k][column c]; with TRANSPOSED,
 * scores[k][row i]. */
template <int D, bool TRANSPOSED>
static __device__ __forceinline__ void
tl_tile_add_product(const float *scores, const float *b,
                    float (&acc)[TL_TILE_PART][tl_tile<D>::PART])
{
    int x = (int)threadIdx.x % TL_TILE_SIDE, y = (int)threadIdx.x / TL_TILE_SIDE;
#pragma unroll 4
    for (int k = 0; k < TL_TILE; k++) {
        float score[TL_TILE_PART];
#pragma unroll
        for (int i = 0; i < TL_TILE_PART; i++) {
            int row = y + TL_TILE_SIDE * i;
            score[i] = TRANSPOSED ? scores[k * TL_SCORE_STRIDE + row]
                                  : scores[row * TL_SCORE_STRIDE + k];
        }
#pragma unroll
        for (int c = 0; c < tl_tile<D>::PART; c++) {
            float value = b[k * tl_tile<D>::STRIDE + x + TL_TILE_SIDE * c];
#pragma unroll
            for (int i = 0; i < TL_TILE_PART; i++)
                acc[i][c] += score[i] * value;
        }
    }
}

static __device__ __forceinline__ void
tl_scores_store(float *scores, const float (&acc)[TL_TILE_PART][TL_TILE_PART])
{
    int x = (int)threadIdx.x % TL_TILE_SIDE, y = (int)threadIdx.x / TL_TILE_SIDE;
#pragma unroll
    for (int i = 0; i < TL_TILE_PART; i++)
#pragma unroll
        for (int j = 0; j < TL_TILE_PART; j++)
            scores[(y + TL_TILE_SIDE * i) * TL_SCORE_STRIDE + x + TL_TILE_SIDE * j] = acc[i][j];
}

/* acc to rows first .. first + 63 of a head. */
template <int D, typename T>
static __device__ void tl_tile_store(T *head, int64_t stride, int first, int rows, int head_dim,
                                     const float (&acc)[TL_TILE_PART][tl_tile<D>::PART])
{
    int x = (int)threadIdx.x % TL_TILE_SIDE, y = (int)threadIdx.x / TL_TILE_SIDE;
#pragma unroll
    for (int i = 0; i < TL_TILE_PART; i++)
#pragma unroll
        for (int c = 0; c < tl_tile<D>::PART; c++) {
            int row = first + y + TL_TILE_SIDE * i, column = x + TL_TILE_SIDE * c;
            if (row < rows && column < head_dim)
                tl_narrow(acc[i][c], head + row * stride + column);
        }
}

/* Over the 16 threads that share rows, for all of them. */
static __device__ __forceinline__ float tl_side_max(float value)
{
#pragma unroll
    for (int step = TL_TILE_SIDE / 2; step > 0; step /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
    return value;
}

static __device__ __forceinline__ float tl_side_sum(float value)
{
#pragma unroll
    for (int step = TL_TILE_SIDE / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(~0u, value, step);
    return value;
}

#endif
