/* The order in which persistent blocks take the groups: largest first, so that the tiles of the
 * last wave are the short ones. A kernel of one block works it out before the main one, which costs
 * the launch that zeroing the tile counter would. It depends on the offsets alone.
 */
#ifndef TL_K_GROUPED_GEMM_ORDER_CUH
#define TL_K_GROUPED_GEMM_ORDER_CUH

#include "kernels/device/group_offsets.cuh"

enum {
    ORDER_THREADS = 1024,
    MOST_RANKED = 2048 /* groups; more of them stay in their order, since ranking takes G^2 steps */
};

/* A group as the producers meet it. */
struct alignas(16) work {
    int group, begin, rows, unused;
};

/* In the workspace: the next tile that nobody has taken, and the groups in order. */
struct alignas(16) schedule {
    int next, groups;
    work order[1];
};

static inline size_t schedule_bytes(int64_t num_groups)
{
    return sizeof(schedule) + (size_t)num_groups * sizeof(work);
}

/* In one load, from the read-only path. */
static __device__ __forceinline__ work work_at(const schedule *todo, int position)
{
    int4 packed = __ldg((const int4 *)(todo->order + position));
    return {packed.x, packed.y, packed.z, packed.w};
}

/* How many groups come before group `g`: the larger ones, and of equals those in front. */
static __device__ int rank_of(const int *sizes, int num_groups, int g)
{
    int size = sizes[g], rank = 0;
    for (int other = 0; other < num_groups; other++)
        rank += sizes[other] > size || (sizes[other] == size && other < g);
    return rank;
}

/* One block of ORDER_THREADS. Refuses bad offsets, which leaves no groups. skip_empty: the list
 * ends before the empty groups where it is ranked; otherwise they are in it. */
static __global__ void __launch_bounds__(ORDER_THREADS)
    order_kernel(const int *offsets, int num_groups, int64_t rows, bool skip_empty, schedule *out,
                 tl_fault_port fault)
{
    __shared__ int sizes[MOST_RANKED];
    __shared__ int filled;
    bool ranked = num_groups <= MOST_RANKED;
    cudaTriggerProgrammaticLaunchCompletion();
    if (threadIdx.x == 0) {
        filled = 0;
        out->next = 0;
        out->groups = 0;
    }
    if (tl_group_offsets_refused(offsets, num_groups, rows, fault))
        return;
    for (int g = threadIdx.x; ranked && g < num_groups; g += ORDER_THREADS) {
        sizes[g] = offsets[g + 1] - offsets[g];
        if (sizes[g] > 0)
            atomicAdd(&filled, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        out->groups = ranked && skip_empty ? filled : num_groups;
    for (int g = threadIdx.x; g < num_groups; g += ORDER_THREADS) {
        int position = ranked ? rank_of(sizes, num_groups, g) : g;
        out->order[position] = {g, offsets[g], offsets[g + 1] - offsets[g], 0};
    }
}

#endif
