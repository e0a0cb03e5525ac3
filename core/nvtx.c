/* NVTX 3 is a header: a tool is found through the environment when the first range opens. */
#include "nvtx.h"

#if TL_CUDA && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define PUSH(name) ((void)nvtxRangePushA(name))
#define POP() ((void)nvtxRangePop())
#else
#define PUSH(name) ((void)(name))
#define POP() ((void)0)
#endif

static _Thread_local int depth;

int tl_nvtx_push(const char *name)
{
    PUSH(name);
    return ++depth;
}

void tl_nvtx_close(int at)
{
    for (; at > 0 && depth >= at; depth--)
        POP();
}

int tl_nvtx_depth(void)
{
    return depth;
}
