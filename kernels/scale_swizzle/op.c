/* Tables of scale_swizzle and scale_unswizzle; see op.h. */
#include "kernels/scale_swizzle/op.h"

#include "kernels/host/group_ends.h"
#include "kernels/scale_swizzle/layout.h"

#define SCALES (TL_DTYPE_BIT(TL_U8) | TL_DTYPE_BIT(TL_E8M0))
#define SHAPE  "rows columns|rows columns|rows columns|num_groups rows columns"
#define INDEX  TL_DTYPE_BIT(TL_I32)

static double no_flops(const struct tl_problem *problem)
{
    (void)problem;
    return 0;
}

/* Groups that share `total` take the most when as many as can be hold one more than a multiple. */
static int64_t padded_total(int64_t total, int64_t num_groups, int64_t align)
{
    int64_t filled = num_groups < total ? num_groups : total;
    return (total + filled * (align - 1)) / align * align;
}

int64_t tl_scale_blocked_bytes(const struct tl_problem *problem)
{
    int64_t rows = problem->dim[TL_SCALE_ROWS], columns = problem->dim[TL_SCALE_COLUMNS];
    int64_t groups = problem->dim[TL_SCALE_NUM_GROUPS];
    int64_t padded_rows = tl_scale_padded_rows(rows);
    int64_t padded_columns = tl_scale_padded_columns(columns);
    switch ((int)problem->param[TL_SCALE_GROUPING]) {
    case TL_SCALE_M_GROUPS:
        return padded_total(rows, groups, TL_SCALE_TILE_ROWS) * padded_columns;
    case TL_SCALE_K_GROUPS:
        return padded_total(columns, groups, TL_SCALE_TILE_COLUMNS) * padded_rows;
    case TL_SCALE_PER_GROUP_3D:
        return groups * padded_rows * padded_columns;
    default:
        return padded_rows * padded_columns;
    }
}

static enum tl_status check(const struct tl_problem *problem)
{
    const char *name = problem->operation->name;
    int grouping = (int)problem->param[TL_SCALE_GROUPING];
    bool by_ends = grouping == TL_SCALE_M_GROUPS || grouping == TL_SCALE_K_GROUPS;
    enum tl_dtype scales = problem->dtype[TL_SCALE_SCALES];
    enum tl_dtype blocked = problem->dtype[TL_SCALE_BLOCKED];
    int64_t most = tl_scale_blocked_bytes(problem), bytes = problem->dim[TL_SCALE_BYTES];
    if (scales != blocked)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: 'scales' is %s and 'blocked' is %s; they must share a dtype", name,
                       tl_dtype_name(scales), tl_dtype_name(blocked));
    if (by_ends && !problem->present[TL_SCALE_GROUP_ENDS])
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: 'group_ends' is missing; m_groups and k_groups need it", name);
    if (!by_ends && problem->present[TL_SCALE_GROUP_ENDS])
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: 'group_ends' is given, but only m_groups and k_groups have groups of "
                       "different sizes",
                       name);
    if (bytes < most)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: 'blocked' has %lld bytes, but the padded groups can take %lld; make it "
                       "larger",
                       name, (long long)bytes, (long long)most);
    return TL_OK;
}

#define PARAMS \
    {{.name = "grouping", .choices = "dense m_groups k_groups per_group_3d", \
      .fallback = TL_SCALE_DENSE}}

const struct tl_operation tl_op_scale_swizzle = {
    .name = "scale_swizzle",
    .equation = "blocked[base(g) + at(row, column)] = scales[row, column] of group g, 0 in padding",
    .dims = "rows columns num_groups bytes",
    .args = {{.name = "scales", .role = TL_IN, .dtypes = SCALES, .shape = SHAPE},
             {.name = "group_ends",
              .role = TL_IN,
              .optional = true,
              .dtypes = INDEX,
              .shape = "num_groups"},
             {.name = "blocked", .role = TL_OUT, .dtypes = SCALES, .shape = "bytes"}},
    .params = PARAMS,
    .flops = no_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check,
    .explain = tl_group_ends_explain,
};

const struct tl_operation tl_op_scale_unswizzle = {
    .name = "scale_unswizzle",
    .equation = "scales[row, column] of group g = blocked[base(g) + at(row, column)]",
    .dims = "rows columns num_groups bytes",
    .args = {{.name = "scales", .role = TL_OUT, .dtypes = SCALES, .shape = SHAPE},
             {.name = "group_ends",
              .role = TL_IN,
              .optional = true,
              .dtypes = INDEX,
              .shape = "num_groups"},
             {.name = "blocked", .role = TL_IN, .dtypes = SCALES, .shape = "bytes"}},
    .params = PARAMS,
    .flops = no_flops,
    .bytes = tl_problem_arg_bytes,
    .check = check,
    .explain = tl_group_ends_explain,
};
