/* What three warps of sm90_ragged's blocks do: choose tiles, load weights, load tokens.
 *
 * They run ahead of the warpgroups that multiply, each at its own pace: a warp that does all three
 * takes longer for 64 of k than 128 tokens take to be multiplied.
 */
#ifndef TL_RAGGED_LOAD_CUH
#define TL_RAGGED_LOAD_CUH

#include "kernels/device/async.cuh"
#include "kernels/device/cluster.cuh"
#include "kernels/m_grouped_gemm/ragged_tiles.cuh"

enum {
    BLOCK_K = 64,
    MOST_STAGES = 6,
    WEIGHT_BYTES = BLOCK_N * BLOCK_K * 2,
    UNIT_BYTES = UNIT * BLOCK_K * 2,
    STAGE_BYTES = WEIGHT_BYTES + MOST_UNITS * UNIT_BYTES
};

/* Tiles on their way from the scheduler to those who load, multiply and store them: a tile is
 * chosen about one ahead of what loads, so that a late cluster leaves the rest to others. */
enum { TILE_SLOTS = 2 };

/* Phases of mbarriers: a stage is full when its weights and its tokens are there; it is free for
 * loads of this block's own when this block has read it, and for what the pair shares when all
 * blocks have that such a load serves. Who waits for all_free waits for free first: the loads of a
 * block's own may be a whole ring ahead of what the other block has read, and a barrier that is two
 * phases behind looks like one that is done. */
struct shared_layout {
    char *stages, *store; /* a stage: 128 weights, then the tokens, 64 of k each */
    uint64_t *full, *free, *all_free;
    uint64_t *tile_full, *tile_read, *number_full;
    uint64_t *turn; /* of each warpgroup */
    tile *tiles;
    int *numbers; /* of tiles, sent by the first block of a cluster to the second */
};

/* Which stage of the ring, and the parity of its phase. */
struct ring {
    int stages, stage = 0;
    uint32_t parity = 0;

    __device__ explicit ring(int stages_) : stages(stages_)
    {
    }

    __device__ void next()
    {
        if (++stage == stages) {
            stage = 0;
            parity ^= 1;
        }
    }

    __device__ void skip(int count)
    {
        int to = stage + count;
        parity ^= to / stages & 1;
        stage = to % stages;
    }
};

/* Loads of many small boxes are slow, those of both blocks above all: there is a map for each
 * number of units that a block may load for both. */
struct maps {
    CUtensorMap weights, half_weights; /* 128 of them where one load takes them, and 64 */
    CUtensorMap d, tokens[MOST_UNITS / CLUSTER];
};

/* The next tile, for a whole warp. One lane reads it, says so, and tells the others, who know by
 * that that they agree. */
static __device__ __forceinline__ tile take_tile(const shared_layout &shared, int i)
{
    int slot = i % TILE_SLOTS;
    tile t;
    tl_mbarrier_wait(shared.tile_full + slot, i / TILE_SLOTS & 1);
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        t = shared.tiles[slot];
        tl_mbarrier_arrive(shared.tile_read + slot);
    }
    t.group = tl_uniform(t.group);
    t.group_begin = tl_uniform(t.group_begin);
    t.group_rows = tl_uniform(t.group_rows);
    t.row = tl_uniform(t.row);
    t.units = tl_uniform(t.units);
    t.column = tl_uniform(t.column);
    t.stacked = tl_uniform(t.stacked);
    return t;
}

/* A warp: takes numbers from the counter that all clusters share, so that they end together
 * whatever the groups' sizes are, and finds the tiles. The first block of a cluster tells the
 * second; the last cluster leaves the counters as it found them. */
