/* The host matrix engine by itself: vector widths, and strides beyond 2^31 elements. */
#include "rig.h"

#include "kernels/host/gemm_tile.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct tl_gemm_operand operand(const struct tl_tensor *tensor, int64_t stride,
                                      int64_t k_stride)
{
    return (struct tl_gemm_operand){
        .data = tensor->data, .dtype = tensor->dtype, .stride = stride, .k_stride = k_stride};
}

/* Machines with narrow and with wide vectors compute the same bits. */
static void test_vector_width_changes_no_bit(void **state)
{
    (void)state;
    static const enum tl_dtype dtypes[] = {TL_FP32, TL_FP64, TL_BF16};
    int64_t m = 41, n = 83, k = 290;
    for (int t = 0; t < 3; t++) {
        struct rig rig;
        rig_open(&rig, "gemm", "cpu_plain");
        struct tl_tensor *a = rig_normal(&rig, "a", dtypes[t], m, k, -1, 1);
        struct tl_tensor *b = rig_normal(&rig, "b", dtypes[t], n, k, -1, 2);
        struct tl_tensor *d = rig_poison(&rig, "d", dtypes[t], m, n, -1);
        struct tl_gemm_call call = {.m = m,
                                    .n = n,
                                    .k = k,
                                    .num_groups = 1,
                                    .a = operand(a, k, 1),
                                    .b = operand(b, k, 1),
                                    .d = d->data,
                                    .d_dtype = d->dtype,
                                    .vector_bytes = 16};
        tl_gemm_tile_run(&call);
        void *narrow = bytes_of(d);
        for (call.vector_bytes = 32; call.vector_bytes <= tl_gemm_vector_bytes();
             call.vector_bytes *= 2) {
            assert_ok(tl_tensor_poison(d));
            tl_gemm_tile_run(&call);
            assert_true(bytes_equal(d, narrow));
        }
        free(narrow);
        rig_close(&rig);
    }
}

/* Three groups whose weights lie 2^31 elements apart, in memory that is mostly never touched. */
static void test_strides_beyond_32_bits(void **state)
{
    (void)state;
    int64_t n = 3, k = 4, group_stride = ((int64_t)1 << 31) + 16;
    size_t bytes = (size_t)(2 * group_stride + n * k) * sizeof(float);
    float *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b == MAP_FAILED) {
        print_message("# no address space for a large tensor\n");
        skip();
    }
    float a[3 * 4], d[3 * 3];
    int32_t offsets[] = {0, 1, 1, 3};
    for (int i = 0; i < 12; i++)
        a[i] = (float)(i + 1);
    for (int64_t i = 0; i < n * k; i++) {
        b[i] = 1;
        b[2 * group_stride + i] = 2;
    }
    tl_gemm_tile_run(&(struct tl_gemm_call){
        .grouping = TL_GEMM_M_GROUPED,
        .n = n,
        .k = k,
        .num_groups = 3,
        .group_offsets = offsets,
        .a = {.data = a, .dtype = TL_FP32, .stride = k, .k_stride = 1},
        .b =
            {.data = b, .dtype = TL_FP32, .stride = k, .k_stride = 1, .group_stride = group_stride},
        .d = d,
        .d_dtype = TL_FP32,
    });
    for (int j = 0; j < 3; j++) {
        assert_true(d[j] == 10);
        assert_true(d[3 + j] == 52);
        assert_true(d[6 + j] == 84);
    }
    munmap(b, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_width_changes_no_bit),
        cmocka_unit_test(test_strides_beyond_32_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
