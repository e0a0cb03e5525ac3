/* See fork.h. */
#if TL_CUDA
#include "fork.h"
#include "launch.h"

#include "core/cuda_error.h"

enum { MAX_DEVICES = 32 };

/* Side streams 1 .. TL_FORK_MOST - 1 and the event that ends each one's work; event 0 is the fork.
 */
struct side {
    cudaStream_t stream[TL_FORK_MOST];
    cudaEvent_t event[TL_FORK_MOST];
    bool ready;
};
static struct side sides[MAX_DEVICES];

enum tl_status tl_fork_prepare(struct tl_device *device)
{
    if (device->index >= MAX_DEVICES)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "%s: side streams are there for the first %d GPUs only",
                       device->name, MAX_DEVICES);
    struct side *side = &sides[device->index];
    if (side->ready)
        return TL_OK;
    TL_TRY(device->api->use(device));
    for (int i = 0; i < TL_FORK_MOST; i++) { /* what an earlier attempt made is kept */
        if (i > 0 && !side->stream[i])
            TL_CUDA_TRY(cudaStreamCreateWithFlags(&side->stream[i], cudaStreamNonBlocking), device,
                        "side stream %d", i);
        if (!side->event[i])
            TL_CUDA_TRY(cudaEventCreateWithFlags(&side->event[i], cudaEventDisableTiming), device,
                        "the event of side stream %d", i);
    }
    side->ready = true;
    return TL_OK;
}

enum tl_status tl_fork(const struct tl_plan *plan, struct tl_stream *stream, int width,
                       struct tl_stream *lanes)
{
    const struct side *side = &sides[plan->device->index];
    lanes[0] = *stream;
    if (width > 1)
        TL_TRY(TL_CUDA_STATUS(plan, "the fork of its streams",
                              cudaEventRecord(side->event[0], tl_cuda_stream(stream))));
    for (int i = 1; i < width; i++) {
        lanes[i] = (struct tl_stream){.device = plan->device, .native = side->stream[i]};
        TL_TRY(TL_CUDA_STATUS(plan, "the fork of its streams",
                              cudaStreamWaitEvent(side->stream[i], side->event[0], 0)));
    }
    return TL_OK;
}

enum tl_status tl_join(const struct tl_plan *plan, int width, struct tl_stream *lanes)
{
    const struct side *side = &sides[plan->device->index];
    for (int i = 1; i < width; i++) {
        TL_TRY(TL_CUDA_STATUS(plan, "the join of its streams",
                              cudaEventRecord(side->event[i], side->stream[i])));
        TL_TRY(TL_CUDA_STATUS(plan, "the join of its streams",
                              cudaStreamWaitEvent(tl_cuda_stream(&lanes[0]), side->event[i], 0)));
    }
    return TL_OK;
}
#endif
