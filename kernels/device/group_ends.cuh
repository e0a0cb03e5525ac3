/* group_ends inside a kernel: whether they are good (kernels/host/group_ends.h), and which group a
 * position belongs to when every group is padded to a multiple of ALIGN. Costs no wait of the host.
 *
 * Two tables with the same calls. Of up to 32 groups each lane of a warp holds one, so that a warp
 * needs no other; the table of more lies in shared memory and is built by the block. A unit is
 * ALIGN positions of a padded group; units are numbered through all groups, and fit in an int since
 * a group has at most one that is not full.
 *
 *   if (table.open(ends, num_groups, total, shared, fault)) return;    // bad: nothing is written
 *   for (table.seek(position); table.group < num_groups && table.begin < stop; table.next()) ...
 */
#ifndef TL_DEVICE_GROUP_ENDS_CUH
#define TL_DEVICE_GROUP_ENDS_CUH

#include "kernels/device/fault.cuh"
#include "kernels/host/group_ends.h"

enum { TL_FEW_GROUPS = 32, TL_GROUP_TABLE_WARPS = 32 };

/* For one thread of the grid, as tl_group_offsets_report. */
static __device__ __noinline__ void tl_group_ends_report(const int *ends, int num_groups,
                                                         int total, tl_fault_port port)
{
    tl_fault found;
    if (tl_group_ends_find(ends, num_groups, total, &found))
        tl_fault_leave(found, port);
}

