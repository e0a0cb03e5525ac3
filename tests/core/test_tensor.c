#include "check.h"
#include "core/tensor.h"

#include <math.h>

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static struct tl_tensor new_tensor(struct tl_device *device, enum tl_dtype dtype, int rank,
                                   const int64_t *shape)
{
    struct tl_tensor tensor;
    assert_ok(tl_tensor_init(&tensor, device, dtype, rank, shape));
    return tensor;
}

static void a_fresh_tensor_is_row_major(void **state)
{
    (void)state;
    struct tl_tensor t = new_tensor(cpu_device(), TL_BF16, 3, SHAPE(2, 3, 5));
    assert_true(t.rank == 3 && t.dtype == TL_BF16 && t.device == cpu_device());
    assert_memory_equal(t.shape, SHAPE(2, 3, 5), 3 * sizeof *t.shape);
    assert_memory_equal(t.stride, SHAPE(15, 5, 1), 3 * sizeof *t.stride);
    assert_int_equal((uintptr_t)t.data % 256, 0);
    assert_int_equal(tl_tensor_numel(&t), 30);
    assert_int_equal(tl_tensor_bytes(&t), 60);
    assert_true(tl_tensor_is_contiguous(&t));
    memset(t.data, 0, 60);
    tl_tensor_done(&t);
    assert_true(t.rank == 0 && !t.data && !t.storage);
    tl_tensor_done(&t);
    struct tl_tensor zeroed = {0};
    tl_tensor_done(&zeroed);
    assert_int_equal(tl_tensor_numel(&zeroed), 0);
}

static void empty_tensors(void **state)
{
    (void)state;
    struct tl_tensor t = new_tensor(fake_device(), TL_FP32, 3, SHAPE(4, 0, 3)), view;
    assert_null(t.data);
    assert_int_equal(tl_tensor_numel(&t), 0);
    assert_int_equal(tl_tensor_bytes(&t), 0);
    assert_true(tl_tensor_is_contiguous(&t));
    assert_ok(tl_tensor_fill(&t, 1));
    assert_ok(tl_tensor_poison(&t));
    assert_ok(tl_tensor_copy(&t, &t, NULL));
    assert_ok(tl_tensor_rows(&view, &t, 1, 3));
    assert_true(view.shape[0] == 2 && view.shape[1] == 0);
    tl_tensor_done(&view);
    assert_ok(tl_tensor_view(&view, &t, 0, 1, SHAPE(0)));
    tl_tensor_done(&view);
    struct tl_tensor other = new_tensor(cpu_device(), TL_BF16, 1, SHAPE(0));
    assert_ok(tl_tensor_convert(&other, &t));
    tl_tensor_done(&other);
    tl_tensor_done(&t);
    assert_int_equal(fake_allocations, 0);
}

static void shapes_that_cannot_be(void **state)
{
    (void)state;
    const int64_t half = (int64_t)1 << 62;
    static const int64_t ones[TL_MAX_RANK + 1] = {1, 1, 1, 1, 1, 1};
    struct tl_device *cpu = cpu_device();
    struct tl_tensor t;
    assert_fails(TL_ERR_ARGUMENT, "0", tl_tensor_init(&t, cpu, TL_FP32, 0, ones));
    assert_fails(TL_ERR_ARGUMENT, "6", tl_tensor_init(&t, cpu, TL_FP32, TL_MAX_RANK + 1, ones));
    assert_fails(TL_ERR_ARGUMENT, "-1", tl_tensor_init(&t, cpu, TL_FP32, -1, ones));
    assert_fails(TL_ERR_ARGUMENT, "-3", tl_tensor_init(&t, cpu, TL_FP32, 2, SHAPE(2, -3)));
    assert_fails(TL_ERR_ARGUMENT, "-3", tl_tensor_init(&t, cpu, TL_FP32, 2, SHAPE(0, -3)));
    assert_fails(TL_ERR_ARGUMENT, "2^63", tl_tensor_init(&t, cpu, TL_FP32, 1, SHAPE(half)));
    assert_fails(TL_ERR_ARGUMENT, "2^63", tl_tensor_init(&t, cpu, TL_U8, 2, SHAPE(half, 2)));
    assert_fails(TL_ERR_ARGUMENT, "2^63", tl_tensor_init(&t, cpu, TL_U8, 2, SHAPE(half, half)));
    assert_fails(TL_ERR_ARGUMENT, "2^63", tl_tensor_init(&t, cpu, TL_FP64, 1, SHAPE(half / 2)));
    assert_fails(TL_ERR_MEMORY, "4611686018427387904",
                 tl_tensor_init(&t, cpu, TL_U8, 1, SHAPE(half)));
    /* Strides must not overflow, even where there is nothing to step over. */
    if (tl_tensor_init(&t, cpu, TL_U8, 3, SHAPE(0, half, half)) == TL_OK) {
        assert_int_equal(tl_tensor_numel(&t), 0);
        tl_tensor_done(&t);
    }
    assert_null(t.storage);
    fake_refuse = 1;
    assert_fails(TL_ERR_MEMORY, "refused", tl_tensor_init(&t, fake_device(), TL_U8, 1, SHAPE(5)));
    tl_tensor_done(&t);
}

