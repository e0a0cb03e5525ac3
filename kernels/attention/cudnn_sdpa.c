/* See cudnn_sdpa.h. Shapes in comments are [batch, heads, rows, columns]. */
#if TL_CUDA
#include "cudnn_sdpa.h"
#include "cudnn_abi.h"

/* The graph under construction, and the shapes of what lives inside it. */
struct build {
    struct tl_cudnn_graph graph;
    const struct tl_sdpa *size;
    struct tl_cudnn_shape scores; /* [batch, heads, sequence, sequence] */
    struct tl_cudnn_shape rows;   /* [batch, heads, sequence, 1], as lse is stored */
};

static struct tl_cudnn_shape contiguous(int64_t batch, int64_t heads, int64_t rows, int64_t columns)
{
    return (struct tl_cudnn_shape){{batch, heads, rows, columns},
                                   {heads * rows * columns, rows * columns, columns, 1}};
}

static void build_init(struct build *b, const char *who, const struct tl_sdpa *size)
{
    *b = (struct build){.graph = {.who = who}, .size = size};
    b->scores = contiguous(size->batch, size->heads, size->sequence, size->sequence);
    b->rows = contiguous(size->batch, size->heads, size->sequence, 1);
}

/* `heads` heads of a tensor that has `all` at each position: [batch, sequence, all, head_dim]. */
static struct tl_cudnn_shape heads_of(const struct tl_sdpa *size, int64_t heads, int64_t all)
{
    int64_t stride = all * size->head_dim;
    return (struct tl_cudnn_shape){{size->batch, heads, size->sequence, size->head_dim},
                                   {size->sequence * stride, size->head_dim, stride, 1}};
}

static struct tl_cudnn_shape transposed(struct tl_cudnn_shape shape)
{
    int64_t dim = shape.dim[2], stride = shape.stride[2];
    shape.dim[2] = shape.dim[3], shape.stride[2] = shape.stride[3];
    shape.dim[3] = dim, shape.stride[3] = stride;
    return shape;
}

/* --- pieces of both graphs ------------------------------------------------------------------- */

static void *inner(struct build *b, const char *name, int type, const struct tl_cudnn_shape *shape)
{
    return tl_cudnn_tensor(&b->graph, name, type, shape, 0);
}

/* y = x op second, inside the graph, in fp32. */
static void *apply(struct build *b, const char *name, int mode, void *x, void *second,
                   const struct tl_cudnn_shape *shape)
{
    void *y = inner(b, name, CUDNN_FP32, shape);
    tl_cudnn_pointwise(&b->graph, name,
                       &(struct tl_cudnn_pointwise){.mode = mode, .x = x, .b = second, .y = y});
    return y;
}

/* x where the column is not beyond the row, else `lowest`. */
static void *causal(struct build *b, void *x, void *lowest)
{
    void *row = inner(b, "row", CUDNN_INT32, &b->scores);
    void *column = inner(b, "column", CUDNN_INT32, &b->scores);
    void *visible = inner(b, "visible", CUDNN_BOOL, &b->scores);
    void *y = inner(b, "masked scores", CUDNN_FP32, &b->scores);
    tl_cudnn_pointwise(
        &b->graph, "row",
        &(struct tl_cudnn_pointwise){.mode = CUDNN_INDEX, .axis = 2, .x = x, .y = row});
    tl_cudnn_pointwise(
        &b->graph, "column",
        &(struct tl_cudnn_pointwise){.mode = CUDNN_INDEX, .axis = 3, .x = x, .y = column});
    tl_cudnn_pointwise(
        &b->graph, "visible",
        &(struct tl_cudnn_pointwise){
            .mode = CUDNN_GREATER_EQUAL, .type = CUDNN_BOOL, .x = row, .b = column, .y = visible});
    tl_cudnn_pointwise(&b->graph, "mask",
                       &(struct tl_cudnn_pointwise){
                           .mode = CUDNN_SELECT, .x = x, .b = lowest, .t = visible, .y = y});
    return y;
}

/* [batch, heads, sequence, 1], the sum or maximum of each row of x. */
static void *reduced(struct build *b, const char *name, int operation, void *x)
{
    void *y = inner(b, name, CUDNN_FP32, &b->rows);
    tl_cudnn_reduce(&b->graph, name, operation, x, y);
    return y;
}

static void *product(struct build *b, const char *name, void *x, void *y, int type,
                     const struct tl_cudnn_shape *shape)
{
    void *z = inner(b, name, type, shape);
    tl_cudnn_matmul(&b->graph, name, x, y, z);
    return z;
}

/* --- forward --------------------------------------------------------------------------------- */

