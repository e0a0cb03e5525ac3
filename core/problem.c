/* Binding tensors to an operation: symbolic shapes are solved to dimensions; see kernel.h. */
#include "kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Position of `name` in a list of words separated by spaces, -1 when it is not there. */
static int word_position(const char *words, const char *name, size_t length)
{
    for (int position = 0; *words; position++) {
        size_t word = strcspn(words, " ");
        if (word == length && memcmp(words, name, length) == 0)
            return position;
        words += word;
        words += strspn(words, " ");
    }
    return -1;
}

int tl_operation_dim(const struct tl_operation *operation, const char *name)
{
    return word_position(operation->dims, name, strlen(name));
}

int tl_operation_arg(const struct tl_operation *operation, const char *name)
{
    for (int i = 0; i < TL_MAX_ARGS && operation->args[i].name; i++)
        if (strcmp(operation->args[i].name, name) == 0)
            return i;
    return -1;
}

int tl_operation_param(const struct tl_operation *operation, const char *name)
{
    for (int i = 0; i < TL_MAX_PARAMS && operation->params[i].name; i++)
        if (strcmp(operation->params[i].name, name) == 0)
            return i;
    return -1;
}

void tl_operation_defaults(const struct tl_operation *operation, double *param)
{
    for (int i = 0; i < TL_MAX_PARAMS && operation->params[i].name; i++)
        param[i] = operation->params[i].fallback;
}

/* Whether `value` is the position of one of the words. */
static bool is_position(const char *words, double value)
{
    int count = *words != 0;
    for (const char *c = words; *c; c++)
        count += *c == ' ';
    return value >= 0 && value < count && value == floor(value);
}

static enum tl_status bind_params(struct tl_problem *problem, const double *param)
{
    const struct tl_operation *op = problem->operation;
    for (int i = 0; i < TL_MAX_PARAMS && op->params[i].name; i++) {
        const struct tl_param_spec *spec = &op->params[i];
        if (isnan(param[i]))
            return TL_FAIL(TL_ERR_ARGUMENT, "%s: parameter '%s' is not given", op->name,
                           spec->name);
        if (spec->choices && !is_position(spec->choices, param[i]))
            return TL_FAIL(TL_ERR_ARGUMENT, "%s: parameter '%s' is %g, no position in '%s'",
                           op->name, spec->name, param[i], spec->choices);
        if (!spec->choices && !(param[i] >= spec->min && param[i] <= spec->max))
            return TL_FAIL(TL_ERR_ARGUMENT, "%s: parameter '%s' is %g, not in %g to %g", op->name,
                           spec->name, param[i], spec->min, spec->max);
        problem->param[i] = param[i];
    }
    return TL_OK;
}

/* The alternative of a symbolic shape that the operation's first parameter selects. */
static void select_shape(const struct tl_problem *problem, const char *shape, char *out,
                         size_t size)
{
    int alternative = problem->operation->params[0].choices ? (int)problem->param[0] : 0;
    while (alternative-- > 0 && strchr(shape, '|'))
        shape = strchr(shape, '|') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(shape, "|"), shape);
}

/* One dimension of one argument: a number, or a name with an optional "+1". Unknown dimensions
 * take the size found; `owner` remembers which argument fixed them. */
static enum tl_status solve_dim(struct tl_problem *problem, int arg, int axis, const char *word,
                                size_t length, const struct tl_tensor *tensor, int *owner)
{
    const struct tl_operation *op = problem->operation;
    int64_t found = tensor->shape[axis], plus = 0;
    char text[96];
    const char *sign = memchr(word, '+', length);
    size_t name_length = sign ? (size_t)(sign - word) : length;
    if (sign)
        plus = atoll(sign + 1);
    int dim = word_position(op->dims, word, name_length);
    if (dim < 0) { /* a number */
        if (found == atoll(word))
            return TL_OK;
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: dimension %d of '%s' %s must be %.*s", op->name,
                       axis + 1, op->args[arg].name, tl_tensor_describe(tensor, text, sizeof text),
                       (int)length, word);
    }
    if (owner[dim] < 0) {
        if (found < plus)
            return TL_FAIL(TL_ERR_ARGUMENT, "%s: dimension %d of '%s' %s is %.*s, at least %lld",
                           op->name, axis + 1, op->args[arg].name,
                           tl_tensor_describe(tensor, text, sizeof text), (int)length, word,
                           (long long)plus);
        owner[dim] = arg;
        problem->dim[dim] = found - plus;
        return TL_OK;
    }
    if (found == problem->dim[dim] + plus)
        return TL_OK;
    return TL_FAIL(TL_ERR_ARGUMENT, "%s: dimension %d of '%s' %s must be %.*s = %lld, as in '%s'",
                   op->name, axis + 1, op->args[arg].name,
                   tl_tensor_describe(tensor, text, sizeof text), (int)length, word,
                   (long long)(problem->dim[dim] + plus), op->args[owner[dim]].name);
}

static enum tl_status solve_shape(struct tl_problem *problem, int arg,
                                  const struct tl_tensor *tensor, int *owner)
{
    const struct tl_operation *op = problem->operation;
    char shape[128], text[96];
    int axis = 0, rank = 1;
    select_shape(problem, op->args[arg].shape, shape, sizeof shape);
    for (const char *c = shape; *c; c++)
        rank += *c == ' ';
    if (tensor->rank != rank)
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: '%s' %s must have the shape [%s]", op->name,
                       op->args[arg].name, tl_tensor_describe(tensor, text, sizeof text), shape);
    for (const char *word = shape; *word; axis++) {
        size_t length = strcspn(word, " ");
        TL_TRY(solve_dim(problem, arg, axis, word, length, tensor, owner));
        word += length;
        word += *word == ' ';
    }
    return TL_OK;
}

