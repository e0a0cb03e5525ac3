/* How sm90_ragged cuts groups of any size into tiles, and in which order it takes them.
 *
 * A group is cut along its tokens into equal tiles, in steps of wgmma's eight: two or more of at most
 * 160 tokens waste less than full ones and a rest.
 */
#ifndef TL_RAGGED_TILES_CUH
#define TL_RAGGED_TILES_CUH

enum {
    UNIT = 8,        /* tokens: the step of wgmma's N side */
    MOST_UNITS = 20, /* of a tile; what the accumulators of a warpgroup hold */
    BLOCK_N = 128,   /* weights of a tile, twice wgmma's 64 */
    CLUSTER = 2      /* blocks, with as many tiles of weights next to each other */
};

/* What the host says. */
struct settings {
    int num_groups, m, n, k_blocks;
    int stages;
    int turns;     /* warpgroups that multiply */
    int multicast; /* blocks that a load of tokens serves: 1 or 2 */
    int step;      /* units that a group's last tile is rounded up to */
    int band;      /* token tiles that meet a tile of weights before the next one does */
};

/* One tile of the output, of both blocks of a cluster. */
struct tile {
    int group; /* NO_TILE: there is none left */
    int group_begin, group_rows;
    int row, units; /* its first token in the group, and its height; the last unit may be partial */
    int column;     /* of the first block */
};
static const int NO_TILE = -1;

/* Finds tiles by their number: groups in order, in each bands of `band` token tiles, in each band
 * column by column. Numbers may only grow. */
struct tile_walk {
    const int *offsets;
    int num_groups, columns, step, band, group, begin, end, units, splits, passed;

    __device__ tile_walk(const int *offsets_, const settings &set)
        : offsets(offsets_), num_groups(set.num_groups),
          columns((set.n + CLUSTER * BLOCK_N - 1) / (CLUSTER * BLOCK_N)), step(set.step),
          band(set.band), group(-1), begin(0), end(offsets_[0]), units(0), splits(0), passed(0)
    {
    }

    __device__ bool find(int number, tile &out)
    {
        while (number - passed >= splits * columns) {
            passed += splits * columns;
            if (++group >= num_groups)
                return false;
            begin = end;
            end = __ldg(offsets + group + 1);
            units = (end - begin + step * UNIT - 1) / (step * UNIT) * step;
            splits = (units + MOST_UNITS / step * step - 1) / (MOST_UNITS / step * step);
        }
        int index = number - passed;
        int band_start = index / (band * columns) * band, in_band = index - band_start * columns;
        int height = min(band, splits - band_start), split = band_start + in_band % height;
        int least = units / step / splits * step; /* `larger` tiles have a step more */
        int larger = units / step % splits;
        out.group = group;
        out.group_begin = begin;
        out.group_rows = end - begin;
        out.row = (split * least + min(split, larger) * step) * UNIT;
        out.units = least + (split < larger ? step : 0);
        out.column = in_band / height * CLUSTER * BLOCK_N;
        return true;
    }
};

#endif
