/* wgmma with an accumulator of 64 rows by any multiple of 8 columns up to 256 (PTX ISA,
 * "wgmma.mma_async"; sm_90a only).
 *
 *   tl_wgmma_bf16<160, A_MN, B_MN>(acc, desc_a, desc_b, accumulate);
 *
 * acc[64, N] += a[64, 16] b[N, 16]^T in shared memory, each operand K-major or, flag 1, MN-major.
 * The first N / 2 floats of the array are used. Thread t of the warpgroup holds, for each block of
 * eight columns i, rows t / 32 * 16 + t % 32 / 4 (+ 8) and columns 8 i + t % 4 * 2 (+ 1): acc[4 i]
 * and acc[4 i + 1] of the upper row, then two of the lower.
 */
#ifndef TL_WGMMA_SHAPES_CUH
#define TL_WGMMA_SHAPES_CUH

#include <stdint.h>

/* Register lists of one to 32 blocks of eight columns: as text, then as operands. */
#define TL_WGMMA_TEXT1 "%0, %1, %2, %3"
#define TL_WGMMA_TEXT2 TL_WGMMA_TEXT1 ", " "%4, %5, %6, %7"
#define TL_WGMMA_TEXT3 TL_WGMMA_TEXT2 ", " "%8, %9, %10, %11"
#define TL_WGMMA_TEXT4 TL_WGMMA_TEXT3 ", " "%12, %13, %14, %15"
#define TL_WGMMA_TEXT5 TL_WGMMA_TEXT4 ", " "%16, %17, %18, %19"
#define TL_WGMMA_TEXT6 TL_WGMMA_TEXT5 ", " "%20, %21, %22, %23"
#define TL_WGMMA_TEXT7 TL_WGMMA_TEXT6 ", " "%24, %25, %26, %27"
#define TL_WGMMA_TEXT8 TL_WGMMA_TEXT7 ", " "%28, %29, %30, %31"
#define TL_WGMMA_TEXT9 TL_WGMMA_TEXT8 ", " "%32, %33, %34, %35"
#define TL_WGMMA_TEXT10 TL_WGMMA_TEXT9 ", " "%36, %37, %38, %39"
#define TL_WGMMA_TEXT11 TL_WGMMA_TEXT10 ", " "%40, %41, %42, %43"
#define TL_WGMMA_TEXT12 TL_WGMMA_TEXT11 ", " "%44, %45, %46, %47"
#define TL_WGMMA_TEXT13 TL_WGMMA_TEXT12 ", " "%48, %49, %50, %51"
#define TL_WGMMA_TEXT14 TL_WGMMA_TEXT13 ", " "%52, %53, %54, %55"
#define TL_WGMMA_TEXT15 TL_WGMMA_TEXT14 ", " "%56, %57, %58, %59"
#define TL_WGMMA_TEXT16 TL_WGMMA_TEXT15 ", " "%60, %61, %62, %63"
#define TL_WGMMA_TEXT17 TL_WGMMA_TEXT16 ", " "%64, %65, %66, %67"
#define TL_WGMMA_TEXT18 TL_WGMMA_TEXT17 ", " "%68, %69, %70, %71"
#define TL_WGMMA_TEXT19 TL_WGMMA_TEXT18 ", " "%72, %73, %74, %75"
#define TL_WGMMA_TEXT20 TL_WGMMA_TEXT19 ", " "%76, %77, %78, %79"
#define TL_WGMMA_TEXT21 TL_WGMMA_TEXT20 ", " "%80, %81, %82, %83"
#define TL_WGMMA_TEXT22 TL_WGMMA_TEXT21 ", " "%84, %85, %86, %87"
#define TL_WGMMA_TEXT23 TL_WGMMA_TEXT22 ", " "%88, %89, %90, %91"
#define TL_WGMMA_TEXT24 TL_WGMMA_TEXT23 ", " "%92, %93, %94, %95"
#define TL_WGMMA_TEXT25 TL_WGMMA_TEXT24 ", " "%96, %97, %98, %99"
#define TL_WGMMA_TEXT26 TL_WGMMA_TEXT25 ", " "%100, %101, %102, %103"
#define TL_WGMMA_TEXT27 TL_WGMMA_TEXT26 ", " "%104, %105, %106, %107"
#define TL_WGMMA_TEXT28 TL_WGMMA_TEXT27 ", " "%108, %109, %110, %111"
#define TL_WGMMA_TEXT29 TL_WGMMA_TEXT28 ", " "%112, %113, %114, %115"
#define TL_WGMMA_TEXT30 TL_WGMMA_TEXT29 ", " "%116, %117, %118, %119"
#define TL_WGMMA_TEXT31 TL_WGMMA_TEXT30 ", " "%120, %121, %122, %123"
#define TL_WGMMA_TEXT32 TL_WGMMA_TEXT31 ", " "%124, %125, %126, %127"
#define TL_WGMMA_REGS1 "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
#define TL_WGMMA_REGS2 TL_WGMMA_REGS1, "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
#define TL_WGMMA_REGS3 TL_WGMMA_REGS2, "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11])
#define TL_WGMMA_REGS4 TL_WGMMA_REGS3, "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
#define TL_WGMMA_REGS5 TL_WGMMA_REGS4, "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19])
#define TL_WGMMA_REGS6 TL_WGMMA_REGS5, "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23])
#define TL_WGMMA_REGS7 TL_WGMMA_REGS6, "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27])
#define TL_WGMMA_REGS8 TL_WGMMA_REGS7, "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
#define TL_WGMMA_REGS9 TL_WGMMA_REGS8, "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35])
#define TL_WGMMA_REGS10 TL_WGMMA_REGS9, "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39])
#define TL_WGMMA_REGS11 TL_WGMMA_REGS10, "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43])
#define TL_WGMMA_REGS12 TL_WGMMA_REGS11, "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47])
#define TL_WGMMA_REGS13 TL_WGMMA_REGS12, "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51])
#define TL_WGMMA_REGS14 TL_WGMMA_REGS13, "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55])
#define TL_WGMMA_REGS15 TL_WGMMA_REGS14, "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59])
#define TL_WGMMA_REGS16 TL_WGMMA_REGS15, "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
#define TL_WGMMA_REGS17 TL_WGMMA_REGS16, "+f"(c[64]), "+f"(c[65]), "+f"(c[66]), "+f"(c[67])
#define TL_WGMMA_REGS18 TL_WGMMA_REGS17, "+f"(c[68]), "+f"(c[69]), "+f"(c[70]), "+f"(c[71])
#define TL_WGMMA_REGS19 TL_WGMMA_REGS18, "+f"(c[72]), "+f"(c[73]), "+f"(c[74]), "+f"(c[75])
#define TL_WGMMA_REGS20 TL_WGMMA_REGS19, "+f"(c[76]), "+f"(c[77]), "+f"(c[78]), "+f"(c[79])
#define TL_WGMMA_REGS21 TL_WGMMA_REGS20, "+f"(c[80]), "+f"(c[81]), "+f"(c[82]), "+f"(c[83])
#define TL_WGMMA_REGS22 TL_WGMMA_REGS21, "+f"(c[84]), "+f"(c[85]), "+f"(c[86]), "+f"(c[87])
#define TL_WGMMA_REGS23 TL_WGMMA_REGS22, "+f"(c[88]), "+f"(c[89]), "+f"(c[90]), "+f"(c[91])
#define TL_WGMMA_REGS24 TL_WGMMA_REGS23, "+f"(c[92]), "+f"(c[93]), "+f"(c[94]), "+f"(c[95])
#define TL_WGMMA_REGS25 TL_WGMMA_REGS24, "+f"(c[96]), "+f"(c[97]), "+f"(c[98]), "+f"(c[99])
#define TL_WGMMA_REGS26 TL_WGMMA_REGS25, "+f"(c[100]), "+f"(c[101]), "+f"(c[102]), "+f"(c[103])
#define TL_WGMMA_REGS27 TL_WGMMA_REGS26, "+f"(c[104]), "+f"(c[105]), "+f"(c[106]), "+f"(c[107])
#define TL_WGMMA_REGS28 TL_WGMMA_REGS27, "+f"(c[108]), "+f"(c[109]), "+f"(c[110]), "+f"(c[111])
#define TL_WGMMA_REGS29 TL_WGMMA_REGS28, "+f"(c[112]), "+f"(c[113]), "+f"(c[114]), "+f"(c[115])
#define TL_WGMMA_REGS30 TL_WGMMA_REGS29, "+f"(c[116]), "+f"(c[117]), "+f"(c[118]), "+f"(c[119])
#define TL_WGMMA_REGS31 TL_WGMMA_REGS30, "+f"(c[120]), "+f"(c[121]), "+f"(c[122]), "+f"(c[123])
#define TL_WGMMA_REGS32 TL_WGMMA_REGS31, "+f"(c[124]), "+f"(c[125]), "+f"(c[126]), "+f"(c[127])

