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
#include "kernels/scale_swizzle/launch.h"

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

/* Loads the word that follows the window's own, where there is one and the lane wants it. */
template <int WORDS, bool ALIGNED>
static __device__ __forceinline__ void tl_scale_load_next(tl_scale_window<WORDS> &window,
                                                          const tl_scale_source &source, int l,
                                                          bool wanted)
{
    int after = window.column + 4 * WORDS;
#pragma unroll
    for (int q = 0; q < TL_SCALE_RUN_ROWS; q++) {
        const uint8_t *address = window.address + q * tl_scale_step(source) + 4 * WORDS;
        bool whole = ALIGNED || (address >= source.begin && address + 4 <= source.end);
        if (wanted && after < source.columns && l + q * TL_SCALE_RUNS < source.rows)
            window.word[q][WORDS] = whole ? __ldg((const uint32_t *)address)
                                          : tl_scale_edge_word(source.begin, source.end, address);
    }
}

/* Takes it from the next lane where the lane has not loaded it. For whole warps. */
template <int WORDS>
static __device__ __forceinline__ void tl_scale_pass_next(tl_scale_window<WORDS> &window,
                                                          bool loaded)
{
#pragma unroll
    for (int q = 0; q < TL_SCALE_RUN_ROWS; q++) {
        uint32_t next = __shfl_down_sync(~0u, window.word[q][0], 1);
        window.word[q][WORDS] = loaded ? window.word[q][WORDS] : next;
    }
}

/* A group's part of a window: those tiles whose first column is among the window's own words. */
template <int WORDS> struct tl_scale_part {
    uint8_t *target;      /* of slot 0 */
    int column, columns;  /* of the group: slot 0's, a multiple of 4, and how many it has */
    unsigned shift;       /* bits from a word to the tile that begins in it */
    uint32_t kept[WORDS]; /* bits of a slot's words that are the group's */
};

/* Of a group of columns [begin, end); `run` is where run l of its first tile of this row of tiles
 * lies. */
template <int WORDS>
static __device__ __forceinline__ tl_scale_part<WORDS>
tl_scale_part_of(const tl_scale_window<WORDS> &window, uint8_t *run, int begin, int end)
{
    tl_scale_part<WORDS> part;
    unsigned skew = (unsigned)(begin - window.column) & 3;
    part.shift = 8 * skew;
    part.column = window.column + (int)skew - begin;
    part.columns = end - begin;
    part.target = run + (int64_t)part.column * (TL_SCALE_TILE_BYTES / TL_SCALE_TILE_COLUMNS);
    uint32_t last = part.columns % 4 ? ~(~0u << 8 * (part.columns & 3)) : ~0u;
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        part.kept[i] = part.column + 4 * i == (part.columns & ~3) ? last : ~0u;
    return part;
}

/* Of the group that a table of K groups stands at, in row tile `row_tile`. */
template <int WORDS, class Groups>
static __device__ __forceinline__ tl_scale_part<WORDS>
tl_scale_group_part(const tl_scale_window<WORDS> &window, const Groups &groups,
                    const tl_scale_problem &p, int row_tile, int l)
{
    int tiles = groups.units();
    int64_t tile = (int64_t)groups.units_before * p.row_tiles + (int64_t)row_tile * tiles;
    uint8_t *run = p.blocked + tile * TL_SCALE_TILE_BYTES + l * TL_SCALE_RUN_BYTES;
    return tl_scale_part_of(window, run, groups.begin, groups.end);
}

/* Slot i of a part: where its tile's run goes, and what becomes of the words. */
struct tl_scale_slot {
    uint8_t *target;
    unsigned shift;
    uint32_t kept;
    bool stored;
};

template <int WORDS>
static __device__ __forceinline__ tl_scale_slot tl_scale_slot_of(const tl_scale_part<WORDS> &part,
                                                                 int i)
{
    tl_scale_slot slot = {part.target + i * TL_SCALE_TILE_BYTES, part.shift, part.kept[i],
                          (unsigned)(part.column + 4 * i) < (unsigned)part.columns};
    return slot;
}

/* By a predicate, lest each store's words are worked out behind a branch of its own. */
static __device__ __forceinline__ void tl_scale_store_run(uint8_t *target,
                                                          const uint32_t (&word)[TL_SCALE_RUN_ROWS],
                                                          bool wanted)
{
    asm volatile("{.reg .pred wanted;\n"
                 "setp.ne.u32 wanted, %5, 0;\n"
                 "@wanted st.global.v4.u32 [%4], {%0, %1, %2, %3};}" ::"r"(word[0]),
                 "r"(word[1]), "r"(word[2]), "r"(word[3]), "l"(target), "r"((uint32_t)wanted)
                 : "memory");
}

/* WHOLE: the group covers the window and the word that follows; SHIFTS: its tiles may begin inside
 * of words. */
template <int WORDS, bool WHOLE, bool SHIFTS>
static __device__ __forceinline__ void tl_scale_put(const tl_scale_window<WORDS> &window,
                                                    const tl_scale_slot &slot, int i)
{
    uint32_t value[TL_SCALE_RUN_ROWS];
#pragma unroll
    for (int q = 0; q < TL_SCALE_RUN_ROWS; q++) {
        value[q] = window.word[q][i];
        if (SHIFTS)
            value[q] = __funnelshift_r(value[q], window.word[q][i + 1], slot.shift);
        if (!WHOLE)
            value[q] &= slot.kept;
    }
    tl_scale_store_run(slot.target, value, WHOLE || slot.stored);
}

template <int WORDS, bool WHOLE, bool SHIFTS>
static __device__ __forceinline__ void tl_scale_store(const tl_scale_window<WORDS> &window,
                                                      const tl_scale_part<WORDS> &part)
{
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        tl_scale_put<WORDS, WHOLE, SHIFTS>(window, tl_scale_slot_of(part, i), i);
}

/* Parts of two groups that follow each other: a store a slot for whichever has it, half of the
 * stores that they take in turn. Where both have a slot, the second's follows. */
template <int WORDS>
static __device__ __forceinline__ void tl_scale_store_two(const tl_scale_window<WORDS> &window,
                                                          const tl_scale_part<WORDS> &first,
                                                          const tl_scale_part<WORDS> &second)
{
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        tl_scale_slot slot = tl_scale_slot_of(first, i), other = tl_scale_slot_of(second, i);
        slot.target = slot.stored ? slot.target : other.target;
        slot.shift = slot.stored ? slot.shift : other.shift;
        slot.kept = slot.stored ? slot.kept : other.kept;
        slot.stored |= other.stored;
        tl_scale_put<WORDS, false, true>(window, slot, i);
    }
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        if (tl_scale_slot_of(first, i).stored && tl_scale_slot_of(second, i).stored)
            tl_scale_put<WORDS, false, true>(window, tl_scale_slot_of(second, i), i);
}

#endif
