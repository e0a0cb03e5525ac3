/* The part of cuBLASLt's interface that cublaslt.c uses, in the library's numbers (CUDA 13.0,
 * cublasLt.h, cublas_api.h, library_types.h). Handles and descriptors are void pointers. */
#ifndef TL_DEVICE_CUBLASLT_ABI_H
#define TL_DEVICE_CUBLASLT_ABI_H

#include "cublaslt.h"

enum {
    CUBLASLT_NOT_SUPPORTED = 15, /* CUBLAS_STATUS_NOT_SUPPORTED */

    CUBLASLT_FP32 = 0, /* CUDA_R_32F */
    CUBLASLT_BF16 = 14,

    CUBLASLT_COMPUTE_FP32 = 68, /* CUBLAS_COMPUTE_32F */
    CUBLASLT_COMPUTE_TF32 = 77, /* CUBLAS_COMPUTE_32F_FAST_TF32 */

    CUBLASLT_PLAIN = 0, /* CUBLAS_OP_N */
    CUBLASLT_TRANSPOSED = 1,

    CUBLASLT_LAYOUT_ROWS = 2, /* CUBLASLT_MATRIX_LAYOUT_ROWS */
    CUBLASLT_LAYOUT_COLS = 3,

    CUBLASLT_DESC_TRANSA = 3, /* CUBLASLT_MATMUL_DESC_TRANSA */
    CUBLASLT_DESC_TRANSB = 4,

    CUBLASLT_PREF_WORKSPACE = 1, /* CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES */
    CUBLASLT_PREF_ALIGNMENT_A = 5,
    CUBLASLT_PREF_ALIGNMENT_D = 8,
};

/* cublasLtMatmulHeuristicResult_t */
struct cublaslt_heuristic {
    struct tl_cublaslt_algo algo;
    size_t workspace_bytes;
    int state; /* a cublasStatus_t */
    float waves;
    int reserved[4];
};

#endif