template <int N> struct tl_wgmma_shape;

/* Columns, blocks of eight, and the numbers of the operands after the registers. */
#define TL_WGMMA_SHAPE(columns, blocks, a_, b_, accumulate_, a_mn, b_mn)                           \
    template <> struct tl_wgmma_shape<columns> {                                                   \
        template <int A_MN, int B_MN, int C>                                                       \
        static __device__ __forceinline__ void multiply(float (&c)[C], uint64_t a, uint64_t b,     \
                                                        int accumulate)                            \
        {                                                                                          \
            static_assert(C >= columns / 2, "the accumulator is too short");                       \
            asm volatile("{\n"                                                                     \
                         ".reg .pred accumulate;\n"                                                \
                         "setp.ne.b32 accumulate, %" #accumulate_ ", 0;\n"                         \
                         "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.bf16.bf16 {"        \
                         TL_WGMMA_TEXT##blocks "}, %" #a_ ", %" #b_                                \
                         ", accumulate, 1, 1, %" #a_mn ", %" #b_mn ";\n"                           \
                         "}\n"                                                                     \
                         : TL_WGMMA_REGS##blocks                                                   \
                         : "l"(a), "l"(b), "r"(accumulate), "n"(A_MN), "n"(B_MN));                 \
        }                                                                                          \
    };