/* softmax(scores) in bf16, as the second product takes it; lse = max + log(sum) on the way. */
static void *softmax(struct build *b, void *scores, void *lse)
{
    void *top = reduced(b, "maximum", CUDNN_REDUCE_MAX, scores);
    void *shifted = apply(b, "scores - maximum", CUDNN_SUB, scores, top, &b->scores);
    void *e = apply(b, "exponentials", CUDNN_EXP, shifted, NULL, &b->scores);
    void *sum = reduced(b, "sum", CUDNN_REDUCE_ADD, e);
    void *log_sum = apply(b, "log(sum)", CUDNN_LOG, sum, NULL, &b->rows);
    void *p = inner(b, "p", CUDNN_BF16, &b->scores);
    tl_cudnn_pointwise(
        &b->graph, "lse",
        &(struct tl_cudnn_pointwise){.mode = CUDNN_ADD, .x = top, .b = log_sum, .y = lse});
    tl_cudnn_pointwise(&b->graph, "p",
                       &(struct tl_cudnn_pointwise){.mode = CUDNN_DIV, .x = e, .b = sum, .y = p});
    return p;
}

enum tl_status tl_sdpa_forward(const char *who, const struct tl_sdpa *size, void *handle,
                               struct tl_cudnn_plan *out)
{
    struct build b;
    build_init(&b, who, size);
    int64_t all = size->heads + 2 * size->kv_heads;
    struct tl_cudnn_shape q_shape = heads_of(size, size->heads, all);
    struct tl_cudnn_shape v_shape = heads_of(size, size->kv_heads, all);
    struct tl_cudnn_shape k_shape = transposed(v_shape);
    struct tl_cudnn_shape o_shape = heads_of(size, size->heads, size->heads);
    void *q = tl_cudnn_tensor(&b.graph, "q", CUDNN_BF16, &q_shape, SDPA_Q);
    void *k = tl_cudnn_tensor(&b.graph, "k^T", CUDNN_BF16, &k_shape, SDPA_K);
    void *v = tl_cudnn_tensor(&b.graph, "v", CUDNN_BF16, &v_shape, SDPA_V);
    void *o = tl_cudnn_tensor(&b.graph, "o", CUDNN_BF16, &o_shape, SDPA_O);
    void *lse = tl_cudnn_tensor(&b.graph, "lse", CUDNN_FP32, &b.rows, SDPA_LSE);
    void *scale = tl_cudnn_scalar(&b.graph, "scale", SDPA_SCALE);
    void *lowest = tl_cudnn_scalar(&b.graph, "-inf", SDPA_LOWEST);

    void *scores = product(&b, "q k^T", q, k, CUDNN_FP32, &b.scores);
    scores = apply(&b, "scaled scores", CUDNN_MUL, scores, scale, &b.scores);
    scores = causal(&b, scores, lowest);
    tl_cudnn_matmul(&b.graph, "p v", softmax(&b, scores, lse), v, o);
    enum tl_status status = tl_cudnn_plan_find(&b.graph, handle, false, out);
    tl_cudnn_graph_done(&b.graph);
    return status;
}

/* --- backward -------------------------------------------------------------------------------- */

/* What the chains of the backward graph begin with. */
struct operands {
    void *q, *k, *v, *o, *dout, *lse, *scale, *lowest;
    struct tl_cudnn_shape k_shape; /* of k as it is stored, [batch, kv_heads, sequence, head_dim] */
};

static struct operands operands_of(struct build *b)
{
    const struct tl_sdpa *size = b->size;
    int64_t all = size->heads + 2 * size->kv_heads;
    struct tl_cudnn_shape q_shape = heads_of(size, size->heads, all);
    struct tl_cudnn_shape o_shape = heads_of(size, size->heads, size->heads);
    struct operands in = {.k_shape = heads_of(size, size->kv_heads, all)};
    struct tl_cudnn_shape kv_shape = transposed(in.k_shape);
    in.q = tl_cudnn_tensor(&b->graph, "q", CUDNN_BF16, &q_shape, SDPA_Q);
    in.k = tl_cudnn_tensor(&b->graph, "k^T", CUDNN_BF16, &kv_shape, SDPA_K);
    in.v = tl_cudnn_tensor(&b->graph, "v^T", CUDNN_BF16, &kv_shape, SDPA_V);
    in.o = tl_cudnn_tensor(&b->graph, "o", CUDNN_BF16, &o_shape, SDPA_O);
    in.dout = tl_cudnn_tensor(&b->graph, "dout", CUDNN_BF16, &o_shape, SDPA_DOUT);
    in.lse = tl_cudnn_tensor(&b->graph, "lse", CUDNN_FP32, &b->rows, SDPA_LSE);
    in.scale = tl_cudnn_scalar(&b->graph, "scale", SDPA_SCALE);
    in.lowest = tl_cudnn_scalar(&b->graph, "-inf", SDPA_LOWEST);
    return in;
}

