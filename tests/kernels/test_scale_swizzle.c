/* scale_swizzle against two oracles: the formula of the layout, written out per byte, and the
 * recipe of PyTorch (pad, view, permute, flatten), group after group; scale_unswizzle as its inverse. */
#include "arguments.h"

#include <stdlib.h>

#include "kernels/scale_swizzle/op.h"

enum { MAX_GROUPS = 4096, TAIL = 37 };

/* One problem; what the sizes leave of the grouped dimension belongs to nobody. */
struct scale_case {
    enum tl_scale_grouping grouping;
    int64_t rows, columns, num_groups;
    int32_t sizes[MAX_GROUPS];
};

static struct scale_case now;

static const char *const GROUPINGS[] = {"dense", "m_groups", "k_groups", "per_group_3d"};

/* Sizes of the groups by name: what the issue of grouped kernels trips over. */
static const struct {
    int count;
    int32_t sizes[40];
} GROUPS[] = {
    {1, {128}},
    {1, {0}},
    {3, {0, 0, 0}},
    {6, {1, 31, 33, 44, 127, 129}},
    {5, {0, 1, 0, 0, 2}},
    {4, {3, 0, 4, 0}},
    {7, {16, 16, 32, 64, 5, 16, 16}},
    {9, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {33, {5, 0, 128, 9, 1, 0, 0, 64, 77, 4, 4, 4, 3, 2, 1, 0, 31, 33, 129, 1, 0, 7, 8, 9, 44, 127,
          2, 0, 0, 12, 13, 100, 0}},
};
enum { NUM_GROUPS = sizeof GROUPS / sizeof GROUPS[0] };

static void set_case(enum tl_scale_grouping grouping, int64_t rows, int64_t columns,
                     int64_t num_groups)
{
    memset(&now, 0, sizeof now);
    now.grouping = grouping;
    now.rows = rows;
    now.columns = columns;
    now.num_groups = num_groups;
}

static int64_t sum_of_sizes(void)
{
    int64_t sum = 0;
    for (int64_t g = 0; g < now.num_groups; g++)
        sum += now.sizes[g];
    return sum;
}

static void open_case(struct rig *rig, const char *operation)
{
    bool by_ends = now.grouping == TL_SCALE_M_GROUPS || now.grouping == TL_SCALE_K_GROUPS;
    int32_t ends[MAX_GROUPS];
    rig_open(rig, operation, "cpu_plain");
    rig_param(rig, "grouping", now.grouping);
    if (now.grouping == TL_SCALE_PER_GROUP_3D)
        arg_poison(rig, "scales", TL_E8M0, SHAPE(now.num_groups, now.rows, now.columns));
    else
        arg_poison(rig, "scales", TL_E8M0, SHAPE(now.rows, now.columns));
    assert_ok(tl_tensor_random(arg_of(rig, "scales"), TL_BITS, 0, 0, 3, 0));
    for (int64_t g = 0, end = 0; g < now.num_groups; g++)
        ends[g] = (int32_t)(end += now.sizes[g]);
    if (by_ends) {
        struct tl_tensor *group_ends = arg_poison(rig, "group_ends", TL_I32, SHAPE(now.num_groups));
        if (now.num_groups > 0) /* an empty tensor has no memory */
            memcpy(group_ends->data, ends, (size_t)now.num_groups * sizeof *ends);
    }
    struct tl_problem problem = {.dim = {now.rows, now.columns, now.num_groups},
                                 .param = {now.grouping}};
    arg_poison(rig, "blocked", TL_E8M0, SHAPE(tl_scale_blocked_bytes(&problem) + TAIL));
}

/* The scales of group g as an array of its own, [rows, columns] from malloc. */
static unsigned char *group_of(struct rig *rig, int64_t g, int64_t begin, int64_t *rows,
                               int64_t *columns)
{
    const unsigned char *scales = arg_of(rig, "scales")->data;
    int64_t first = 0;
    *rows = now.rows;
    *columns = now.columns;
    if (now.grouping == TL_SCALE_M_GROUPS) {
        *rows = now.sizes[g];
        first = begin * now.columns;
    } else if (now.grouping == TL_SCALE_K_GROUPS) {
        *columns = now.sizes[g];
        first = begin;
    } else if (now.grouping == TL_SCALE_PER_GROUP_3D) {
        first = g * now.rows * now.columns;
    }
    unsigned char *group = malloc((size_t)(*rows * *columns) + 1);
    for (int64_t r = 0; r < *rows; r++)
        if (*columns > 0)
            memcpy(group + r * *columns, scales + first + r * now.columns, (size_t)*columns);
    return group;
}

static int64_t up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* The formula: off(r, c) = ((r / 128) nb + c / 4) 512 + (r % 32) 16 + (r % 128 / 32) 4 + c % 4. */
static void by_formula(const unsigned char *group, int64_t rows, int64_t columns,
                       unsigned char *out)
{
    memset(out, 0, (size_t)(up(rows, 128) * up(columns, 4)));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            int64_t tile = r / 128 * (up(columns, 4) / 4) + c / 4;
            out[tile * 512 + r % 32 * 16 + r % 128 / 32 * 4 + c % 4] = group[r * columns + c];
        }
}

