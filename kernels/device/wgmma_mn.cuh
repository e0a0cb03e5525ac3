/* wgmma with both operands MN-major in shared memory, as weight gradients have them: their rows are
 * the reduction dimension. Descriptors: tl_wgmma_desc_128b_mn, and 128 more for each k-step of 16.
 *
 * tl_wgmma_mn(acc, a, b, accumulate): acc[64, n] (+)= a[16, 64]^T b[16, n], bf16 to fp32, with n
 * twice the length of acc. Thread t holds, for each block of eight columns i, rows
 * t / 32 * 16 + t % 32 / 4 (+ 8) and columns 8 i + t % 4 * 2 (+ 1): acc[4 i], acc[4 i + 1] of the
 * upper row, then of the lower.
 */
#ifndef TL_WGMMA_MN_CUH
#define TL_WGMMA_MN_CUH

#include "kernels/device/wgmma.cuh"

#define TL_REGISTERS_0_63 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, " \
    "%56, %57, %58, %59, %60, %61, %62, %63"
#define TL_REGISTERS_64_95 \
    "%64, %65, %66, %67, %68, %69, %70, %71, " \
    "%72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, " \
    "%88, %89, %90, %91, %92, %93, %94, %95"
#define TL_REGISTERS_96_127 \
    "%96, %97, %98, %99, %100, %101, %102, %103, " \
    "%104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, " \
    "%120, %121, %122, %123, %124, %125, %126, %127"
#define TL_ACC_8(i) \
    "+f"(acc[i]), "+f"(acc[i + 1]), "+f"(acc[i + 2]), "+f"(acc[i + 3]), "+f"(acc[i + 4]), \
        "+f"(acc[i + 5]), "+f"(acc[i + 6]), "+f"(acc[i + 7])
#define TL_ACC_32(i) TL_ACC_8(i), TL_ACC_8(i + 8), TL_ACC_8(i + 16), TL_ACC_8(i + 24)

static __device__ __forceinline__ void tl_wgmma_mn(float (&acc)[128], uint64_t a, uint64_t b,
                                                   int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{" TL_REGISTERS_0_63 ", " TL_REGISTERS_64_95 ", " TL_REGISTERS_96_127 "}, "
                 "%128, %129, accumulate, 1, 1, 1, 1;\n"
                 "}\n"
                 : TL_ACC_32(0), TL_ACC_32(32), TL_ACC_32(64), TL_ACC_32(96)
                 : "l"(a), "l"(b), "r"(accumulate));
}

static __device__ __forceinline__ void tl_wgmma_mn(float (&acc)[96], uint64_t a, uint64_t b,
                                                   int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %98, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 "
                 "{" TL_REGISTERS_0_63 ", " TL_REGISTERS_64_95 "}, "
                 "%96, %97, accumulate, 1, 1, 1, 1;\n"
                 "}\n"
                 : TL_ACC_32(0), TL_ACC_32(32), TL_ACC_32(64)
                 : "l"(a), "l"(b), "r"(accumulate));
}

static __device__ __forceinline__ void tl_wgmma_mn(float (&acc)[64], uint64_t a, uint64_t b,
                                                   int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{" TL_REGISTERS_0_63 "}, "
                 "%64, %65, accumulate, 1, 1, 1, 1;\n"
                 "}\n"
                 : TL_ACC_32(0), TL_ACC_32(32)
                 : "l"(a), "l"(b), "r"(accumulate));
}

#undef TL_REGISTERS_0_63
#undef TL_REGISTERS_64_95
#undef TL_REGISTERS_96_127
#undef TL_ACC_8
#undef TL_ACC_32

#endif
