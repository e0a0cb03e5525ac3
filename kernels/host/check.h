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

/* The same where a call may mix precisions. Sets of arguments are bits by position:
 * statistics: sums and what belongs to the fp32 masters; fp32 where the others are bf16, else the
 *             dtype of the others
 * rows:       of the experts' layout; one dtype among them, that of the others, or bf16 beside fp32
 * TL_ERR_ARGUMENT names the argument and the one that it does not go with. */
enum tl_status tl_check_floats(const struct tl_problem *problem, unsigned statistics,
                               unsigned rows);

/* Every element of the i32 argument at position `arg` lies in [low, bound); the message counts
 * elements from 0, row-major. An absent argument passes. */
enum tl_status tl_check_indices(const struct tl_plan *plan, const struct tl_args *args, int arg,
                                int64_t low, int64_t bound);

/* The words for an element out of range, begun with `who`: for `explain`, where a kernel left the
 * position and, as values, the element, `low` and `bound`. TL_ERR_ARGUMENT. */
enum tl_status tl_index_explain(const char *who, const char *arg, const struct tl_fault *fault);

/* tl_group_offsets_check of the argument at position `arg`. An absent argument passes. */
enum tl_status tl_check_offsets(const struct tl_plan *plan, const struct tl_args *args, int arg,
                                int64_t rows);

/* Rows in use: the last of group_offsets at position `arg`, `rows` where it is absent. */
int64_t tl_used_rows(const struct tl_plan *plan, const struct tl_args *args, int arg, int64_t rows);

#endif
