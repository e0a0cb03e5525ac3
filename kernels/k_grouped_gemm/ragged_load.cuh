/* What three warps of k_grouped_gemm/sm90_ragged's blocks load, each at its own pace: a, b, and
 * what is there already in d.
 */
#ifndef TL_K_GROUPED_GEMM_RAGGED_LOAD_CUH
#define TL_K_GROUPED_GEMM_RAGGED_LOAD_CUH

#include "kernels/device/async_ragged.cuh"
#include "kernels/device/tensor_map.h"
#include "kernels/k_grouped_gemm/ragged_tiles.cuh"

/* The 128 columns of this block. */
template <way WAY>
static __device__ void load_a(const shared_layout &shared, const CUtensorMap *map, const problem &p)
{
    bool elected = tl_elect();
    ring<room<WAY>::STAGES> at;
    for (int i = 0;; i++) {
        tile t = take_tile(shared, i);
        if (t.group == NO_TILE)
            break;
        int y = TL_RAGGED_ROWS - t.rows, z = t.begin + t.rows;
        for (int k = 0; k < t.k_blocks; k++, at.next(), y += BLOCK_K) {
            char *to = shared.stages + at.slot * STAGE_BYTES;
            uint64_t *full = shared.full + at.slot;
            tl_mbarrier_wait(shared.free + at.slot, at.parity ^ 1);
            __syncwarp();
            if (!elected)
                continue;
            tl_mbarrier_expect(full, A_BYTES);
            if (p.panels_in_one) {
                tl_tma_load_5d(to, map, full, 0, y, z, TL_RAGGED_ROWS, t.row / 64);
            } else {
                tl_tma_load_4d(to, map, full, t.row, y, z, TL_RAGGED_ROWS);
                tl_tma_load_4d(to + PANEL_BYTES, map, full, t.row + 64, y, z, TL_RAGGED_ROWS);
            }
        }
    }
}

/* The 192 columns of both blocks, 32 of 64 rows for both. */
template <way WAY>
static __device__ void load_b(const shared_layout &shared, const CUtensorMap *map, const problem &p)
{
    const uint16_t BOTH = (1 << CLUSTER) - 1;
    bool elected = tl_elect();
    int rank = tl_uniform(tl_cluster_rank());
    ring<room<WAY>::STAGES> at;
    for (int i = 0;; i++) {
        tile t = take_tile(shared, i);
        if (t.group == NO_TILE)
            break;
        int y = TL_RAGGED_ROWS - t.rows + rank * (BLOCK_K / CLUSTER), z = t.begin + t.rows;
        for (int k = 0; k < t.k_blocks; k++, at.next(), y += BLOCK_K) {
            char *to = shared.stages + at.slot * STAGE_BYTES + A_BYTES + rank * PANELS * HALF_BYTES;
            uint64_t *full = shared.full + at.slot;
            tl_mbarrier_wait(shared.free + at.slot, at.parity ^ 1);
            __syncwarp();
            if (!elected)
                continue;
            tl_mbarrier_expect(full, B_BYTES);
            if (p.panels_in_one) {
                tl_tma_multicast_5d(to, map, full, 0, y, z, TL_RAGGED_ROWS, t.column / 64, BOTH);
            } else {
                for (int panel = 0; panel < PANELS; panel++)
                    tl_tma_multicast_4d(to + panel * HALF_BYTES, map, full, t.column + panel * 64,
                                        y, z, TL_RAGGED_ROWS, BOTH);
            }
        }
    }
}

/* 32 columns at a time, their upper 64 rows before the lower. */
template <way WAY>
static __device__ void load_sums(const shared_layout &shared, const CUtensorMap *map)
{
    bool elected = tl_elect();
    ring<room<WAY>::BOXES> at;
    for (int i = 0;; i++) {
        tile t = take_tile(shared, i);
        if (t.group == NO_TILE)
            break;
        int boxes = t.k_blocks > 0 ? t.panels * 4 : 0;
        for (int box = 0; box < boxes; box++, at.next()) {
            uint64_t *full = shared.box_full + at.slot;
            tl_mbarrier_wait(shared.box_free + at.slot, at.parity ^ 1);
            __syncwarp();
            if (!elected)
                continue;
            tl_mbarrier_expect(full, BOX_BYTES);
            tl_tma_load_3d(shared.boxes + at.slot * BOX_BYTES, map, full,
                           t.column + box / 2 * BOX_COLUMNS, t.row + box % 2 * 64, t.group);
        }
    }
}

#endif
