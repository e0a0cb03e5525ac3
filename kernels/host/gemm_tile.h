/* The CPU's matrix engine: d = d? + a b for one dense problem or for the groups of a ragged one.
 *
 * Work is cut into blocks of d; a block packs slices of b (and of a, where it has to) into the
 * compute type, and a register-blocked kernel runs over independent outputs. Each element of d is
 * one accumulator over ascending k, added to d at the end, so that its bits depend neither on the
 * blocks, nor on the number of threads, nor on where a row stands in its group. The compute type
 * is fp64 where d is fp64 and fp32 elsewhere; multiply and add round separately.
 */
#ifndef TL_GEMM_TILE_H
#define TL_GEMM_TILE_H

#include "core/kernel.h"

/* What group_offsets cut: nothing, the rows of a and d, or the reduction dimension. */
enum tl_gemm_grouping { TL_GEMM_DENSE, TL_GEMM_M_GROUPED, TL_GEMM_K_GROUPED };

/* a[i, p] or b[j, p] of group g stands at data[g * group_stride + i * stride + p * k_stride];
 * strides are in elements. */
struct tl_gemm_operand {
    const void *data;
    enum tl_dtype dtype; /* fp64, fp32 or bf16 */
    int64_t stride, k_stride, group_stride;
};

struct tl_gemm_call {
    enum tl_gemm_grouping grouping;
    int64_t m, n, k; /* of one group; the grouped one of them is not read */
    int64_t num_groups;
    const int32_t *group_offsets; /* num_groups + 1, already validated; NULL when dense */
    struct tl_gemm_operand a, b;
    void *d; /* rows of n contiguous elements: [m, n], or [num_groups, m, n] when k-grouped */
    enum tl_dtype d_dtype;
    bool accumulate;  /* d + a b; a sum of exactly 0 then leaves d as it is, even a -0 */
    int vector_bytes; /* at most vectors of 16, 32 or 64 bytes; 0: as wide as the machine has */
};

/* The widest vectors this machine and build have. Their width changes no bit of the result. */
int tl_gemm_vector_bytes(void);

/* Computes the call. Rows outside group_offsets are neither read nor written; k = 0 writes zeros,
 * or nothing when accumulating. Small problems stay on the calling thread. */
void tl_gemm_tile_run(const struct tl_gemm_call *call);

#endif