TL_WGMMA_SHAPE(8, 1, 4, 5, 6, 7, 8)
TL_WGMMA_SHAPE(16, 2, 8, 9, 10, 11, 12)
TL_WGMMA_SHAPE(24, 3, 12, 13, 14, 15, 16)
TL_WGMMA_SHAPE(32, 4, 16, 17, 18, 19, 20)
TL_WGMMA_SHAPE(40, 5, 20, 21, 22, 23, 24)
TL_WGMMA_SHAPE(48, 6, 24, 25, 26, 27, 28)
TL_WGMMA_SHAPE(56, 7, 28, 29, 30, 31, 32)
TL_WGMMA_SHAPE(64, 8, 32, 33, 34, 35, 36)
TL_WGMMA_SHAPE(72, 9, 36, 37, 38, 39, 40)
TL_WGMMA_SHAPE(80, 10, 40, 41, 42, 43, 44)
TL_WGMMA_SHAPE(88, 11, 44, 45, 46, 47, 48)
TL_WGMMA_SHAPE(96, 12, 48, 49, 50, 51, 52)
TL_WGMMA_SHAPE(104, 13, 52, 53, 54, 55, 56)
TL_WGMMA_SHAPE(112, 14, 56, 57, 58, 59, 60)
TL_WGMMA_SHAPE(120, 15, 60, 61, 62, 63, 64)
TL_WGMMA_SHAPE(128, 16, 64, 65, 66, 67, 68)
TL_WGMMA_SHAPE(136, 17, 68, 69, 70, 71, 72)
TL_WGMMA_SHAPE(144, 18, 72, 73, 74, 75, 76)
TL_WGMMA_SHAPE(152, 19, 76, 77, 78, 79, 80)
TL_WGMMA_SHAPE(160, 20, 80, 81, 82, 83, 84)
TL_WGMMA_SHAPE(168, 21, 84, 85, 86, 87, 88)
TL_WGMMA_SHAPE(176, 22, 88, 89, 90, 91, 92)
TL_WGMMA_SHAPE(184, 23, 92, 93, 94, 95, 96)
TL_WGMMA_SHAPE(192, 24, 96, 97, 98, 99, 100)
TL_WGMMA_SHAPE(200, 25, 100, 101, 102, 103, 104)
TL_WGMMA_SHAPE(208, 26, 104, 105, 106, 107, 108)
TL_WGMMA_SHAPE(216, 27, 108, 109, 110, 111, 112)
TL_WGMMA_SHAPE(224, 28, 112, 113, 114, 115, 116)
TL_WGMMA_SHAPE(232, 29, 116, 117, 118, 119, 120)
TL_WGMMA_SHAPE(240, 30, 120, 121, 122, 123, 124)
TL_WGMMA_SHAPE(248, 31, 124, 125, 126, 127, 128)
TL_WGMMA_SHAPE(256, 32, 128, 129, 130, 131, 132)

template <int N, int A_MN = 0, int B_MN = 0, int C>
static __device__ __forceinline__ void tl_wgmma_bf16(float (&c)[C], uint64_t a, uint64_t b,
                                                     int accumulate = 1)
{
    tl_wgmma_shape<N>::template multiply<A_MN, B_MN>(c, a, b, accumulate);
}

#endif
