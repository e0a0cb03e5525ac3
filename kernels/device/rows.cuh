/* Rows that move between the tokens' order and the experts': what permute and combine share.
 *
 * Work is cut token by token, so that a token's row is read or written once for all of its top_k
 * copies; the copies lie anywhere, but each is a whole row. A warp takes pieces of a token of 32
 * accesses, next to each other in memory for warps next to each other. A slot whose row is out of
 * range counts as nothing, so that a bad index costs a wrong result and no access outside.
 */
#ifndef TL_DEVICE_ROWS_CUH
#define TL_DEVICE_ROWS_CUH

#include "kernels/device/vectors.cuh"

enum {
    TL_ROWS_THREADS = 256,
    TL_ROWS_SLOTS = 8,         /* copies of a token in flight */
    TL_ROWS_BLOCKS_PER_SM = 3, /* of tl_gather_kernel */
};

/* A warp's number among those of the grid, and their count. */
static __device__ __forceinline__ int tl_warp()
{
    return (int)((blockIdx.x * blockDim.x + threadIdx.x) / 32);
}

static __device__ __forceinline__ int tl_warps()
{
    return (int)(gridDim.x * blockDim.x / 32);
}

/* Row of slot `first` + lane of a token, for lanes below TL_ROWS_SLOTS; -1 where there is none. */
static __device__ __forceinline__ int tl_slot_row(const int *slot_rows, int token, int top_k,
                                                  int first, int rows)
{
    int lane = (int)threadIdx.x % 32;
    if (lane >= TL_ROWS_SLOTS || first + lane >= top_k)
        return -1;
    int row = __ldg(slot_rows + (int64_t)token * top_k + first + lane);
    return row >= 0 && row < rows ? row : -1;
}

/* y[t] = beta base[t] + sum over j of weights[t,j] x[slot_rows[t,j]], j ascending. */
struct tl_gather_args {
    const void *x;        /* [rows, d] */
    const int *slot_rows; /* [tokens, top_k] */
    const float *weights; /* [tokens, top_k]; NULL: 1 */
    const void *base;     /* [tokens, d], may be y; NULL: nothing */
    void *y;              /* [tokens, d] */
    int tokens, top_k, d, rows;
    float beta;
};

template <typename TOKEN, typename ROW>
static __global__ void __launch_bounds__(TL_ROWS_THREADS, TL_ROWS_BLOCKS_PER_SM)
    tl_gather_kernel(tl_gather_args args)
{
    constexpr int N = tl_vector_width<TOKEN, ROW>();
    int lane = (int)threadIdx.x % 32, slices = (args.d / N + 31) / 32;
    int pieces = args.tokens * slices;
    const ROW *x = (const ROW *)args.x;

    for (int piece = tl_warp(); piece < pieces; piece += tl_warps()) {
        int token = piece / slices, column = ((piece - token * slices) * 32 + lane) * N;
        int64_t at = (int64_t)token * args.d + column;
        bool inside = column < args.d;
        float sum[N] = {0};
        tl_vector<TOKEN, N> base = tl_vector_zero<TOKEN, N>();
        if (inside && args.base)
            base = tl_vector_load<TOKEN, N>((const TOKEN *)args.base + at);

        for (int first = 0; first < args.top_k; first += TL_ROWS_SLOTS) {
            tl_vector<ROW, N> value[TL_ROWS_SLOTS];
            int rows = tl_slot_row(args.slot_rows, token, args.top_k, first, args.rows);
            float weights = 1;
            if (rows >= 0 && args.weights)
                weights = __ldg(args.weights + (int64_t)token * args.top_k + first + lane);
#pragma unroll
            for (int j = 0; j < TL_ROWS_SLOTS; j++) {
                int row = __shfl_sync(~0u, rows, j);
                value[j] = inside && row >= 0
                               ? tl_vector_load<ROW, N>(x + (int64_t)row * args.d + column)
                               : tl_vector_zero<ROW, N>();
            }
            if (first == 0) {
                tl_vector_widen(base, sum);
#pragma unroll
                for (int c = 0; c < N; c++)
                    sum[c] *= args.beta;
            }
#pragma unroll
            for (int j = 0; j < TL_ROWS_SLOTS; j++) {
                float weight = __shfl_sync(~0u, weights, j), addend[N];
                tl_vector_widen(value[j], addend);
#pragma unroll
                for (int c = 0; c < N; c++)
                    sum[c] += weight * addend[c];
            }
        }
        if (inside)
            tl_vector_store((TOKEN *)args.y + at, tl_vector_narrow<TOKEN, N>(sum));
    }
}

/* Rows in use, from the device. */
static __device__ __forceinline__ int tl_rows_used(const int *group_offsets, int num_groups,
                                                   int rows)
{
    return max(min(__ldg(group_offsets + num_groups), rows), 0);
}

/* For whole warps: zeros in the pad rows, those of 32 rows at `first` and after whose slot is below
 * 0, as far as they are in use. */
template <typename ROW, int N>
static __device__ void tl_zero_pad_rows(ROW *y, const int *row_slots, int first, int used, int d)
{
    int lane = (int)threadIdx.x % 32;
    bool pad = first + lane < used && __ldg(row_slots + first + lane) < 0;
    unsigned left = __ballot_sync(~0u, pad);
    for (; left; left &= left - 1) {
        ROW *row = y + (int64_t)(first + __ffs((int)left) - 1) * d;
        for (int column = lane * N; column < d; column += 32 * N)
            tl_vector_store(row + column, tl_vector_zero<ROW, N>());
    }
}

#endif
