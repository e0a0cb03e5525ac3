/* What the launchers of scale_swizzle on the GPU share. */
#ifndef TL_SCALE_SWIZZLE_LAUNCH_H
#define TL_SCALE_SWIZZLE_LAUNCH_H

#include "kernels/device/launch.h"
#include "kernels/scale_swizzle/layout.h"
#include "kernels/scale_swizzle/op.h"

/* A problem as kernels take it. */
struct tl_scale_problem {
    const uint8_t *scales;
    uint8_t *blocked;
    const int *ends; /* or NULL */
    int rows, columns, num_groups;
    int row_tiles; /* of `rows`; of m_groups the most that all groups can have */
};

static inline struct tl_scale_problem tl_scale_problem_of(const struct tl_plan *plan,
                                                          const struct tl_args *args)
{
    const int64_t *dim = plan->problem.dim;
    struct tl_scale_problem p;
    int64_t rows = dim[TL_SCALE_ROWS], groups = dim[TL_SCALE_NUM_GROUPS];
    int64_t slack = 0;
    if ((int)plan->problem.param[TL_SCALE_GROUPING] == TL_SCALE_M_GROUPS)
        slack = (TL_SCALE_TILE_ROWS - 1) * (groups < rows ? groups : rows);
    else
        slack = TL_SCALE_TILE_ROWS - 1;
    p.scales = (const uint8_t *)args->tensor[TL_SCALE_SCALES].data;
    p.blocked = (uint8_t *)args->tensor[TL_SCALE_BLOCKED].data;
    p.ends = (const int *)args->tensor[TL_SCALE_GROUP_ENDS].data;
    p.rows = (int)rows;
    p.columns = (int)dim[TL_SCALE_COLUMNS];
    p.num_groups = (int)groups;
    p.row_tiles = (int)((rows + slack) / TL_SCALE_TILE_ROWS);
    return p;
}

/* TL_ERR_ILLEGAL where positions do not fit in an int with room to step past the end. */
static inline enum tl_status tl_scale_legal(const struct tl_problem *problem)
{
    for (int i = 0; i <= TL_SCALE_NUM_GROUPS; i++)
        if (problem->dim[i] > INT32_MAX - 65536)
            return TL_FAIL(TL_ERR_ILLEGAL, "%s on the GPU: a dimension of %lld is beyond i32",
                           problem->operation->name, (long long)problem->dim[i]);
    return TL_OK;
}

/* The same, and TL_ERR_ILLEGAL where the table of groups does not fit in shared memory. */
static inline enum tl_status tl_scale_legal_table(const struct tl_problem *problem)
{
    const int64_t most = 32768;
    int64_t groups = problem->dim[TL_SCALE_NUM_GROUPS];
    if (problem->present[TL_SCALE_GROUP_ENDS] && groups > most)
        return TL_FAIL(TL_ERR_ILLEGAL, "scale_swizzle on the GPU: %lld groups are more than %lld",
                       (long long)groups, (long long)most);
    return tl_scale_legal(problem);
}

/* As tl_scale_legal, and TL_ERR_ILLEGAL for all but k_groups, for which alone a kernel is made. */
static inline enum tl_status tl_scale_legal_k_groups(const struct tl_problem *problem)
{
    if ((int)problem->param[TL_SCALE_GROUPING] != TL_SCALE_K_GROUPS)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "scale_swizzle: this kernel is a step of the study of k_groups and takes no "
                       "other grouping; use smxx_registers");
    return tl_scale_legal(problem);
}

/* TL_ERR_ARGUMENT where 16-byte stores cannot go to 'blocked'. */
static inline enum tl_status tl_scale_check_aligned(const struct tl_plan *plan, const void *blocked)
{
    if ((uintptr_t)blocked % TL_SCALE_RUN_BYTES != 0)
        return TL_FAIL(TL_ERR_ARGUMENT, "%s/%s: 'blocked' at %p must be aligned to %d bytes",
                       plan->kernel->operation, plan->kernel->variant, blocked,
                       (int)TL_SCALE_RUN_BYTES);
    return TL_OK;
}

/* Shared memory that a block asks for and leaves alone, so that fewer fit on a multiprocessor: a
 * tunable in KiB, where 1 stands for none. */
#define TL_SCALE_HELD_SHARED {"held_shared_kib", 1, tl_scale_held_shared}
static const int tl_scale_held_shared[] = {1, 14, 18, 22, 28, 37, 44, 56, 75, 113, 227, 0};

static inline size_t tl_scale_held_bytes(const struct tl_plan *plan)
{
    int position = tl_kernel_tunable(plan->kernel, "held_shared_kib");
    int kib = position < 0 ? 1 : plan->tunable[position];
    return kib == 1 ? 0 : (size_t)kib * 1024;
}

/* Lets a kernel have that much dynamic shared memory. The 48 KiB that need no leave hold what the
 * kernel has of static shared memory, too: up to 32 KiB here. Shared memory takes from L1: where
 * blocks hold some, L1 is the least there is, whether they are few or many. */
static inline enum tl_status tl_scale_allow_shared(const struct tl_plan *plan, const void *kernel,
                                                   size_t bytes)
{
    static bool ever_held; /* by a kernel of this file: from then on L1 may have to be given back */
    bool held = tl_scale_held_bytes(plan) > 0;
    int carveout = held ? cudaSharedmemCarveoutMaxShared : cudaSharedmemCarveoutDefault;
    ever_held |= held;
    if (ever_held)
        TL_TRY(TL_CUDA_STATUS(plan, "L1 of scale_swizzle",
                              cudaFuncSetAttribute(
                                  kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  carveout)));
    if (bytes <= 16 * 1024)
        return TL_OK;
    return TL_CUDA_STATUS(
        plan, "shared memory of scale_swizzle",
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
}

#endif
