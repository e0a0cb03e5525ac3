/* Shared memory and tiles of k_grouped_gemm/sm90_ragged.cu, and how pairs of blocks choose them. */
#ifndef TL_K_GROUPED_GEMM_RAGGED_TILES_CUH
#define TL_K_GROUPED_GEMM_RAGGED_TILES_CUH

#include "kernels/device/async.cuh"
#include "kernels/device/cluster.cuh"
#include "kernels/k_grouped_gemm/order.cuh"

enum {
    CLUSTER = 2, /* blocks, a pair */
    BLOCK_M = 128,
    PANELS = 3, /* of 64 columns */
    BLOCK_N = PANELS * 64,
    BLOCK_K = 64,
    PANEL_BYTES = 64 * BLOCK_K * 2,
    HALF_BYTES = PANEL_BYTES / CLUSTER, /* of 32 rows: what a block loads of b for both */
    A_BYTES = BLOCK_M / 64 * PANEL_BYTES,
    B_BYTES = PANELS * PANEL_BYTES,
    STAGE_BYTES = A_BYTES + B_BYTES,
    BOX_COLUMNS = 32,
    BOX_BYTES = 64 * BOX_COLUMNS * 4, /* of d: 64 rows */
    MOST_STAGES = 5,
    MOST_BOXES = 8
};

/* How sums get to d: over what is there, or added to it, of which few boxes are loaded ahead, or
 * many. */
enum way { WRITE, ADD_FEW, ADD_MANY };

/* What a kernel has room for: stages of operands, and boxes of what it adds to. */
template <way WAY> struct room {
    static const bool ADDS = WAY != WRITE;
    static const int STAGES = WAY == ADD_MANY ? 4 : 5, BOXES = WAY == ADD_MANY ? 8 : 3;
    static const int BYTES = 1024 + STAGES * STAGE_BYTES + (ADDS ? BOXES * BOX_BYTES : 0);
    static_assert(BYTES + 1536 <= 227 * 1024, "stages and boxes exceed shared memory");
};

/* Which of SLOTS, and the parity of its phase. */
template <int SLOTS> struct ring {
    int slot;
    uint32_t parity;

    __device__ explicit ring(int before = 0) : slot(before % SLOTS), parity(before / SLOTS & 1)
    {
    }

    __device__ void next()
    {
        if (++slot == SLOTS) {
            slot = 0;
            parity ^= 1;
        }
    }
};

/* What the launch says. */
struct problem {
    float *d;
    int m, n;
    bool beta;
    bool panels_in_one;   /* the maps of a and b have panels as a dimension */
    int row_pairs, tiles; /* of a group: pairs of tiles below each other, and all pairs */
};

/* One tile of the output. */
struct tile {
    int group; /* NO_TILE: there is none left */
    int begin, rows;
    int row, column, panels;
    int k_blocks, last_steps;      /* 64 rows each, the last of them in steps of 16 */
    int stages_before, boxes_before; /* of earlier tiles, modulo what their rings repeat after */
};
static const int NO_TILE = -1;

/* A slot is read until its tile's sums leave, so that three of them let the loads run one ahead. */
enum { TILE_SLOTS = 3 };

/* Phases of mbarriers: a stage is full when both operands are there, and free when both blocks have
 * read it; a box is free when four warps have. Whose turn it is, warpgroups tell each other: at the
 * stages, and at the boxes. */
struct shared_layout {
    char *stages, *boxes;
    uint64_t *full, *free, *box_full, *box_free;
    uint64_t *tile_full, *tile_read, *number_full;
    uint64_t *turn, *box_turn;
    tile *tiles;
    int *numbers; /* of tiles, sent by the first block of a pair to the second */
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
    t.begin = tl_uniform(t.begin);
    t.rows = tl_uniform(t.rows);
    t.row = tl_uniform(t.row);
    t.column = tl_uniform(t.column);
    t.panels = tl_uniform(t.panels);
    t.k_blocks = tl_uniform(t.k_blocks);
    return t;
}

/* The tile of that number, of this block. Without rows it is zeros at beta 0, and nothing at beta
 * 1: no k-blocks. */
static __device__ tile tile_of(const problem &p, const schedule *todo, int number, int rank)
{
    work w = work_at(todo, number / p.tiles);
    int index = number % p.tiles;
    tile t;
    t.group = w.group;
    t.begin = w.begin;
    t.rows = w.rows;
    t.row = (index % p.row_pairs * CLUSTER + rank) * BLOCK_M;
    t.column = index / p.row_pairs * BLOCK_N;
    t.panels = min((int)PANELS, (p.n - t.column + 63) / 64);
    t.k_blocks = w.rows > 0 || p.beta ? (w.rows + BLOCK_K - 1) / BLOCK_K : 1;
    t.last_steps = max(1, (w.rows - (t.k_blocks - 1) * BLOCK_K + 15) / 16);
    return t;
}

/* A thread: takes numbers from the counter that all pairs share, so that they end together whatever
 * the groups' sizes are. The first block of a pair tells the second. */
template <way WAY>
static __device__ void choose_tiles(const shared_layout &shared, schedule *todo, const problem &p)
{
    const int STAGES = room<WAY>::STAGES, BOXES = room<WAY>::BOXES;
    int rank = tl_cluster_rank(), pairs = (int)gridDim.x / CLUSTER;
    int number = (int)blockIdx.x / CLUSTER, total = todo->groups * p.tiles;
    int stages_before = 0, boxes_before = 0;
    for (int i = 0, last = -1; i != last; i++) {
        int slot = i % TILE_SLOTS;
        uint32_t parity = i / TILE_SLOTS & 1;
        bool more = last < 0;
        tl_mbarrier_wait(shared.tile_read + slot, parity ^ 1);
        if (i > 0 && more && rank == 0) {
            number = pairs + atomicAdd(&todo->next, 1);
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
        t.group = NO_TILE;
        if (more && number < total) {
            t = tile_of(p, todo, number, rank);
            t.stages_before = stages_before;
            t.boxes_before = boxes_before;
            stages_before = (stages_before + t.k_blocks) % (2 * STAGES);
            boxes_before = (boxes_before + (t.k_blocks > 0 ? t.panels * 4 : 0)) % (2 * BOXES);
        } else if (more) {
            last = i + 2; /* one more for the other warpgroup */
        }
        shared.tiles[slot] = t;
        tl_mbarrier_arrive(shared.tile_full + slot);
    }
}

#endif
