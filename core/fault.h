/* Faults: what a kernel found wrong with values that only the device has, such as group_offsets.
 *
 * A launch cannot look at such values without waiting for the device, so the kernel looks itself.
 * One that refuses them writes nothing to its outputs and leaves a record in host memory, at an
 * address that stays, so that replays of a graph leave theirs too. The next call that waits for
 * the device, or the next launch, gives it as an error, after which the device is as before. Until
 * then the first fault stays and later ones are dropped: most follow from it.
 */
#ifndef TL_FAULT_H
#define TL_FAULT_H

#include <stdint.h>

#include "device.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One for each device whose kernels leave faults (tl_device.fault), in pinned host memory that the
 * device addresses alike. The host writes `handled` and `claim`, kernels the rest, in the order
 * claim, fields, `left`; kernels/device/fault.cuh does. */
struct tl_fault {
    uint32_t handled; /* faults that became errors so far; the round of the next is handled + 1 */
    uint32_t left;    /* the round of the fault below, once that is complete */
    uint32_t *claim;  /* in device memory, for atomics: the last round that a kernel took */
    const struct tl_kernel *kernel; /* whose launch it was */
    int32_t kind;                   /* these three mean what the operation's `explain` says */
    int64_t position;
    int64_t value[3];
};

/* What a launcher hands its kernel, by value: where faults go, and whose they are. Both pointers
 * live as long as the process. */
struct tl_fault_port {
    struct tl_fault *fault;
    const struct tl_kernel *kernel;
};

/* TL_OK, or the fault that was left since the last call: what the operation's `explain` says of it,
 * with operation and variant, and that the launch wrote nothing. Looks at host memory only: wait
 * for the device first to be sure. */
enum tl_status tl_fault_check(struct tl_device *device);

#ifdef __cplusplus
}
#endif
#endif
