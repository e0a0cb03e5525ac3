/* m_grouped_gemm/cublaslt_loop: one cuBLASLt product a group, spread over a few streams. What a
 * training loop does that has no grouped kernel.
 *
 * The host must know the rows of each group: counts_host says them, and group_offsets are not read.
 * A captured graph keeps the counts it was captured with. The operands are those of
 * gemm/cublaslt_dense: d^T[n, rows] = b^T a^T, column-major.
 * An algorithm depends on the rows, and asking for one takes the host longer than the product takes
 * the GPU. So the plan asks for a few sizes around the mean, untimed, and a group takes the
 * algorithm of the next size above its own.
 */
#if TL_CUDA
#include "kernels/device/cublaslt.h"
#include "kernels/device/fork.h"
#include "kernels/device/launch.h"
#include "op.h"

#include <string.h>

#define WORKSPACE ((size_t)32 << 20) /* of a stream; what NVIDIA advises for Hopper */
#define ELEMENT   2                  /* bytes of a bf16 */

/* Sizes that algorithms are asked for, in eighths of the mean; the last size is all rows. */
static const int eighths[] = {1, 2, 4, 6, 8, 9, 10, 12, 16, 32};
enum { MOST = sizeof eighths / sizeof eighths[0] + 1 };

/* In the plan's scratch. */
struct choice {
    int32_t count;
    int32_t rows[MOST]; /* ascending */
    struct tl_cublaslt_algo algos[MOST];
};
_Static_assert(sizeof(struct choice) <= sizeof((struct tl_plan *)0)->scratch,
               "the algorithms fit into a plan");

static struct tl_cublaslt_product product_of(const struct tl_problem *problem, int64_t rows)
{
    int64_t n = problem->dim[TL_M_GROUPED_N], k = problem->dim[TL_M_GROUPED_K];
    bool nt = problem->param[TL_M_GROUPED_LAYOUT] == TL_M_GROUPED_NT;
    return (struct tl_cublaslt_product){
        .rows = n,
        .cols = rows,
        .depth = k,
        .transpose_a = nt,
        .lda = nt ? k : n,
        .ldb = k,
        .ldd = n,
        .in = TL_BF16,
        .out = TL_BF16,
    };
}

/* Whether there is nothing to multiply, though there may be something to zero. */
static bool is_empty(const struct tl_problem *problem)
{
    return problem->dim[TL_M_GROUPED_M] == 0 || problem->dim[TL_M_GROUPED_N] == 0 ||
           problem->dim[TL_M_GROUPED_K] == 0 || problem->dim[TL_M_GROUPED_NUM_GROUPS] == 0;
}

static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t n = problem->dim[TL_M_GROUPED_N], k = problem->dim[TL_M_GROUPED_K];
    if (!problem->present[TL_M_GROUPED_COUNTS])
        return TL_FAIL(
            TL_ERR_ILLEGAL,
            "m_grouped_gemm/cublaslt_loop: 'counts_host' [num_groups] is missing: the host "
            "starts one product a group, so it must know the rows of each");
    if (n % 8 || k % 8)
        return TL_FAIL(
            TL_ERR_ILLEGAL,
            "m_grouped_gemm/cublaslt_loop: n is %lld and k is %lld; both must be multiples of "
            "8, so that every group begins at 16 bytes",
            (long long)n, (long long)k);
    return TL_OK;
}

static enum tl_status plan_algorithms(struct tl_plan *plan)
{
    struct choice *choice = (struct choice *)plan->scratch;
    int64_t m = plan->problem.dim[TL_M_GROUPED_M],
            groups = plan->problem.dim[TL_M_GROUPED_NUM_GROUPS];
    if (is_empty(&plan->problem))
        return TL_OK;
    int64_t mean = (m + groups - 1) / groups;
    for (int i = 0; i < MOST; i++) {
        int64_t rows = i < MOST - 1 ? (mean * eighths[i] + 63) / 64 * 8 : m; /* multiples of 8 */
        int32_t *count = &choice->count;
        int found = 0;
        if (rows > m || (*count > 0 && rows <= choice->rows[*count - 1]))
            continue;
        struct tl_cublaslt_product product = product_of(&plan->problem, rows);
        if (tl_cublaslt_find(plan->device, &product, WORKSPACE, &choice->algos[*count], 1,
                             &found) != TL_OK)
            return TL_FAIL(TL_ERR_ILLEGAL, "m_grouped_gemm/cublaslt_loop: %s", tl_error_message());
        choice->rows[(*count)++] = (int32_t)rows;
    }
    return tl_fork_prepare(plan->device);
}

static size_t workspace(const struct tl_plan *plan)
{
    return is_empty(&plan->problem) ? 0 : WORKSPACE * (size_t)plan->tunable[0];
}

