/* The generator against published vectors, and random tensors against the generator. */
#include "check.h"
#include "core/random.h"
#include "core/tensor.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

/* kat_vectors of Random123, philox 4x32, 10 rounds: counter, key, result. */
static void published_vectors(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], result[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        struct tl_random_block block =
            tl_random_at(cases[i].key[0] | (uint64_t)cases[i].key[1] << 32,
                         cases[i].counter[2] | (uint64_t)cases[i].counter[3] << 32,
                         cases[i].counter[0] | (uint64_t)cases[i].counter[1] << 32);
        assert_memory_equal(block.word, cases[i].result, sizeof block.word);
    }
}

static void normal_has_its_moments(void **state)
{
    (void)state;
    enum { N = 1000000 };
    double sum[5] = {0};
    double beyond_1 = 0, beyond_2 = 0;
    for (int i = 0; i < N; i++) {
        double z = (double)tl_random_normal(tl_random_at(11, 5, (uint64_t)i));
        assert_true(fabs(z) <= 4.9);
        for (int p = 1; p <= 4; p++)
            sum[p] += pow(z, p);
        beyond_1 += fabs(z) > 1;
        beyond_2 += fabs(z) > 2;
    }
    /* Five standard errors; the kurtosis of eight uniforms is 3 - 1.2 / 8. */
    assert_true(fabs(sum[1] / N) < 0.005);
    assert_true(fabs(sum[2] / N - 1) < 0.0075);
    assert_true(fabs(sum[3] / N) < 0.02);
    assert_true(fabs(sum[4] / N - 2.85) < 0.05);
    assert_true(fabs(beyond_1 / N - 0.3173) < 0.01);
    assert_true(fabs(beyond_2 / N - 0.0455) < 0.003);
}

static void uniform_fills_its_interval(void **state)
{
    (void)state;
    enum { N = 1000000, BINS = 100 };
    int count[BINS] = {0};
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        double u = (double)tl_random_uniform(tl_random_at(3, 1, (uint64_t)i));
        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += u * u;
        count[(int)(u * BINS)]++;
    }
    assert_true(fabs(sum / N - 0.5) < 0.0015);
    assert_true(fabs(squares / N - 1.0 / 3) < 0.0015);
    double chi_squared = 0;
    for (int i = 0; i < BINS; i++)
        chi_squared += (count[i] - N / BINS) * (double)(count[i] - N / BINS) / (N / BINS);
    assert_true(chi_squared > 50 && chi_squared < 160); /* 99 degrees of freedom */
    /* The ends: 24 bits of zeros and of ones. */
    struct tl_random_block zeros = {{0xff, 0, 0, 0}}, ones = {{0xffffffff, 0, 0, 0}};
    assert_true(tl_random_uniform(zeros) == 0);
    assert_true(tl_random_uniform(ones) == 1 - 0x1p-24f);
    struct tl_random_block low = {{0, 0, 0, 0}};
    struct tl_random_block high = {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}};
    assert_true(tl_random_normal(low) == -tl_random_normal(high));
}

static void below_is_even(void **state)
{
    (void)state;
    enum { N = 300000 };
    int count[6] = {0};
    for (int i = 0; i < N; i++) {
        uint32_t drawn = tl_random_below(tl_random_at(8, 0, (uint64_t)i), 6);
        assert_true(drawn < 6);
        count[drawn]++;
        assert_int_equal(tl_random_below(tl_random_at(8, 0, (uint64_t)i), 1), 0);
    }
    for (int i = 0; i < 6; i++)
        assert_true(abs(count[i] - N / 6) < 1100);
    struct tl_random_block ones = {{0xffffffff, 0xffffffff, 0, 0}};
    assert_int_equal(tl_random_below(ones, 0xffffffff), 0xfffffffe);
}

static void streams_differ(void **state)
{
    (void)state;
    struct tl_random_block a = tl_random_at(1, 2, 3);
    uint64_t others[][3] = {{2, 2, 3},          {1, 3, 3},          {1, 2, 4},         {1, 3, 2},
                            {1ull << 32, 2, 3}, {1, 2ull << 32, 3}, {1, 2, 3ull << 32}};
    for (int i = 0; i < 7; i++) {
        struct tl_random_block b = tl_random_at(others[i][0], others[i][1], others[i][2]);
        for (int w = 0; w < 4; w++)
            assert_true(a.word[w] != b.word[w]);
    }
}

static struct tl_tensor new_tensor(struct tl_device *device, enum tl_dtype dtype, int64_t count)
{
    struct tl_tensor tensor;
    assert_ok(tl_tensor_init(&tensor, device, dtype, 1, &count));
    assert_ok(tl_tensor_poison(&tensor));
    return tensor;
}