/* The recipe: pad to [padded_rows, padded_columns], view as [row tiles, 4, 32, column tiles, 4],
 * permute to [row tiles, column tiles, 32, 4, 4], flatten. */
static void by_recipe(const unsigned char *group, int64_t rows, int64_t columns,
                      unsigned char *out)
{
    int64_t height = up(rows, 128), width = up(columns, 4);
    unsigned char *padded = calloc(1, (size_t)(height * width) + 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            padded[r * width + c] = group[r * columns + c];
    const int64_t size[5] = {height / 128, width / 4, 32, 4, 4};
    const int64_t stride[5] = {128 * width, 4, width, 32 * width, 1};
    int64_t at[5] = {0}, from = 0;
    for (int64_t i = 0; i < height * width; i++) {
        out[i] = padded[from];
        for (int axis = 4; axis >= 0; axis--) {
            from += stride[axis];
            if (++at[axis] < size[axis])
                break;
            from -= size[axis] * stride[axis];
            at[axis] = 0;
        }
    }
    free(padded);
}

/* Every byte of the extents is what both oracles say; bytes past them are untouched. */
static void check_blocked(struct rig *rig)
{
    const struct tl_tensor *blocked = arg_of(rig, "blocked");
    const unsigned char *bytes = blocked->data;
    int64_t groups = now.grouping == TL_SCALE_DENSE ? 1 : now.num_groups, base = 0, begin = 0;
    for (int64_t g = 0; g < groups; g++) {
        int64_t rows, columns;
        unsigned char *group = group_of(rig, g, begin, &rows, &columns);
        int64_t extent = up(rows, 128) * up(columns, 4);
        unsigned char *formula = malloc((size_t)extent + 1), *recipe = malloc((size_t)extent + 1);
        by_formula(group, rows, columns, formula);
        by_recipe(group, rows, columns, recipe);
        if (memcmp(formula, recipe, (size_t)extent) || memcmp(bytes + base, recipe, (size_t)extent))
            fail_msg("%s: group %d of %d, %d by %d", GROUPINGS[now.grouping], (int)g, (int)groups,
                     (int)rows, (int)columns);
        base += extent;
        begin += now.sizes[g];
        free(group);
        free(formula);
        free(recipe);
    }
    assert_true(base + TAIL <= tl_tensor_numel(blocked));
    assert_poison(blocked, base, tl_tensor_numel(blocked));
}

/* The way back, from a buffer in which padding and tail are no zeros but garbage. */
static void check_back(struct rig *there)
{
    struct rig back;
    struct tl_tensor *scales = arg_of(there, "scales");
    bool by_rows = now.grouping == TL_SCALE_M_GROUPS;
    int64_t used = by_rows || now.grouping == TL_SCALE_K_GROUPS ? sum_of_sizes() : now.columns;
    open_case(&back, "scale_unswizzle");
    assert_ok(tl_tensor_copy(arg_of(&back, "blocked"), arg_of(there, "blocked"), NULL));
    assert_ok(tl_tensor_poison(arg_of(&back, "scales")));
    launch_steady(&back);
    const unsigned char *got = arg_of(&back, "scales")->data, *expected = scales->data;
    for (int64_t i = 0; i < tl_tensor_numel(scales); i++) {
        bool mine = by_rows ? i / now.columns < used : i % now.columns < used;
        if (got[i] != (mine ? expected[i] : 0xff))
            fail_msg("%s: byte %d on the way back", GROUPINGS[now.grouping], (int)i);
    }
    rig_close(&back);
}

static void check_case(void)
{
    struct rig rig;
    open_case(&rig, "scale_swizzle");
    launch_steady(&rig);
    check_blocked(&rig);
    check_back(&rig);
    rig_close(&rig);
}

static const int64_t SHAPES[][2] = {{63, 1023}, {300, 9}, {133, 512}, {128, 1}, {1, 1}};
enum { NUM_SHAPES = sizeof SHAPES / sizeof SHAPES[0] };

static void ungrouped_shapes(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SHAPES; i++) {
        set_case(TL_SCALE_DENSE, SHAPES[i][0], SHAPES[i][1], 0);
        check_case();
        for (int groups = 0; groups <= 3; groups += 3) {
            set_case(TL_SCALE_PER_GROUP_3D, SHAPES[i][0], SHAPES[i][1], groups);
            check_case();
        }
    }
}

