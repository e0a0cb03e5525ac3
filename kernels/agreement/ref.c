/* agreement/cpu_plain: group after group, one thread each. */
#include "judge.h"
#include "kernels/host/check.h"
#include "kernels/host/parallel.h"
#include "op.h"

static struct agreement judge_rows(const struct tl_args *args, const double *param, int64_t n,
                                   int64_t begin, int64_t end)
{
    const struct tl_tensor *value = &args->tensor[TL_AGREEMENT_VALUE];
    const double *reference = args->tensor[TL_AGREEMENT_REFERENCE].data;
    const double *magnitude = args->tensor[TL_AGREEMENT_MAGNITUDE].data;
    struct agreement all = agreement_none();
    for (int64_t i = begin * n; i < end * n; i++) {
        double bound = param[TL_AGREEMENT_RELATIVE] * fabs(reference[i]) +
                       param[TL_AGREEMENT_SCALED] * magnitude[i];
        agreement_merge(&all, agreement_of(tl_element_get(value->data, value->dtype, i),
                                           reference[i], bound, i));
    }
    return all;
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    (void)stream;
    const int64_t *dim = plan->problem.dim;
    int64_t m = dim[TL_AGREEMENT_M], n = dim[TL_AGREEMENT_N];
    TL_TRY(tl_check_offsets(plan, args, TL_AGREEMENT_OFFSETS, m));
    const int32_t *offsets = args->tensor[TL_AGREEMENT_OFFSETS].data;
    double *worst = args->tensor[TL_AGREEMENT_WORST].data;
    int32_t *row = args->tensor[TL_AGREEMENT_WORST_ROW].data;
    int32_t *column = args->tensor[TL_AGREEMENT_WORST_COLUMN].data;
    double *violations = args->tensor[TL_AGREEMENT_VIOLATIONS].data;
#pragma omp parallel for schedule(dynamic) if (m * n > TL_PARALLEL_WORK)
    for (int64_t g = 0; g < dim[TL_AGREEMENT_NUM_GROUPS]; g++) {
        struct agreement group =
            judge_rows(args, plan->problem.param, n, offsets[g], offsets[g + 1]);
        worst[g] = group.worst;
        row[g] = group.at < 0 ? -1 : (int32_t)(group.at / n);
        column[g] = group.at < 0 ? -1 : (int32_t)(group.at % n);
        violations[g] = (double)group.violations;
    }
    return TL_OK;
}

const struct tl_kernel tl_kernel_agreement_cpu_plain = {
    .operation = "agreement",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "One pass over the elements of each group.",
    .launch = launch,
};
