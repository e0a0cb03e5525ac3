/* A tensor's elements in host memory, whatever device holds them; see tensor.h. */
#include "tensor.h"

#include <string.h>

enum tl_status tl_tensor_on_host(struct tl_tensor *host, const struct tl_tensor *source)
{
    struct tl_device *cpu;
    memset(host, 0, sizeof *host);
    TL_TRY(tl_device_open("cpu", &cpu));
    if (source->device == cpu)
        return tl_tensor_view(host, source, 0, source->rank, source->shape);
    TL_TRY(tl_tensor_init(host, cpu, source->dtype, source->rank, source->shape));
    enum tl_status status = tl_tensor_copy(host, source, NULL);
    if (status != TL_OK)
        tl_tensor_done(host);
    return status;
}
