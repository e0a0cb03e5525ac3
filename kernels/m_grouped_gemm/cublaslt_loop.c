/* m_grouped_gemm/cublaslt_loop: one cuBLASLt product a group, spread over a few streams. What a
 * training loop does that has no grouped kernel.
 *
 * The host must know the rows of each group: counts_host says them, and group_offsets are not read.
 * A captured graph keeps the counts it was captured with. The operands are those of
 * gemm/cublaslt_dense: d^T[n, rows] = b^T a^T, column-major.
 */
#if TL_CUDA
#include "kernels/device/cublaslt_sizes.h"
#include "kernels/device/fork.h"
#include "kernels/device/launch.h"
#include "kernels/device/vectors.h"
#include "kernels/host/counts.h"
#include "kernels/host/magnitude.h"
#include "op.h"

#define WORKSPACE ((size_t)32 << 20) /* of a stream; what NVIDIA advises for Hopper */
#define ELEMENT   2                  /* bytes of a bf16 */

_Static_assert(sizeof(struct tl_cublaslt_sizes) <= sizeof((struct tl_plan *)0)->scratch,
               "the algorithms fit into a plan");

static struct tl_cublaslt_product product_of(const struct tl_problem *problem)
{
    int64_t n = problem->dim[TL_M_GROUPED_N], k = problem->dim[TL_M_GROUPED_K];
    bool nt = problem->param[TL_M_GROUPED_LAYOUT] == TL_M_GROUPED_NT;
    return (struct tl_cublaslt_product){
        .rows = n,
        .cols = 1,
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
    TL_TRY(tl_magnitude_refuse(problem, "cublaslt_loop"));
    TL_TRY(tl_counts_require(problem, "cublaslt_loop",
                             "the host starts one product a group, so it must know the rows of "
                             "each"));
    if (n % 8 || k % 8)
        return TL_FAIL(
            TL_ERR_ILLEGAL,
            "m_grouped_gemm/cublaslt_loop: n is %lld and k is %lld; both must be multiples of "
            "8, so that every group begins at 16 bytes",
            (long long)n, (long long)k);
    return tl_vectors_small(problem, "cublaslt_loop");
}

static enum tl_status plan_algorithms(struct tl_plan *plan)
{
    const struct tl_problem *problem = &plan->problem;
    if (is_empty(problem))
        return TL_OK;
    if (tl_cublaslt_sizes_find(plan->device, product_of(problem), TL_CUBLASLT_COLS,
                               problem->dim[TL_M_GROUPED_M], problem->dim[TL_M_GROUPED_NUM_GROUPS],
                               WORKSPACE, (struct tl_cublaslt_sizes *)plan->scratch) != TL_OK)
        return TL_FAIL(TL_ERR_ILLEGAL, "m_grouped_gemm/cublaslt_loop: %s", tl_error_message());
    return tl_fork_prepare(plan->device);
}

static size_t workspace(const struct tl_plan *plan)
{
    return is_empty(&plan->problem) ? 0 : WORKSPACE * (size_t)plan->tunable[0];
}

/* Every group in turn on the next lane. */
static enum tl_status run_groups(const struct tl_plan *plan, const struct tl_args *args,
                                 struct tl_cublaslt_call *call, struct tl_stream *lanes)
{
    const struct tl_cublaslt_sizes *sizes = (const struct tl_cublaslt_sizes *)plan->scratch;
    const int64_t *dim = plan->problem.dim;
    int64_t n = dim[TL_M_GROUPED_N], k = dim[TL_M_GROUPED_K], row = 0;
    const int32_t *counts = args->tensor[TL_M_GROUPED_COUNTS].data;
    const char *a = args->tensor[TL_M_GROUPED_A].data, *b = args->tensor[TL_M_GROUPED_B].data;
    char *d = args->tensor[TL_M_GROUPED_D].data, *scratch = args->workspace;
    int lane = 0;
    for (int64_t g = 0; g < dim[TL_M_GROUPED_NUM_GROUPS]; g++) {
        if (counts[g] == 0)
            continue;
        TL_TRY(tl_cublaslt_sizes_run(sizes, call, counts[g], b + g * n * k * ELEMENT,
                                     a + row * k * ELEMENT, d + row * n * ELEMENT, 0,
                                     scratch + (size_t)lane * WORKSPACE, WORKSPACE, &lanes[lane]));
        row += counts[g];
        lane = (lane + 1) % plan->tunable[0];
    }
    return TL_OK;
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    struct tl_stream lanes[TL_FORK_MOST];
    struct tl_cublaslt_product product = product_of(&plan->problem);
    struct tl_cublaslt_call call;
    int64_t rows, bytes;
    TL_TRY(tl_counts_sum(plan, &args->tensor[TL_M_GROUPED_COUNTS],
                         plan->problem.dim[TL_M_GROUPED_M], 1, &rows));
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
