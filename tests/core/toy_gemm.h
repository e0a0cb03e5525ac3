/* An operation made up for the tests of binding, registry and plans, and calls of it. */
#ifndef TL_TOY_GEMM_H
#define TL_TOY_GEMM_H

#include "check.h"
#include "core/kernel.h"

enum { ARG_A, ARG_B, ARG_D, ARG_OFFSETS, ARG_PAIR, ARG_COUNTS, NUM_ARGS };
enum { DIM_M, DIM_N, DIM_K, DIM_NUM_GROUPS };
enum { PARAM_LAYOUT, PARAM_BETA, PARAM_SCALE };

extern const struct tl_operation toy;
double toy_flops(const struct tl_problem *problem);

struct toy_call {
    struct tl_args args;
    double param[TL_MAX_PARAMS];
    struct tl_problem problem;
};

/* m = 6, n = 4, k = 8, layout nt, fp32. */
struct toy_call toy_call_new(struct tl_device *device);
void toy_end(struct toy_call *call);

/* Puts a new tensor in an argument's place; rank 0 leaves it absent. */
void toy_set(struct toy_call *call, int arg, struct tl_device *device, enum tl_dtype dtype,
             int rank, int64_t d0, int64_t d1);

enum tl_status toy_bind(struct toy_call *call);

#endif
