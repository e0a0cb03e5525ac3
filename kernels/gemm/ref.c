/* gemm/cpu_plain: the dense product on the host, one call of the matrix engine. */
#include "kernels/host/gemm_tile.h"
#include "op.h"

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    (void)stream;
    const struct tl_problem *problem = &plan->problem;
    const struct tl_tensor *tensor = args->tensor;
    int64_t m = problem->dim[TL_GEMM_M], n = problem->dim[TL_GEMM_N], k = problem->dim[TL_GEMM_K];
    bool a_along_k = problem->param[TL_GEMM_LAYOUT] != TL_GEMM_TN;
    bool b_along_k = problem->param[TL_GEMM_LAYOUT] == TL_GEMM_NT;
    tl_gemm_tile_run(&(struct tl_gemm_call){
        .grouping = TL_GEMM_DENSE,
        .m = m,
        .n = n,
        .k = k,
        .num_groups = 1,
        .a = {.data = tensor[TL_GEMM_A].data,
              .dtype = tensor[TL_GEMM_A].dtype,
              .stride = a_along_k ? k : 1,
              .k_stride = a_along_k ? 1 : m},
        .b = {.data = tensor[TL_GEMM_B].data,
              .dtype = tensor[TL_GEMM_B].dtype,
              .stride = b_along_k ? k : 1,
              .k_stride = b_along_k ? 1 : n},
        .d = tensor[TL_GEMM_D].data,
        .d_dtype = tensor[TL_GEMM_D].dtype,
        .accumulate = problem->param[TL_GEMM_BETA] != 0,
    });
    return TL_OK;
}

const struct tl_kernel tl_kernel_gemm_cpu_plain = {
    .operation = "gemm",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Register-blocked host product; each sum runs over ascending k.",
    .launch = launch,
};