static __device__ __forceinline__ int tl_thread_of_block()
{
    return (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

static __device__ __forceinline__ bool tl_first_of_grid()
{
    return tl_thread_of_block() == 0 && blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
}

/* For all threads of the block: whether the ends are bad. Then the kernel must return without a
 * write to its outputs; the first block leaves the fault. Contains a __syncthreads. */
static __device__ __forceinline__ bool tl_group_ends_refused(const int *ends, int num_groups,
                                                             int total, tl_fault_port port)
{
    bool bad = false;
    int threads = (int)(blockDim.x * blockDim.y * blockDim.z);
    for (int g = tl_thread_of_block(); g < num_groups; g += threads)
        bad |= ends[g] < (g > 0 ? ends[g - 1] : 0) || ends[g] > total;
    bad = __syncthreads_or(bad);
    if (bad && tl_first_of_grid())
        tl_group_ends_report(ends, num_groups, total, port);
    return bad;
}

/* Where a table stands: a group, [begin, end) of it, and the units of the groups before it. */
struct tl_group_place {
    int group, begin, end, units_before;
};

template <int ALIGN> struct tl_few_groups : tl_group_place {
    int lane_end, lane_units; /* of group `lane`; past the last group its end, and no units */

    /* Bytes of shared memory for a table of `num_groups`. */
    static size_t shared_bytes(int64_t num_groups)
    {
        (void)num_groups;
        return 0;
    }

    /* For whole warps; num_groups is at least 1. */
    __device__ __forceinline__ bool open(const int *ends, int num_groups, int total, int *shared,
                                         tl_fault_port port)
    {
        int lane = (int)(threadIdx.x % 32);
        (void)shared;
        lane_end = __ldg(ends + min(lane, num_groups - 1));
        int before = __shfl_up_sync(~0u, lane_end, 1);
        before = lane == 0 ? 0 : before;
        lane_units = (lane_end - before + ALIGN - 1) / (unsigned)ALIGN;
        bool bad = __any_sync(~0u, lane_end < before || lane_end > total);
        if (bad && tl_first_of_grid())
            tl_group_ends_report(ends, num_groups, total, port);
        return bad;
    }

    /* To the group that holds `position`; past the last end to a group that is none. */
    __device__ __forceinline__ void seek(int position)
    {
        bool past = lane_end <= position;
        group = __popc(__ballot_sync(~0u, past));
        units_before = (int)__reduce_add_sync(~0u, past ? (unsigned)lane_units : 0u);
        place();
    }

    /* To the group that holds the unit. */
    __device__ __forceinline__ void seek_unit(int unit)
    {
        int lane = (int)(threadIdx.x % 32), upto = lane_units;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            int other = __shfl_up_sync(~0u, upto, step);
            upto += lane >= step ? other : 0;
        }
        group = __popc(__ballot_sync(~0u, upto <= unit));
        units_before = __shfl_sync(~0u, upto - lane_units, group & 31);
        place();
    }

    __device__ __forceinline__ void next()
    {
        units_before += units();
        begin = end;
        group++;
        end = __shfl_sync(~0u, lane_end, group & 31);
    }

    __device__ __forceinline__ int units() const
    {
        return (end - begin + ALIGN - 1) / (unsigned)ALIGN;
    }

  private:
    __device__ __forceinline__ void place()
    {
        int before = __shfl_sync(~0u, lane_end, (group - 1) & 31);
        begin = group > 0 ? before : 0;
        end = __shfl_sync(~0u, lane_end, group & 31);
    }
};

template <int ALIGN> struct tl_many_groups : tl_group_place {
    const int *ends, *unit; /* unit[g]: the units of the groups before g, g up to num_groups */
    int num_groups;

    static size_t shared_bytes(int64_t num_groups)
    {
        return (size_t)(num_groups + 1 + TL_GROUP_TABLE_WARPS) * sizeof(int);
    }

    /* For all threads of the block, which has whole warps. */
    __device__ __forceinline__ bool open(const int *from, int count, int total, int *shared,
                                         tl_fault_port port)
    {
        int threads = (int)(blockDim.x * blockDim.y * blockDim.z), thread = tl_thread_of_block();
        int lane = thread % 32, warp = thread / 32, share = (count + threads - 1) / threads;
        int first = min(thread * share, count), last = min(first + share, count), sum = 0;
        int *sums = shared + count + 1;
        ends = from;
        unit = shared;
        num_groups = count;
        if (tl_group_ends_refused(ends, count, total, port))
            return true;
        for (int g = first; g < last; g++)
            sum += units_of(g);
        int upto = sum;
        for (int step = 1; step < 32; step *= 2) {
            int other = __shfl_up_sync(~0u, upto, step);
            upto += lane >= step ? other : 0;
        }
        if (lane == 31)
            sums[warp] = upto;
        __syncthreads();
        for (int w = 0; w < warp; w++)
            upto += sums[w];
        upto -= sum;
        for (int g = first; g < last; g++) {
            shared[g] = upto;
            upto += units_of(g);
        }
        if (last == count) /* of several such threads all say the same */
            shared[count] = upto;
        __syncthreads();
        return false;
    }

    __device__ __forceinline__ void seek(int position)
    {
        int low = 0, high = num_groups;
        while (low < high) {
            int middle = (low + high) / 2;
            if (__ldg(ends + middle) <= position)
                low = middle + 1;
            else
                high = middle;
        }
        place(low);
    }

    __device__ __forceinline__ void seek_unit(int number)
    {
        int low = 0, high = num_groups;
        while (low < high) {
            int middle = (low + high) / 2;
            if (unit[middle + 1] <= number)
                low = middle + 1;
            else
                high = middle;
        }
        place(low);
    }

    __device__ __forceinline__ void next()
    {
        units_before += units();
        begin = end;
        group++;
        end = group < num_groups ? __ldg(ends + group) : begin;
    }

    __device__ __forceinline__ int units() const
    {
        return (end - begin + ALIGN - 1) / (unsigned)ALIGN;
    }

  private:
    __device__ __forceinline__ int units_of(int g) const
    {
        return (__ldg(ends + g) - (g > 0 ? __ldg(ends + g - 1) : 0) + ALIGN - 1) / (unsigned)ALIGN;
    }

    __device__ __forceinline__ void place(int g)
    {
        group = g;
        begin = g > 0 ? __ldg(ends + g - 1) : 0;
        end = g < num_groups ? __ldg(ends + g) : begin;
        units_before = unit[g];
    }
};

#endif
