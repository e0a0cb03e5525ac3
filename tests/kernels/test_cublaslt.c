/* The hand-written part of cuBLASLt's interface against NVIDIA's header, where there is one; and
 * what a machine without a GPU is told. */
#include "kernels/device/cublaslt_abi.h"
#include "kernels/m_grouped_gemm/op.h"
#include "kernels/table.h"
#include "tests/core/check.h"

#if TL_CUDA && defined(__has_include)
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define HAVE_HEADER 1
#endif
#endif

static void numbers_are_the_librarys(void **state)
{
    (void)state;
#ifdef HAVE_HEADER
    assert_int_equal(CUBLASLT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(CUBLAS_STATUS_SUCCESS, 0);
    assert_int_equal(CUBLASLT_FP32, CUDA_R_32F);
    assert_int_equal(CUBLASLT_BF16, CUDA_R_16BF);
    assert_int_equal(CUBLASLT_COMPUTE_FP32, CUBLAS_COMPUTE_32F);
    assert_int_equal(CUBLASLT_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
    assert_int_equal(CUBLASLT_PLAIN, CUBLAS_OP_N);
    assert_int_equal(CUBLASLT_TRANSPOSED, CUBLAS_OP_T);
    assert_int_equal(CUBLASLT_LAYOUT_ROWS, CUBLASLT_MATRIX_LAYOUT_ROWS);
    assert_int_equal(CUBLASLT_LAYOUT_COLS, CUBLASLT_MATRIX_LAYOUT_COLS);
    assert_int_equal(CUBLASLT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
    assert_int_equal(CUBLASLT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB);
    assert_int_equal(CUBLASLT_PREF_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
    assert_int_equal(CUBLASLT_PREF_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
    assert_int_equal(CUBLASLT_PREF_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
    assert_int_equal(sizeof(struct tl_cublaslt_algo), sizeof(cublasLtMatmulAlgo_t));
    assert_int_equal(sizeof(struct cublaslt_heuristic), sizeof(cublasLtMatmulHeuristicResult_t));
    assert_int_equal(offsetof(struct cublaslt_heuristic, workspace_bytes),
                     offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
    assert_int_equal(offsetof(struct cublaslt_heuristic, state),
                     offsetof(cublasLtMatmulHeuristicResult_t, state));
#else
    print_message("# no cublasLt.h in this build\n");
    skip();
#endif
}

static void the_cpu_is_refused(void **state)
{
    (void)state;
    const struct tl_kernel *kernel;
    assert_ok(tl_kernels_register());
#if TL_CUDA
    assert_ok(tl_kernel_find("gemm", "cublaslt_dense", &kernel));
    assert_fails(TL_ERR_ILLEGAL, "gemm/cublaslt_dense needs an NVIDIA GPU",
                 tl_kernel_usable(kernel, cpu_device()));
#else
    assert_fails(TL_ERR_ARGUMENT, "cpu_plain", tl_kernel_find("gemm", "cublaslt_dense", &kernel));
#endif
}

static void the_loop_needs_the_rows_on_the_host(void **state)
{
    (void)state;
#if TL_CUDA
    const struct tl_kernel *kernel;
    struct tl_problem problem = {.operation = &tl_op_m_grouped_gemm};
    assert_ok(tl_kernels_register());
    assert_ok(tl_kernel_find("m_grouped_gemm", "cublaslt_loop", &kernel));
    problem.dim[TL_M_GROUPED_N] = problem.dim[TL_M_GROUPED_K] = 16;
    assert_fails(TL_ERR_ILLEGAL, "'counts_host' [num_groups] is missing", kernel->legal(&problem));
    problem.present[TL_M_GROUPED_COUNTS] = true;
    assert_ok(kernel->legal(&problem));
    problem.dim[TL_M_GROUPED_K] = 20;
    assert_fails(TL_ERR_ILLEGAL, "k is 20", kernel->legal(&problem));
#else
    print_message("# built without CUDA\n");
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_the_librarys),
        cmocka_unit_test(the_cpu_is_refused),
        cmocka_unit_test(the_loop_needs_the_rows_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
