/* cuDNN's graphs, opened when first needed: tensors and operations on them are described one by
 * one, and the library finds an execution plan that does them all in one or a few kernels.
 *
 *   struct tl_cudnn_graph graph = {.who = "attention/cudnn_sdpa"};
 *   void *x = tl_cudnn_tensor(&graph, "x", CUDNN_BF16, &shape, 1), ...;
 *   tl_cudnn_matmul(&graph, "x y", x, y, z);
 *   status = tl_cudnn_plan_find(&graph, handle, false, &plan);
 *   tl_cudnn_graph_done(&graph);
 *
 * The first call that fails records the message, which names the descriptor, and stays in
 * graph.status; calls after it do nothing.
 */
#ifndef TL_ATTENTION_CUDNN_GRAPH_H
#define TL_ATTENTION_CUDNN_GRAPH_H

#include "core/kernel.h"

enum { CUDNN_MOST_DESCRIPTORS = 240, CUDNN_MOST_OPERATIONS = 40, CUDNN_ALIGNMENT = 16 };

struct tl_cudnn_graph {
    const char *who; /* begins messages */
    enum tl_status status;
    int num_descriptors, num_operations;
    void *descriptor[CUDNN_MOST_DESCRIPTORS]; /* all of them, also those of the operations */
    void *operation[CUDNN_MOST_OPERATIONS];
    int64_t virtual_id; /* of the last one */
};

/* Four dimensions and their strides in elements. */
struct tl_cudnn_shape {
    int64_t dim[4], stride[4];
};

struct tl_cudnn_plan {
    void *descriptor, *handle;
    size_t workspace_bytes;
    int64_t engine; /* the library's number for it */
};

/* Opens the library. TL_ERR_UNSUPPORTED where it is missing, is no cuDNN 9, or is older than
 * 9.10.2, whose gradients of attention are wrong. */
enum tl_status tl_cudnn_open(void);

/* 91900 for 9.19.0; of the open library. */
int tl_cudnn_number(void);

/* The handle of a device, made by its first use. */
enum tl_status tl_cudnn_handle(struct tl_device *device, void **out);

/* A tensor of the caller's, known by its id, 1 .. 99; at id 0 one that exists within the plan only.
 */
void *tl_cudnn_tensor(struct tl_cudnn_graph *graph, const char *name, int type,
                      const struct tl_cudnn_shape *shape, int64_t id);

/* An fp32 number that is read from the host at each run. */
void *tl_cudnn_scalar(struct tl_cudnn_graph *graph, const char *name, int64_t id);

/* c = a b over the last two dimensions. Fewer heads in b than in a: each serves as many heads of a.
 */
void tl_cudnn_matmul(struct tl_cudnn_graph *graph, const char *name, void *a, void *b, void *c);

/* y = x, x op b, or t ? x : b; at mode CUDNN_INDEX the position in x along `axis`. */
struct tl_cudnn_pointwise {
    int mode, type; /* type: what it computes in, CUDNN_FP32 is 0 */
    int64_t axis;
    void *x, *b, *t, *y;
};
void tl_cudnn_pointwise(struct tl_cudnn_graph *graph, const char *name,
                        const struct tl_cudnn_pointwise *spec);

/* Over the dimensions that are smaller in y than in x; operation: CUDNN_REDUCE_*. */
void tl_cudnn_reduce(struct tl_cudnn_graph *graph, const char *name, int operation, void *x,
                     void *y);

/* y is x with other dimensions and strides. */
void tl_cudnn_reshape(struct tl_cudnn_graph *graph, const char *name, void *x, void *y);

/* The first plan that the library's heuristics suggest and its engines accept. `deterministic`:
 * none of engines that the library notes as giving other bits each time. Engines compile their
 * kernels with NVRTC, which the library opens by itself. TL_ERR_ILLEGAL where there is no plan.
 * Freed by tl_cudnn_plan_done, which leaves it zeroed. */
enum tl_status tl_cudnn_plan_find(struct tl_cudnn_graph *graph, void *handle, bool deterministic,
                                  struct tl_cudnn_plan *out);
void tl_cudnn_plan_done(struct tl_cudnn_plan *plan);

/* Enqueues it. pointer[i] is the memory of the tensor with id[i]; scalars lie on the host. */
enum tl_status tl_cudnn_plan_run(const char *who, const struct tl_cudnn_plan *plan,
                                 const int64_t *id, void *const *pointer, int count,
                                 void *workspace, struct tl_stream *stream);

/* Frees the descriptors; the plans found for the graph stay. */
void tl_cudnn_graph_done(struct tl_cudnn_graph *graph);

/* "91900 (path)" for provenance, "" before the first use. */
const char *tl_cudnn_version(void);

#endif
