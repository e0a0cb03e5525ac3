/* Expands table.def into the arrays of the registry. */
#include "table.h"

#define TL_OPERATION(operation) extern const struct tl_operation tl_op_##operation;
#define TL_KERNEL(operation, variant)                                                              \
    extern const struct tl_kernel tl_kernel_##operation##_##variant;
#include "table.def"
#undef TL_OPERATION
#undef TL_KERNEL

static const struct tl_operation *const operations[] = {
#define TL_OPERATION(operation) &tl_op_##operation,
#define TL_KERNEL(operation, variant)
#include "table.def"
#undef TL_OPERATION
#undef TL_KERNEL
};

static const struct tl_kernel *const kernels[] = {
#define TL_OPERATION(operation)
#define TL_KERNEL(operation, variant) &tl_kernel_##operation##_##variant,
#include "table.def"
#undef TL_OPERATION
#undef TL_KERNEL
};

enum tl_status tl_kernels_register(void)
{
    return tl_registry_set(operations, sizeof operations / sizeof operations[0], kernels,
                           sizeof kernels / sizeof kernels[0]);
}
