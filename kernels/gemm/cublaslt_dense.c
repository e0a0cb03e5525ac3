/* gemm/cublaslt_dense: the vendor's dense product, the ceiling that others are held against.
 *
 * cuBLASLt is column-major, and a row-major [r, c] matrix read that way is its transpose, so
 * d^T[n, m] = b^T a^T is computed with b as the first operand:
 * layout  first operand (b)          second operand (a)
 * nt      [k, n], transposed         [k, m]
 * nn      [n, k]                     [k, m]
 * tn      [n, k]                     [m, k], transposed
 * The plan holds the library's first eight suggestions, `heuristic` picks one; tune times them all.
 */
#if TL_CUDA
#include "kernels/device/cublaslt.h"
#include "kernels/device/launch.h"
#include "op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, SAMPLES = 9, BATCH_US = 300, MAX_BATCH = 50 };
#define WORKSPACE ((size_t)32 << 20) /* what NVIDIA advises for Hopper */

/* In the plan's scratch. */
struct found {
    uint64_t count; /* 0 where the product is empty */
    struct tl_cublaslt_algo algos[MOST];
};
_Static_assert(MOST <= TL_MAX_TRIALS, "a time for each suggestion");
_Static_assert(sizeof(struct tl_cublaslt_algo) * 2 < TL_ALGORITHM_TEXT, "its name fits");
_Static_assert(sizeof(struct found) <= sizeof((struct tl_plan *)0)->scratch,
               "the suggestions fit into a plan");

static struct tl_cublaslt_product product_of(const struct tl_problem *problem)
{
    int64_t m = problem->dim[TL_GEMM_M], n = problem->dim[TL_GEMM_N], k = problem->dim[TL_GEMM_K];
    bool nt = problem->param[TL_GEMM_LAYOUT] == TL_GEMM_NT;
    bool tn = problem->param[TL_GEMM_LAYOUT] == TL_GEMM_TN;
    return (struct tl_cublaslt_product){
        .rows = n,
        .cols = m,
        .depth = k,
        .transpose_a = nt,
        .transpose_b = tn,
        .lda = nt ? k : n,
        .ldb = tn ? m : k,
        .ldd = n,
        .in = problem->dtype[TL_GEMM_A],
        .out = problem->dtype[TL_GEMM_D],
    };
}

static bool is_empty(const struct tl_problem *problem)
{
    return problem->dim[TL_GEMM_M] == 0 || problem->dim[TL_GEMM_N] == 0 ||
           problem->dim[TL_GEMM_K] == 0;
}

static enum tl_status legal(const struct tl_problem *problem)
{
    if (problem->dtype[TL_GEMM_A] == TL_FP32 && problem->dtype[TL_GEMM_D] != TL_FP32)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "gemm/cublaslt_dense: fp32 inputs give fp32 only, and 'd' is %s",
                       tl_dtype_name(problem->dtype[TL_GEMM_D]));
    return TL_OK;
}

static enum tl_status plan_suggestions(struct tl_plan *plan)
{
    struct found *found = (struct found *)plan->scratch;
    struct tl_cublaslt_product product = product_of(&plan->problem);
    int count = 0;
    if (is_empty(&plan->problem))
        return TL_OK;
    /* Without the library the variant cannot run here: a reason, like others, to skip it. */
    if (tl_cublaslt_find(plan->device, &product, WORKSPACE, found->algos, MOST, &count) != TL_OK)
        return TL_FAIL(TL_ERR_ILLEGAL, "gemm/cublaslt_dense: %s", tl_error_message());
    found->count = (uint64_t)count;
    return TL_OK;
}

static size_t workspace(const struct tl_plan *plan)
{
    (void)plan;
    return WORKSPACE;
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    const struct found *found = (const struct found *)plan->scratch;
    const struct tl_tensor *tensor = args->tensor, *d = &tensor[TL_GEMM_D];
    float beta = (float)plan->problem.param[TL_GEMM_BETA];
    if (is_empty(&plan->problem)) { /* a sum of nothing */
        size_t bytes = tl_tensor_bytes(d);
        return beta != 0 || bytes == 0
                   ? TL_OK
                   : TL_CUDA_STATUS(plan, "zeroing d",
                                    cudaMemsetAsync(d->data, 0, bytes, tl_cuda_stream(stream)));
    }
    uint64_t pick = (uint64_t)plan->tunable[0];
    if (pick > found->count)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "gemm/cublaslt_dense: heuristic %d, and cuBLASLt suggests only %d",
                       plan->tunable[0], (int)found->count);
    struct tl_cublaslt_product product = product_of(&plan->problem);
    return tl_cublaslt_run(plan->device, &product, &found->algos[pick - 1],
                           tensor[TL_GEMM_B].data, tensor[TL_GEMM_A].data, d->data, beta,
                           args->workspace, WORKSPACE, stream);
}

