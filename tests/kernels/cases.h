/* Group sizes that grouped kernels are tested and measured with: one list for every variant.
 *
 * Empty groups in all places, single rows, sizes around tile edges, every size up to 300, and
 * draws of tokens over experts, even and skewed. The same list on every machine.
 */
#ifndef TL_CASES_H
#define TL_CASES_H

#include <stdbool.h>
#include <stdint.h>

#define CASES_MAX_GROUPS 1025

struct group_case {
    char name[48];
    int64_t num_groups;
    int64_t rows; /* sum of sizes */
    int32_t sizes[CASES_MAX_GROUPS];
};

/* How tokens fall on experts. */
enum case_draw {
    CASE_MULTINOMIAL, /* each row to any group, evenly */
    CASE_ZIPF,        /* to group g with weight 1 / (g + 1) */
};

/* The case at `position`; false past the end. */
bool group_case_at(int position, struct group_case *out);

/* Draws the group of each of `rows` rows. */
void group_case_draw(struct group_case *out, enum case_draw draw, int64_t num_groups, int64_t rows,
                     uint64_t seed);

/* group_offsets [num_groups + 1] with group starts at multiples of `alignment` (1: ragged).
 * Returns the last offset. */
int64_t group_case_offsets(const struct group_case *groups, int32_t alignment, int32_t *offsets);

/* The group of each of `rows` rows under those offsets, -1 for pad rows and past the end. */
void group_case_row_experts(const struct group_case *groups, const int32_t *offsets, int64_t rows,
                            int32_t *row_experts);

#endif
