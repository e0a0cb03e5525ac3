/* Launchers of the kernels in cuda_probe.cu; they return a cudaError_t. */
#ifndef TL_CUDA_PROBE_H
#define TL_CUDA_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every SM that a block lands on writes its entry of `notes`, num_sms of them. */
int tl_cuda_probe_note(struct tl_clock_note *notes, int num_sms, uint64_t sequence, void *stream);

/* Reads `bytes`, a multiple of 16, whose 4-byte words have no top bit set. */
int tl_cuda_probe_read(void *data, size_t bytes, int num_sms, void *stream);

#ifdef __cplusplus
}
#endif
#endif
