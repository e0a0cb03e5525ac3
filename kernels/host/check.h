/* Checks that many operations share: one float type in a call, and the values of index tensors.
 *
 * Values of index tensors are looked at on the CPU at launch, before anything is written. The
 * messages name operation, argument, position, value and bound.
 */
#ifndef TL_HOST_CHECK_H
#define TL_HOST_CHECK_H

#include "core/kernel.h"

/* Every present float argument has the dtype of the first one: TL_ERR_ARGUMENT names both. */
enum tl_status tl_check_one_float(const struct tl_problem *problem);

/* Every element of the i32 argument at position `arg` lies in [low, bound); the message counts
 * elements from 0, row-major. An absent argument passes. */
enum tl_status tl_check_indices(const struct tl_plan *plan, const struct tl_args *args, int arg,
                                int64_t low, int64_t bound);

/* tl_group_offsets_check of the argument at position `arg`. An absent argument passes. */
enum tl_status tl_check_offsets(const struct tl_plan *plan, const struct tl_args *args, int arg,
                                int64_t rows);

/* Rows in use: the last of group_offsets at position `arg`, `rows` where it is absent. */
int64_t tl_used_rows(const struct tl_plan *plan, const struct tl_args *args, int arg, int64_t rows);

#endif
