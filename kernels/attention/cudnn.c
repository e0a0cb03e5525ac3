/* attention/cudnn_sdpa, attention_backward/cudnn_sdpa and cudnn_ordered: NVIDIA's cuDNN, bf16 with
 * an fp32 lse.
 *
 * A plan of the library holds compiled code for one set of sizes and no pointers. It is found once
 * a process for each kernel, GPU and size, which may take a second, and lives to the end of the
 * process, as cuDNN's handle does. Launches set the stream, pass the pointers and allocate nothing
 * on the GPU.
 *
 * cudnn_sdpa adds up dq with atomics; the order, and so the last bits, differ from run to run.
 * cudnn_ordered has ds in memory instead, 2 bytes for each of batch heads sequence sequence
 * elements.
 */
#if TL_CUDA
#include "cudnn_sdpa.h"
#include "op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 9.15.0 and earlier want their backward padded where the sequence is no multiple of 128. */
enum { HEAD_DIM_STEP = 8, MAX_HEAD_DIM = 128, PADS_UNTIL = 91500, BLOCK = 128, SLICE = 256 };

struct entry {
    struct entry *next;
    const struct tl_kernel *kernel;
    const struct tl_device *device;
    struct tl_sdpa size;
    struct tl_cudnn_plan plan;
};
static struct entry *entries;

static struct tl_sdpa size_of(const struct tl_problem *problem)
{
    const int64_t *dim = problem->dim;
    return (struct tl_sdpa){
        .batch = dim[ATTENTION_DIM_BATCH],
        .sequence = dim[ATTENTION_DIM_SEQUENCE],
        .heads = dim[ATTENTION_DIM_HEADS],
        .kv_heads = (dim[ATTENTION_DIM_QKV_HEADS] - dim[ATTENTION_DIM_HEADS]) / 2,
        .head_dim = dim[ATTENTION_DIM_HEAD_DIM],
    };
}

static bool is_empty(const struct tl_sdpa *size)
{
    return size->batch == 0 || size->sequence == 0;
}

static enum tl_status check_types(const struct tl_problem *problem, int qkv)
{
    int64_t head_dim = problem->dim[ATTENTION_DIM_HEAD_DIM];
    if (problem->dtype[qkv] != TL_BF16)
        return TL_FAIL(TL_ERR_ILLEGAL, "%s: cuDNN's attention computes on bf16, and 'qkv' is %s",
                       problem->operation->name, tl_dtype_name(problem->dtype[qkv]));
    if (head_dim < 1 || head_dim > MAX_HEAD_DIM || head_dim % HEAD_DIM_STEP)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "%s: head_dim is %lld; cuDNN's attention takes multiples of %d up to %d",
                       problem->operation->name, (long long)head_dim, HEAD_DIM_STEP, MAX_HEAD_DIM);
    return TL_OK;
}

static enum tl_status legal_forward(const struct tl_problem *problem)
{
    return check_types(problem, ATTENTION_QKV);
}

static enum tl_status legal_backward(const struct tl_problem *problem)
{
    TL_TRY(check_types(problem, ATTENTION_BACKWARD_QKV));
    if (problem->dim[ATTENTION_DIM_SEQUENCE] == 1)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "attention_backward: cuDNN has no gradients for a sequence of 1");
    return TL_OK;
}

/* --- plans ----------------------------------------------------------------------------------- */

enum which { FORWARD, BACKWARD, ORDERED };

static enum tl_status find(struct entry *entry, enum which which, struct tl_device *device)
{
    void *handle;
    char who[160];
    const struct tl_sdpa *size = &entry->size;
    const int64_t dim[] = {size->batch, size->sequence, size->heads + 2 * size->kv_heads,
                           size->heads, size->head_dim};
    TL_TRY(tl_cudnn_handle(device, &handle));
    tl_kernel_describe(entry->kernel, dim, who, sizeof who);
    if (which != FORWARD && size->sequence % BLOCK && tl_cudnn_number() <= PADS_UNTIL)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "%s: cuDNN %d needs a sequence that is a multiple of %d here; 9.15.1 and "
                       "later take any",
                       who, tl_cudnn_number(), BLOCK);
    if (which == FORWARD)
        return tl_sdpa_forward(who, size, handle, &entry->plan);
    return tl_sdpa_backward(who, size, which == ORDERED, handle, &entry->plan);
}

/* The entry into the plan's scratch; one that is there already, or a new one. Without the library
 * the variant cannot run here: a reason, like others, to skip it. */