static void views_share_storage(void **state)
{
    (void)state;
    struct tl_tensor t = new_tensor(fake_device(), TL_FP32, 2, SHAPE(4, 6)), view, rows;
    void *data = t.data;
    assert_ok(tl_tensor_view(&view, &t, 5, 3, SHAPE(3, 2, 3)));
    assert_int_equal((uintptr_t)view.data - (uintptr_t)data, 20);
    assert_memory_equal(view.stride, SHAPE(6, 3, 1), 3 * sizeof *view.stride);
    assert_true(view.rank == 3 && view.dtype == TL_FP32 && view.device == fake_device());
    assert_ok(tl_tensor_rows(&rows, &t, 1, 3));
    assert_int_equal((uintptr_t)rows.data - (uintptr_t)data, 24);
    assert_true(rows.rank == 2 && rows.shape[0] == 2 && rows.shape[1] == 6);
    assert_int_equal(tl_tensor_bytes(&rows), 48);
    /* The memory lives as long as the last of them. */
    tl_tensor_done(&t);
    assert_int_equal(fake_allocations, 1);
    assert_ok(tl_tensor_fill(&rows, 3));
    tl_tensor_done(&view);
    tl_tensor_done(&view);
    assert_int_equal(fake_allocations, 1);
    assert_ok(tl_tensor_rows(&view, &rows, 1, 2)); /* a view of a view */
    assert_int_equal((uintptr_t)view.data - (uintptr_t)data, 48);
    tl_tensor_done(&rows);
    tl_tensor_done(&view);
    assert_int_equal(fake_allocations, 0);
}

static void views_that_do_not_fit(void **state)
{
    (void)state;
    struct tl_tensor t = new_tensor(cpu_device(), TL_FP32, 2, SHAPE(4, 6)), view = {0};
    struct tl_tensor strided = t, absent = {0};
    assert_ok(tl_tensor_view(&view, &t, 0, 1, SHAPE(24)));
    tl_tensor_done(&view);
    assert_ok(tl_tensor_view(&view, &t, 24, 1, SHAPE(0)));
    tl_tensor_done(&view);
    assert_fails(TL_ERR_ARGUMENT, "[4, 6]", tl_tensor_view(&view, &t, 0, 1, SHAPE(25)));
    assert_fails(TL_ERR_ARGUMENT, "[4, 6]", tl_tensor_view(&view, &t, 1, 1, SHAPE(24)));
    assert_fails(TL_ERR_ARGUMENT, "[4, 6]", tl_tensor_view(&view, &t, 25, 1, SHAPE(0)));
    assert_fails(TL_ERR_ARGUMENT, "-1", tl_tensor_view(&view, &t, -1, 1, SHAPE(2)));
    assert_fails(TL_ERR_ARGUMENT, "", tl_tensor_view(&view, &t, INT64_MAX, 1, SHAPE(2)));
    assert_fails(TL_ERR_ARGUMENT, "-2", tl_tensor_view(&view, &t, 0, 2, SHAPE(-2, -2)));
    assert_fails(TL_ERR_ARGUMENT, "", tl_tensor_view(&view, &t, 0, 0, SHAPE(0)));
    strided.stride[0] = 1, strided.stride[1] = 4;
    assert_false(tl_tensor_is_contiguous(&strided));
    assert_fails(TL_ERR_ARGUMENT, "contiguous", tl_tensor_view(&view, &strided, 0, 1, SHAPE(2)));
    assert_fails(TL_ERR_ARGUMENT, "contiguous", tl_tensor_rows(&view, &strided, 0, 1));
    assert_fails(TL_ERR_ARGUMENT, "", tl_tensor_view(&view, &absent, 0, 1, SHAPE(0)));
    assert_fails(TL_ERR_ARGUMENT, "", tl_tensor_rows(&view, &absent, 0, 0));
    static const int64_t ranges[][2] = {{-1, 2}, {3, 2}, {0, 5}, {5, 5}};
    for (int i = 0; i < 4; i++)
        assert_fails(TL_ERR_ARGUMENT, "4", tl_tensor_rows(&view, &t, ranges[i][0], ranges[i][1]));
    assert_ok(tl_tensor_rows(&view, &t, 4, 4));
    assert_int_equal(tl_tensor_numel(&view), 0);
    tl_tensor_done(&view);
    tl_tensor_done(&t);
}

