/* Summary statistics of samples. */
#ifndef TL_STATS_H
#define TL_STATS_H

#include <stddef.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_stats {
    size_t n;
    double min, q1, median, q3, max, mean;
    double relative_spread; /* sample standard deviation / |mean|; 0 for n = 1 or mean 0 */
    /* Interval of the median from order statistics (binomial, no distribution assumed), at least
     * 95 % from n = 6 on. Below that [min, max] is all there is; `coverage` says what it covers. */
    double median_lo, median_hi;
    double coverage; /* 1 - 2 P(Binomial(n, 1/2) < k) of the interval that is returned */
};

/* Quartiles interpolate linearly between order statistics (type 7 of Hyndman and Fan 1996).
 * TL_ERR_ARGUMENT for n = 0 or a value that is not finite, with its position. */
enum tl_status tl_stats_compute(struct tl_stats *stats, const double *samples, size_t n);

#ifdef __cplusplus
}
#endif
#endif
