/* The product that other GPU kernels are checked against: one thread an element, fp64 sums over k
 * in order, operands of any float dtype, all indices 64 bits wide.
 *
 * A block owns TL_PLAIN_ROWS x TL_PLAIN_COLUMNS elements, a warp one row of them. Operands pass
 * through shared memory as doubles: one conversion an element and block, not one a product, and
 * loads from global memory along whichever dimension is contiguous.
 */
#ifndef TL_PLAIN_GEMM_CUH
#define TL_PLAIN_GEMM_CUH

#include "kernels/device/element.cuh"

enum {
    TL_PLAIN_ROWS = 16,
    TL_PLAIN_COLUMNS = 32,
    TL_PLAIN_DEPTH = 32,
    TL_PLAIN_THREADS = TL_PLAIN_ROWS * TL_PLAIN_COLUMNS
};
static_assert(TL_PLAIN_COLUMNS == 32,
              "a warp is one row: it skips rows that are not its own whole");

/* a[i, p] or b[j, p] stands at data[first + i * stride + p * k_stride]; 0 <= i < extent. */
struct tl_plain_operand {
    const void *data;
    enum tl_dtype dtype;
    int64_t first, stride, k_stride, extent;
};

struct tl_plain_sums {
    double product, magnitude; /* sum of a b, and of |a| |b| */
};

/* EXTENT rows or columns of an operand from `at` on, by DEPTH from `p` on; zeros beyond its ends.
 * The odd pitch keeps both ways of filling free of bank conflicts. */
template <int EXTENT>
static __device__ __forceinline__ void tl_plain_load(double (&tile)[TL_PLAIN_DEPTH][EXTENT + 1],
                                                     const tl_plain_operand &operand, int64_t at,
                                                     int64_t p, int64_t k)
{
    bool along_k = operand.k_stride == 1;
    for (int t = threadIdx.x; t < EXTENT * TL_PLAIN_DEPTH; t += TL_PLAIN_THREADS) {
        int i = along_k ? t / TL_PLAIN_DEPTH : t % EXTENT;
        int depth = along_k ? t % TL_PLAIN_DEPTH : t / EXTENT;
        double value = 0;
        if (at + i < operand.extent && p + depth < k)
            value = tl_element_load(operand.data, operand.dtype,
                                    operand.first + (at + i) * operand.stride +
                                        (p + depth) * operand.k_stride);
        tile[depth][i] = value;
    }
}

/* The sums of this thread's element: row `row` + threadIdx.x / 32 of a, column `column` +
 * threadIdx.x % 32 of b. The whole block calls it with the same arguments, but for `mine`: without
 * that, a warp only loads, and its sums are zero. */
static __device__ __forceinline__ tl_plain_sums tl_plain_product(const tl_plain_operand &a,
                                                                 int64_t row,
                                                                 const tl_plain_operand &b,
                                                                 int64_t column, int64_t k,
                                                                 bool mine)
{
    __shared__ double a_tile[TL_PLAIN_DEPTH][TL_PLAIN_ROWS + 1];
    __shared__ double b_tile[TL_PLAIN_DEPTH][TL_PLAIN_COLUMNS + 1];
    int x = threadIdx.x % TL_PLAIN_COLUMNS, y = threadIdx.x / TL_PLAIN_COLUMNS;
    tl_plain_sums sums = {0, 0};
    for (int64_t p = 0; p < k; p += TL_PLAIN_DEPTH) {
        __syncthreads(); /* the tiles before are read */
        tl_plain_load<TL_PLAIN_ROWS>(a_tile, a, row, p, k);
        tl_plain_load<TL_PLAIN_COLUMNS>(b_tile, b, column, p, k);
        __syncthreads();
        if (!mine)
            continue;
#pragma unroll
        for (int depth = 0; depth < TL_PLAIN_DEPTH; depth++) {
            double left = a_tile[depth][y], right = b_tile[depth][x];
            sums.product = fma(left, right, sums.product);
            sums.magnitude = fma(fabs(left), fabs(right), sums.magnitude);
        }
    }
    return sums;
}

#endif
