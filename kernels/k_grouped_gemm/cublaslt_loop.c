/* k_grouped_gemm/cublaslt_loop: one cuBLASLt product a group, spread over a few streams. What a
 * training loop does that has no grouped kernel.
 *
 * The host must know the rows of each group: counts_host says them, and group_offsets are not read.
 * A captured graph keeps the counts it was captured with. The operands are those of
 * gemm/cublaslt_dense with layout tn: d^T[n, m] = b^T[n, rows] a[rows, m], column-major.
 */
#if TL_CUDA
#include "bf16.h"
#include "kernels/device/cublaslt_sizes.h"
#include "kernels/device/fork.h"
#include "kernels/device/launch.h"
#include "kernels/host/counts.h"

#define WORKSPACE ((size_t)32 << 20) /* of a stream; what NVIDIA advises for Hopper */

_Static_assert(sizeof(struct tl_cublaslt_sizes) <= sizeof((struct tl_plan *)0)->scratch,
               "the algorithms fit into a plan");

static struct tl_cublaslt_product product_of(const struct tl_problem *problem)
{
    int64_t m = problem->dim[TL_K_GROUPED_M], n = problem->dim[TL_K_GROUPED_N];
    return (struct tl_cublaslt_product){
        .rows = n,
        .cols = m,
        .depth = 1,
        .transpose_b = true,
        .lda = n,
        .ldb = m,
        .ldd = n,
        .in = TL_BF16,
        .out = TL_FP32,
    };
}

/* Whether there is nothing to multiply, though there may be something to zero. */
static bool is_empty(const struct tl_problem *problem)
{
    return problem->dim[TL_K_GROUPED_M] == 0 || problem->dim[TL_K_GROUPED_N] == 0 ||
           problem->dim[TL_K_GROUPED_K] == 0 || problem->dim[TL_K_GROUPED_NUM_GROUPS] == 0;
}

static enum tl_status legal(const struct tl_problem *problem)
{
    TL_TRY(k_grouped_legal_bf16(problem, "cublaslt_loop"));
    return tl_counts_require(problem, "cublaslt_loop",
                             "the host starts one product a group, so it must know the rows of "
                             "each");
}

static enum tl_status plan_algorithms(struct tl_plan *plan)
{
    const struct tl_problem *problem = &plan->problem;
    if (is_empty(problem))
        return TL_OK;
    if (tl_cublaslt_sizes_find(plan->device, product_of(problem), TL_CUBLASLT_DEPTH,
                               problem->dim[TL_K_GROUPED_K], problem->dim[TL_K_GROUPED_NUM_GROUPS],
                               WORKSPACE, (struct tl_cublaslt_sizes *)plan->scratch) != TL_OK)
        return TL_FAIL(TL_ERR_ILLEGAL, "k_grouped_gemm/cublaslt_loop: %s", tl_error_message());
    return tl_fork_prepare(plan->device);
}

static size_t workspace(const struct tl_plan *plan)
{
    return is_empty(&plan->problem) ? 0 : WORKSPACE * (size_t)plan->tunable[0];
}

/* Every group in turn on the next lane; one without rows is zeroed at beta 0. */
static enum tl_status run_groups(const struct tl_plan *plan, const struct tl_args *args,
                                 struct tl_cublaslt_call *call, struct tl_stream *lanes)
{
    const struct tl_cublaslt_sizes *sizes = (const struct tl_cublaslt_sizes *)plan->scratch;
    const int64_t *dim = plan->problem.dim;
    int64_t m = dim[TL_K_GROUPED_M], n = dim[TL_K_GROUPED_N], row = 0;
    const int32_t *counts = args->tensor[TL_K_GROUPED_COUNTS].data;
    const uint16_t *a = args->tensor[TL_K_GROUPED_A].data, *b = args->tensor[TL_K_GROUPED_B].data;
    float *d = args->tensor[TL_K_GROUPED_D].data, beta = (float)plan->problem.param[0];
    char *scratch = args->workspace;
    for (int64_t g = 0; g < dim[TL_K_GROUPED_NUM_GROUPS]; g++) {
        int lane = (int)(g % plan->tunable[0]);
        float *d_group = d + g * m * n;
        if (counts[g] > 0)
            TL_TRY(tl_cublaslt_sizes_run(sizes, call, counts[g], b + row * n, a + row * m, d_group,
                                         beta, scratch + (size_t)lane * WORKSPACE, WORKSPACE,
                                         &lanes[lane]));
        else if (beta == 0)
            TL_TRY(TL_CUDA_STATUS(plan, "zeroing a group of d",
                                  cudaMemsetAsync(d_group, 0, (size_t)(m * n) * sizeof(float),
                                                  tl_cuda_stream(&lanes[lane]))));
        row += counts[g];
    }
    return TL_OK;
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    struct tl_stream lanes[TL_FORK_MOST];
    struct tl_cublaslt_product product = product_of(&plan->problem);
    struct tl_cublaslt_call call;
    size_t bytes = tl_tensor_bytes(&args->tensor[TL_K_GROUPED_D]);
    int64_t rows;
    TL_TRY(tl_counts_sum(plan, &args->tensor[TL_K_GROUPED_COUNTS],
                         plan->problem.dim[TL_K_GROUPED_K], 1, &rows));
    if (is_empty(&plan->problem)) /* sums of nothing */
        return plan->problem.param[TL_K_GROUPED_BETA] != 0 || bytes == 0
                   ? TL_OK
                   : TL_CUDA_STATUS(plan, "zeroing d",
                                    cudaMemsetAsync(args->tensor[TL_K_GROUPED_D].data, 0, bytes,
                                                    tl_cuda_stream(stream)));
    TL_TRY(tl_cublaslt_open(plan->device, &product, &call));
    enum tl_status status = tl_fork(plan, stream, plan->tunable[0], lanes);
    if (status == TL_OK)
        status = run_groups(plan, args, &call, lanes);
    enum tl_status joined = tl_join(plan, plan->tunable[0], lanes);
    tl_cublaslt_close(&call);
    return status == TL_OK ? joined : status;
}

const struct tl_kernel tl_kernel_k_grouped_gemm_cublaslt_loop = {
    .operation = "k_grouped_gemm",
    .variant = "cublaslt_loop",
    .arch = "cublaslt",
    .summary =
        "One product of NVIDIA's cuBLASLt a group over several streams; the host knows the rows.",
    .dtypes = TL_DTYPE_BIT(TL_BF16) | TL_DTYPE_BIT(TL_FP32),
    .tunables = {{"streams", 4, (const int[]){1, 2, 4, 8, 0}}},
    .legal = legal,
    .plan = plan_algorithms,
    .workspace = workspace,
    .launch = launch,
};
#endif
