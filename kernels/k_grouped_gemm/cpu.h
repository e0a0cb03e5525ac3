/* What the host kernels of k_grouped_gemm share: their arguments as a call of the matrix engine. */
#ifndef TL_K_GROUPED_GEMM_CPU_H
#define TL_K_GROUPED_GEMM_CPU_H

#include "kernels/host/gemm_tile.h"
#include "op.h"

static inline struct tl_gemm_call k_grouped_call(const struct tl_problem *problem,
                                                 const struct tl_args *args)
{
    const struct tl_tensor *tensor = args->tensor;
    int64_t m = problem->dim[TL_K_GROUPED_M], n = problem->dim[TL_K_GROUPED_N];
    return (struct tl_gemm_call){
        .grouping = TL_GEMM_K_GROUPED,
        .m = m,
        .n = n,
        .num_groups = problem->dim[TL_K_GROUPED_NUM_GROUPS],
        .group_offsets = tensor[TL_K_GROUPED_OFFSETS].data,
        .a = {.data = tensor[TL_K_GROUPED_A].data,
              .dtype = tensor[TL_K_GROUPED_A].dtype,
              .stride = 1,
              .k_stride = m},
        .b = {.data = tensor[TL_K_GROUPED_B].data,
              .dtype = tensor[TL_K_GROUPED_B].dtype,
              .stride = 1,
              .k_stride = n},
        .d = tensor[TL_K_GROUPED_D].data,
        .d_dtype = tensor[TL_K_GROUPED_D].dtype,
        .accumulate = problem->param[TL_K_GROUPED_BETA] != 0,
    };
}

#endif
