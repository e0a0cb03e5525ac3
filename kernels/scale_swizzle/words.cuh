/* Scales of K groups word by word, for the first steps of the study: where a tile has its columns,
 * and the four bytes of a row of it.
 */
#ifndef TL_SCALE_SWIZZLE_WORDS_CUH
#define TL_SCALE_SWIZZLE_WORDS_CUH

#include "kernels/device/group_ends.cuh"
#include "kernels/scale_swizzle/launch.h"

/* A column of tiles, by its number through all groups. */
struct tl_scale_tile {
    int column, left;  /* its first column, and those that the group has from there on */
    int tiles, number; /* of the group, and which of them it is */
    int units_before;  /* tiles of the groups before */
};

/* False past the last group. For whole warps. */
template <class Groups>
static __device__ __forceinline__ bool tl_scale_find_tile(const tl_scale_problem &p, Groups &groups,
                                                          int unit, tl_scale_tile *tile)
{
    groups.seek_unit(unit);
    if (groups.group >= p.num_groups)
        return false;
    tile->number = unit - groups.units_before;
    tile->column = groups.begin + tile->number * TL_SCALE_TILE_COLUMNS;
    tile->left = groups.end - tile->column;
    tile->tiles = groups.units();
    tile->units_before = groups.units_before;
    return true;
}

/* Where tile `row_tile` of that column lies. */
static __device__ __forceinline__ uint8_t *tl_scale_tile_at(const tl_scale_problem &p,
                                                            const tl_scale_tile &tile, int row_tile)
{
    int64_t at = (int64_t)tile.units_before * p.row_tiles + (int64_t)row_tile * tile.tiles;
    return p.blocked + (at + tile.number) * TL_SCALE_TILE_BYTES;
}

/* Four bytes of a row from `column` on, of which `left` are the group's: zeros for the others and
 * for rows past the last. Two aligned words and a shift, bytes where a word leaves the tensor. */
static __device__ __forceinline__ uint32_t tl_scale_word(const tl_scale_problem &p, int row,
                                                         int column, int left)
{
    if (row >= p.rows || column >= p.columns || left <= 0)
        return 0;
    const uint8_t *address = p.scales + (int64_t)row * p.columns + column;
    const uint8_t *end = p.scales + (int64_t)p.rows * p.columns;
    int skew = (int)((uintptr_t)address % 4);
    const uint8_t *aligned = address - skew;
    uint32_t word = 0;
    if (aligned >= p.scales && aligned + (skew ? 8 : 4) <= end) {
        uint32_t low = __ldg((const uint32_t *)aligned);
        uint32_t high = skew ? __ldg((const uint32_t *)aligned + 1) : 0;
        word = __funnelshift_r(low, high, 8 * skew);
    } else {
        for (int i = 0; i < 4 && address + i < end; i++)
            word |= (uint32_t)address[i] << 8 * i;
    }
    return left >= 4 ? word : word & ~(~0u << 8 * left);
}

/* The most columns of tiles that the groups can have. */
static inline int tl_scale_most_tiles(const tl_scale_problem &p)
{
    int64_t filled = p.num_groups < p.columns ? p.num_groups : p.columns;
    return (int)((p.columns + filled * (TL_SCALE_TILE_COLUMNS - 1)) / TL_SCALE_TILE_COLUMNS);
}

/* A grid with a block for each piece across and each row tile down: blockIdx.y and .z share the
 * latter. */
enum { TL_SCALE_MOST_BLOCKS_Y = 65535 };

static inline dim3 tl_scale_grid(int64_t across, int64_t down)
{
    int64_t z = (down + TL_SCALE_MOST_BLOCKS_Y - 1) / TL_SCALE_MOST_BLOCKS_Y;
    return dim3((unsigned)across, (unsigned)((down + z - 1) / z), (unsigned)z);
}

static __device__ __forceinline__ int tl_scale_block_down()
{
    return (int)(blockIdx.z * gridDim.y + blockIdx.y);
}

typedef tl_few_groups<TL_SCALE_TILE_COLUMNS> tl_scale_few;
typedef tl_many_groups<TL_SCALE_TILE_COLUMNS> tl_scale_many;

/* Nothing to do, or a reason not to. */
static inline bool tl_scale_is_empty(const tl_scale_problem &p)
{
    return p.rows == 0 || p.columns == 0 || p.num_groups == 0;
}

#endif
