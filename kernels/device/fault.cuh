/* How a kernel leaves a fault where the host finds it (core/fault.h). */
#ifndef TL_DEVICE_FAULT_CUH
#define TL_DEVICE_FAULT_CUH

#include "core/fault.h"

/* Leaves what is in `found`, unless another fault is there already. For one thread of the grid, in
 * a function of its own that is not inlined: inlined itself, so that `found` stays in registers. */
static __device__ __forceinline__ void tl_fault_leave(const tl_fault &found, tl_fault_port port)
{
    volatile tl_fault *out = port.fault;
    uint32_t round = out->handled + 1;
    if (atomicMax(out->claim, round) >= round)
        return;
    out->kernel = port.kernel;
    out->kind = found.kind;
    out->position = found.position;
    for (int i = 0; i < 3; i++)
        out->value[i] = found.value[i];
    __threadfence_system();
    out->left = round;
    __threadfence_system();
}

#endif
