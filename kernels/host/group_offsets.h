/* Checks of what cuts a tensor into groups: at launch for kernels that run on the host, and what
 * kernels on the device need for the same (kernels/device/group_offsets.cuh), so that both find the
 * same fault first and say the same words.
 *
 * group_offsets has num_groups + 1 entries; group g holds rows group_offsets[g] up to, not
 * including, group_offsets[g + 1]. Rows past the last offset belong to nobody.
 */
#ifndef TL_GROUP_OFFSETS_H
#define TL_GROUP_OFFSETS_H

#include "core/kernel.h"

#ifdef __CUDACC__
#define TL_HOST_DEVICE __host__ __device__
#else
#define TL_HOST_DEVICE
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Rows that every group of a padded layout starts at a multiple of: DeepGEMM's block_m. */
#define TL_GROUP_ALIGNMENT 128

/* tl_fault.kind; tl_fault.value is the offset, the one before it, and the rows of the tensor. */
enum tl_group_offsets_fault {
    TL_OFFSETS_FIRST = 1, /* not 0 */
    TL_OFFSETS_DECREASE,
    TL_OFFSETS_BEYOND,    /* the last one is beyond the rows */
    TL_OFFSETS_UNALIGNED, /* no multiple of TL_GROUP_ALIGNMENT, in a padded layout */
};

/* Whether something is wrong with the offsets at thread, thread + threads, ...: a share of the work
 * when `threads` threads share it, next to each other in memory. Four at a time and without
 * branches, past the end the last one again, so that a thread of a GPU waits for memory once. */
static inline TL_HOST_DEVICE bool tl_group_offsets_bad(const int32_t *offsets, int64_t num_groups,
                                                       int64_t rows, bool aligned, int thread,
                                                       int threads)
{
    bool bad = false;
    for (int64_t first = thread; first <= num_groups; first += 4 * (int64_t)threads) {
        for (int turn = 0; turn < 4; turn++) {
            int64_t i = first + turn * (int64_t)threads;
            i = i < num_groups ? i : num_groups;
            int32_t offset = offsets[i], before = offsets[i > 0 ? i - 1 : 0];
            bad |= offset < before;
            bad |= i == 0 && offset != 0;
            bad |= i == num_groups && offset > rows;
            bad |= aligned && offset % TL_GROUP_ALIGNMENT != 0;
        }
    }
    return bad;
}

/* Describes the first thing that is wrong with the offsets; false when all is well. */
static inline TL_HOST_DEVICE bool tl_group_offsets_find(const int32_t *offsets, int64_t num_groups,
                                                        int64_t rows, bool aligned,
                                                        struct tl_fault *out)
{
    out->kind = offsets[0] != 0 ? TL_OFFSETS_FIRST : 0;
    out->position = 0;
    for (int64_t i = 1; i <= num_groups && !out->kind; i++) {
        out->kind = offsets[i] < offsets[i - 1] ? TL_OFFSETS_DECREASE : 0;
        out->position = i;
    }
    if (!out->kind && offsets[num_groups] > rows)
        out->kind = TL_OFFSETS_BEYOND;
    for (int64_t i = 1; aligned && i <= num_groups && !out->kind; i++) {
        out->kind = offsets[i] % TL_GROUP_ALIGNMENT != 0 ? TL_OFFSETS_UNALIGNED : 0;
        out->position = i;
    }
    out->value[0] = offsets[out->position];
    out->value[1] = out->position > 0 ? offsets[out->position - 1] : 0;
    out->value[2] = rows;
    return out->kind != 0;
}

/* Records the words for a fault of offsets: tl_operation.explain. TL_ERR_ILLEGAL when they are not
 * aligned, TL_ERR_ARGUMENT for all else. */
enum tl_status tl_group_offsets_explain(const char *who, const struct tl_fault *fault);

/* TL_ERR_ARGUMENT with the position and the values where the offsets do not begin with 0, decrease,
 * or end beyond `rows`. `operation` begins the message. */
enum tl_status tl_group_offsets_check(const char *operation, const struct tl_tensor *group_offsets,
                                      int64_t rows);

/* The same, and what a padded kernel needs besides. TL_ERR_ILLEGAL names the first offset that is
 * no multiple of TL_GROUP_ALIGNMENT. TL_ERR_ARGUMENT where an optional tensor (rank 0 when absent)
 * contradicts the offsets:
 * row_experts [rows]: the group of each row, or -1 for a pad row and past the last offset; within
 *     128 rows, pad rows come last, since the first row decides for the whole tile;
 * counts_host [num_groups]: rows of each group as laid out, pad rows included. */
enum tl_status tl_group_offsets_check_padded(const char *operation,
                                             const struct tl_tensor *group_offsets, int64_t rows,
                                             const struct tl_tensor *row_experts,
                                             const struct tl_tensor *counts_host);

#ifdef __cplusplus
}
#endif
#endif