static enum tl_status plan_which(struct tl_plan *plan, enum which which)
{
    struct tl_sdpa size = size_of(&plan->problem);
    struct entry *entry = entries;
    if (is_empty(&size))
        return TL_OK;
    while (entry && (entry->kernel != plan->kernel || entry->device != plan->device ||
                     memcmp(&entry->size, &size, sizeof size) != 0))
        entry = entry->next;
    if (!entry) {
        entry = calloc(1, sizeof *entry);
        if (!entry)
            return TL_FAIL(TL_ERR_MEMORY, "%s/%s: no memory for a plan", plan->kernel->operation,
                           plan->kernel->variant);
        entry->kernel = plan->kernel;
        entry->device = plan->device;
        entry->size = size;
        enum tl_status status = find(entry, which, plan->device);
        if (status != TL_OK)
            free(entry);
        if (status == TL_ERR_UNSUPPORTED)
            return TL_FAIL(TL_ERR_ILLEGAL, "%s/%s: %s", plan->kernel->operation,
                           plan->kernel->variant, tl_error_message());
        TL_TRY(status);
        entry->next = entries;
        entries = entry;
    }
    plan->scratch[0] = (uint64_t)(uintptr_t)entry;
    return TL_OK;
}

static enum tl_status plan_forward(struct tl_plan *plan)
{
    return plan_which(plan, FORWARD);
}

static enum tl_status plan_backward(struct tl_plan *plan)
{
    return plan_which(plan, BACKWARD);
}

static enum tl_status plan_ordered(struct tl_plan *plan)
{
    return plan_which(plan, ORDERED);
}

/* NULL for a problem without tokens. */
static const struct entry *entry_of(const struct tl_plan *plan)
{
    return (const struct entry *)(uintptr_t)plan->scratch[0];
}

/* --- workspace: what the library asks for, then delta, then the sum of dq --------------------- */

static size_t sliced(size_t bytes)
{
    return (bytes + SLICE - 1) / SLICE * SLICE;
}

static size_t rows_bytes(const struct tl_sdpa *size)
{
    return (size_t)(size->batch * size->heads * size->sequence) * sizeof(float);
}

static size_t workspace_forward(const struct tl_plan *plan)
{
    const struct entry *entry = entry_of(plan);
    return entry ? entry->plan.workspace_bytes : 0;
}

static size_t workspace_ordered(const struct tl_plan *plan)
{
    const struct entry *entry = entry_of(plan);
    return entry ? sliced(entry->plan.workspace_bytes) + sliced(rows_bytes(&entry->size)) : 0;
}

static size_t workspace_backward(const struct tl_plan *plan)
{
    const struct entry *entry = entry_of(plan);
    return entry ? workspace_ordered(plan) + rows_bytes(&entry->size) * (size_t)entry->size.head_dim
                 : 0;
}

/* --- launches -------------------------------------------------------------------------------- */

/* The pointers of a run, with their ids. */
struct pointers {
    int count;
    int64_t id[SDPA_DQ_SUM];
    void *at[SDPA_DQ_SUM];
};

static void point(struct pointers *pointers, int64_t id, void *at)
{
    pointers->id[pointers->count] = id;
    pointers->at[pointers->count++] = at;
}

/* q, k and v of a tensor that holds all three, at consecutive ids. */
static void point_heads(struct pointers *pointers, int64_t first_id, const struct tl_tensor *tensor,
                        const struct tl_sdpa *size)
{
    char *q = tensor->data;
    size_t head_bytes = (size_t)size->head_dim * tl_dtype_size(TL_BF16);
    char *k = q + (size_t)size->heads * head_bytes;
    point(pointers, first_id, q);
    point(pointers, first_id + 1, k);
    point(pointers, first_id + 2, k + (size_t)size->kv_heads * head_bytes);
}

/* Plans may rely on the alignment. */
static enum tl_status check_alignment(const struct tl_plan *plan, const struct tl_args *args)
{
    const struct tl_arg_spec *spec = plan->problem.operation->args;
    for (int i = 0; i < TL_MAX_ARGS && spec[i].name; i++)
        if ((uintptr_t)args->tensor[i].data % CUDNN_ALIGNMENT)
            return TL_FAIL(TL_ERR_ILLEGAL, "%s/%s: '%s' at %p must be aligned to %d bytes",
                           plan->kernel->operation, plan->kernel->variant, spec[i].name,
                           args->tensor[i].data, CUDNN_ALIGNMENT);
    return TL_OK;
}

