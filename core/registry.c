/* The registry of operations and kernels, and plans; see kernel.h. */
#include "kernel.h"
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one GPU architecture that device code is compiled for; NVCCFLAGS in the Makefile. */
enum { BUILT_ARCH = 90 };

static const struct tl_operation *const *operations;
static const struct tl_kernel *const *kernels;
static int num_operations, num_kernels;

_Static_assert(sizeof((struct tl_device *)0)->last_dim == sizeof((struct tl_problem *)0)->dim,
               "struct tl_device keeps the dimensions of a problem");

static const char *const archs[] = {"cpu", "smxx", "sm90"};
enum { NUM_ARCHS = sizeof archs / sizeof archs[0] };

/* Libraries of vendors that variants may call; such a variant's arch is the library. */
static const char *const libraries[] = {"cublaslt", "cudnn", "nccl"};
enum { NUM_LIBRARIES = sizeof libraries / sizeof libraries[0] };

const struct tl_operation *tl_operation_at(int position)
{
    return position >= 0 && position < num_operations ? operations[position] : NULL;
}

const struct tl_kernel *tl_kernel_at(int position)
{
    return position >= 0 && position < num_kernels ? kernels[position] : NULL;
}

static bool is_library(const char *arch)
{
    bool found = false;
    for (int i = 0; i < NUM_LIBRARIES; i++)
        found = found || strcmp(libraries[i], arch) == 0;
    return found;
}

/* One row of the table: known arch, variant that begins with it, known operation, no twin. */
static enum tl_status check_row(const struct tl_kernel *kernel, int position)
{
    const struct tl_operation *operation;
    bool known_arch = false;
    for (int i = 0; i < NUM_ARCHS; i++)
        known_arch = known_arch || strcmp(archs[i], kernel->arch) == 0;
    if (!known_arch && !is_library(kernel->arch))
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "kernel %s/%s: unknown arch '%s'; archs are cpu, smxx, sm90, and for a "
                       "vendor's library cublaslt, cudnn, nccl",
                       kernel->operation, kernel->variant, kernel->arch);
    size_t length = strlen(kernel->arch);
    if (strncmp(kernel->variant, kernel->arch, length) != 0 || kernel->variant[length] != '_')
        return TL_FAIL(TL_ERR_ARGUMENT, "kernel %s/%s: the variant must begin with '%s_'",
                       kernel->operation, kernel->variant, kernel->arch);
    TL_TRY(tl_operation_find(kernel->operation, &operation));
    for (int i = 0; i < position; i++)
        if (strcmp(kernels[i]->operation, kernel->operation) == 0 &&
            strcmp(kernels[i]->variant, kernel->variant) == 0)
            return TL_FAIL(TL_ERR_ARGUMENT, "kernel %s/%s is in the table twice",
                           kernel->operation, kernel->variant);
    return TL_OK;
}

enum tl_status tl_registry_set(const struct tl_operation *const *new_operations,
                               int new_num_operations, const struct tl_kernel *const *new_kernels,
                               int new_num_kernels)
{
    operations = new_operations;
    num_operations = new_num_operations;
    kernels = new_kernels;
    num_kernels = new_num_kernels;
    for (int i = 0; i < num_kernels; i++)
        TL_TRY(check_row(kernels[i], i));
    return TL_OK;
}

/* " (did you mean 'x'?)" into `hint`, or "". */
static const char *did_you_mean(const char *name, const char *const *names, int count, char *hint,
                                size_t size)
{
    const char *near = tl_name_nearest(name, names, count);
    hint[0] = 0;
    if (near)
        snprintf(hint, size, "; did you mean '%s'?", near);
    return hint;
}

enum tl_status tl_operation_find(const char *name, const struct tl_operation **out)
{
    const char *names[128];
    char hint[96];
    int count = 0;
    for (int i = 0; i < num_operations; i++) {
        if (strcmp(operations[i]->name, name) == 0) {
            *out = operations[i];
            return TL_OK;
        }
        if (count < 128)
            names[count++] = operations[i]->name;
    }
    return TL_FAIL(TL_ERR_ARGUMENT, "unknown operation '%s'%s", name,
                   did_you_mean(name, names, count, hint, sizeof hint));
}

