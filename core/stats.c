/* See stats.h. Sums are kept in long double: samples near the largest double must not overflow. */
#include "stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Type 7: the quantile at fraction p sits at position (n - 1) p between order statistics. */
static double quantile(const double *sorted, size_t n, double p)
{
    double position = (double)(n - 1) * p;
    size_t below = (size_t)position;
    double fraction = position - (double)below;
    if (fraction <= 0) /* also the last sample, which has none above */
        return sorted[below];
    return (double)((long double)sorted[below] * (1 - fraction) +
                    (long double)sorted[below + 1] * fraction);
}

/* The interval from the k-th smallest to the k-th largest sample misses the median when fewer than
 * k samples fall on one side of it. Widened from the middle outwards: the sum of the binomial's
 * terms k .. n - k is what the interval covers, and starting with the large ones keeps it exact
 * to rounding for any n. */
static void median_interval(struct tl_stats *stats, const double *sorted, size_t n)
{
    size_t half = n / 2, k = n - half; /* the middle sample, the lower one of two for even n */
    double term = 1, coverage = 0;
    /* The middle term: C(2m, m) / 4^m as a product. For odd n, both middle terms of n equal the
     * middle one of n + 1. */
    for (size_t i = 1; i <= k; i++)
        term *= (double)(2 * i - 1) / (double)(2 * i);
    if (n % 2 == 0)
        coverage = term;
    while (k > 1 && coverage < 0.95) {
        k--;
        if (k < half) /* for odd n, the first step stays among the two middle terms */
            term *= (double)(k + 1) / (double)(n - k);
        coverage += 2 * term;
    }
    stats->median_lo = sorted[k - 1];
    stats->median_hi = sorted[n - k];
    stats->coverage = coverage;
}

static void moments(struct tl_stats *stats, const double *sorted, size_t n)
{
    long double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += sorted[i];
    long double mean = sum / (long double)n;
    for (size_t i = 0; i < n; i++)
        squares += (sorted[i] - mean) * (sorted[i] - mean);
    stats->mean = (double)mean;
    stats->relative_spread = 0;
    if (n > 1 && stats->mean != 0)
        stats->relative_spread = (double)(sqrtl(squares / (long double)(n - 1)) / fabsl(mean));
}

enum tl_status tl_stats_compute(struct tl_stats *stats, const double *samples, size_t n)
{
    if (n == 0)
        return TL_FAIL(TL_ERR_ARGUMENT, "statistics of no samples");
    for (size_t i = 0; i < n; i++)
        if (!isfinite(samples[i]))
            return TL_FAIL(TL_ERR_ARGUMENT, "sample %zu of %zu is %g, not a finite number", i + 1,
                           n, samples[i]);
    double *sorted = n <= SIZE_MAX / sizeof *sorted ? malloc(n * sizeof *sorted) : NULL;
    if (!sorted)
        return TL_FAIL(TL_ERR_MEMORY, "no memory to sort %zu samples", n);
    memcpy(sorted, samples, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    *stats = (struct tl_stats){
        .n = n,
        .min = sorted[0],
        .q1 = quantile(sorted, n, 0.25),
        .median = quantile(sorted, n, 0.5),
        .q3 = quantile(sorted, n, 0.75),
        .max = sorted[n - 1],
    };
    moments(stats, sorted, n);
    median_interval(stats, sorted, n);
    free(sorted);
    return TL_OK;
}