/* delta = sum over head_dim of dout o, in memory. The factor 1 stands where dropout would scale. */
static void *delta_of(struct build *b, const struct operands *in)
{
    const struct tl_sdpa *size = b->size;
    struct tl_cudnn_shape shape =
        contiguous(size->batch, size->heads, size->sequence, size->head_dim);
    void *one = tl_cudnn_scalar(&b->graph, "1", SDPA_ONE);
    void *delta = tl_cudnn_tensor(&b->graph, "delta", CUDNN_FP32, &b->rows, SDPA_DELTA);
    void *both = apply(b, "dout o", CUDNN_MUL, in->dout, in->o, &shape);
    void *sum = reduced(b, "sum of dout o", CUDNN_REDUCE_ADD, both);
    tl_cudnn_pointwise(
        &b->graph, "delta",
        &(struct tl_cudnn_pointwise){.mode = CUDNN_MUL, .x = sum, .b = one, .y = delta});
    return delta;
}

/* out = x^T y summed over the heads that share k and v; x is [batch, heads, sequence, sequence]. */
static void key_gradient(struct build *b, const char *name, void *x, void *y, void *out)
{
    const struct tl_sdpa *size = b->size;
    struct tl_cudnn_shape turned = transposed(b->scores);
    struct tl_cudnn_shape each =
        contiguous(size->batch, size->heads, size->sequence, size->head_dim);
    void *xt = inner(b, name, CUDNN_BF16, &turned);
    tl_cudnn_reshape(&b->graph, name, x, xt);
    if (size->heads == size->kv_heads)
        tl_cudnn_matmul(&b->graph, name, xt, y, out);
    else
        tl_cudnn_reduce(&b->graph, name, CUDNN_REDUCE_ADD,
                        product(b, name, xt, y, CUDNN_BF16, &each), out);
}

static void query_gradient(struct build *b, const struct operands *in, void *ds, bool ordered,
                           void *dq)
{
    const struct tl_sdpa *size = b->size;
    struct tl_cudnn_shape shape =
        contiguous(size->batch, size->heads, size->sequence, size->head_dim);
    void *k = inner(b, "k", CUDNN_BF16, &in->k_shape);
    tl_cudnn_reshape(&b->graph, "k", in->k, k);
    if (ordered) {
        tl_cudnn_matmul(&b->graph, "dq", ds, k, dq);
        return;
    }
    void *sum = tl_cudnn_tensor(&b->graph, "sum of dq", CUDNN_FP32, &shape, SDPA_DQ_SUM);
    tl_cudnn_matmul(&b->graph, "ds k", ds, k, sum);
    tl_cudnn_pointwise(&b->graph, "dq",
                       &(struct tl_cudnn_pointwise){.mode = CUDNN_IDENTITY, .x = sum, .y = dq});
}

enum tl_status tl_sdpa_backward(const char *who, const struct tl_sdpa *size, bool ordered,
                                void *handle, struct tl_cudnn_plan *out)
{
    struct build b;
    build_init(&b, who, size);
    int64_t all = size->heads + 2 * size->kv_heads;
    struct tl_cudnn_shape q_shape = heads_of(size, size->heads, all);
    struct operands in = operands_of(&b);
    void *dq = tl_cudnn_tensor(&b.graph, "dq", CUDNN_BF16, &q_shape, SDPA_DQ);
    void *dk = tl_cudnn_tensor(&b.graph, "dk", CUDNN_BF16, &in.k_shape, SDPA_DK);
    void *dv = tl_cudnn_tensor(&b.graph, "dv", CUDNN_BF16, &in.k_shape, SDPA_DV);

    void *delta = delta_of(&b, &in);
    void *scores = product(&b, "q k^T", in.q, in.k, CUDNN_FP32, &b.scores);
    scores = apply(&b, "scaled scores", CUDNN_MUL, scores, in.scale, &b.scores);
    scores = apply(&b, "scores - lse", CUDNN_SUB, scores, in.lse, &b.scores);
    void *p = apply(&b, "p", CUDNN_EXP, causal(&b, scores, in.lowest), NULL, &b.scores);
    key_gradient(&b, "dv", p, in.dout, dv);
    void *ds = product(&b, "dout v^T", in.dout, in.v, CUDNN_FP32, &b.scores);
    ds = apply(&b, "dp - delta", CUDNN_SUB, ds, delta, &b.scores);
    ds = apply(&b, "p (dp - delta)", CUDNN_MUL, ds, p, &b.scores);
    ds = apply(&b, "ds", CUDNN_MUL, ds, in.scale, &b.scores);
    key_gradient(&b, "dk", ds, in.q, dk);
    query_gradient(&b, &in, ds, ordered, dq);
    enum tl_status status = tl_cudnn_plan_find(&b.graph, handle, ordered, out);
    tl_cudnn_graph_done(&b.graph);
    return status;
}
#endif
