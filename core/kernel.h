/* Operations, kernels and the registry that joins them.
 *
 * An operation is a contract: named arguments with symbolic shapes, named parameters, and the
 * logical FLOPs and bytes of a problem. A kernel is one variant of an operation: legality, plan,
 * workspace, launch. Binding tensors to an operation solves the symbolic shapes and gives a
 * problem; a kernel that accepts the problem gives a plan; a plan is launched on a stream.
 *
 * Launchers are pure: they neither allocate nor synchronise nor cache. Only `tune` times
 * candidates, and its choice lives in the plan's tunables.
 */
#ifndef TL_KERNEL_H
#define TL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"
#include "dtype.h"
#include "fault.h"
#include "status.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TL_MAX_ARGS 16
#define TL_MAX_DIMS 12
#define TL_MAX_PARAMS 12
#define TL_MAX_IN_PLACE 3
#define TL_MAX_TUNABLES 8
#define TL_PLAN_SCRATCH 224
#define TL_MAX_TRIALS 8
#define TL_ALGORITHM_TEXT 160

/* TL_IN_HOST: read by the launcher, so on the CPU whatever the device. */
enum tl_role { TL_IN, TL_OUT, TL_INOUT, TL_IN_HOST };

struct tl_arg_spec {
    const char *name;
    enum tl_role role;
    bool optional;
    unsigned dtypes; /* set of TL_DTYPE_BIT */
    /* Dimensions by name, outermost first: "num_groups n k". A name may carry an integer, as in
     * "num_groups+1"; a number stands for itself. One alternative for each value of the
     * operation's first parameter, separated by '|', where that parameter is a choice. */
    const char *shape;
};

struct tl_param_spec {
    const char *name;
    const char *choices; /* "nt nn tn": the value is the position; NULL for a number */
    double fallback;     /* the default; NAN when the caller must give it */
    double min, max;     /* inclusive; ignored for choices */
};

/* Positions of an output and of an input whose place it may take. */
struct tl_in_place {
    int output, input;
};

struct tl_problem;

struct tl_operation {
    const char *name;
    const char *equation; /* one line, in the names of arguments and dimensions */
    const char *dims;     /* "m n k": the order of tl_problem.dim */
    struct tl_arg_spec args[TL_MAX_ARGS];       /* ends with a NULL name */
    struct tl_param_spec params[TL_MAX_PARAMS]; /* ends with a NULL name */
    /* What an output may share memory with, byte for byte; ends with two equal positions. Outputs
     * overlap no other argument. */
    struct tl_in_place in_place[TL_MAX_IN_PLACE];
    double (*flops)(const struct tl_problem *problem); /* logical: what the equation needs */
    double (*bytes)(const struct tl_problem *problem); /* logical: each operand moved once */
    /* Relations the symbolic shapes cannot say; NULL when there are none. */
    enum tl_status (*check)(const struct tl_problem *problem);
    /* Records the message, begun with `who`, for what a kernel of the operation refused on the
     * device (fault.h), and returns the status that a kernel of the host would have given. NULL
     * when kernels look at no values. */
    enum tl_status (*explain)(const char *who, const struct tl_fault *fault);
};

struct tl_problem {
    const struct tl_operation *operation;
    int64_t dim[TL_MAX_DIMS];
    double param[TL_MAX_PARAMS];
    enum tl_dtype dtype[TL_MAX_ARGS]; /* of the present arguments */
    bool present[TL_MAX_ARGS];
};

struct tl_args {
    struct tl_tensor tensor[TL_MAX_ARGS]; /* by argument position; rank 0 where absent */
    void *workspace;                      /* workspace(plan) bytes on the plan's device */
};

struct tl_tunable {
    const char *name;
    int fallback;       /* the default */
    const int *choices; /* ends with 0; all choices are positive */
};

struct tl_plan;

