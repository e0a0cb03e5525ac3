/* convert on the GPU: the wider side moves 16 bytes an access, and all loads of a thread are in
 * flight before its first store. */
#include "kernels/convert/op.h"
#include "kernels/device/launch.h"
#include "kernels/device/vectors.cuh"
#include "kernels/device/vectors.h"

enum { THREADS = 256, PIECES = 4 }; /* accesses of a thread, a block's width apart */

template <typename X, typename Y>
static __global__ void __launch_bounds__(THREADS) convert_kernel(const X *x, Y *y, int64_t count)
{
    constexpr int N = tl_vector_width<X, Y>();
    int64_t first = ((int64_t)blockIdx.x * PIECES * THREADS + threadIdx.x) * N;
    tl_vector<X, N> raw[PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        int64_t at = first + i * THREADS * N;
        if (at + N <= count)
            raw[i] = tl_vector_load<X, N>(x + at);
    }
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        int64_t at = first + i * THREADS * N;
        if (at + N <= count)
            tl_vector_store(y + at, tl_vector_convert<Y, X, N>(raw[i]));
        else
            for (; at < count; at++) /* fewer than N are left at the very end */
                y[at] = (Y)(float)x[at];
    }
}

template <typename X, typename Y>
static enum tl_status run(const struct tl_plan *plan, const struct tl_args *args,
                          struct tl_stream *stream)
{
    int64_t count = plan->problem.dim[CONVERT_DIM_COUNT];
    int64_t of_block = (int64_t)THREADS * PIECES * tl_vector_width<X, Y>();
    TL_TRY(tl_vectors_aligned(plan, args, ~0u));
    if (count == 0)
        return TL_OK;
    unsigned blocks = (unsigned)((count + of_block - 1) / of_block);
    convert_kernel<X, Y><<<blocks, THREADS, 0, tl_cuda_stream(stream)>>>(
        (const X *)args->tensor[CONVERT_X].data, (Y *)args->tensor[CONVERT_Y].data, count);
    return TL_CUDA_LAUNCHED(plan, "convert_kernel");
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    bool from_wide = plan->problem.dtype[CONVERT_X] == TL_FP32;
    bool to_wide = plan->problem.dtype[CONVERT_Y] == TL_FP32;
    if (from_wide)
        return to_wide ? run<float, float>(plan, args, stream)
                       : run<float, __nv_bfloat16>(plan, args, stream);
    return to_wide ? run<__nv_bfloat16, float>(plan, args, stream)
                   : run<__nv_bfloat16, __nv_bfloat16>(plan, args, stream);
}

static enum tl_status legal(const struct tl_problem *problem)
{
    int64_t count = problem->dim[CONVERT_DIM_COUNT], most = (int64_t)INT32_MAX * THREADS * PIECES;
    if (count > most)
        return TL_FAIL(TL_ERR_ILLEGAL, "convert/smxx_vec16: %lld elements, but the most is %lld",
                       (long long)count, (long long)most);
    return TL_OK;
}

extern "C" const struct tl_kernel tl_kernel_convert_smxx_vec16 = {
    .operation = "convert",
    .variant = "smxx_vec16",
    .arch = "smxx",
    .summary = "Accesses of 16 bytes, four in flight a thread.",
    .dtypes = TL_DTYPE_BIT(TL_FP32) | TL_DTYPE_BIT(TL_BF16),
    .legal = legal,
    .launch = launch,
};
