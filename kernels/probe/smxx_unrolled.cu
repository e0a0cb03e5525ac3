/* probe_copy/smxx_unrolled: the copy that other kernels are held against, with what one can choose
 * about it: threads of a block, 16-byte loads in flight a thread, and what the caches are told.
 */
#include <cuda_runtime.h>

#include "kernels/device/load.cuh"
#include "kernels/device/launch.h"
#include "kernels/device/vectors.h"
#include "kernels/probe/op.h"

enum { MOST_THREADS = 1024, PLAIN = 1, STREAMING, PREFETCHING };

/* Thread t of a block moves vectors t, t + block, ... of the block's run. */
template <int VECTORS, int CACHE>
static __global__ void __launch_bounds__(MOST_THREADS)
    copy_unrolled_kernel(const uint4 *__restrict__ src, uint4 *__restrict__ dst, int64_t count)
{
    int64_t first = (int64_t)blockIdx.x * blockDim.x * VECTORS + threadIdx.x;
    uint32_t value[VECTORS][4] = {};
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        int64_t at = first + i * (int)blockDim.x;
        if (CACHE == STREAMING && at < count) {
            uint4 loaded = __ldcs(src + at);
            value[i][0] = loaded.x, value[i][1] = loaded.y;
            value[i][2] = loaded.z, value[i][3] = loaded.w;
        } else if (CACHE != STREAMING) {
            tl_load_constant<CACHE == PREFETCHING ? 256 : 0>(value[i], src + at, at < count);
        }
    }
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        int64_t at = first + i * (int)blockDim.x;
        uint4 stored = make_uint4(value[i][0], value[i][1], value[i][2], value[i][3]);
        if (at < count && CACHE == STREAMING)
            __stcs(dst + at, stored);
        else if (at < count)
            dst[at] = stored;
    }
}

typedef void (*copy_fn)(const uint4 *, uint4 *, int64_t);

template <int CACHE> static copy_fn choose(int vectors)
{
    return vectors == 1   ? copy_unrolled_kernel<1, CACHE>
           : vectors == 2 ? copy_unrolled_kernel<2, CACHE>
           : vectors == 4 ? copy_unrolled_kernel<4, CACHE>
                          : copy_unrolled_kernel<8, CACHE>;
}

enum { BLOCK_THREADS, VECTORS_PER_THREAD, CACHE_HINT };

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    int64_t count = plan->problem.dim[0] / 4;
    const int *tunable = plan->tunable;
    int threads = tunable[BLOCK_THREADS], vectors = tunable[VECTORS_PER_THREAD];
    copy_fn kernel = tunable[CACHE_HINT] == PLAIN       ? choose<PLAIN>(vectors)
                     : tunable[CACHE_HINT] == STREAMING ? choose<STREAMING>(vectors)
                                                        : choose<PREFETCHING>(vectors);
    int64_t run = (int64_t)threads * vectors;
    TL_TRY(tl_vectors_aligned(plan, args, ~0u));
    if (count == 0)
        return TL_OK;
    kernel<<<(unsigned)((count + run - 1) / run), (unsigned)threads, 0, tl_cuda_stream(stream)>>>(
        (const uint4 *)args->tensor[TL_PROBE_COPY_SRC].data,
        (uint4 *)args->tensor[TL_PROBE_COPY_DST].data, count);
    return TL_CUDA_LAUNCHED(plan, "copy_unrolled_kernel");
}

static const int block_threads[] = {128, 256, 512, 1024, 0}, vectors_per_thread[] = {1, 2, 4, 8, 0};
static const int cache_hint[] = {PLAIN, STREAMING, PREFETCHING, 0};

extern "C" const struct tl_kernel tl_kernel_probe_copy_smxx_unrolled = {
    .operation = "probe_copy",
    .variant = "smxx_unrolled",
    .arch = "smxx",
    .summary = "16-byte loads and stores; block, loads in flight and cache hints to choose from.",
    .tunables = {{"block_threads", 512, block_threads},
                 {"vectors_per_thread", 2, vectors_per_thread},
                 {"cache_hint", PLAIN, cache_hint}},
    .launch = launch,
};
