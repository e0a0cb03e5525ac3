/* See vectors.h. */
#if TL_CUDA
#include "vectors.h"

enum { VECTOR = 16 }; /* bytes */

enum tl_status tl_vectors_legal(const struct tl_problem *problem, const char *variant,
                                const char *dim, int64_t size, enum tl_dtype dtype)
{
    int64_t width = VECTOR / (int64_t)tl_dtype_size(dtype);
    if (width == 0 || size % width == 0)
        return TL_OK;
    return TL_FAIL(TL_ERR_ILLEGAL,
                   "%s/%s: %s is %lld, but 16-byte accesses to %s need a multiple of %lld",
                   problem->operation->name, variant, dim, (long long)size, tl_dtype_name(dtype),
                   (long long)width);
}

enum tl_status tl_vectors_small(const struct tl_problem *problem, const char *variant)
{
    for (int i = 0; i < TL_MAX_DIMS; i++)
        if (problem->dim[i] > INT32_MAX - 1024)
            return TL_FAIL(TL_ERR_ILLEGAL, "%s/%s: a dimension of %lld is beyond i32",
                           problem->operation->name, variant, (long long)problem->dim[i]);
    return TL_OK;
}

enum tl_status tl_vectors_aligned(const struct tl_plan *plan, const struct tl_args *args,
                                  unsigned set)
{
    const struct tl_operation *operation = plan->problem.operation;
    for (int i = 0; i < TL_MAX_ARGS && operation->args[i].name; i++) {
        const void *data = args->tensor[i].data;
        if (!(set >> i & 1) || !plan->problem.present[i] || (uintptr_t)data % VECTOR == 0)
            continue;
        return TL_FAIL(TL_ERR_ARGUMENT, "%s/%s: '%s' at %p must be aligned to %d bytes",
                       operation->name, plan->kernel->variant, operation->args[i].name, data,
                       (int)VECTOR);
    }
    return TL_OK;
}
#endif
