/* Cuts a call into blocks of d and deals them out to threads; gemm_tile.inc computes one block. */
#include "gemm_tile.h"

#include <omp.h>
#include <string.h>

#define MICRO_M 6
#define BLOCK_M 96  /* rows of d in a block, at most: a multiple of MICRO_M * 4 */
#define BLOCK_N 128 /* columns: a multiple of 64 bytes */
#define BLOCK_K 256 /* a packed slice of b is 16 KiB, half of a small L1 cache */

/* A fork and join of OpenMP costs about as much as this many operations. */
#define FORK_FLOPS 50e3

/* A thread's copies and sums: 330 KB of its stack, of which fp32 touches half. */
struct scratch {
    union {
        float fp32[BLOCK_M * BLOCK_K];
        double fp64[BLOCK_M * BLOCK_K];
    } a; /* [row tile][k][MICRO_M] */
    union {
        float fp32[BLOCK_K * 64 / sizeof(float)];
        double fp64[BLOCK_K * 64 / sizeof(double)];
    } b; /* [k][64 bytes] */
    union {
        float fp32[BLOCK_M * BLOCK_N];
        double fp64[BLOCK_M * BLOCK_N];
    } sum; /* [row][BLOCK_N] */
};

/* Rows x columns of d, with a, b and d at its first row and column. */
struct block {
    const struct tl_gemm_call *call;
    int64_t rows, columns, k;
    const void *a, *b; /* not read when k is 0 */
    void *d;
};

