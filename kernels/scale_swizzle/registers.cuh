/* The transpose of scales in registers, which needs neither shared memory nor shuffles of data.
 *
 * A thread loads WORDS words of rows l, l + 32, l + 64 and l + 96 of a row of tiles: word i of the
 * four rows, side by side, is run l of tile i. A group that starts at no multiple of 4 bytes of the
 * thread's has its tiles across two words, so that the thread also knows the word that follows, and
 * shifts. Rows that start at no multiple of the vector start it at different bytes, but rows 32
 * apart alike: each thread moves its window of columns to where its rows are aligned.
 */
#ifndef TL_SCALE_SWIZZLE_REGISTERS_CUH
#define TL_SCALE_SWIZZLE_REGISTERS_CUH

#include "kernels/device/load.cuh"
#include "kernels/scale_swizzle/layout.h"

/* The scales that a thread takes tiles from: all of the tensor [begin, end), its columns,
 * and the rows that there are from the first one of a row of tiles on, which is at `row`. */
struct tl_scale_source {
    const uint8_t *begin, *end, *row;
    int columns, rows;
};

/* What a thread holds of four rows: its words and the one that follows. */
template <int WORDS> struct tl_scale_window {
    uint32_t word[TL_SCALE_RUN_ROWS][WORDS + 1];
    const uint8_t *address; /* of the first row's first byte */
    int column;             /* of that byte; negative where a row starts inside of the window */
};

/* From a row to the next of a run, in bytes. */
static __device__ __forceinline__ int64_t tl_scale_step(const tl_scale_source &source)
{
    return (int64_t)source.columns * TL_SCALE_RUNS;
}

/* Bytes at `address` that are in the tensor, zeros for others. */
static __device__ __noinline__ uint32_t tl_scale_edge_word(const uint8_t *begin, const uint8_t *end,
                                                           const uint8_t *address)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++)
        if (address + i >= begin && address + i < end)
            word |= (uint32_t)address[i] << 8 * i;
    return word;
}

/* The window's words, without the one that follows, of run l; `column` counts from where an aligned
 * row starts. Where ALIGNED, rows start at multiples of the vector and hold whole ones. */
template <int WORDS, bool ALIGNED, int PREFETCH>
static __device__ __forceinline__ void tl_scale_load(tl_scale_window<WORDS> &window,
                                                     const tl_scale_source &source, int l,
                                                     int column)
{
    const int VECTOR = 4 * WORDS;
    const uint8_t *row = source.row + (int64_t)l * source.columns;
    window.column = ALIGNED ? column : column - (int)((uintptr_t)row % VECTOR);
    window.address = row + window.column;
    bool inside = window.column < source.columns && (ALIGNED || window.column + VECTOR > 0);
#pragma unroll
    for (int q = 0; q < TL_SCALE_RUN_ROWS; q++) {
        const uint8_t *address = window.address + q * tl_scale_step(source);
        bool mine = inside && l + q * TL_SCALE_RUNS < source.rows;
        bool whole = ALIGNED || (address >= source.begin && address + VECTOR <= source.end);
        uint32_t value[WORDS] = {};
        tl_load_constant<PREFETCH>(value, address, mine && whole);
        if (mine && !whole)
            for (int i = 0; i < WORDS; i++)
                value[i] = tl_scale_edge_word(source.begin, source.end, address + 4 * i);
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            window.word[q][i] = value[i];
        window.word[q][WORDS] = 0; /* for groups that need no more */
    }
}

/* The word that follows: from the next lane, or from memory for the last of LANES lanes side by
 * side. For whole warps. */
template <int WORDS, bool ALIGNED, int LANES>
static __device__ __forceinline__ void tl_scale_follow(tl_scale_window<WORDS> &window,
                                                       const tl_scale_source &source, int l)
{
    int after = window.column + 4 * WORDS;
    bool last = threadIdx.x % LANES == LANES - 1, inside = last && after < source.columns;
#pragma unroll
    for (int q = 0; q < TL_SCALE_RUN_ROWS; q++) {
        const uint8_t *address = window.address + q * tl_scale_step(source) + 4 * WORDS;
        bool whole = ALIGNED || (address >= source.begin && address + 4 <= source.end);
        if (inside && l + q * TL_SCALE_RUNS < source.rows)
            window.word[q][WORDS] = whole ? __ldg((const uint32_t *)address)
                                          : tl_scale_edge_word(source.begin, source.end, address);
    }
#pragma unroll
    for (int q = 0; q < TL_SCALE_RUN_ROWS; q++) {
        uint32_t next = __shfl_down_sync(~0u, window.word[q][0], 1);
        window.word[q][WORDS] = last ? window.word[q][WORDS] : next;
    }
}

/* Stores the window's part of a group of columns [begin, end): those tiles whose first column is
 * among the window's own words, with zeros past the end. `run` is where the run l of the group's
 * first tile of this row of tiles lies. WHOLE: the group covers the window and the word that
 * follows; SHIFTS: its tiles may begin inside of words. */
template <int WORDS, bool WHOLE, bool SHIFTS>
static __device__ __forceinline__ void tl_scale_store(const tl_scale_window<WORDS> &window,
                                                      uint8_t *run, int begin, int end)
{
    int shift = SHIFTS ? (begin - window.column) & 3 : 0;
    int first = window.column + shift - begin; /* column in the group of slot 0, a multiple of 4 */
    uint8_t *target = run + (int64_t)first * (TL_SCALE_TILE_BYTES / TL_SCALE_TILE_COLUMNS);
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        uint32_t value[TL_SCALE_RUN_ROWS];
        int column = first + 4 * i, left = end - begin - column;
        bool mine = WHOLE || (column >= 0 && left > 0);
        uint32_t mask = WHOLE || left >= 4 ? ~0u : ~(~0u << 8 * (left & 3));
#pragma unroll
        for (int q = 0; q < TL_SCALE_RUN_ROWS; q++) {
            value[q] = window.word[q][i];
            if (SHIFTS)
                value[q] = __funnelshift_r(value[q], window.word[q][i + 1], 8 * shift);
            value[q] &= mask;
        }
        if (mine)
            *(uint4 *)(target + i * TL_SCALE_TILE_BYTES) =
                make_uint4(value[0], value[1], value[2], value[3]);
    }
}

#endif
