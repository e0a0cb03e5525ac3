/* Row tiles of the groupings that leave columns whole: dense, m_groups, per_group_3d. Row tiles are
 * numbered through all groups, and so they lie one after another in the output; only where their
 * rows are depends on the groups.
 */
#ifndef TL_SCALE_SWIZZLE_ROW_TILES_CUH
#define TL_SCALE_SWIZZLE_ROW_TILES_CUH

#include "kernels/device/group_ends.cuh"
#include "kernels/scale_swizzle/launch.h"

struct tl_scale_row_problem {
    tl_scale_problem p;
    int64_t all_rows;     /* of all slices */
    int tiles;            /* row tiles, of m_groups the most that there can be */
    unsigned slice_tiles; /* of those, in a slice; 1 of m_groups */
};

static inline tl_scale_row_problem tl_scale_row_problem_of(const tl_scale_problem &p)
{
    int slices = p.ends || p.num_groups == 0 ? 1 : p.num_groups;
    tl_scale_row_problem r = {p, (int64_t)p.rows * slices, p.row_tiles * slices,
                              p.ends ? 1 : (unsigned)p.row_tiles};
    return r;
}

/* Stands for a table of groups where none have ends: each slice is a group. */
struct tl_scale_no_groups {
    static size_t shared_bytes(int64_t) { return 0; }
    __device__ bool open(const int *, int, int, int *, tl_fault_port) { return false; }
};

/* The rows of a tile: the first one in the tensor, and how many the group has from there on. */
struct tl_scale_rows {
    int64_t first;
    int count;
};

/* False past the last group. For whole warps. */
template <class Groups>
static __device__ __forceinline__ bool tl_scale_find_rows(const tl_scale_row_problem &r,
                                                          Groups &groups, int tile,
                                                          tl_scale_rows *rows)
{
    groups.seek_unit(tile);
    int first = groups.begin + (tile - groups.units_before) * TL_SCALE_TILE_ROWS;
    rows->first = first;
    rows->count = groups.end - first;
    return groups.group < r.p.num_groups;
}

template <>
__device__ __forceinline__ bool tl_scale_find_rows(const tl_scale_row_problem &r,
                                                   tl_scale_no_groups &, int tile,
                                                   tl_scale_rows *rows)
{
    int slice = (int)((unsigned)tile / r.slice_tiles);
    int first = (tile - slice * (int)r.slice_tiles) * TL_SCALE_TILE_ROWS;
    rows->first = (int64_t)slice * r.p.rows + first;
    rows->count = r.p.rows - first;
    return tile < r.tiles;
}

#endif
