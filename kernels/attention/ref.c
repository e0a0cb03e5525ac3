/* Attention on the CPU: an online softmax over tiles (Milakov and Gimelshein, 2018,
 * arXiv:1805.02867), so that no row of scores is ever stored whole.
 *
 * A block is LANES rows of one head (queries, or keys for dk and dv), kept transposed so that
 * every loop runs over lanes, which are independent; it meets the rows of the other side in tiles
 * of ROWS. Blocks are independent of each other, which makes the result that of one thread.
 */
#include "kernels/attention/op.h"

#include <math.h>
#include <string.h>

#include "kernels/host/parallel.h"

enum { LANES = 16, ROWS = 32, MAX_HEAD_DIM = 256 };

/* Where the heads are; strides in elements. */
struct layout {
    int64_t batch, sequence, heads, kv_heads;
    int head_dim;
    int64_t qkv_stride, o_stride; /* between positions */
};

static struct layout layout_of(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    struct layout at = {
        .batch = dim[ATTENTION_DIM_BATCH],
        .sequence = dim[ATTENTION_DIM_SEQUENCE],
        .heads = dim[ATTENTION_DIM_HEADS],
        .kv_heads = (dim[ATTENTION_DIM_QKV_HEADS] - dim[ATTENTION_DIM_HEADS]) / 2,
        .head_dim = (int)dim[ATTENTION_DIM_HEAD_DIM],
        .qkv_stride = dim[ATTENTION_DIM_QKV_HEADS] * dim[ATTENTION_DIM_HEAD_DIM],
        .o_stride = dim[ATTENTION_DIM_HEADS] * dim[ATTENTION_DIM_HEAD_DIM],
    };
    return at;
}

/* x = exp(x), 0 below -87. The same steps for every lane and instruction set, unlike expf, and
 * within 2 units of the last place: exp(x) = 2^k exp(r) with |r| <= log(2)/2, and the Taylor series
 * of exp(r) to r^7, whose remainder is below 2^-27. log(2) is split so that k times its upper part
 * is exact. Adding 1.5 2^23 rounds to an integer and leaves k in the low bits. */
TL_INLINE void exp_lanes_fp32(float *x)
{
    float shifted[LANES], series[LANES];
    int32_t bits[LANES];
#pragma omp simd
    for (int l = 0; l < LANES; l++) {
        float value = x[l] < -87.0f ? -87.0f : x[l];
        shifted[l] = value * 1.44269504f + 12582912.0f;
        float k = shifted[l] - 12582912.0f;
        float r = (value - k * 0.693145752f) - k * 1.42860677e-6f;
        float p = 1.0f / 5040;
        p = p * r + 1.0f / 720;
        p = p * r + 1.0f / 120;
        p = p * r + 1.0f / 24;
        p = p * r + 1.0f / 6;
        p = p * r + 0.5f;
        series[l] = (p * r) * r + r + 1.0f;
    }
    memcpy(bits, shifted, sizeof bits);
#pragma omp simd
    for (int l = 0; l < LANES; l++)
        bits[l] = (int32_t)(((uint32_t)bits[l] << 23) + 0x3f800000u);
    memcpy(shifted, bits, sizeof bits);
#pragma omp simd
    for (int l = 0; l < LANES; l++)
        x[l] = x[l] < -87.0f ? 0.0f : series[l] * shifted[l];
}

static inline void exp_lanes_fp64(double *x)
{
    for (int l = 0; l < LANES; l++)
        x[l] = exp(x[l]);
}

#define REAL    float
#define NAME(x) x##_fp32
#include "forward.inc"

#include "backward.inc"
#undef REAL
#undef NAME

#define REAL    double
#define NAME(x) x##_fp64
#include "forward.inc"

#include "backward.inc"

/* The blocks keep their rows on the stack. */
static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t head_dim = problem->dim[ATTENTION_DIM_HEAD_DIM];
    if (head_dim > MAX_HEAD_DIM)
        return TL_FAIL(TL_ERR_ILLEGAL, "%s: head_dim is %lld, cpu_plain holds at most %d",
                       problem->operation->name, (long long)head_dim, MAX_HEAD_DIM);
    return TL_OK;
}

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    (void)stream;
    struct layout at = layout_of(&plan->problem);
    bool wide = plan->problem.dtype[ATTENTION_QKV] == TL_FP64;
    (wide ? forward_fp64 : forward_fp32)(&at, args);
    return TL_OK;
}

/* delta, [batch, heads, sequence] */
static size_t backward_workspace(const struct tl_plan *plan)
{
    const int64_t *dim = plan->problem.dim;
    int64_t count =
        dim[ATTENTION_DIM_BATCH] * dim[ATTENTION_DIM_HEADS] * dim[ATTENTION_DIM_SEQUENCE];
    return (size_t)count * tl_dtype_size(plan->problem.dtype[ATTENTION_BACKWARD_QKV]);
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    (void)stream;
    struct layout at = layout_of(&plan->problem);
    bool wide = plan->problem.dtype[ATTENTION_BACKWARD_QKV] == TL_FP64;
    (wide ? backward_fp64 : backward_fp32)(&at, args);
    return TL_OK;
}

const struct tl_kernel tl_kernel_attention_cpu_plain = {
    .operation = "attention",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: blocks of 16 queries, online softmax (Milakov and Gimelshein, 2018).",
    .dtypes = TL_WIDE_FLOATS,
    .legal = legal,
    .launch = launch_forward,
};

const struct tl_kernel tl_kernel_attention_backward_cpu_plain = {
    .operation = "attention_backward",
    .variant = "cpu_plain",
    .arch = "cpu",
    .summary = "Reference: p recomputed from lse, once by queries and once by keys "
               "(Dao et al., 2022).",
    .dtypes = TL_WIDE_FLOATS,
    .legal = legal,
    .workspace = backward_workspace,
    .transient_workspace = true,
    .launch = launch_backward,
};