static void contiguity(void **state)
{
    (void)state;
    struct tl_tensor t = new_tensor(cpu_device(), TL_U8, 3, SHAPE(3, 1, 4));
    t.stride[1] = 777; /* of a size of 1: never taken */
    assert_true(tl_tensor_is_contiguous(&t));
    t.stride[0] = 5;
    assert_false(tl_tensor_is_contiguous(&t));
    t.stride[0] = 4, t.stride[2] = 2;
    assert_false(tl_tensor_is_contiguous(&t));
    tl_tensor_done(&t);
}

static void descriptions(void **state)
{
    (void)state;
    char text[64], small[8];
    struct tl_tensor t = new_tensor(cpu_device(), TL_BF16, 3, SHAPE(32, 2, 3));
    assert_string_equal(tl_tensor_describe(&t, text, sizeof text), "[32, 2, 3] bf16");
    assert_ptr_equal(tl_tensor_describe(&t, small, sizeof small), small);
    assert_true(strlen(small) < sizeof small);
    assert_memory_equal(small, "[32, 2", 6);
    for (size_t size = 1; size < sizeof small; size++)
        assert_true(strlen(tl_tensor_describe(&t, small, size)) < size);
    tl_tensor_done(&t);
}

static void copies_between_devices(void **state)
{
    (void)state;
    struct tl_device *devices[] = {cpu_device(), fake_device()};
    struct tl_tensor source = new_tensor(cpu_device(), TL_FP32, 2, SHAPE(3, 4));
    for (int i = 0; i < 12; i++)
        ((float *)source.data)[i] = (float)i + 0.25f;
    for (int a = 0; a < 2; a++) {
        for (int b = 0; b < 2; b++) {
            struct tl_tensor first = new_tensor(devices[a], TL_FP32, 1, SHAPE(12));
            struct tl_tensor second = new_tensor(devices[b], TL_FP32, 2, SHAPE(6, 2));
            struct tl_tensor back = new_tensor(cpu_device(), TL_FP32, 1, SHAPE(12)), on_host;
            assert_ok(tl_tensor_copy(&first, &source, NULL));
            assert_ok(tl_tensor_copy(&second, &first, devices[b]->default_stream));
            assert_ok(tl_tensor_copy(&back, &second, NULL));
            assert_memory_equal(back.data, source.data, 48);
            assert_ok(tl_tensor_on_host(&on_host, &second));
            assert_memory_equal(on_host.data, source.data, 48);
            assert_true((on_host.data == second.data) == (b == 0)); /* a view where it can be */
            assert_true(on_host.rank == 2 && on_host.shape[0] == 6);
            tl_tensor_done(&on_host);
            tl_tensor_done(&first);
            tl_tensor_done(&second);
            tl_tensor_done(&back);
        }
    }
    struct tl_tensor other = new_tensor(cpu_device(), TL_I32, 1, SHAPE(12));
    struct tl_tensor fewer = new_tensor(cpu_device(), TL_FP32, 1, SHAPE(11));
    struct tl_tensor strided = source;
    strided.stride[0] = 1, strided.stride[1] = 3;
    assert_fails(TL_ERR_ARGUMENT, "i32", tl_tensor_copy(&other, &source, NULL));
    assert_fails(TL_ERR_ARGUMENT, "[11]", tl_tensor_copy(&fewer, &source, NULL));
    assert_fails(TL_ERR_ARGUMENT, "", tl_tensor_copy(&source, &strided, NULL));
    assert_fails(TL_ERR_ARGUMENT, "", tl_tensor_copy(&strided, &source, NULL));
    tl_tensor_done(&other);
    tl_tensor_done(&fewer);
    tl_tensor_done(&source);
    assert_int_equal(fake_allocations, 0);
}

