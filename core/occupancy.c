/* Allocation rules of compute capability 9.0; see occupancy.h. */
#include "occupancy.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    WARP = 32,
    MAX_WARPS = 64,
    MAX_BLOCKS = 32,
    MAX_BLOCK_THREADS = 1024,
    BARRIERS = 2 * MAX_BLOCKS, /* named barriers of a multiprocessor */
    REGISTERS = 65536,
    REGISTER_UNIT = 256, /* a warp's registers come in multiples of it */
    MAX_THREAD_REGISTERS = 256,
    PARTITIONS = 4, /* each has its own quarter of the registers */
    SHARED = 228 * 1024,
    SHARED_UNIT = 128,
    SHARED_RESERVED = 1024, /* of every block, for the system */
    MAX_BLOCK_SHARED = 227 * 1024,
};

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* A warp lives in one partition, so partitions count by whole warps. The check of a launch assumes
 * that all partitions give the same, hence the rounding of the block's warps. */
static int register_limit(int warps, int registers)
{
    int of_warp = (int)round_up((int64_t)registers * WARP, REGISTER_UNIT);
    if (of_warp == 0)
        return INT_MAX;
    if (registers > MAX_THREAD_REGISTERS || of_warp * round_up(warps, PARTITIONS) > REGISTERS)
        return 0;
    return REGISTERS / PARTITIONS / of_warp * PARTITIONS / warps;
}

static int shared_limit(int64_t bytes)
{
    if (bytes > MAX_BLOCK_SHARED)
        return 0;
    return (int)(SHARED / round_up(bytes + SHARED_RESERVED, SHARED_UNIT));
}

const char *tl_occupancy_limit_name(enum tl_occupancy_limit limit)
{
    static const char *const names[TL_NUM_LIMITS] = {"registers", "shared memory", "threads",
                                                     "blocks", "barriers"};
    return limit < TL_NUM_LIMITS ? names[limit] : "unknown";
}

static enum tl_status check(const struct tl_launch_shape *shape, int arch, int multiprocessors)
{
    if (arch != 90)
        return TL_FAIL(TL_ERR_UNSUPPORTED,
                       "occupancy: the allocation rules of arch %d are not known here, only those "
                       "of 90 (Hopper)",
                       arch);
    if (shape->blocks < 1 || shape->threads < 1 || multiprocessors < 1)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "occupancy: blocks, threads and multiprocessors start at 1 (got %lld, %d, "
                       "%d)",
                       (long long)shape->blocks, shape->threads, multiprocessors);
    if (shape->registers < 0 || shape->shared_bytes < 0 || shape->barriers < 0)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "occupancy: registers, shared memory and barriers start at 0");
    return TL_OK;
}

static void name_limiter(struct tl_occupancy *out)
{
    out->limiter[0] = 0;
    for (int i = 0; i < TL_NUM_LIMITS; i++) {
        size_t used = strlen(out->limiter);
        if (out->limit[i] == out->blocks_per_multiprocessor)
            snprintf(out->limiter + used, sizeof out->limiter - used, "%s%s", used ? ", " : "",
                     tl_occupancy_limit_name((enum tl_occupancy_limit)i));
    }
}

enum tl_status tl_occupancy_compute(struct tl_occupancy *out, int arch, int multiprocessors,
                                    const struct tl_launch_shape *shape)
{
    TL_TRY(check(shape, arch, multiprocessors));
    int warps = (int)(round_up(shape->threads, WARP) / WARP);
    memset(out, 0, sizeof *out);
    out->limit[TL_LIMIT_REGISTERS] = register_limit(warps, shape->registers);
    out->limit[TL_LIMIT_SHARED_MEMORY] = shared_limit(shape->shared_bytes);
    out->limit[TL_LIMIT_THREADS] = shape->threads > MAX_BLOCK_THREADS ? 0 : MAX_WARPS / warps;
    out->limit[TL_LIMIT_BLOCKS] = MAX_BLOCKS;
    out->limit[TL_LIMIT_BARRIERS] = shape->barriers ? BARRIERS / shape->barriers : INT_MAX;
    int blocks = INT_MAX;
    for (int i = 0; i < TL_NUM_LIMITS; i++)
        blocks = out->limit[i] < blocks ? out->limit[i] : blocks;
    out->blocks_per_multiprocessor = blocks;
    out->warps_per_multiprocessor = blocks * warps;
    out->percent = 100.0 * blocks * warps / MAX_WARPS;
    name_limiter(out);
    double resident = (double)blocks * multiprocessors;
    if (shape->cluster > 1 && shape->max_active_clusters > 0) {
        double in_clusters = (double)shape->cluster * shape->max_active_clusters;
        resident = in_clusters < resident ? in_clusters : resident;
    }
    out->waves = resident > 0 ? (double)shape->blocks / resident : 0;
    return TL_OK;
}
