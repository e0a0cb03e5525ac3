/* Records of the kernels that a region runs: duration of each kernel alone, launch shape and
 * resources, from CUPTI's Activity API; and of memsets and copies, where they are asked for.
 *
 * tl_activity_begin, launches, tl_activity_end, then the records until the next begin. Nothing is
 * recorded outside, where kernels run as they would without; inside, kernels stay concurrent, and
 * each gets a few microseconds of overhead between launches that is no part of its duration.
 */
#ifndef TL_ACTIVITY_H
#define TL_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tl_activity_kind { TL_ACTIVITY_KERNEL, TL_ACTIVITY_MEMSET, TL_ACTIVITY_COPY };

/* Of a memset or a copy: kind, name, symbol, times, bytes and stream; the rest is 0. */
struct tl_kernel_record {
    enum tl_activity_kind kind;
    int64_t bytes;       /* that a memset or a copy wrote; 0 of a kernel */
    char name[128];      /* the function's own name, without namespaces and arguments */
    const char *symbol;  /* as the linker has it; lives as long as the records */
    double duration_us;  /* NaN where the hardware gave no time stamps */
    int64_t start_ns;    /* on a clock of CUPTI's; 0 where there is no time stamp */
    int grid[3], block[3];
    int cluster[3];              /* 1 1 1 without clusters */
    int registers;               /* a thread */
    int64_t static_shared_bytes; /* a block */
    int64_t dynamic_shared_bytes;
    int64_t shared_carveout_bytes; /* of the multiprocessor, set aside by the driver */
    int64_t local_bytes;           /* a thread: spilled registers and arrays */
    int max_active_clusters;       /* on the device at once; 0 without clusters */
    uint32_t stream;
    uint64_t graph_node; /* 0 outside CUDA graphs */
};

/* `memory`: memsets and copies too, not kernels only. TL_ERR_ARGUMENT where recording is on
 * already; TL_ERR_UNSUPPORTED with reason and remedy. */
enum tl_status tl_activity_begin(const struct tl_device *device, bool memory);

/* Waits for the device and stops recording. TL_ERR_DEVICE where records were lost. */
enum tl_status tl_activity_end(void);

/* The records of the last region in the order of launches; CUPTI's own kernels are left out.
 * NULL past the end. */
const struct tl_kernel_record *tl_activity_record_at(int position);

/* Shortens a mangled name: "_ZN3foo11gemm_kernelILi64EEEvPf" becomes "gemm_kernel". What cannot
 * be read is copied. */
void tl_kernel_name_short(const char *symbol, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