/* The shapes as they are, cut at random places; some ends fall together. */
static void grouped_shapes(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SHAPES; i++)
        for (int by_rows = 0; by_rows < 2; by_rows++) {
            int64_t total = SHAPES[i][by_rows ? 0 : 1], left = total;
            set_case(by_rows ? TL_SCALE_M_GROUPS : TL_SCALE_K_GROUPS, SHAPES[i][0],
                     SHAPES[i][1], 5);
            for (int g = 0; g < 4; g++)
                left -= now.sizes[g] = (int32_t)(left * (g * 37 % 11) / 16);
            now.sizes[4] = (int32_t)left;
            check_case();
        }
}

static void group_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_GROUPS; i++)
        for (int spare = 0; spare < 8; spare += 7) {
            set_case(TL_SCALE_K_GROUPS, 133, 0, GROUPS[i].count);
            memcpy(now.sizes, GROUPS[i].sizes, sizeof GROUPS[i].sizes);
            now.columns = sum_of_sizes() + spare;
            check_case();
            now.grouping = TL_SCALE_M_GROUPS;
            now.rows = now.columns;
            now.columns = 9;
            check_case();
        }
}

/* Empty groups in every position, and as many groups as there can be. */
static void empty_groups(void **state)
{
    (void)state;
    for (int mask = 0; mask < 16; mask++) {
        set_case(TL_SCALE_K_GROUPS, 5, 0, 4);
        for (int g = 0; g < 4; g++)
            now.sizes[g] = mask >> g & 1 ? 0 : 3 + 5 * g;
        now.columns = sum_of_sizes() + 1;
        check_case();
        now.grouping = TL_SCALE_M_GROUPS;
        now.rows = now.columns;
        now.columns = 5;
        check_case();
    }
    set_case(TL_SCALE_K_GROUPS, 130, 0, MAX_GROUPS);
    for (int g = 0; g < MAX_GROUPS; g++)
        now.sizes[g] = g * 7 % 4 ? 0 : g % 3;
    now.columns = sum_of_sizes() + 2;
    check_case();
    now.num_groups = 0; /* nobody: nothing is written */
    check_case();
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig rig;
    set_case(TL_SCALE_K_GROUPS, 130, 305, 4);
    memcpy(now.sizes, (int32_t[]){100, 0, 130, 70}, 16);
    open_case(&rig, "scale_swizzle");
    index_refused(&rig, "group_ends", 0, -1, "group_ends[0] is -1; the first group starts at 0");
    index_refused(&rig, "group_ends", 1, 99, "group_ends[1] is 99, below group_ends[0] = 100");
    index_refused(&rig, "group_ends", 3, 229, "group_ends[3] is 229, below group_ends[2] = 230");
    index_refused(&rig, "group_ends", 3, 306, "group_ends[3] is 306, beyond the 305");
    arg_poison(&rig, "blocked", TL_U8, SHAPE(100000));
    launch_refused(&rig, TL_ERR_ARGUMENT, "'scales' is e8m0 and 'blocked' is u8");
    arg_poison(&rig, "blocked", TL_E8M0, SHAPE(256 * 316 - 1));
    launch_refused(&rig, TL_ERR_ARGUMENT, "has 80895 bytes, but the padded groups can take 80896");
    arg_poison(&rig, "group_ends", TL_FP32, SHAPE(4));
    launch_refused(&rig, TL_ERR_ARGUMENT, "'group_ends' [4] fp32 must be i32");
    rig_close(&rig);

    now.grouping = TL_SCALE_M_GROUPS;
    now.rows = 305;
    open_case(&rig, "scale_unswizzle");
    index_refused(&rig, "group_ends", 2, 99, "group_ends[2] is 99, below group_ends[1] = 100");
    index_refused(&rig, "group_ends", 3, 306, "group_ends[3] is 306, beyond the 305");
    rig_param(&rig, "grouping", TL_SCALE_DENSE);
    launch_refused(&rig, TL_ERR_ARGUMENT, "only m_groups and k_groups have groups");
    rig_close(&rig);

    now.grouping = TL_SCALE_DENSE;
    open_case(&rig, "scale_swizzle");
    rig_param(&rig, "grouping", TL_SCALE_M_GROUPS);
    launch_refused(&rig, TL_ERR_ARGUMENT, "'group_ends' is missing");
    arg_poison(&rig, "scales", TL_FP32, SHAPE(305, 305));
    launch_refused(&rig, TL_ERR_ARGUMENT, "must be u8 or e8m0");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ungrouped_shapes), cmocka_unit_test(grouped_shapes),
        cmocka_unit_test(group_sizes),      cmocka_unit_test(empty_groups),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
