/* The list of group sizes; see cases.h. */
#include "cases.h"

#include "core/random.h"

#include <stdio.h>
#include <string.h>

/* Written out: sizes end with -1. */
static const struct {
    const char *name;
    int32_t sizes[16];
} fixed[] = {
    {"first empty", {0, 5, 17, -1}},
    {"middle empty", {9, 0, 0, 23, -1}},
    {"last empty", {31, 2, 0, -1}},
    {"all empty", {0, 0, 0, 0, -1}},
    {"no groups", {-1}},
    {"one row", {1, -1}},
    {"one row among empty groups", {0, 0, 1, 0, -1}},
    {"one group", {77, -1}},
    {"one takes all", {0, 0, 0, 517, 0, 0, 0, 0, -1}},
    {"single rows", {1, 1, 1, 1, 1, 1, 1, 1, 1, -1}},
    {"around 64", {63, 64, 65, -1}},
    {"around 128", {127, 128, 129, 1, 128, -1}},
    {"around 256", {255, 256, 257, -1}},
    {"around host blocks", {23, 24, 25, 95, 96, 97, 47, 49, -1}},
    {"whole tiles", {128, 256, 0, 384, 128, -1}},
};
enum { NUM_FIXED = sizeof fixed / sizeof fixed[0] };

/* Drawn: each with both distributions. */
static const struct {
    int64_t num_groups, rows;
} drawn[] = {{1, 211}, {3, 301}, {33, 1020}, {128, 1500}, {1025, 3001}};
enum { NUM_DRAWN = sizeof drawn / sizeof drawn[0] };

static void finish(struct group_case *groups)
{
    groups->rows = 0;
    for (int64_t g = 0; g < groups->num_groups; g++)
        groups->rows += groups->sizes[g];
}

void group_case_draw(struct group_case *out, enum case_draw draw, int64_t num_groups, int64_t rows,
                     uint64_t seed)
{
    double total = 0;
    for (int64_t g = 0; g < num_groups; g++)
        total += 1.0 / (double)(g + 1);
    memset(out, 0, sizeof *out);
    out->num_groups = num_groups;
    for (int64_t r = 0; r < rows; r++) {
        struct tl_random_block block = tl_random_at(seed, (uint64_t)draw, (uint64_t)r);
        int64_t g = 0;
        if (draw == CASE_MULTINOMIAL) {
            g = tl_random_below(block, (uint32_t)num_groups);
        } else {
            double rest = (double)tl_random_uniform(block) * total;
            while (g < num_groups - 1 && (rest -= 1.0 / (double)(g + 1)) >= 0)
                g++;
        }
        out->sizes[g]++;
    }
    finish(out);
    snprintf(out->name, sizeof out->name, "%s, %d rows on %d groups",
             draw == CASE_ZIPF ? "zipf" : "multinomial", (int)rows, (int)num_groups);
}

bool group_case_at(int position, struct group_case *out)
{
    memset(out, 0, sizeof *out);
    if (position < 0)
        return false;
    if (position < NUM_FIXED) {
        snprintf(out->name, sizeof out->name, "%s", fixed[position].name);
        for (; fixed[position].sizes[out->num_groups] >= 0; out->num_groups++)
            out->sizes[out->num_groups] = fixed[position].sizes[out->num_groups];
        finish(out);
        return true;
    }
    position -= NUM_FIXED;
    if (position == 0) {
        snprintf(out->name, sizeof out->name, "every size from 0 to 300");
        for (; out->num_groups <= 300; out->num_groups++)
            out->sizes[out->num_groups] = (int32_t)out->num_groups;
        finish(out);
        return true;
    }
    position--;
    if (position >= 2 * NUM_DRAWN)
        return false;
    group_case_draw(out, position % 2 ? CASE_ZIPF : CASE_MULTINOMIAL,
                    drawn[position / 2].num_groups, drawn[position / 2].rows, 7);
    return true;
}

int64_t group_case_offsets(const struct group_case *groups, int32_t alignment, int32_t *offsets)
{
    offsets[0] = 0;
    for (int64_t g = 0; g < groups->num_groups; g++)
        offsets[g + 1] = offsets[g] + (groups->sizes[g] + alignment - 1) / alignment * alignment;
    return offsets[groups->num_groups];
}

void group_case_row_experts(const struct group_case *groups, const int32_t *offsets, int64_t rows,
                            int32_t *row_experts)
{
    for (int64_t r = 0; r < rows; r++)
        row_experts[r] = -1;
    for (int64_t g = 0; g < groups->num_groups; g++)
        for (int32_t r = 0; r < groups->sizes[g]; r++)
            row_experts[offsets[g] + r] = (int32_t)g;
}