/* Runs with the numbers that the library reads from the host while it enqueues. */
static enum tl_status run(const struct tl_plan *plan, const struct entry *entry,
                          struct pointers *pointers, void *workspace, struct tl_stream *stream)
{
    char who[64];
    float scale = (float)(1 / sqrt((double)entry->size.head_dim)), lowest = -INFINITY;
    point(pointers, SDPA_SCALE, &scale);
    point(pointers, SDPA_LOWEST, &lowest);
    snprintf(who, sizeof who, "%s/%s", plan->kernel->operation, plan->kernel->variant);
    return tl_cudnn_plan_run(who, &entry->plan, pointers->id, pointers->at, pointers->count,
                             workspace, stream);
}

static enum tl_status launch_forward(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    const struct entry *entry = entry_of(plan);
    struct pointers pointers = {0};
    if (!entry)
        return TL_OK;
    TL_TRY(check_alignment(plan, args));
    point_heads(&pointers, SDPA_Q, &args->tensor[ATTENTION_QKV], &entry->size);
    point(&pointers, SDPA_O, args->tensor[ATTENTION_O].data);
    point(&pointers, SDPA_LSE, args->tensor[ATTENTION_LSE].data);
    return run(plan, entry, &pointers, args->workspace, stream);
}

static enum tl_status launch_gradients(const struct tl_plan *plan, const struct tl_args *args,
                                       bool ordered, struct tl_stream *stream)
{
    const struct entry *entry = entry_of(plan);
    struct pointers pointers = {0};
    float one = 1;
    if (!entry)
        return TL_OK;
    TL_TRY(check_alignment(plan, args));
    char *delta = (char *)args->workspace + sliced(entry->plan.workspace_bytes);
    point_heads(&pointers, SDPA_Q, &args->tensor[ATTENTION_BACKWARD_QKV], &entry->size);
    point_heads(&pointers, SDPA_DQ, &args->tensor[ATTENTION_BACKWARD_DQKV], &entry->size);
    point(&pointers, SDPA_O, args->tensor[ATTENTION_BACKWARD_O].data);
    point(&pointers, SDPA_LSE, args->tensor[ATTENTION_BACKWARD_LSE].data);
    point(&pointers, SDPA_DOUT, args->tensor[ATTENTION_BACKWARD_DOUT].data);
    point(&pointers, SDPA_ONE, &one);
    point(&pointers, SDPA_DELTA, delta);
    if (!ordered)
        point(&pointers, SDPA_DQ_SUM, delta + sliced(rows_bytes(&entry->size)));
    return run(plan, entry, &pointers, args->workspace, stream);
}

static enum tl_status launch_backward(const struct tl_plan *plan, const struct tl_args *args,
                                      struct tl_stream *stream)
{
    return launch_gradients(plan, args, false, stream);
}

static enum tl_status launch_ordered(const struct tl_plan *plan, const struct tl_args *args,
                                     struct tl_stream *stream)
{
    return launch_gradients(plan, args, true, stream);
}

/* fp32 is lse. */
#define DTYPES (TL_DTYPE_BIT(TL_BF16) | TL_DTYPE_BIT(TL_FP32))

const struct tl_kernel tl_kernel_attention_cudnn_sdpa = {
    .operation = "attention",
    .variant = "cudnn_sdpa",
    .arch = "cudnn",
    .summary = "NVIDIA's cuDNN, fused as FlashAttention is; p is rounded to bf16 for the second "
               "product.",
    .dtypes = DTYPES,
    .legal = legal_forward,
    .plan = plan_forward,
    .workspace = workspace_forward,
    .transient_workspace = true,
    .launch = launch_forward,
};

const struct tl_kernel tl_kernel_attention_backward_cudnn_sdpa = {
    .operation = "attention_backward",
    .variant = "cudnn_sdpa",
    .arch = "cudnn",
    .summary = "NVIDIA's cuDNN; p and ds are rounded to bf16, and so are dk and dv of each head "
               "before heads are added; dq by atomics in fp32: not the same bits each time.",
    .dtypes = DTYPES,
    .legal = legal_backward,
    .plan = plan_backward,
    .workspace = workspace_backward,
    .transient_workspace = true,
    .launch = launch_backward,
};

const struct tl_kernel tl_kernel_attention_backward_cudnn_ordered = {
    .operation = "attention_backward",
    .variant = "cudnn_ordered",
    .arch = "cudnn",
    .summary =
        "NVIDIA's cuDNN, with ds in memory, which makes it deterministic; 2 bytes for each of "
        "batch heads sequence sequence.",
    .dtypes = DTYPES,
    .legal = legal_backward,
    .plan = plan_ordered,
    .workspace = workspace_ordered,
    .transient_workspace = true,
    .launch = launch_ordered,
};
#endif
