/* Shared memory, tiles and roles' terms of sm90_cooperative.cu, which explains them. */
#ifndef TL_K_GROUPED_GEMM_COOPERATIVE_TILE_CUH
#define TL_K_GROUPED_GEMM_COOPERATIVE_TILE_CUH

#include <stdint.h>

enum {
    BLOCK_K = 64,
    TILE = 128 * 256, /* elements: 128 registers of each of 256 threads */
    THREADS = 384,
    BAND = 8,                      /* row tiles that share their column tiles in L2 */
    PANEL_BYTES = 64 * 64 * 2,     /* of an operand: 64 columns by 64 rows, one swizzle span wide */
    STAGE_BYTES = 6 * PANEL_BYTES, /* (128 + 256) / 64 panels */
    BOX_COLUMNS = 32,              /* of d: fp32, one swizzle span */
    BOX_BYTES = 64 * BOX_COLUMNS * 4,
    BOXES = TILE / 2 / 64 / BOX_COLUMNS, /* of each consumer warpgroup */
    SUMS_BYTES = 4 * BOX_BYTES,          /* of d in one stage: two boxes of each warpgroup */
    WIDE_COLUMNS = 128,                  /* of d: boxes of a warp's own, WIDE_ROWS high */
    WIDE_ROWS = 8,
    WIDE_BYTES = WIDE_ROWS * WIDE_COLUMNS * 4,
    PRODUCER_REGISTERS = 56,
    CONSUMER_REGISTERS = 224,
    LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8 /* what __launch_bounds__ leaves a thread */
};
/* setmaxnreg.inc waits for registers that the block was launched with; beyond them it waits for
 * ever. */
static_assert(PRODUCER_REGISTERS * 128 + CONSUMER_REGISTERS * 256 <= LAUNCH_REGISTERS * THREADS,
              "roles take more registers than the block has");
static_assert((int)SUMS_BYTES <= (int)STAGE_BYTES, "boxes of d exceed a stage");

/* Columns of a tile, stages of the ring, and whether warps store rows of d rather than warpgroups
 * columns of it. */
template <int BLOCK_N_, int STAGES_, bool WIDE_ = false> struct shape {
    static const bool WIDE = WIDE_;
    static const int BLOCK_N = BLOCK_N_, BLOCK_M = TILE / BLOCK_N, STAGES = STAGES_;
    static const int A_PANELS = BLOCK_M / 64, B_PANELS = BLOCK_N / 64;
    static const int PARTS = BLOCK_M / 128; /* 64-row parts of a warpgroup's share of a tile */
    static const int SUMS = BLOCK_N / 2;    /* of a part and thread */
    static const int STORE_BUFFERS = STAGES == 4 ? 2 : STAGES == 3 ? 4 : 8; /* of a warpgroup */
    static const int SHARED_BYTES = 1024 + STAGES * STAGE_BYTES + 2 * STORE_BUFFERS * BOX_BYTES;
    static_assert(SHARED_BYTES + 1024 <= 227 * 1024, "tiles and staging exceed shared memory");
    static_assert(BOXES % STORE_BUFFERS == 0, "a tile must begin with the first buffer");
    static_assert(!WIDE || (PARTS == 1 && 8 * WIDE_BYTES <= 2 * STORE_BUFFERS * BOX_BYTES),
                  "warps share the staging of warpgroups");
};

/* How a tile's sums leave the block. */
enum leave {
    STORE,   /* over what is there */
    REDUCE,  /* added by the copy engine */
    LOAD_ADD /* added here to what was loaded, then stored */
};

/* One tile of the output. */
struct tile {
    int group; /* NO_TILE: there is none left */
    int row, column;
    int k_blocks, last_steps; /* 64 rows each, the last of them in steps of 16 */
    leave how;
};
static const int NO_TILE = -1;

/* Tiles on their way from the producer to the consumers: a tile takes a stage or more, so that at
 * most as many as there are stages are ahead of the slower consumer. */
enum { TILE_SLOTS = 8 };

struct shared_layout {
    char *stages, *store;
    uint64_t *full, *empty;
    tile *tiles;

    __device__ char *stage(int i) const
    {
        return stages + i * STAGE_BYTES;
    }
};

/* Which stage of the ring, and the parity of its phase. */
template <int STAGES> struct ring {
    static_assert(STAGES < TILE_SLOTS, "a tile could be overwritten before it is read");
    int stage = 0;
    uint32_t parity = 0;

    __device__ void advance()
    {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

/* What the launch says. */
struct problem {
    int m, n, beta;
    int load_below;       /* rows of a group below which beta 1 loads d */
    bool panels_in_one;   /* the maps of a and b have panels as a dimension */
    int row_tiles, tiles; /* of a group */
};

/* The tile's place within its group: bands of BAND row tiles, in each column by column. */
template <class S> static __device__ void place(tile &t, const problem &p, int index)
{
    int column_tiles = p.tiles / p.row_tiles, band_tiles = BAND * column_tiles;
    int band = index / band_tiles, in_band = index - band * band_tiles;
    int height = min((int)BAND, p.row_tiles - band * BAND);
    t.row = (band * BAND + in_band % height) * S::BLOCK_M;
    t.column = in_band / height * S::BLOCK_N;
}

#endif
