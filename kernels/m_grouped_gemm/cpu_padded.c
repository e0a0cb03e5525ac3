/* m_grouped_gemm/cpu_padded: groups padded to 128 rows, as DeepGEMM's contiguous layout asks.
 *
 * Pad rows are computed with the weights of the group they pad. The sums are cpu_ragged's, bit for
 * bit. DeepGEMM does not detect unaligned groups and computes wrong rows; here they are an error.
 */
#include "cpu.h"
#include "kernels/host/group_offsets.h"
#include "kernels/host/magnitude.h"

static enum tl_status legal(const struct tl_problem *problem)
{
    return tl_magnitude_refuse(problem, "cpu_padded");
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    (void)stream;
    struct tl_gemm_call call = m_grouped_call(&plan->problem, args);
    TL_TRY(tl_group_offsets_check_padded(
        "m_grouped_gemm", &args->tensor[TL_M_GROUPED_OFFSETS], plan->problem.dim[TL_M_GROUPED_M],
        &args->tensor[TL_M_GROUPED_ROW_EXPERTS], &args->tensor[TL_M_GROUPED_COUNTS]));
    tl_gemm_tile_run(&call);
    return TL_OK;
}

const struct tl_kernel tl_kernel_m_grouped_gemm_cpu_padded = {
    .operation = "m_grouped_gemm",
    .variant = "cpu_padded",
    .arch = "cpu",
    .summary = "Host product over groups padded to 128 rows, DeepGEMM's contiguous layout.",
    .legal = legal,
    .launch = launch,
};