enum tl_status tl_kernel_find(const char *operation, const char *variant,
                              const struct tl_kernel **out)
{
    const struct tl_operation *found;
    const char *names[64];
    char list[512] = "", hint[96];
    int count = 0;
    TL_TRY(tl_operation_find(operation, &found));
    for (int i = 0; i < num_kernels; i++) {
        if (strcmp(kernels[i]->operation, operation) != 0)
            continue;
        if (strcmp(kernels[i]->variant, variant) == 0) {
            *out = kernels[i];
            return TL_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", kernels[i]->variant);
        if (count < 64)
            names[count++] = kernels[i]->variant;
    }
    return TL_FAIL(TL_ERR_ARGUMENT, "%s has no variant '%s'; there are: %s%s", operation, variant,
                   count ? list : "none", did_you_mean(variant, names, count, hint, sizeof hint));
}

const char *tl_kernel_describe(const struct tl_kernel *kernel, const int64_t *dim, char *text,
                               size_t size)
{
    const struct tl_operation *operation = NULL;
    for (int i = 0; i < num_operations && !operation; i++)
        if (strcmp(operations[i]->name, kernel->operation) == 0)
            operation = operations[i];
    size_t used = (size_t)snprintf(text, size, "%s/%s", kernel->operation, kernel->variant);
    const char *dims = operation ? operation->dims : "";
    const char *separator = " (";
    for (int i = 0; *dims && used < size; i++, separator = ", ") {
        size_t length = strcspn(dims, " ");
        used += (size_t)snprintf(text + used, size - used, "%s%.*s %lld", separator, (int)length,
                                 dims, (long long)dim[i]);
        dims += length;
        dims += strspn(dims, " ");
    }
    if (operation && used < size)
        snprintf(text + used, size - used, ")");
    return text;
}

int tl_kernel_tunable(const struct tl_kernel *kernel, const char *name)
{
    for (int i = 0; i < TL_MAX_TUNABLES && kernel->tunables[i].name; i++)
        if (strcmp(kernel->tunables[i].name, name) == 0)
            return i;
    return -1;
}

enum tl_status tl_kernel_usable(const struct tl_kernel *kernel, const struct tl_device *device)
{
    if (strcmp(kernel->arch, "cpu") == 0) {
        if (device->arch == 0)
            return TL_OK;
        return TL_FAIL(TL_ERR_ILLEGAL, "%s/%s runs on the CPU, not on %s (%s)", kernel->operation,
                       kernel->variant, device->name, device->model);
    }
    if (device->arch == 0)
        return TL_FAIL(TL_ERR_ILLEGAL, "%s/%s needs an NVIDIA GPU; %s is none", kernel->operation,
                       kernel->variant, device->name);
    if (is_library(kernel->arch) || device->arch == BUILT_ARCH)
        return TL_OK;
    if (strcmp(kernel->arch, "smxx") == 0)
        return TL_FAIL(TL_ERR_ILLEGAL,
                       "%s/%s could run on any NVIDIA GPU, but this build holds machine code for "
                       "sm_%da only; %s (%s) is sm_%d; use --device cpu",
                       kernel->operation, kernel->variant, BUILT_ARCH, device->name, device->model,
                       device->arch);
    return TL_FAIL(TL_ERR_ILLEGAL,
                   "%s/%s uses instructions of sm_%sa, which no other GPU has; %s (%s) is sm_%d; "
                   "use --device cpu",
                   kernel->operation, kernel->variant, kernel->arch + 2, device->name,
                   device->model, device->arch);
}

enum tl_status tl_plan_init(struct tl_plan *plan, const struct tl_kernel *kernel,
                            struct tl_device *device, const struct tl_problem *problem)
{
    memset(plan, 0, sizeof *plan);
    TL_TRY(tl_kernel_usable(kernel, device));
    if (kernel->legal) /* first, since its reasons say more */
        TL_TRY(kernel->legal(problem));
    for (int i = 0; i < TL_MAX_ARGS && problem->operation->args[i].name; i++) {
        unsigned bit = TL_DTYPE_BIT(problem->dtype[i]);
        if (problem->present[i] && kernel->dtypes && (bit & TL_FLOATS) && !(bit & kernel->dtypes))
            return TL_FAIL(TL_ERR_ILLEGAL, "%s/%s does not compute on %s (argument '%s')",
                           kernel->operation, kernel->variant, tl_dtype_name(problem->dtype[i]),
                           problem->operation->args[i].name);
    }
    plan->kernel = kernel;
    plan->device = device;
    plan->problem = *problem;
    for (int i = 0; i < TL_MAX_TUNABLES && kernel->tunables[i].name; i++)
        plan->tunable[i] = kernel->tunables[i].fallback;
    return kernel->plan ? kernel->plan(plan) : TL_OK;
}

enum tl_status tl_plan_set(struct tl_plan *plan, const char *tunable, int value)
{
    int position = tl_kernel_tunable(plan->kernel, tunable);
    char list[256] = "";
    if (position < 0) {
        for (int i = 0; i < TL_MAX_TUNABLES && plan->kernel->tunables[i].name; i++) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                     plan->kernel->tunables[i].name);
        }
        return TL_FAIL(TL_ERR_ARGUMENT, "%s/%s has no tunable '%s'; it has: %s",
                       plan->kernel->operation, plan->kernel->variant, tunable,
                       list[0] ? list : "none");
    }
    for (const int *choice = plan->kernel->tunables[position].choices; *choice; choice++) {
        if (*choice == value) {
            plan->tunable[position] = value;
            return TL_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%d", used ? ", " : "", *choice);
    }
    return TL_FAIL(TL_ERR_ARGUMENT, "%s/%s: tunable %s cannot be %d; choices are %s",
                   plan->kernel->operation, plan->kernel->variant, tunable, value, list);
}

size_t tl_plan_workspace(const struct tl_plan *plan)
{
    return plan->kernel->workspace ? plan->kernel->workspace(plan) : 0;
}

enum tl_status tl_plan_bind(struct tl_plan *plan, const struct tl_args *args)
{
    if (!plan->kernel->bind)
        return TL_OK;
    if (plan->device->api->use)
        TL_TRY(plan->device->api->use(plan->device));
    return plan->kernel->bind(plan, args);
}

enum tl_status tl_plan_launch(const struct tl_plan *plan, const struct tl_args *args,
                              struct tl_stream *stream)
{
    struct tl_device *device = plan->device;
    TL_TRY(tl_fault_check(device));
    device->last_kernel = plan->kernel;
    memcpy(device->last_dim, plan->problem.dim, sizeof plan->problem.dim);
    if (device->api->use)
        TL_TRY(device->api->use(device));
    return plan->kernel->launch(plan, args, stream ? stream : device->default_stream);
}
