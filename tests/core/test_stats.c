#include "check.h"
#include "core/random.h"
#include "core/stats.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define assert_near(got, wanted)                                                                   \
    do {                                                                                           \
        double got_ = (got), wanted_ = (wanted);                                                   \
        if (!(fabs(got_ - wanted_) <= 1e-12 * fmax(1, fabs(wanted_))))                             \
            fail_msg("%s is %.17g, not %.17g", #got, got_, wanted_);                               \
    } while (0)

static void one_sample(void **state)
{
    (void)state;
    struct tl_stats s;
    assert_ok(tl_stats_compute(&s, (double[]){-7.5}, 1));
    assert_int_equal(s.n, 1);
    assert_true(s.min == -7.5 && s.q1 == -7.5 && s.median == -7.5 && s.q3 == -7.5);
    assert_true(s.max == -7.5 && s.mean == -7.5 && s.relative_spread == 0);
    assert_true(s.median_lo == -7.5 && s.median_hi == -7.5 && s.coverage == 0);
}

static void two_samples(void **state)
{
    (void)state;
    struct tl_stats s;
    assert_ok(tl_stats_compute(&s, (double[]){3, 1}, 2));
    assert_true(s.min == 1 && s.q1 == 1.5 && s.median == 2 && s.q3 == 2.5 && s.max == 3);
    assert_true(s.mean == 2);
    assert_near(s.relative_spread, sqrt(2) / 2);
    assert_true(s.median_lo == 1 && s.median_hi == 3 && s.coverage == 0.5);
}

static void six_samples(void **state)
{
    (void)state;
    double samples[] = {6, 2, 5, 1, 4, 3}, before[6];
    memcpy(before, samples, sizeof before);
    struct tl_stats s;
    assert_ok(tl_stats_compute(&s, samples, 6));
    assert_memory_equal(samples, before, sizeof before); /* the caller's order stays */
    assert_true(s.q1 == 2.25 && s.median == 3.5 && s.q3 == 4.75);
    assert_true(s.min == 1 && s.max == 6 && s.mean == 3.5);
    assert_near(s.relative_spread, sqrt(3.5) / 3.5);
    assert_true(s.median_lo == 1 && s.median_hi == 6 && s.coverage == 1 - 2.0 / 64);
    assert_ok(tl_stats_compute(&s, samples, 5));
    assert_true(s.coverage == 1 - 2.0 / 32); /* below 95 %: all there is */
}

/* Quartiles of type 7 as R gives them: quantile(x, type = 7). */
static void quartiles(void **state)
{
    (void)state;
    struct tl_stats s;
    assert_ok(tl_stats_compute(&s, (double[]){10, 0, 20}, 3));
    assert_true(s.q1 == 5 && s.median == 10 && s.q3 == 15);
    assert_ok(tl_stats_compute(&s, (double[]){1, 2, 4, 8}, 4));
    assert_true(s.q1 == 1.75 && s.median == 3 && s.q3 == 5);
    assert_ok(tl_stats_compute(&s, (double[]){1, 2, 4, 8, 16}, 5));
    assert_true(s.q1 == 2 && s.median == 4 && s.q3 == 8);
}

/* P(Binomial(n, 1/2) < k) from Pascal's triangle, kept as probabilities. */
static double binomial_below(int n, int k)
{
    double row[260] = {1};
    for (int i = 1; i <= n; i++) {
        for (int j = i; j > 0; j--)
            row[j] = (row[j] + row[j - 1]) / 2;
        row[0] /= 2;
    }
    double sum = 0;
    for (int j = 0; j < k; j++)
        sum += row[j];
    return sum;
}

static void median_interval_matches_brute_force(void **state)
{
    (void)state;
    double samples[250];
    for (int i = 0; i < 250; i++)
        samples[i] = i + 1; /* the k-th order statistic is k */
    for (int n = 1; n <= 250; n++) {
        int k = 1; /* the narrowest interval that still covers 95 %, else the widest */
        while (2 * (k + 1) <= n + 1 && 1 - 2 * binomial_below(n, k + 1) >= 0.95)
            k++;
        struct tl_stats s;
        assert_ok(tl_stats_compute(&s, samples, (size_t)n));
        assert_true(s.median_lo == k && s.median_hi == n + 1 - k);
        assert_near(s.coverage, 1 - 2 * binomial_below(n, k));
        assert_true(n < 6 || s.coverage >= 0.95);
        assert_true(s.median_lo <= s.median && s.median <= s.median_hi);
    }
}

static void many_samples(void **state)
{
    (void)state;
    enum { N = 100001 };
    double *samples = malloc(N * sizeof *samples);
    assert_non_null(samples);
    for (int i = 0; i < N; i++) /* a permutation of 0 .. N-1: 7 and N are coprime */
        samples[i] = (double)((int64_t)i * 7 % N);
    struct tl_stats s;
    assert_ok(tl_stats_compute(&s, samples, N));
    free(samples);
    assert_true(s.min == 0 && s.q1 == 25000 && s.median == 50000 && s.q3 == 75000);
    assert_true(s.max == 100000 && s.mean == 50000);
    assert_near(s.relative_spread, sqrt(N * (N + 1.0) / 12) / 50000);
    /* The normal approximation: half a width of 0.98 sqrt(n) ranks. */
    assert_true(fabs(s.median_hi - s.median - 0.98 * sqrt(N)) < 2);
    assert_true(s.median_hi - s.median == s.median - s.median_lo);
    assert_true(s.coverage >= 0.95 && s.coverage < 0.952);
}

static void extremes(void **state)
{
    (void)state;
    struct tl_stats s;
    assert_ok(tl_stats_compute(&s, (double[]){-1, 1}, 2));
    assert_true(s.mean == 0 && s.relative_spread == 0);
    assert_ok(tl_stats_compute(&s, (double[]){-4, -2}, 2));
    assert_near(s.relative_spread, sqrt(2) / 3); /* of |mean| */
    assert_ok(tl_stats_compute(&s, (double[]){DBL_MAX, DBL_MAX, DBL_MAX}, 3));
    assert_true(s.mean == DBL_MAX && s.median == DBL_MAX && s.q1 == DBL_MAX);
    assert_true(s.relative_spread == 0);
    /* Small spread on a large mean: one pass of squares would lose it. */
    assert_ok(tl_stats_compute(&s, (double[]){1e9 + 1, 1e9 + 2, 1e9 + 3}, 3));
    assert_near(s.relative_spread * (1e9 + 2), 1);
    assert_ok(tl_stats_compute(&s, (double[]){5, 5, 5, 5, 5, 5, 5}, 7));
    assert_true(s.median_lo == 5 && s.median_hi == 5 && s.relative_spread == 0);
}

static void refuses(void **state)
{
    (void)state;
    struct tl_stats s;
    double bad[] = {1, 2, NAN, 4};
    assert_fails(TL_ERR_ARGUMENT, "no samples", tl_stats_compute(&s, bad, 0));
    assert_fails(TL_ERR_ARGUMENT, "sample 3 of 4", tl_stats_compute(&s, bad, 4));
    assert_ok(tl_stats_compute(&s, bad, 2));
    bad[2] = INFINITY;
    assert_fails(TL_ERR_ARGUMENT, "sample 3 of 4 is inf", tl_stats_compute(&s, bad, 4));
    bad[0] = -INFINITY;
    assert_fails(TL_ERR_ARGUMENT, "sample 1 of 1 is -inf", tl_stats_compute(&s, bad, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sample),
        cmocka_unit_test(two_samples),
        cmocka_unit_test(six_samples),
        cmocka_unit_test(quartiles),
        cmocka_unit_test(median_interval_matches_brute_force),
        cmocka_unit_test(many_samples),
        cmocka_unit_test(extremes),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
