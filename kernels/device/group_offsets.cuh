/* The checks of kernels/host/group_offsets.h inside a kernel, which costs no wait of the host.
 *
 * A kernel calls tl_group_offsets_refused before it uses an offset, and returns when it says so.
 * Every block looks at all offsets: 1025 of them are three coalesced loads for each of 384 threads,
 * and leave in L1 what the block's walk over the groups reads next. Every thread of every block
 * comes to the same answer, so that nobody waits for who has left.
 */
#ifndef TL_DEVICE_GROUP_OFFSETS_CUH
#define TL_DEVICE_GROUP_OFFSETS_CUH

#include "kernels/device/fault.cuh"
#include "kernels/host/group_offsets.h"

/* Leaves the first fault of the offsets where the host finds it, unless another is there already
 * (core/fault.h). For one thread of the grid, after some thread found the offsets bad. The search
 * is repeated by one thread, since that is short and finds what the host would. */
static __device__ __noinline__ void tl_group_offsets_report(const int32_t *offsets,
                                                            int64_t num_groups, int64_t rows,
                                                            bool aligned, tl_fault_port port)
{
    tl_fault found;
    if (tl_group_offsets_find(offsets, num_groups, rows, aligned, &found))
        tl_fault_leave(found, port);
}

/* For all threads of the block: whether the offsets are bad. Then the kernel must return without a
 * write to its outputs; the first block leaves the fault. Contains a __syncthreads.
 * offsets  [num_groups + 1]; rows: of the tensor that they cut
 * aligned  whether each must be a multiple of TL_GROUP_ALIGNMENT */
static __device__ __forceinline__ bool tl_group_offsets_refused(const int32_t *offsets,
                                                                int num_groups, int64_t rows,
                                                                tl_fault_port port,
                                                                bool aligned = false)
{
    int thread = (int)threadIdx.x;
    bool bad = __syncthreads_or(tl_group_offsets_bad(offsets, num_groups, rows, aligned, thread,
                                                     (int)blockDim.x));
    if (bad && thread == 0 && blockIdx.x == 0)
        tl_group_offsets_report(offsets, num_groups, rows, aligned, port);
    return bad;
}

#endif
