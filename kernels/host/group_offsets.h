/* Launch-time checks of what cuts a tensor into groups, for kernels that run on the host.
 *
 * group_offsets has num_groups + 1 entries; group g holds rows group_offsets[g] up to, not
 * including, group_offsets[g + 1]. Rows past the last offset belong to nobody.
 */
#ifndef TL_GROUP_OFFSETS_H
#define TL_GROUP_OFFSETS_H

#include "core/kernel.h"

/* Rows that every group of a padded layout starts at a multiple of: DeepGEMM's block_m. */
#define TL_GROUP_ALIGNMENT 128

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

#endif
