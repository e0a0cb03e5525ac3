/* convert: exact where y is wider, rounded to nearest even where it is narrower. */
#include "arguments.h"

static const enum tl_dtype dtypes[] = {TL_FP64, TL_FP32, TL_BF16};
enum { NUM_DTYPES = sizeof dtypes / sizeof dtypes[0], COUNT = 37 };

static void every_pair_is_the_tensors_own(void **state)
{
    (void)state;
    for (int from = 0; from < NUM_DTYPES; from++)
        for (int to = 0; to < NUM_DTYPES; to++) {
            struct rig rig;
            struct tl_tensor expected;
            rig_open(&rig, "convert", "cpu_plain");
            struct tl_tensor *x = arg_normal(&rig, "x", dtypes[from], 1, SHAPE(COUNT));
            struct tl_tensor *y = arg_poison(&rig, "y", dtypes[to], SHAPE(COUNT));
            const int64_t shape[] = {COUNT};
            assert_ok(rig_launch(&rig));
            assert_ok(tl_tensor_init(&expected, x->device, dtypes[to], 1, shape));
            assert_ok(tl_tensor_convert(&expected, x));
            assert_true(bytes_equal(y, expected.data));
            tl_tensor_done(&expected);
            rig_close(&rig);
        }
}

static void ties_go_to_even(void **state)
{
    (void)state;
    struct rig rig;
    const double x[] = {1 + 0x1p-8, 1 + 0x3p-8, -1 - 0x1p-8, 0x1p-130};
    const double y[] = {1, 1 + 0x1p-6, -1, 0x1p-130};
    rig_open(&rig, "convert", "cpu_plain");
    arg_values(&rig, "x", TL_FP32, x, SHAPE(4));
    arg_poison(&rig, "y", TL_BF16, SHAPE(4));
    assert_ok(rig_launch(&rig));
    assert_near(arg_of(&rig, "y"), y, 0, 0);
    rig_close(&rig);
}

static void nothing_is_converted_to_nothing(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, "convert", "cpu_plain");
    arg_poison(&rig, "x", TL_FP32, SHAPE(0));
    arg_poison(&rig, "y", TL_BF16, SHAPE(0));
    assert_ok(rig_launch(&rig));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_is_the_tensors_own),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(nothing_is_converted_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
