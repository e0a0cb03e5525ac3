/* Scales to and from the blocked layout on the CPU: byte by byte, by the formula of layout.h. */
#include "kernels/host/group_ends.h"
#include "kernels/host/parallel.h"
#include "kernels/scale_swizzle/layout.h"
#include "kernels/scale_swizzle/op.h"

/* One group: where its part of scales lies and how large it is, and its base in blocked. */
struct piece {
    int64_t first, rows, columns, base;
};

static int64_t extent(const struct piece *piece)
{
    return tl_scale_padded_rows(piece->rows) * tl_scale_padded_columns(piece->columns);
}

/* Group g, given the one before it. */
static void next_piece(const struct tl_plan *plan, const struct tl_args *args, int64_t g,
                       struct piece *piece)
{
    const int64_t *dim = plan->problem.dim;
    const int32_t *ends = args->tensor[TL_SCALE_GROUP_ENDS].data;
    int64_t rows = dim[TL_SCALE_ROWS], columns = dim[TL_SCALE_COLUMNS];
    int64_t base = g > 0 ? piece->base + extent(piece) : 0;
    int64_t begin = ends && g > 0 ? ends[g - 1] : 0;
    switch ((int)plan->problem.param[TL_SCALE_GROUPING]) {
    case TL_SCALE_M_GROUPS:
        *piece = (struct piece){begin * columns, ends[g] - begin, columns, base};
        break;
    case TL_SCALE_K_GROUPS:
        *piece = (struct piece){begin, rows, ends[g] - begin, base};
        break;
    default:
        *piece = (struct piece){g * rows * columns, rows, columns, base};
    }
}

static void swizzle_piece(const struct piece *piece, const uint8_t *scales, int64_t stride,
                          uint8_t *blocked)
{
    int64_t padded_rows = tl_scale_padded_rows(piece->rows);
    int64_t padded_columns = tl_scale_padded_columns(piece->columns);
#pragma omp parallel for if (extent(piece) > TL_PARALLEL_WORK)
    for (int64_t r = 0; r < padded_rows; r++)
        for (int64_t c = 0; c < padded_columns; c++) {
            bool inside = r < piece->rows && c < piece->columns;
            blocked[piece->base + tl_scale_at(r, c, piece->columns)] =
                inside ? scales[piece->first + r * stride + c] : 0;
        }
}

static void unswizzle_piece(const struct piece *piece, const uint8_t *blocked, int64_t stride,
                            uint8_t *scales)
{
#pragma omp parallel for if (extent(piece) > TL_PARALLEL_WORK)
    for (int64_t r = 0; r < piece->rows; r++)
        for (int64_t c = 0; c < piece->columns; c++)
            scales[piece->first + r * stride + c] =
                blocked[piece->base + tl_scale_at(r, c, piece->columns)];
}

/* The groups of a problem, after a look at their ends. */
static enum tl_status count_groups(const struct tl_plan *plan, const struct tl_args *args,
                                   int64_t *groups)
{
    const struct tl_problem *problem = &plan->problem;
    bool dense = (int)problem->param[TL_SCALE_GROUPING] == TL_SCALE_DENSE;
    bool by_rows = (int)problem->param[TL_SCALE_GROUPING] == TL_SCALE_M_GROUPS;
    *groups = dense ? 1 : problem->dim[TL_SCALE_NUM_GROUPS];
    if (!problem->present[TL_SCALE_GROUP_ENDS])
        return TL_OK;
    return tl_group_ends_check(problem->operation->name, &args->tensor[TL_SCALE_GROUP_ENDS],
                               problem->dim[by_rows ? TL_SCALE_ROWS : TL_SCALE_COLUMNS]);
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    (void)stream;
    uint8_t *scales = args->tensor[TL_SCALE_SCALES].data;
    uint8_t *blocked = args->tensor[TL_SCALE_BLOCKED].data;
    bool back = plan->problem.operation == &tl_op_scale_unswizzle;
    int64_t groups, stride = plan->problem.dim[TL_SCALE_COLUMNS];
    struct piece piece = {0};
    TL_TRY(count_groups(plan, args, &groups));
    for (int64_t g = 0; g < groups; g++) {
        next_piece(plan, args, g, &piece);
        if (back)
            unswizzle_piece(&piece, blocked, stride, scales);
        else
            swizzle_piece(&piece, scales, stride, blocked);
    }
    return TL_OK;
}

const struct tl_kernel tl_kernel_scale_swizzle_cpu_plain = {
    .operation = "scale_swizzle",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: the formula of the layout for every byte of every group.",
    .launch = launch,
};

const struct tl_kernel tl_kernel_scale_unswizzle_cpu_plain = {
    .operation = "scale_unswizzle",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: the formula of the layout for every scale.",
    .launch = launch,
};
