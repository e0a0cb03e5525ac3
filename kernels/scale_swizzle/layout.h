/* The blocked layout of scales, for the CPU and the GPU (cuBLAS, "1D block scaling factors
 * layout").
 *
 * A tile of 128 rows by 4 columns is 512 bytes: 32 runs of 16 bytes, run i with the four bytes of
 * row i, then those of rows i + 32, i + 64 and i + 96. Tiles lie row of tiles after row of tiles.
 */
#ifndef TL_SCALE_SWIZZLE_LAYOUT_H
#define TL_SCALE_SWIZZLE_LAYOUT_H

#include <stdint.h>

#ifdef __CUDACC__
#define TL_SCALE_INLINE static __host__ __device__ __forceinline__
#else
#define TL_SCALE_INLINE static inline
#endif

enum {
    TL_SCALE_TILE_ROWS = 128,
    TL_SCALE_TILE_COLUMNS = 4,
    TL_SCALE_TILE_BYTES = TL_SCALE_TILE_ROWS * TL_SCALE_TILE_COLUMNS,
    TL_SCALE_RUNS = 32,      /* of a tile */
    TL_SCALE_RUN_BYTES = 16, /* a word each of four rows, TL_SCALE_RUNS apart */
    TL_SCALE_RUN_ROWS = 4,
};

/* Rows and columns with their padding. */
TL_SCALE_INLINE int64_t tl_scale_padded_rows(int64_t rows)
{
    return (rows + TL_SCALE_TILE_ROWS - 1) & ~(int64_t)(TL_SCALE_TILE_ROWS - 1);
}

TL_SCALE_INLINE int64_t tl_scale_padded_columns(int64_t columns)
{
    return (columns + TL_SCALE_TILE_COLUMNS - 1) & ~(int64_t)(TL_SCALE_TILE_COLUMNS - 1);
}

/* Where a scale of a group of `columns` columns lies, in bytes from the group's base. */
TL_SCALE_INLINE int64_t tl_scale_at(int64_t row, int64_t column, int64_t columns)
{
    int64_t tile = row / 128 * (tl_scale_padded_columns(columns) / 4) + column / 4;
    return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
}

#endif