static void conversions_between_devices(void **state)
{
    (void)state;
    struct tl_device *devices[] = {cpu_device(), fake_device()};
    for (int a = 0; a < 2; a++) {
        for (int b = 0; b < 2; b++) {
            struct tl_tensor source = new_tensor(cpu_device(), TL_FP64, 1, SHAPE(3));
            struct tl_tensor from = new_tensor(devices[a], TL_FP64, 1, SHAPE(3));
            struct tl_tensor to = new_tensor(devices[b], TL_I32, 1, SHAPE(3)), back;
            memcpy(source.data, (double[]){1.9, -1e20, NAN}, 24);
            assert_ok(tl_tensor_convert(&from, &source)); /* the same dtype is a copy */
            assert_ok(tl_tensor_convert(&to, &from));
            assert_ok(tl_tensor_on_host(&back, &to));
            assert_memory_equal(back.data, ((int32_t[]){1, INT32_MIN, 0}), 12);
            tl_tensor_done(&source);
            tl_tensor_done(&from);
            tl_tensor_done(&to);
            tl_tensor_done(&back);
        }
    }
    struct tl_tensor e4m3 = new_tensor(cpu_device(), TL_E4M3, 1, SHAPE(3));
    struct tl_tensor fp32 = new_tensor(fake_device(), TL_FP32, 1, SHAPE(3));
    struct tl_tensor four = new_tensor(cpu_device(), TL_FP32, 1, SHAPE(4));
    assert_ok(tl_tensor_poison(&e4m3));
    assert_fails(TL_ERR_UNSUPPORTED, "e4m3", tl_tensor_convert(&fp32, &e4m3));
    assert_fails(TL_ERR_ARGUMENT, "[4]", tl_tensor_convert(&four, &fp32));
    tl_tensor_done(&e4m3);
    tl_tensor_done(&fp32);
    tl_tensor_done(&four);
    assert_int_equal(fake_allocations, 0);
}

static void fills(void **state)
{
    (void)state;
    static const enum tl_dtype dtypes[] = {TL_FP64, TL_FP32, TL_BF16, TL_I32, TL_U8};
    static const double values[] = {0, 1, 2.5, -0.0, -3, 1000, INFINITY};
    struct tl_device *devices[] = {cpu_device(), fake_device()};
    for (int d = 0; d < 10; d++) {
        enum tl_dtype dtype = dtypes[d / 2];
        struct tl_tensor t = new_tensor(devices[d % 2], dtype, 1, SHAPE(102)), rows, host;
        assert_ok(tl_tensor_rows(&rows, &t, 1, 101));
        for (int v = 0; v < 7; v++) {
            double wanted;
            tl_element_set(&wanted, dtype, 0, values[v]);
            wanted = tl_element_get(&wanted, dtype, 0);
            assert_ok(tl_tensor_poison(&t));
            assert_ok(tl_tensor_fill(&rows, values[v]));
            assert_ok(tl_tensor_on_host(&host, &t));
            for (int i = 1; i < 101; i++) {
                double got = tl_element_get(host.data, dtype, i);
                assert_true(got == wanted && !signbit(got) == !signbit(wanted));
            }
            for (size_t i = 0; i < tl_dtype_size(dtype); i++) { /* its neighbours stay */
                assert_int_equal(((unsigned char *)host.data)[i], 0xff);
                assert_int_equal(((unsigned char *)host.data)[tl_tensor_bytes(&t) - 1 - i], 0xff);
            }
            tl_tensor_done(&host);
        }
        tl_tensor_done(&rows);
        tl_tensor_done(&t);
    }
    assert_int_equal(fake_allocations, 0);
}

static void poison_is_nan(void **state)
{
    (void)state;
    for (int d = TL_FP64; d <= TL_BF16; d++) {
        struct tl_tensor t = new_tensor(cpu_device(), (enum tl_dtype)d, 1, SHAPE(9));
        assert_ok(tl_tensor_fill(&t, 1));
        assert_ok(tl_tensor_poison(&t));
        for (int i = 0; i < 9; i++)
            assert_true(isnan(tl_element_get(t.data, t.dtype, i)));
        tl_tensor_done(&t);
    }
    struct tl_tensor e8m0 = new_tensor(cpu_device(), TL_E8M0, 1, SHAPE(3));
    assert_ok(tl_tensor_poison(&e8m0));
    assert_memory_equal(e8m0.data, "\xff\xff\xff", 3);
    assert_fails(TL_ERR_UNSUPPORTED, "e8m0", tl_tensor_fill(&e8m0, 1));
    tl_tensor_done(&e8m0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_tensor_is_row_major),
        cmocka_unit_test(empty_tensors),
        cmocka_unit_test(shapes_that_cannot_be),
        cmocka_unit_test(views_share_storage),
        cmocka_unit_test(views_that_do_not_fit),
        cmocka_unit_test(contiguity),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(copies_between_devices),
        cmocka_unit_test(conversions_between_devices),
        cmocka_unit_test(fills),
        cmocka_unit_test(poison_is_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
