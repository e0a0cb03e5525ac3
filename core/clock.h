/* The SM clock from two marks: each SM notes its cycle count and the time, before and after a span.
 *
 * Cycles over time is the mean frequency in between, without NVML and without privileges. Counters
 * differ from SM to SM, so only notes of one SM are compared; blocks land on SMs as the hardware
 * likes, so some may be missing from a mark. The host's half of core/cuda_probe.c.
 */
#ifndef TL_CLOCK_H
#define TL_CLOCK_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_clock_note {
    uint64_t cycles;   /* clock64 */
    uint64_t time_ns;  /* %globaltimer */
    uint64_t sequence; /* of the mark that wrote it; notes of older marks are left over */
};

/* The median over all SMs that both marks caught. TL_ERR_DEVICE when there is none, or when time or
 * cycles did not move forward. `first` and `second` hold one note for each of `num_sms`. */
enum tl_status tl_clock_frequency(const struct tl_clock_note *first, uint64_t first_sequence,
                                  const struct tl_clock_note *second, uint64_t second_sequence,
                                  int num_sms, double *out_mhz);

#ifdef __cplusplus
}
#endif
#endif
