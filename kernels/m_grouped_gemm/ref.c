/* m_grouped_gemm/cpu_ragged: groups of any size, empty ones included, where they lie. */
#include "cpu.h"
#include "kernels/host/group_offsets.h"
#include "kernels/host/magnitude.h"

static size_t workspace(const struct tl_plan *plan)
{
    const int64_t *dim = plan->problem.dim;
    int64_t a = dim[TL_M_GROUPED_M] * dim[TL_M_GROUPED_K];
    int64_t b = dim[TL_M_GROUPED_NUM_GROUPS] * dim[TL_M_GROUPED_N] * dim[TL_M_GROUPED_K];
    return tl_magnitude_workspace(&plan->problem, a, b);
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    (void)stream;
    struct tl_gemm_call call = m_grouped_call(&plan->problem, args);
    TL_TRY(tl_group_offsets_check("m_grouped_gemm", &args->tensor[TL_M_GROUPED_OFFSETS],
                                  plan->problem.dim[TL_M_GROUPED_M]));
    tl_magnitude_run(&call, &args->tensor[TL_M_GROUPED_A], &args->tensor[TL_M_GROUPED_B],
                     &args->tensor[TL_M_GROUPED_MAGNITUDE], args->workspace);
    tl_gemm_tile_run(&call);
    return TL_OK;
}

const struct tl_kernel tl_kernel_m_grouped_gemm_cpu_ragged = {
    .operation = "m_grouped_gemm",
    .variant = "cpu_ragged",
    .arch = "cpu",
    .summary = "Host product over groups of any size, cut by offsets as in RapidGEMM's Mgemm.",
    .workspace = workspace,
    .launch = launch,
};
