/* The verdict on one element and on many, for the CPU and the GPU. Merging takes the larger ratio,
 * then the smaller position, so that its order does not matter. */
#ifndef TL_AGREEMENT_JUDGE_H
#define TL_AGREEMENT_JUDGE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define AGREEMENT_INLINE static __host__ __device__ __forceinline__
#else
#define AGREEMENT_INLINE static inline
#endif

struct agreement {
    double worst;
    int64_t at; /* row-major position of the worst; -1 before the first element */
    int64_t violations;
};

AGREEMENT_INLINE struct agreement agreement_none(void)
{
    struct agreement none = {0, -1, 0};
    return none;
}

AGREEMENT_INLINE void agreement_merge(struct agreement *into, struct agreement other)
{
    bool worse = other.worst > into->worst || (other.worst == into->worst && other.at < into->at);
    if (other.at >= 0 && (into->at < 0 || worse)) {
        into->worst = other.worst;
        into->at = other.at;
    }
    into->violations += other.violations;
}

AGREEMENT_INLINE bool agreement_is_finite(double x)
{
    return x - x == 0;
}

AGREEMENT_INLINE struct agreement agreement_of(double value, double reference, double bound,
                                               int64_t at)
{
    struct agreement element = {0, at, 0};
    double error = fabs(value - reference);
    if (value == reference)
        return element;
    element.violations = !(error <= bound);
    if (!agreement_is_finite(error) || !agreement_is_finite(bound)) {
        element.worst = HUGE_VAL;
        element.violations = 1;
    } else {
        element.worst = bound > 0 ? error / bound : HUGE_VAL;
    }
    return element;
}

#endif