/* The library's description of it, in hexadecimal digits. */
static void algorithm(const struct tl_plan *plan, char text[TL_ALGORITHM_TEXT])
{
    const struct found *found = (const struct found *)plan->scratch;
    uint64_t pick = (uint64_t)plan->tunable[0];
    text[0] = 0;
    if (pick > found->count)
        return;
    const struct tl_cublaslt_algo *algo = &found->algos[pick - 1];
    for (size_t i = 0; i < sizeof algo->data / sizeof algo->data[0]; i++)
        snprintf(text + 16 * i, 17, "%016llx", (unsigned long long)algo->data[i]);
}

/* --- tuning -------------------------------------------------------------------------------- */

struct stopwatch {
    const struct tl_device_api *api;
    struct tl_event *start, *stop;
};

/* Microseconds of one call, from `batch` of them. */
static enum tl_status time_calls(const struct tl_plan *plan, const struct tl_args *args,
                                 struct tl_stream *stream, struct stopwatch *watch, int batch,
                                 double *out_us)
{
    TL_TRY(watch->api->event_record(watch->start, stream));
    for (int i = 0; i < batch; i++)
        TL_TRY(launch(plan, args, stream));
    TL_TRY(watch->api->event_record(watch->stop, stream));
    TL_TRY(watch->api->event_elapsed_us(watch->start, watch->stop, out_us));
    *out_us /= batch;
    return TL_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Every suggestion in turn, round after round, so that a drifting clock favours none; one that
 * fails is out. The warm-up is round -2, and round -1 sets how many calls a sample takes. */
static enum tl_status time_suggestions(struct tl_plan *plan, const struct tl_args *args,
                                       struct tl_stream *stream, struct stopwatch *watch,
                                       int *best)
{
    int count = (int)((const struct found *)plan->scratch)->count;
    double samples[MOST][SAMPLES], least = INFINITY, time_us = 0;
    int batch[MOST];
    bool failed[MOST] = {false};
    for (int round = -2; round < SAMPLES; round++) {
        for (int i = 0; i < count; i++) {
            if (failed[i])
                continue;
            plan->tunable[0] = i + 1;
            failed[i] = time_calls(plan, args, stream, watch, round < 0 ? 1 : batch[i],
                                   &time_us) != TL_OK;
            if (round < 0)
                batch[i] = (int)fmin(MAX_BATCH, 1 + BATCH_US / fmax(time_us, 1));
            else
                samples[i][round] = time_us;
        }
    }
    for (int i = 0; i < count; i++) {
        plan->trial_us[i] = NAN;
        if (failed[i])
            continue;
        qsort(samples[i], SAMPLES, sizeof samples[i][0], ascending);
        plan->trial_us[i] = samples[i][SAMPLES / 2];
        if (plan->trial_us[i] < least) {
            least = plan->trial_us[i];
            *best = i + 1;
        }
    }
    return *best ? TL_OK
                 : TL_FAIL(TL_ERR_DEVICE, "gemm/cublaslt_dense: none of %d suggestions runs: %s",
                           count, tl_error_message());
}

static enum tl_status tune(struct tl_plan *plan, const struct tl_args *args,
                           struct tl_stream *stream)
{
    struct stopwatch watch = {plan->device->api, NULL, NULL};
    enum tl_status status;
    int best = 0;
    if (is_empty(&plan->problem))
        return TL_OK;
    TL_TRY(watch.api->use(plan->device));
    TL_GO(out, watch.api->event_new(plan->device, &watch.start));
    TL_GO(out, watch.api->event_new(plan->device, &watch.stop));
    TL_GO(out, time_suggestions(plan, args, stream, &watch, &best));
    plan->tunable[0] = best;
out:
    watch.api->event_free(watch.start);
    watch.api->event_free(watch.stop);
    return status;
}

const struct tl_kernel tl_kernel_gemm_cublaslt_dense = {
    .operation = "gemm",
    .variant = "cublaslt_dense",
    .arch = "cublaslt",
    .summary = "NVIDIA's cuBLASLt; fp32 inputs are rounded to TF32, sums are in fp32; a bf16 d at "
               "beta 1 is rounded twice, product and sum.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .tunables = {{"heuristic", 1, (const int[]){1, 2, 3, 4, 5, 6, 7, 8, 0}}},
    .legal = legal,
    .plan = plan_suggestions,
    .tune = tune,
    .algorithm = algorithm,
    .workspace = workspace,
    .transient_workspace = true,
    .launch = launch,
};
#endif
