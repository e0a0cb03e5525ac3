/* What the CPU kernels share: when a loop is worth threads, and for which instruction sets it is
 * compiled. Neither changes a bit of any result: threads and vectors only ever split independent
 * outputs, and contraction into FMA is off.
 */
#ifndef TL_HOST_PARALLEL_H
#define TL_HOST_PARALLEL_H

/* Element operations below which starting the threads costs more than they save. */
#define TL_PARALLEL_WORK 20000

/* On a function: compiled once for each instruction set, chosen when the program starts. Functions
 * with an OpenMP construct must not carry it (their outlined bodies stay at the default set). */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TL_NO_CLONES)
#define TL_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TL_CLONES
#endif

/* Of helpers that are to be compiled with the clones that call them. */
#define TL_INLINE static inline __attribute__((always_inline))

#endif