/* Checks the counts and sums them up. */
static enum tl_status sum_counts(const struct tl_plan *plan, const int32_t *counts, int64_t *out)
{
    int64_t groups = plan->problem.dim[TL_M_GROUPED_NUM_GROUPS],
            m = plan->problem.dim[TL_M_GROUPED_M];
    *out = 0;
    for (int64_t g = 0; g < groups; g++) {
        if (counts[g] < 0)
            return TL_FAIL(TL_ERR_ARGUMENT,
                           "m_grouped_gemm/cublaslt_loop: counts_host[%lld] is %d, below 0",
                           (long long)g, counts[g]);
        *out += counts[g];
        if (*out > m)
            return TL_FAIL(
                TL_ERR_ARGUMENT,
                "m_grouped_gemm/cublaslt_loop: counts_host[0] to [%lld] add up to %lld, beyond "
                "the %lld rows of the tensor",
                (long long)g, (long long)*out, (long long)m);
    }
    return TL_OK;
}

/* The product of one group of `rows`, with the algorithm of the next size; the library is asked
 * where that one cannot do fewer rows than it was found for. */
static enum tl_status run_group(const struct tl_plan *plan, struct tl_cublaslt_call *call,
                                const char *a, const char *b, char *d, int64_t rows, void *scratch,
                                struct tl_stream *lane)
{
    const struct choice *choice = (const struct choice *)plan->scratch;
    struct tl_cublaslt_algo exact;
    int size = 0, found = 0;
    while (choice->rows[size] < rows)
        size++;
    TL_TRY(tl_cublaslt_resize(call, call->product.rows, rows, call->product.depth));
    enum tl_status status =
        tl_cublaslt_run_open(call, &choice->algos[size], b, a, d, 0, scratch, WORKSPACE, lane);
    if (status != TL_ERR_ILLEGAL || rows == choice->rows[size])
        return status;
    TL_TRY(tl_cublaslt_find(plan->device, &call->product, WORKSPACE, &exact, 1, &found));
    return tl_cublaslt_run_open(call, &exact, b, a, d, 0, scratch, WORKSPACE, lane);
}

/* Every group in turn on the next lane. */
static enum tl_status run_groups(const struct tl_plan *plan, const struct tl_args *args,
                                 struct tl_cublaslt_call *call, struct tl_stream *lanes)
{
    const int64_t *dim = plan->problem.dim;
    int64_t n = dim[TL_M_GROUPED_N], k = dim[TL_M_GROUPED_K], row = 0;
    const int32_t *counts = args->tensor[TL_M_GROUPED_COUNTS].data;
    const char *a = args->tensor[TL_M_GROUPED_A].data, *b = args->tensor[TL_M_GROUPED_B].data;
    char *d = args->tensor[TL_M_GROUPED_D].data, *scratch = args->workspace;
    int lane = 0;
    for (int64_t g = 0; g < dim[TL_M_GROUPED_NUM_GROUPS]; g++) {
        if (counts[g] == 0)
            continue;
        TL_TRY(run_group(plan, call, a + row * k * ELEMENT, b + g * n * k * ELEMENT,
                         d + row * n * ELEMENT, counts[g], scratch + (size_t)lane * WORKSPACE,
                         &lanes[lane]));
        row += counts[g];
        lane = (lane + 1) % plan->tunable[0];
    }
    return TL_OK;
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    struct tl_stream lanes[TL_FORK_MOST];
    struct tl_cublaslt_product product = product_of(&plan->problem, 1);
    struct tl_cublaslt_call call;
    int64_t rows, bytes;
    TL_TRY(sum_counts(plan, args->tensor[TL_M_GROUPED_COUNTS].data, &rows));
    bytes = rows * plan->problem.dim[TL_M_GROUPED_N] * ELEMENT;
    if (bytes == 0)
        return TL_OK;
    if (is_empty(&plan->problem)) /* sums of nothing */
        return TL_CUDA_STATUS(plan, "zeroing d",
                              cudaMemsetAsync(args->tensor[TL_M_GROUPED_D].data, 0, (size_t)bytes,
                                              tl_cuda_stream(stream)));
    TL_TRY(tl_cublaslt_open(plan->device, &product, &call));
    enum tl_status status = tl_fork(plan, stream, plan->tunable[0], lanes);
    if (status == TL_OK)
        status = run_groups(plan, args, &call, lanes);
    enum tl_status joined = tl_join(plan, plan->tunable[0], lanes);
    tl_cublaslt_close(&call);
    return status == TL_OK ? joined : status;
}

const struct tl_kernel tl_kernel_m_grouped_gemm_cublaslt_loop = {
    .operation = "m_grouped_gemm",
    .variant = "cublaslt_loop",
    .arch = "cublaslt",
    .summary =
        "One product of NVIDIA's cuBLASLt a group over several streams; the host knows the rows.",
    .dtypes = TL_DTYPE_BIT(TL_BF16),
    .tunables = {{"streams", 4, (const int[]){1, 2, 4, 8, 0}}},
    .legal = legal,
    .plan = plan_algorithms,
    .workspace = workspace,
    .launch = launch,
};
#endif