static enum tl_status check_dtype(const struct tl_operation *op, int arg,
                                  const struct tl_tensor *tensor)
{
    char list[96] = "", text[96];
    if (op->args[arg].dtypes & TL_DTYPE_BIT(tensor->dtype))
        return TL_OK;
    for (int d = 0; d < TL_NUM_DTYPES; d++) {
        if (!(op->args[arg].dtypes & TL_DTYPE_BIT(d)))
            continue;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? " or " : "",
                 tl_dtype_name((enum tl_dtype)d));
    }
    return TL_FAIL(TL_ERR_ARGUMENT, "%s: '%s' %s must be %s", op->name, op->args[arg].name,
                   tl_tensor_describe(tensor, text, sizeof text), list);
}

static enum tl_status bind_arg(struct tl_problem *problem, int arg, const struct tl_args *args,
                               const struct tl_device **device, int *owner)
{
    const struct tl_operation *op = problem->operation;
    const struct tl_tensor *tensor = &args->tensor[arg];
    problem->present[arg] = tensor->rank > 0;
    if (!problem->present[arg]) {
        if (op->args[arg].optional)
            return TL_OK;
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: argument '%s' [%s] is missing", op->name,
                       op->args[arg].name, op->args[arg].shape);
    }
    TL_TRY(check_dtype(op, arg, tensor));
    if (!tl_tensor_is_contiguous(tensor))
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: '%s' must be contiguous", op->name,
                       op->args[arg].name);
    bool host = op->args[arg].role == TL_IN_HOST;
    if (host && tensor->device->arch != 0)
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "%s: '%s' is on %s; the host reads it, so it must be on the cpu", op->name,
                       op->args[arg].name, tensor->device->name);
    if (!host && *device && *device != tensor->device)
        return TL_FAIL(TL_ERR_ARGUMENT, "%s: '%s' is on %s, other arguments on %s", op->name,
                       op->args[arg].name, tensor->device->name, (*device)->name);
    if (!host)
        *device = tensor->device;
    problem->dtype[arg] = tensor->dtype;
    return solve_shape(problem, arg, tensor, owner);
}

static bool overlap(const struct tl_tensor *a, const struct tl_tensor *b)
{
    size_t a_bytes = tl_tensor_bytes(a), b_bytes = tl_tensor_bytes(b);
    uintptr_t a_begin = (uintptr_t)a->data, b_begin = (uintptr_t)b->data;
    return a_bytes && b_bytes && a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

static bool may_take_place(const struct tl_operation *op, int output, int input)
{
    bool found = false;
    for (const struct tl_in_place *pair = op->in_place; pair->output != pair->input; pair++)
        found = found || (pair->output == output && pair->input == input);
    return found;
}

/* `written` is an output, `other` any other argument; they overlap. */
static enum tl_status check_shared(const struct tl_operation *op, const struct tl_args *args,
                                   int written, int other)
{
    static const char *const roles[] = {"input", "output", "input and output", "input"};
    const struct tl_tensor *a = &args->tensor[written], *b = &args->tensor[other];
    bool may = may_take_place(op, written, other);
    if (may && a->data == b->data && tl_tensor_bytes(a) == tl_tensor_bytes(b))
        return TL_OK;
    return TL_FAIL(TL_ERR_ARGUMENT, "%s: %s '%s' overlaps %s '%s'; give it memory of its own%s",
                   op->name, roles[op->args[written].role], op->args[written].name,
                   roles[op->args[other].role], op->args[other].name,
                   may ? ", or all of that tensor's" : "");
}

static enum tl_status check_overlaps(const struct tl_operation *op, const struct tl_args *args)
{
    for (int i = 0; i < TL_MAX_ARGS && op->args[i].name; i++) {
        bool written = op->args[i].role == TL_OUT || op->args[i].role == TL_INOUT;
        for (int j = 0; written && j < TL_MAX_ARGS && op->args[j].name; j++)
            if (j != i && overlap(&args->tensor[i], &args->tensor[j]))
                TL_TRY(check_shared(op, args, i, j));
    }
    return TL_OK;
}

enum tl_status tl_problem_bind(struct tl_problem *problem, const struct tl_operation *operation,
                               const struct tl_args *args, const double *param)
{
    const struct tl_device *device = NULL;
    int owner[TL_MAX_DIMS];
    memset(problem, 0, sizeof *problem);
    problem->operation = operation;
    for (int i = 0; i < TL_MAX_DIMS; i++)
        owner[i] = -1;
    TL_TRY(bind_params(problem, param));
    for (int i = 0; i < TL_MAX_ARGS && operation->args[i].name; i++)
        TL_TRY(bind_arg(problem, i, args, &device, owner));
    TL_TRY(check_overlaps(operation, args));
    return operation->check ? operation->check(problem) : TL_OK;
}

double tl_problem_arg_bytes(const struct tl_problem *problem)
{
    const struct tl_operation *op = problem->operation;
    double total = 0;
    for (int i = 0; i < TL_MAX_ARGS && op->args[i].name; i++) {
        if (!problem->present[i] || op->args[i].role == TL_IN_HOST)
            continue;
        char shape[128];
        double numel = 1;
        select_shape(problem, op->args[i].shape, shape, sizeof shape);
        char *rest;
        for (char *word = strtok_r(shape, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
            size_t length = strcspn(word, "+");
            int dim = word_position(op->dims, word, length);
            double plus = word[length] ? atof(word + length + 1) : 0;
            numel *= dim < 0 ? atof(word) : (double)problem->dim[dim] + plus;
        }
        total += numel * (double)tl_dtype_size(problem->dtype[i]) *
                 (op->args[i].role == TL_INOUT ? 2 : 1);
    }
    return total;
}
