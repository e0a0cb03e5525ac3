/* See magnitude.h. */
#include "magnitude.h"

#include <math.h>

#include "gemm_tile.h"

enum tl_status tl_magnitude_refuse(const struct tl_problem *problem, const char *variant)
{
    if (!problem->present[tl_operation_arg(problem->operation, "magnitude")])
        return TL_OK;
    return TL_FAIL(TL_ERR_ILLEGAL,
                   "%s/%s: does not give 'magnitude'; cpu_ragged does, and smxx_plain on a GPU",
                   problem->operation->name, variant);
}

size_t tl_magnitude_workspace(const struct tl_problem *problem, int64_t a_numel, int64_t b_numel)
{
    if (!problem->present[tl_operation_arg(problem->operation, "magnitude")])
        return 0;
    return (size_t)(a_numel + b_numel) * tl_dtype_size(problem->dtype[0]);
}

/* Copies the elements with their sign bits cleared; returns the end of the copy. */
static void *copy_absolute(void *dst, const struct tl_tensor *src)
{
    int64_t numel = tl_tensor_numel(src);
    const void *data = src->data;
    switch (tl_dtype_size(src->dtype)) {
    case 8:
        for (int64_t i = 0; i < numel; i++)
            ((uint64_t *)dst)[i] = ((const uint64_t *)data)[i] & (UINT64_MAX >> 1);
        break;
    case 4:
        for (int64_t i = 0; i < numel; i++)
            ((uint32_t *)dst)[i] = ((const uint32_t *)data)[i] & (UINT32_MAX >> 1);
        break;
    default:
        for (int64_t i = 0; i < numel; i++)
            ((uint16_t *)dst)[i] = ((const uint16_t *)data)[i] & 0x7fff;
    }
    return (char *)dst + tl_tensor_bytes(src);
}

void tl_magnitude_run(const struct tl_gemm_call *call, const struct tl_tensor *a,
                      const struct tl_tensor *b, const struct tl_tensor *magnitude, void *workspace)
{
    if (magnitude->rank == 0)
        return;
    struct tl_gemm_call absolute = *call;
    absolute.a.data = workspace;
    absolute.b.data = copy_absolute(workspace, a);
    copy_absolute((void *)absolute.b.data, b);
    absolute.d = magnitude->data;
    absolute.d_dtype = TL_FP64;
    for (int64_t i = 0; call->accumulate && i < tl_tensor_numel(magnitude); i++)
        ((double *)magnitude->data)[i] = fabs(tl_element_get(call->d, call->d_dtype, i));
    tl_gemm_tile_run(&absolute);
}
