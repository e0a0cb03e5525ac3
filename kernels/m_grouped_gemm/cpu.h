/* What the host kernels of m_grouped_gemm share: their arguments as a call of the matrix engine. */
#ifndef TL_M_GROUPED_GEMM_CPU_H
#define TL_M_GROUPED_GEMM_CPU_H

#include "kernels/host/gemm_tile.h"
#include "op.h"

static inline struct tl_gemm_call m_grouped_call(const struct tl_problem *problem,
                                                 const struct tl_args *args)
{
    const struct tl_tensor *tensor = args->tensor;
    int64_t n = problem->dim[TL_M_GROUPED_N], k = problem->dim[TL_M_GROUPED_K];
    bool b_along_k = problem->param[TL_M_GROUPED_LAYOUT] == TL_M_GROUPED_NT;
    return (struct tl_gemm_call){
        .grouping = TL_GEMM_M_GROUPED,
        .n = n,
        .k = k,
        .num_groups = problem->dim[TL_M_GROUPED_NUM_GROUPS],
        .group_offsets = tensor[TL_M_GROUPED_OFFSETS].data,
        .a = {.data = tensor[TL_M_GROUPED_A].data,
              .dtype = tensor[TL_M_GROUPED_A].dtype,
              .stride = k,
              .k_stride = 1},
        .b = {.data = tensor[TL_M_GROUPED_B].data,
              .dtype = tensor[TL_M_GROUPED_B].dtype,
              .stride = b_along_k ? k : 1,
              .k_stride = b_along_k ? 1 : n,
              .group_stride = n * k},
        .d = tensor[TL_M_GROUPED_D].data,
        .d_dtype = tensor[TL_M_GROUPED_D].dtype,
    };
}

#endif
