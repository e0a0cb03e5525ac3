/* Probes: kernels whose counters are known beforehand, with which the profiler tests itself, and
 * that experiments on one hardware limit hold still.
 *
 * probe_copy       dst = src; every byte is read once and written once.
 * probe_store      dst = value, stored by TMA: the time that writing an output takes at least.
 * probe_stride     Each warp loads 32 words, `stride` words apart, as often as `loads` says; the
 *                  sectors a request touches follow from the stride alone.
 * probe_conflict   One warp reads shared memory so that `ways` of its 32 words lie in one bank, and
 *                  the others in banks of their own: a request takes `ways` wavefronts.
 * probe_mma        d[block] = repeats * a b^T with wgmma; FLOPs are exact, and so is d for inputs
 *                  whose products and sums fp32 holds.
 * probe_occupancy  Blocks of `threads` threads stay on their SM for `cycles`, each holding
 *                  `shared_bytes` of shared memory and `registers` registers a thread. With as many
 *                  blocks as fit at once, achieved occupancy is theoretical occupancy.
 */
#ifndef TL_PROBE_OP_H
#define TL_PROBE_OP_H

#include "core/kernel.h"

enum tl_probe_copy_arg {
    TL_PROBE_COPY_SRC, /* [count], a multiple of 4 */
    TL_PROBE_COPY_DST, /* [count] */
};

enum tl_probe_store_arg {
    TL_PROBE_STORE_DST, /* [depth, rows, columns], columns a multiple of 4 */
};
enum tl_probe_store_dim { TL_PROBE_STORE_DEPTH, TL_PROBE_STORE_ROWS, TL_PROBE_STORE_COLUMNS };
enum tl_probe_store_param { TL_PROBE_STORE_VALUE };

enum tl_probe_stride_arg {
    TL_PROBE_STRIDE_SRC, /* [words], at least 32 * warps * stride */
    TL_PROBE_STRIDE_DST, /* [threads], a multiple of 256: the sum of what each thread loaded */
};
enum tl_probe_stride_dim { TL_PROBE_STRIDE_WORDS, TL_PROBE_STRIDE_THREADS };
enum tl_probe_stride_param { TL_PROBE_STRIDE_STRIDE, TL_PROBE_STRIDE_LOADS };

enum tl_probe_conflict_arg {
    TL_PROBE_CONFLICT_DST, /* [32]: the sum of what each lane loaded */
};
enum tl_probe_conflict_param { TL_PROBE_CONFLICT_WAYS, TL_PROBE_CONFLICT_LOADS };

enum tl_probe_mma_arg {
    TL_PROBE_MMA_A, /* [64, 64] K-major */
    TL_PROBE_MMA_B, /* [256, 64] K-major */
    TL_PROBE_MMA_D, /* [blocks, 64, 256] row-major */
};
enum tl_probe_mma_dim { TL_PROBE_MMA_BLOCKS };
enum tl_probe_mma_param { TL_PROBE_MMA_REPEATS };

enum tl_probe_occupancy_arg {
    TL_PROBE_OCCUPANCY_DST, /* [blocks]: SM clocks that the block stayed */
};
enum tl_probe_occupancy_dim { TL_PROBE_OCCUPANCY_BLOCKS };
enum tl_probe_occupancy_param {
    TL_PROBE_OCCUPANCY_REGISTERS,
    TL_PROBE_OCCUPANCY_THREADS,
    TL_PROBE_OCCUPANCY_SHARED,
    TL_PROBE_OCCUPANCY_CYCLES,
};
enum tl_probe_occupancy_registers { TL_PROBE_FEW_REGISTERS, TL_PROBE_MANY_REGISTERS };

extern const struct tl_operation tl_op_probe_copy, tl_op_probe_store, tl_op_probe_stride,
    tl_op_probe_conflict, tl_op_probe_mma, tl_op_probe_occupancy;

#endif