static __device__ void schedule(const shared_layout &shared, const int *offsets, int *counters,
                                const settings &set)
{
    int rank = tl_cluster_rank(), clusters = (int)gridDim.x / CLUSTER;
    int number = (int)blockIdx.x / CLUSTER;
    tile_walk walk(offsets, set, rank);
    bool more = true;
    for (int i = 0, last = -1; i != last; i++) {
        int slot = i % TILE_SLOTS;
        uint32_t parity = i / TILE_SLOTS & 1;
        tl_mbarrier_wait(shared.tile_read + slot, parity ^ 1);
        if (i > 0 && more && rank == 0) {
            number = clusters + atomicAdd(counters, 1);
            tl_cluster_send(tl_cluster_address(shared.numbers + slot, 1), number,
                            tl_cluster_address(shared.number_full + slot, 1));
        } else if (i > 0 && more) {
            tl_mbarrier_expect(shared.number_full + slot, sizeof(int));
            tl_mbarrier_wait(shared.number_full + slot, parity ^ (slot == 0));
            number = *(volatile int *)(shared.numbers + slot);
        }
        if (rank > 0 && more) /* the first block may write that slot again */
            tl_mbarrier_arrive_cluster(tl_cluster_address(shared.tile_read + slot, 0));
        tile t;
        if (more && !walk.find(number, t)) {
            more = false;
            last = i + set.turns; /* one more for each warpgroup */
        }
        if (!more)
            t.group = NO_TILE;
        shared.tiles[slot] = t;
        tl_mbarrier_arrive(shared.tile_full + slot);
    }
    if (rank == 0 && atomicAdd(counters + 1, 1) == clusters - 1)
        counters[0] = counters[1] = 0;
}

/* A warp: the weights of this block; of a stacked pair, half of them for both. */
template <bool W_MN>
static __device__ void load_weights(const shared_layout &shared, const CUtensorMap *map,
                                    const CUtensorMap *half_map, const settings &set)
{
    int rank = tl_uniform(tl_cluster_rank());
    bool elected = tl_elect();
    ring at(set.stages);
    for (int i = 0;; i++) {
        tile t = take_tile(shared, i);
        if (t.group == NO_TILE)
            break;
        bool both = t.stacked && set.multicast == CLUSTER;
        int mine = t.column + (both ? rank * 64 : 0);
        for (int k = 0; k < set.k_blocks; k++, at.next()) {
            char *to = shared.stages + at.stage * STAGE_BYTES;
            uint64_t *full = shared.full + at.stage;
            int x = W_MN ? mine : k * BLOCK_K, y = W_MN ? k * BLOCK_K : mine;
            tl_mbarrier_wait(shared.free + at.stage, at.parity ^ 1);
            if (both)
                tl_mbarrier_wait(shared.all_free + at.stage, at.parity ^ 1);
            __syncwarp();
            if (!elected)
                continue;
            tl_mbarrier_expect(full, WEIGHT_BYTES);
            if (both) {
                tl_tma_multicast_3d(to + rank * (WEIGHT_BYTES / 2), half_map, full, x, y, t.group,
                                    (1 << CLUSTER) - 1);
            } else if (W_MN) {
                tl_tma_load_3d(to, half_map, full, x, y, t.group);
                tl_tma_load_3d(to + WEIGHT_BYTES / 2, half_map, full, x + 64, y, t.group);
            } else {
                tl_tma_load_3d(to, map, full, x, y, t.group);
            }
        }
    }
}

/* A warp: the tokens of this block; where a pair has the same ones, half of them for both. */
static __device__ void load_tokens(const shared_layout &shared, const CUtensorMap *by_units,
                                   const settings &set)
{
    int rank = tl_uniform(tl_cluster_rank());
    bool elected = tl_elect();
    ring at(set.stages);
    for (int i = 0;; i++) {
        tile t = take_tile(shared, i);
        if (t.group == NO_TILE)
            break;
        bool both = !t.stacked && set.multicast == CLUSTER;
        int row = t.group_begin + t.row, half = (t.units + 1) / 2, rest = t.units - half;
        int first = rank ? half : 0, units = rank ? rest : half;
        for (int k = 0; k < set.k_blocks; k++, at.next()) {
            char *to = shared.stages + at.stage * STAGE_BYTES + WEIGHT_BYTES;
            uint64_t *full = shared.full + at.stage;
            int x = k * BLOCK_K;
            tl_mbarrier_wait(shared.free + at.stage, at.parity ^ 1);
            if (both)
                tl_mbarrier_wait(shared.all_free + at.stage, at.parity ^ 1);
            __syncwarp();
            if (!elected)
                continue;
            tl_mbarrier_expect(full, t.units * UNIT_BYTES);
            if (both) {
                if (units > 0)
                    tl_tma_multicast_2d(to + first * UNIT_BYTES, by_units + units - 1, full, x,
                                        row + first * UNIT, (1 << CLUSTER) - 1);
            } else {
                tl_tma_load_2d(to, by_units + half - 1, full, x, row);
                if (rest > 0)
                    tl_tma_load_2d(to + half * UNIT_BYTES, by_units + rest - 1, full, x,
                                   row + half * UNIT);
            }
        }
    }
}

#endif
