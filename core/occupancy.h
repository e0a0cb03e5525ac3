/* Theoretical occupancy: how many blocks of a kernel fit on a multiprocessor, and what limits them.
 *
 * Computed from what a launch takes and the hardware's allocation rules (CUDA C++ Programming
 * Guide, "Compute Capabilities", 9.0), so it needs no GPU. Set it beside the achieved occupancy,
 * sm__warps_active: a gap means that blocks end at different times, or that there are too few.
 */
#ifndef TL_OCCUPANCY_H
#define TL_OCCUPANCY_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_launch_shape {
    int64_t blocks; /* of the grid */
    int threads;    /* of a block */
    int registers;  /* of a thread */
    int64_t shared_bytes; /* of a block, static and dynamic */
    int barriers;         /* named barriers of a block; 0 where unknown: then they limit nothing */
    int cluster;          /* blocks of a cluster; 0 or 1: none */
    int max_active_clusters; /* of the device; 0 where unknown */
};

enum tl_occupancy_limit {
    TL_LIMIT_REGISTERS,
    TL_LIMIT_SHARED_MEMORY,
    TL_LIMIT_THREADS,
    TL_LIMIT_BLOCKS,
    TL_LIMIT_BARRIERS,
    TL_NUM_LIMITS
};

struct tl_occupancy {
    int blocks_per_multiprocessor; /* 0: the block does not fit at all */
    int warps_per_multiprocessor;
    double percent; /* of the warps that a multiprocessor can hold */
    /* Blocks that each resource alone would allow; INT_MAX where it is not used. */
    int limit[TL_NUM_LIMITS];
    char limiter[64]; /* the resources with the lowest limit: "registers, shared memory" */
    /* The grid over what the device runs at once; with clusters, over the clusters it runs at once.
     * The last wave is full when this is a whole number. */
    double waves;
};

/* "registers", "shared memory", "threads", "blocks" or "barriers". */
const char *tl_occupancy_limit_name(enum tl_occupancy_limit limit);

/* TL_ERR_UNSUPPORTED for other GPUs than arch 90; TL_ERR_ARGUMENT for sizes below 1 (shared memory
 * and registers: below 0). */
enum tl_status tl_occupancy_compute(struct tl_occupancy *out, int arch, int multiprocessors,
                                    const struct tl_launch_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
