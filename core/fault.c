/* See fault.h. */
#include "fault.h"

#include "kernel.h"

#include <stdio.h>

enum tl_status tl_fault_check(struct tl_device *device)
{
    struct tl_fault *fault = device->fault;
    if (!fault || __atomic_load_n(&fault->left, __ATOMIC_ACQUIRE) == fault->handled)
        return TL_OK;
    struct tl_fault found = *fault;
    /* From here on a kernel may leave the next. */
    __atomic_store_n(&fault->handled, found.left, __ATOMIC_RELEASE);
    const struct tl_operation *operation;
    TL_TRY(tl_operation_find(found.kernel->operation, &operation));
    char who[128];
    snprintf(who, sizeof who, "%s/%s", operation->name, found.kernel->variant);
    enum tl_status status = TL_ERR_ARGUMENT;
    if (operation->explain)
        status = operation->explain(who, &found);
    else
        TL_FAIL(status, "%s: refused its arguments (%d at %lld)", who, (int)found.kind,
                (long long)found.position);
    return TL_FAIL(status, "%s; that launch wrote nothing", tl_error_message());
}
