/* One launch, assembled argument by argument, and the naive product that results are checked with.
 * Failures of the rig itself fail the running cmocka test. */
#ifndef TL_RIG_H
#define TL_RIG_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/compare.h"
#include "core/kernel.h"

struct rig {
    const struct tl_operation *operation;
    const struct tl_kernel *kernel;
    struct tl_args args;
    double param[TL_MAX_PARAMS]; /* the defaults until they are set */
};

/* Registers the kernels of this build at the first call. */
void rig_open(struct rig *rig, const char *operation, const char *variant);
void rig_close(struct rig *rig);

/* A new argument tensor: poisoned; drawn from the normal distribution; i32 values. Negative
 * dimensions are left out: rig_poison(&rig, "d", TL_FP32, 8, 16, -1). */
struct tl_tensor *rig_poison(struct rig *rig, const char *arg, enum tl_dtype dtype, int64_t size0,
                             int64_t size1, int64_t size2);
struct tl_tensor *rig_normal(struct rig *rig, const char *arg, enum tl_dtype dtype, int64_t size0,
                             int64_t size1, int64_t size2, uint64_t seed);
struct tl_tensor *rig_i32(struct rig *rig, const char *arg, const int32_t *values, int64_t count);

void rig_param(struct rig *rig, const char *param, double value);

/* Binds, plans and launches on the tensors' device. */
enum tl_status rig_launch(struct rig *rig);

/* Copies of the bytes of a host tensor, from malloc, and comparison with them. */
void *bytes_of(const struct tl_tensor *tensor);
bool bytes_equal(const struct tl_tensor *tensor, const void *bytes);

/* A row of a contiguous host tensor [rows, columns], and the bytes of one. */
unsigned char *row_at(const struct tl_tensor *tensor, int64_t row);
size_t row_bytes(const struct tl_tensor *tensor);

/* A contiguous host tensor as doubles, from malloc. */
double *doubles_of(const struct tl_tensor *tensor);

/* d[i, j] = beta d + sum_p a[i, p] b[j, p] in long double, all [m, n] row-major; a value stands at
 * i * stride + p * k_stride. scale [m, n] gets beta |d| + sum |a| |b|. */
struct naive_operand {
    const double *data;
    int64_t stride, k_stride;
};
void naive_product(double *d, double *scale, int64_t m, int64_t n, int64_t k,
                   struct naive_operand a, struct naive_operand b, double beta);

/* tl_compare of `value` with naive results of the same element count; sums over at most k terms in
 * fp64 where value is fp64 and else in fp32, rounded to value's dtype. */
struct tl_comparison compare_naive(const struct tl_tensor *value, const double *d,
                                   const double *scale, int64_t k);

#define assert_ok(x)                                                                               \
    do {                                                                                           \
        if ((x) != TL_OK)                                                                          \
            fail_msg("%s at %s", tl_error_message(), tl_error_where());                            \
    } while (0)

/* The status, and a message that holds `words`. */
#define assert_refused(x, expected, words)                                                         \
    do {                                                                                           \
        assert_int_equal((x), (expected));                                                         \
        if (!strstr(tl_error_message(), words))                                                    \
            fail_msg("'%s' does not say '%s'", tl_error_message(), words);                         \
    } while (0)

#endif