struct tl_kernel {
    const char *operation;
    const char *variant; /* "<arch>_<what sets it apart>" */
    /* "cpu", "smxx" (portable CUDA), "sm90" (instructions of sm_90a), or the vendor's library that
     * it calls: "cublaslt", "cudnn", "nccl"; the variant begins with it. */
    const char *arch;
    const char *summary; /* one sentence, with the source of the algorithm */
    unsigned dtypes;     /* float types it computes on, of those the operation allows; 0 = all */
    struct tl_tunable tunables[TL_MAX_TUNABLES]; /* ends with a NULL name */
    /* TL_OK, or TL_ERR_ILLEGAL with the reason, whatever the dtypes are. NULL: every problem of the
     * operation is legal. */
    enum tl_status (*legal)(const struct tl_problem *problem);
    /* Chooses tunables for the problem without timing; NULL keeps the defaults. */
    enum tl_status (*plan)(struct tl_plan *plan);
    /* Times candidates on these arguments and keeps the best in the plan; NULL: nothing to tune.
     * Outputs, and what is read and written, hold no results afterwards. */
    enum tl_status (*tune)(struct tl_plan *plan, const struct tl_args *args,
                           struct tl_stream *stream);
    /* Names the library's own algorithm behind the tunables, "" for none: what has the same name
     * gives the same bits. NULL where tunables say it all. */
    void (*algorithm)(const struct tl_plan *plan, char text[TL_ALGORITHM_TEXT]);
    /* Bytes; NULL: none. Zeros before the first launch; later launches find what the one before
     * left. */
    size_t (*workspace)(const struct tl_plan *plan);
    /* Launches read nothing there that they have not written: plans that are never under way at the
     * same time may share a workspace. */
    bool transient_workspace;
    /* Works out into the plan's scratch what launches on these arguments need, whatever the
     * tunables, so that they cost less; launches on others stay right. NULL: nothing to prepare. */
    enum tl_status (*bind)(struct tl_plan *plan, const struct tl_args *args);
    enum tl_status (*launch)(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream);
};

struct tl_plan {
    const struct tl_kernel *kernel;
    struct tl_device *device;
    struct tl_problem problem;
    int tunable[TL_MAX_TUNABLES]; /* in the order of kernel->tunables */
    /* What `tune` measured for the choices of the first tunable; 0 where it has not, NAN where the
     * choice cannot run. */
    double trial_us[TL_MAX_TRIALS];
    uint64_t scratch[TL_PLAN_SCRATCH]; /* what `plan` and `bind` worked out for launches */
};

/* The registry. kernels/table.c hands the generated tables over once; TL_ERR_ARGUMENT names a row
 * whose variant does not begin with its arch, whose operation is unknown, or that is there twice.
 */
enum tl_status tl_registry_set(const struct tl_operation *const *operations, int num_operations,
                               const struct tl_kernel *const *kernels, int num_kernels);
const struct tl_operation *tl_operation_at(int position); /* NULL past the end */
const struct tl_kernel *tl_kernel_at(int position);       /* NULL past the end */

/* TL_ERR_ARGUMENT names the nearest known name. */
enum tl_status tl_operation_find(const char *name, const struct tl_operation **out);
enum tl_status tl_kernel_find(const char *operation, const char *variant,
                              const struct tl_kernel **out);

/* Position of an argument, parameter or dimension, -1 when there is none of that name. */
int tl_operation_arg(const struct tl_operation *operation, const char *name);
int tl_operation_param(const struct tl_operation *operation, const char *name);
int tl_operation_dim(const struct tl_operation *operation, const char *name);
int tl_kernel_tunable(const struct tl_kernel *kernel, const char *name);

/* "gemm/cpu_plain (m 8, n 16, k 32)" into `text`, for messages; returns `text`. */
const char *tl_kernel_describe(const struct tl_kernel *kernel, const int64_t *dim, char *text,
                               size_t size);

/* Parameter values to their defaults. */
void tl_operation_defaults(const struct tl_operation *operation, double *param);

/* Checks arguments and parameters against the operation and solves the dimensions.
 * TL_ERR_ARGUMENT names the argument, what was expected and what was found: a missing argument, a
 * wrong dtype or rank, a dimension that disagrees, strided memory, two devices, a host argument
 * that is not on the CPU, an output that overlaps another argument, a parameter out of range or
 * without a value. Values of index tensors are checked at launch, where they are. */
enum tl_status tl_problem_bind(struct tl_problem *problem, const struct tl_operation *operation,
                               const struct tl_args *args, const double *param);

/* Whether the kernel runs on the device at all: TL_ERR_ILLEGAL with the reason. */
enum tl_status tl_kernel_usable(const struct tl_kernel *kernel, const struct tl_device *device);

/* Fills the plan: usable, legal, dtypes, then tunables. TL_ERR_ILLEGAL with the reason. */
enum tl_status tl_plan_init(struct tl_plan *plan, const struct tl_kernel *kernel,
                            struct tl_device *device, const struct tl_problem *problem);

/* TL_ERR_ARGUMENT for an unknown tunable or a value that is no choice. */
enum tl_status tl_plan_set(struct tl_plan *plan, const char *tunable, int value);

size_t tl_plan_workspace(const struct tl_plan *plan);

/* Lets launches on these arguments cost less; optional. Holds when tunables change. */
enum tl_status tl_plan_bind(struct tl_plan *plan, const struct tl_args *args);

/* Also fails, without a launch, when an earlier one left a fault that nothing has reported yet. */
enum tl_status tl_plan_launch(const struct tl_plan *plan, const struct tl_args *args,
                              struct tl_stream *stream);

/* Bytes of the present arguments, each once, in-out arguments twice, those of the host left out:
 * what most `bytes` return. */
double tl_problem_arg_bytes(const struct tl_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
