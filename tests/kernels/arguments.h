/* More for the rig: arguments of any rank, values that one launch hands to the next, launches that
 * must agree for every number of threads, and launches that must be refused.
 */
#ifndef TL_ARGUMENTS_H
#define TL_ARGUMENTS_H

#include "rig.h"

/* A rank and its sizes: SHAPE(4, 7, 3). */
#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* A new argument: poisoned; drawn from the normal distribution with the given deviation; all one
 * value; given values. */
struct tl_tensor *arg_poison(struct rig *rig, const char *arg, enum tl_dtype dtype, int rank,
                             const int64_t *shape);
struct tl_tensor *arg_normal(struct rig *rig, const char *arg, enum tl_dtype dtype,
                             double deviation, int rank, const int64_t *shape);
struct tl_tensor *arg_fill(struct rig *rig, const char *arg, enum tl_dtype dtype, double value,
                           int rank, const int64_t *shape);
struct tl_tensor *arg_values(struct rig *rig, const char *arg, enum tl_dtype dtype,
                             const double *values, int rank, const int64_t *shape);

/* Uniform in 0 .. bound - 1. */
struct tl_tensor *arg_below(struct rig *rig, const char *arg, int32_t bound, uint64_t seed,
                            int rank, const int64_t *shape);

/* The tensor itself as an argument (sharing memory), and the argument of a rig. */
void arg_share(struct rig *rig, const char *arg, const struct tl_tensor *tensor);
struct tl_tensor *arg_of(struct rig *rig, const char *arg);

/* Launches with 1, 2, 3 and 7 threads from the same arguments, outputs poisoned before each;
 * all outputs must agree bit for bit. Outputs must not share memory with other arguments. */
void launch_steady(struct rig *rig);

/* The launch fails with `status`, its message contains `part`, and no argument changes. */
void launch_refused(struct rig *rig, enum tl_status status, const char *part);

/* The same, TL_ERR_ARGUMENT, with one element of an i32 argument spoilt, which is then put back. */
void index_refused(struct rig *rig, const char *arg, int64_t at, int32_t value, const char *part);

/* Every element within absolute + relative |reference| of it; NaN never is. */
void assert_near(const struct tl_tensor *tensor, const double *reference, double absolute,
                 double relative);

/* Elements [begin, end) of the flat tensor still hold poison. */
void assert_poison(const struct tl_tensor *tensor, int64_t begin, int64_t end);

#endif