static void elements_are_functions_of_their_index(void **state)
{
    (void)state;
    enum { N = 5003 };
    struct tl_tensor fp64 = new_tensor(cpu_device(), TL_FP64, N);
    struct tl_tensor fp32 = new_tensor(cpu_device(), TL_FP32, N);
    struct tl_tensor bf16 = new_tensor(cpu_device(), TL_BF16, N);
    assert_ok(tl_tensor_random(&fp64, TL_NORMAL, 2, 0.5, 42, 7));
    assert_ok(tl_tensor_random(&fp32, TL_NORMAL, 2, 0.5, 42, 7));
    assert_ok(tl_tensor_random(&bf16, TL_NORMAL, 2, 0.5, 42, 7));
    for (int64_t i = 0; i < N; i++) {
        double z = (double)tl_random_normal(tl_random_at(42, 7, (uint64_t)i));
        double wanted = 2 + 0.5 * z;
        assert_true(((double *)fp64.data)[i] == wanted);
        assert_true(((float *)fp32.data)[i] == (float)wanted);
        assert_int_equal(((uint16_t *)bf16.data)[i], tl_bf16_from_fp64(wanted));
    }
    assert_ok(tl_tensor_random(&fp32, TL_UNIFORM, 0, 1, 42, 8));
    for (int64_t i = 0; i < N; i++)
        assert_true(((float *)fp32.data)[i] == tl_random_uniform(tl_random_at(42, 8, (uint64_t)i)));
    tl_tensor_done(&fp64);
    tl_tensor_done(&fp32);
    tl_tensor_done(&bf16);
}

static void bits_take_the_first_words(void **state)
{
    (void)state;
    static const enum tl_dtype all[] = {TL_FP64, TL_FP32, TL_BF16, TL_I32, TL_U8, TL_E4M3, TL_E8M0};
    for (int d = 0; d < TL_NUM_DTYPES; d++) {
        struct tl_tensor tensor = new_tensor(cpu_device(), all[d], 333);
        size_t size = tl_dtype_size(all[d]);
        assert_ok(tl_tensor_random(&tensor, TL_BITS, 0, 0, 5, 6));
        for (uint64_t i = 0; i < 333; i++) { /* little-endian: the low bytes come first */
            struct tl_random_block block = tl_random_at(5, 6, i);
            assert_memory_equal((char *)tensor.data + i * size, block.word, size);
        }
        tl_tensor_done(&tensor);
    }
}

static void threads_and_devices_do_not_matter(void **state)
{
    (void)state;
    enum { N = 10007 };
    struct tl_tensor one = new_tensor(cpu_device(), TL_FP32, N);
    struct tl_tensor four = new_tensor(cpu_device(), TL_FP32, N);
    struct tl_tensor fake = new_tensor(fake_device(), TL_FP32, N);
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    assert_ok(tl_tensor_random(&one, TL_NORMAL, 0, 1, 1, 0));
    omp_set_num_threads(4);
    assert_ok(tl_tensor_random(&four, TL_NORMAL, 0, 1, 1, 0));
    omp_set_num_threads(threads);
    assert_memory_equal(one.data, four.data, N * sizeof(float));
    assert_ok(tl_tensor_random(&fake, TL_NORMAL, 0, 1, 1, 0));
    assert_ok(tl_tensor_poison(&four));
    assert_ok(tl_tensor_copy(&four, &fake, NULL));
    assert_memory_equal(one.data, four.data, N * sizeof(float));
    tl_tensor_done(&one);
    tl_tensor_done(&four);
    tl_tensor_done(&fake);
    assert_int_equal(fake_allocations, 0);
}

/* Rounding to the dtype must not reach the excluded end. */
static void uniform_excludes_its_end(void **state)
{
    (void)state;
    static const double intervals[][2] = {{0, 1},    {-1, 0},     {1, 2},      {-2, -1},
                                          {1, 1.02}, {-1.02, -1}, {0.3, 0.31}, {100, 101}};
    static const enum tl_dtype floats[] = {TL_FP64, TL_FP32, TL_BF16};
    enum { N = 20000 };
    for (int f = 0; f < 3; f++) {
        struct tl_tensor tensor = new_tensor(cpu_device(), floats[f], N);
        for (int i = 0; i < 8; i++) {
            double ends[2], lowest = INFINITY, highest = -INFINITY;
            for (int j = 0; j < 2; j++) {
                tl_element_set(tensor.data, floats[f], 0, intervals[i][j]);
                ends[j] = tl_element_get(tensor.data, floats[f], 0);
            }
            assert_ok(tl_tensor_random(&tensor, TL_UNIFORM, intervals[i][0], intervals[i][1], 9,
                                       (uint64_t)i));
            for (int64_t j = 0; j < N; j++) {
                double value = tl_element_get(tensor.data, floats[f], j);
                assert_true(value >= ends[0] && value < ends[1]);
                lowest = fmin(lowest, value);
                highest = fmax(highest, value);
            }
            double width = ends[1] - ends[0], grain = ends[1] > 99 ? 0.5 : 0.008;
            assert_true(lowest - ends[0] <= fmax(0.002 * width, grain));
            assert_true(ends[1] - highest <= fmax(0.002 * width, grain));
        }
        tl_tensor_done(&tensor);
    }
}

