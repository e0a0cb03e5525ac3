/* The tables of the probes; their contract is in op.h. */
#include "op.h"

#include <math.h>

#define FP32 TL_DTYPE_BIT(TL_FP32)
#define I32  TL_DTYPE_BIT(TL_I32)

static double no_flops(const struct tl_problem *problem)
{
    (void)problem;
    return 0;
}

static enum tl_status copy_check(const struct tl_problem *problem)
{
    if (problem->dim[0] % 4 != 0)
        return TL_FAIL(TL_ERR_ARGUMENT, "probe_copy: %lld words are no multiple of 4",
                       (long long)problem->dim[0]);
    return TL_OK;
}

const struct tl_operation tl_op_probe_copy = {
    .name = "probe_copy",
    .equation = "dst[i] = src[i]",
    .dims = "count",
    .args = {{.name = "src", .role = TL_IN, .dtypes = FP32, .shape = "count"},
             {.name = "dst", .role = TL_OUT, .dtypes = FP32, .shape = "count"}},
    .flops = no_flops,
    .bytes = tl_problem_arg_bytes,
    .check = copy_check,
};

static enum tl_status store_check(const struct tl_problem *problem)
{
    if (problem->dim[TL_PROBE_STORE_COLUMNS] % 4 != 0)
        return TL_FAIL(TL_ERR_ARGUMENT, "probe_store: %lld columns are no multiple of 4",
                       (long long)problem->dim[TL_PROBE_STORE_COLUMNS]);
    return TL_OK;
}

const struct tl_operation tl_op_probe_store = {
    .name = "probe_store",
    .equation = "dst[d, r, c] = value",
    .dims = "depth rows columns",
    .args = {{.name = "dst", .role = TL_OUT, .dtypes = FP32, .shape = "depth rows columns"}},
    .params = {{.name = "value", .fallback = 0, .min = -1e30, .max = 1e30}},
    .flops = no_flops,
    .bytes = tl_problem_arg_bytes,
    .check = store_check,
};

static double stride_bytes(const struct tl_problem *problem)
{
    return (double)problem->dim[TL_PROBE_STRIDE_THREADS] * 4 *
           (problem->param[TL_PROBE_STRIDE_LOADS] + 1);
}

static enum tl_status stride_check(const struct tl_problem *problem)
{
    int64_t threads = problem->dim[TL_PROBE_STRIDE_THREADS];
    double needed = (double)threads * problem->param[TL_PROBE_STRIDE_STRIDE];
    if (threads % 256 != 0)
        return TL_FAIL(TL_ERR_ARGUMENT, "probe_stride: %lld threads are no multiple of 256",
                       (long long)threads);
    if ((double)problem->dim[TL_PROBE_STRIDE_WORDS] < needed)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "probe_stride: 'src' has %lld words; %lld threads at this "
                       "stride need %.0f",
                       (long long)problem->dim[TL_PROBE_STRIDE_WORDS], (long long)threads, needed);
    return TL_OK;
}

const struct tl_operation tl_op_probe_stride = {
    .name = "probe_stride",
    .equation = "dst[t] = loads * src[t stride]",
    .dims = "words threads",
    .args = {{.name = "src", .role = TL_IN, .dtypes = FP32, .shape = "words"},
             {.name = "dst", .role = TL_OUT, .dtypes = FP32, .shape = "threads"}},
    .params = {{.name = "stride", .fallback = 1, .min = 1, .max = 64},
               {.name = "loads", .fallback = 1, .min = 1, .max = 1024}},
    .flops = no_flops,
    .bytes = stride_bytes,
    .check = stride_check,
};

static double conflict_bytes(const struct tl_problem *problem)
{
    (void)problem;
    return 32 * 4;
}

const struct tl_operation tl_op_probe_conflict = {
    .name = "probe_conflict",
    .equation = "dst[lane] = loads * word(lane)",
    .dims = "lanes",
    .args = {{.name = "dst", .role = TL_OUT, .dtypes = FP32, .shape = "32"}},
    .params = {{.name = "ways", .fallback = 1, .min = 1, .max = 32},
               {.name = "loads", .fallback = 64, .min = 1, .max = 65536}},
    .flops = no_flops,
    .bytes = conflict_bytes,
};

static double mma_flops(const struct tl_problem *problem)
{
    return 2.0 * 64 * 256 * 64 * (double)problem->dim[TL_PROBE_MMA_BLOCKS] *
           problem->param[TL_PROBE_MMA_REPEATS];
}

const struct tl_operation tl_op_probe_mma = {
    .name = "probe_mma",
    .equation = "d[block, m, n] = repeats * sum_k a[m, k] b[n, k]",
    .dims = "blocks",
    .args = {{.name = "a", .role = TL_IN, .dtypes = TL_DTYPE_BIT(TL_BF16), .shape = "64 64"},
             {.name = "b", .role = TL_IN, .dtypes = TL_DTYPE_BIT(TL_BF16), .shape = "256 64"},
             {.name = "d", .role = TL_OUT, .dtypes = FP32, .shape = "blocks 64 256"}},
    .params = {{.name = "repeats", .fallback = 1, .min = 1, .max = 1 << 24}},
    .flops = mma_flops,
    .bytes = tl_problem_arg_bytes,
};

static enum tl_status occupancy_check(const struct tl_problem *problem)
{
    double threads = problem->param[TL_PROBE_OCCUPANCY_THREADS];
    if (fmod(threads, 32) != 0)
        return TL_FAIL(TL_ERR_ARGUMENT, "probe_occupancy: %g threads are no multiple of 32",
                       threads);
    return TL_OK;
}

const struct tl_operation tl_op_probe_occupancy = {
    .name = "probe_occupancy",
    .equation = "dst[block] = clocks that the block stayed, at least `cycles`",
    .dims = "blocks",
    .args = {{.name = "dst", .role = TL_OUT, .dtypes = I32, .shape = "blocks"}},
    .params = {{.name = "registers", .choices = "few many", .fallback = TL_PROBE_FEW_REGISTERS},
               {.name = "threads", .fallback = 256, .min = 32, .max = 1024},
               {.name = "shared_bytes", .fallback = 0, .min = 0, .max = 227 * 1024},
               {.name = "cycles", .fallback = 0, .min = 0, .max = 1e9}},
    .flops = no_flops,
    .bytes = tl_problem_arg_bytes,
    .check = occupancy_check,
};
