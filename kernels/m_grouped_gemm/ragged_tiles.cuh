/* How sm90_ragged cuts groups of any size into tiles, and in which order it takes them.
 *
 * A group is cut along its tokens into equal tiles, in steps of wgmma's eight: two or more of at
 * most 160 tokens waste less than full ones and a rest. The two blocks of a pair have two tiles of
 * weights next to each other and the same tokens. Only where a group is cut into two, they have its
 * two token tiles and the same weights: no other pair needs these, so that they are read once.
 */
#ifndef TL_RAGGED_TILES_CUH
#define TL_RAGGED_TILES_CUH

enum {
    UNIT = 8,        /* tokens: the step of wgmma's N side */
    MOST_UNITS = 20, /* of a tile; what the accumulators of a warpgroup hold */
    BLOCK_N = 128,   /* weights of a tile, twice wgmma's 64 */
    CLUSTER = 2      /* blocks, a pair */
};

/* What the host says. */
struct settings {
    int num_groups, m, n, k_blocks;
    int stages;
    int turns;     /* warpgroups that multiply */
    int multicast; /* blocks that a load of what they share serves: 1 or 2 */
    int step;      /* units that a group's last tile is rounded up to */
    int band;      /* token tiles that meet a tile of weights before the next one does */
    int stack;     /* token tiles that a pair may have: 1 or 2 */
};

/* One tile of the output. */
struct tile {
    int group; /* NO_TILE: there is none left */
    int group_begin, group_rows;
    int row, units; /* its first token in the group, and its height; the last unit may be partial */
    int column;     /* of its first weight */
    int stacked;    /* the pair has the same weights, and two token tiles */
};
static const int NO_TILE = -1;

/* Finds a block's tiles by the number of its pair's: groups in order, in each bands of `band` token
 * tiles, in each band column by column. Numbers may only grow. */
struct tile_walk {
    const int *offsets;
    settings set;
    int rank, group, begin, end, units;
    int splits, height; /* token tiles of the group; of a pair */
    int columns, pairs, passed;

    __device__ tile_walk(const int *offsets_, const settings &set_, int rank_)
        : offsets(offsets_), set(set_), rank(rank_), group(-1), begin(0), end(offsets_[0]),
          units(0), splits(0), height(1), columns(0), pairs(0), passed(0)
    {
    }

    __device__ bool next_group()
    {
        passed += pairs;
        if (++group >= set.num_groups)
            return false;
        begin = end;
        end = __ldg(offsets + group + 1);
        int most = MOST_UNITS / set.step * set.step;
        units = (end - begin + set.step * UNIT - 1) / (set.step * UNIT) * set.step;
        splits = (units + most - 1) / most;
        height = splits == CLUSTER && set.stack == CLUSTER ? CLUSTER : 1;
        columns = (set.n + CLUSTER / height * BLOCK_N - 1) / (CLUSTER / height * BLOCK_N);
        pairs = splits / height * columns;
        return true;
    }

    __device__ bool find(int number, tile &out)
    {
        while (number - passed >= pairs)
            if (!next_group())
                return false;
        int index = number - passed, rows = splits / height, band = max(set.band / height, 1);
        int band_start = index / (band * columns) * band, in_band = index - band_start * columns;
        int band_rows = min(band, rows - band_start);
        int row = band_start + in_band % band_rows, column = in_band / band_rows;
        int split = height > 1 ? row * CLUSTER + rank : row;
        int steps = units / set.step, least = steps / splits * set.step;
        int larger = steps % splits; /* tiles that have a step more */
        out.group = group;
        out.group_begin = begin;
        out.group_rows = end - begin;
        out.row = (split * least + min(split, larger) * set.step) * UNIT;
        out.units = least + (split < larger ? set.step : 0);
        out.column = (height > 1 ? column : column * CLUSTER + rank) * BLOCK_N;
        out.stacked = height > 1;
        return true;
    }
};

#endif