static void uniform_integers(void **state)
{
    (void)state;
    struct tl_tensor tensor = new_tensor(cpu_device(), TL_I32, 60000);
    int count[6] = {0};
    assert_ok(tl_tensor_random(&tensor, TL_UNIFORM, -3, 3, 4, 4));
    for (int i = 0; i < 60000; i++) {
        int32_t value = ((int32_t *)tensor.data)[i];
        assert_true(value >= -3 && value < 3);
        count[value + 3]++;
    }
    for (int i = 0; i < 6; i++)
        assert_true(abs(count[i] - 10000) < 500);
    assert_ok(tl_tensor_random(&tensor, TL_UNIFORM, -2147483648.0, 2147483647.0, 4, 5));
    double sum = 0;
    for (int i = 0; i < 60000; i++)
        sum += ((int32_t *)tensor.data)[i];
    assert_true(fabs(sum / 60000) < 0x1p31 / 80);
    assert_ok(tl_tensor_random(&tensor, TL_UNIFORM, 4.5, 5.5, 4, 5));
    assert_int_equal(((int32_t *)tensor.data)[59999], 5);
    tl_tensor_done(&tensor);
    tensor = new_tensor(cpu_device(), TL_U8, 1000);
    assert_ok(tl_tensor_random(&tensor, TL_UNIFORM, 250, 256, 4, 4));
    for (int i = 0; i < 1000; i++)
        assert_true(((uint8_t *)tensor.data)[i] >= 250);
    assert_fails(TL_ERR_ARGUMENT, "u8", tl_tensor_random(&tensor, TL_UNIFORM, 250, 257, 4, 4));
    assert_fails(TL_ERR_ARGUMENT, "u8", tl_tensor_random(&tensor, TL_UNIFORM, -1, 5, 4, 4));
    assert_fails(TL_ERR_ARGUMENT, "0 integers",
                 tl_tensor_random(&tensor, TL_UNIFORM, 1.2, 1.8, 4, 4));
    tl_tensor_done(&tensor);
}

static void refuses(void **state)
{
    (void)state;
    struct tl_tensor fp32 = new_tensor(cpu_device(), TL_FP32, 4);
    struct tl_tensor bf16 = new_tensor(cpu_device(), TL_BF16, 4);
    struct tl_tensor i32 = new_tensor(cpu_device(), TL_I32, 4);
    struct tl_tensor e4m3 = new_tensor(cpu_device(), TL_E4M3, 4);
    static const double bad[][2] = {{1, 1},   {2, 1},        {NAN, 1},
                                    {0, NAN}, {0, INFINITY}, {-1e308, 1.7e308}};
    for (int i = 0; i < 6; i++)
        assert_fails(TL_ERR_ARGUMENT, "uniform",
                     tl_tensor_random(&fp32, TL_UNIFORM, bad[i][0], bad[i][1], 0, 0));
    assert_fails(TL_ERR_ARGUMENT, "bf16", tl_tensor_random(&bf16, TL_UNIFORM, 1.001, 1.002, 0, 0));
    assert_fails(TL_ERR_ARGUMENT, "normal", tl_tensor_random(&fp32, TL_NORMAL, 0, -1, 0, 0));
    assert_fails(TL_ERR_ARGUMENT, "normal", tl_tensor_random(&fp32, TL_NORMAL, NAN, 1, 0, 0));
    assert_fails(TL_ERR_ARGUMENT, "i32", tl_tensor_random(&i32, TL_NORMAL, 0, 1, 0, 0));
    assert_fails(TL_ERR_ARGUMENT, "e4m3", tl_tensor_random(&e4m3, TL_UNIFORM, 0, 1, 0, 0));
    struct tl_tensor strided = fp32;
    strided.stride[0] = 2;
    strided.shape[0] = 2;
    assert_fails(TL_ERR_ARGUMENT, "contiguous", tl_tensor_random(&strided, TL_BITS, 0, 0, 0, 0));
    /* Nothing was written by any of these. */
    for (int i = 0; i < 4; i++)
        assert_true(isnan(((float *)fp32.data)[i]));
    tl_tensor_done(&fp32);
    tl_tensor_done(&bf16);
    tl_tensor_done(&i32);
    tl_tensor_done(&e4m3);
    struct tl_tensor empty = new_tensor(cpu_device(), TL_FP32, 0);
    assert_ok(tl_tensor_random(&empty, TL_NORMAL, 0, 1, 0, 0));
    tl_tensor_done(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(normal_has_its_moments),
        cmocka_unit_test(uniform_fills_its_interval),
        cmocka_unit_test(below_is_even),
        cmocka_unit_test(streams_differ),
        cmocka_unit_test(elements_are_functions_of_their_index),
        cmocka_unit_test(bits_take_the_first_words),
        cmocka_unit_test(threads_and_devices_do_not_matter),
        cmocka_unit_test(uniform_excludes_its_end),
        cmocka_unit_test(uniform_integers),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
