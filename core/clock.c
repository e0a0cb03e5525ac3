/* See clock.h. */
#include "clock.h"
#include "stats.h"

enum { MAX_SMS = 512 };

enum tl_status tl_clock_frequency(const struct tl_clock_note *first, uint64_t first_sequence,
                                  const struct tl_clock_note *second, uint64_t second_sequence,
                                  int num_sms, double *out_mhz)
{
    double mhz[MAX_SMS];
    size_t count = 0;
    for (int i = 0; i < num_sms && i < MAX_SMS; i++) {
        if (first[i].sequence != first_sequence || second[i].sequence != second_sequence)
            continue;
        if (second[i].time_ns <= first[i].time_ns || second[i].cycles <= first[i].cycles)
            continue;
        mhz[count++] = 1e3 * (double)(second[i].cycles - first[i].cycles) /
                       (double)(second[i].time_ns - first[i].time_ns);
    }
    if (count == 0)
        return TL_FAIL(TL_ERR_DEVICE,
                       "the SM clock is unknown: no SM of %d was caught by both marks, in order",
                       num_sms);
    struct tl_stats stats;
    TL_TRY(tl_stats_compute(&stats, mhz, count));
    *out_mhz = stats.median;
    return TL_OK;
}