static inline int64_t min_of(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static inline int64_t blocks_of(int64_t size, int64_t block)
{
    return (size + block - 1) / block;
}

static inline const void *element_at(const struct tl_gemm_operand *operand, const void *data,
                                     int64_t elements)
{
    return (const char *)data + elements * (int64_t)tl_dtype_size(operand->dtype);
}

static inline float widen(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The two levels let macro arguments expand before they are pasted. */
#define PASTE_(x, y) x##y
#define PASTE(x, y)  PASTE_(x, y)

typedef float real_fp32;
typedef double real_fp64;

#define VECTOR_BYTES_base 16
#define TARGET_base
#define TYPE fp32
#define ISA  base
#include "gemm_tile.inc"
#define TYPE fp64
#define ISA  base
#include "gemm_tile.inc"

/* AVX2 has no FMA, and -ffp-contract=off keeps AVX-512's out: all widths give the same bits. */
#ifdef __x86_64__
#define VECTOR_BYTES_avx2 32
#define TARGET_avx2       __attribute__((target("avx2")))
#define TYPE              fp32
#define ISA               avx2
#include "gemm_tile.inc"
#define TYPE fp64
#define ISA  avx2
#include "gemm_tile.inc"

#define VECTOR_BYTES_avx512 64
#define TARGET_avx512       __attribute__((target("avx512f")))
#define TYPE                fp32
#define ISA                 avx512
#include "gemm_tile.inc"
#define TYPE fp64
#define ISA  avx512
#include "gemm_tile.inc"
#endif

typedef void block_function(struct scratch *scratch, const struct block *block);

int tl_gemm_vector_bytes(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return 64;
    if (__builtin_cpu_supports("avx2"))
        return 32;
#endif
    return 16;
}

static block_function *choose_function(const struct tl_gemm_call *call)
{
    int vector_bytes = tl_gemm_vector_bytes();
    bool fp64 = call->d_dtype == TL_FP64;
    if (call->vector_bytes && call->vector_bytes < vector_bytes)
        vector_bytes = call->vector_bytes;
#ifdef __x86_64__
    if (vector_bytes == 64)
        return fp64 ? block_run_fp64_avx512 : block_run_fp32_avx512;
    if (vector_bytes == 32)
        return fp64 ? block_run_fp64_avx2 : block_run_fp32_avx2;
#endif
    return fp64 ? block_run_fp64_base : block_run_fp32_base;
}

/* Rows of the grouped dimension that belong to group g. */
static int64_t group_size(const struct tl_gemm_call *call, int64_t g)
{
    return (int64_t)call->group_offsets[g + 1] - call->group_offsets[g];
}

static int64_t group_blocks(const struct tl_gemm_call *call, int64_t block_m, int64_t g)
{
    int64_t m = call->grouping == TL_GEMM_M_GROUPED ? group_size(call, g) : call->m;
    return blocks_of(m, block_m) * blocks_of(call->n, BLOCK_N);
}

static int64_t count_blocks(const struct tl_gemm_call *call, int64_t block_m)
{
    if (call->grouping != TL_GEMM_M_GROUPED)
        return call->num_groups * group_blocks(call, block_m, 0);
    int64_t count = 0;
    for (int64_t g = 0; g < call->num_groups; g++)
        count += group_blocks(call, block_m, g);
    return count;
}

/* The block at `position` of group g; neighbours in position share columns, hence b. */
static struct block block_at(const struct tl_gemm_call *call, int64_t block_m, int64_t g,
                             int64_t position)
{
    const struct tl_gemm_operand *a = &call->a, *b = &call->b;
    int64_t m = call->m, k = call->k;
    int64_t a_at = g * a->group_stride, b_at = g * b->group_stride, d_row = 0;
    if (call->grouping == TL_GEMM_M_GROUPED) {
        m = group_size(call, g);
        a_at += call->group_offsets[g] * a->stride;
        d_row = call->group_offsets[g];
    } else if (call->grouping == TL_GEMM_K_GROUPED) {
        k = group_size(call, g);
        a_at += call->group_offsets[g] * a->k_stride;
        b_at += call->group_offsets[g] * b->k_stride;
        d_row = g * m;
    }
    int64_t row_blocks = blocks_of(m, block_m);
    int64_t row = position % row_blocks * block_m, column = position / row_blocks * BLOCK_N;
    int64_t d_at = (d_row + row) * call->n + column;
    return (struct block){
        .call = call,
        .rows = min_of(block_m, m - row),
        .columns = min_of(BLOCK_N, call->n - column),
        .k = k,
        .a = k == 0 ? NULL : element_at(a, a->data, a_at + row * a->stride),
        .b = k == 0 ? NULL : element_at(b, b->data, b_at + column * b->stride),
        .d = (char *)call->d + d_at * (int64_t)tl_dtype_size(call->d_dtype),
    };
}

/* One thread's part of the blocks. A thread's positions ascend, so it walks the groups once. */
static void run_share(const struct tl_gemm_call *call, int64_t block_m, int64_t count)
{
    _Alignas(64) struct scratch scratch;
    block_function *run = choose_function(call);
    int64_t g = 0, first = 0; /* the group the last block was in, and its first block */
#pragma omp for schedule(monotonic : dynamic)
    for (int64_t i = 0; i < count; i++) {
        for (int64_t size; i >= first + (size = group_blocks(call, block_m, g)); g++)
            first += size;
        struct block block = block_at(call, block_m, g, i - first);
        run(&scratch, &block);
    }
}

void tl_gemm_tile_run(const struct tl_gemm_call *call)
{
    if (call->n == 0 || call->num_groups == 0)
        return;
    double m = (double)call->m, k = (double)call->k;
    if (call->grouping == TL_GEMM_M_GROUPED)
        m = call->group_offsets[call->num_groups];
    if (call->grouping == TL_GEMM_K_GROUPED)
        k = call->group_offsets[call->num_groups];
    bool fork = 2 * m * (double)call->n * k > FORK_FLOPS;

    int64_t block_m = BLOCK_M, count = count_blocks(call, block_m);
    while (fork && block_m > BLOCK_M / 4 && count < 4 * omp_get_max_threads()) {
        block_m /= 2;
        count = count_blocks(call, block_m);
    }
    if (count == 0)
        return;
#pragma omp parallel if (fork && count > 1)
    run_share(call, block_m, count);
}
