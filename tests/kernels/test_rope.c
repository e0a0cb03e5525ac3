/* rope against complex rotation, its inverse, and differences. */
#include "gradient.h"

#include <complex.h>
#include <stdlib.h>

struct size {
    int64_t batch, sequence, heads, head_dim;
    int rotated;
};
static const struct size sizes[] = {
    {1, 1, 1, 2, 1}, {2, 7, 3, 6, 2}, {1, 33, 8, 10, 7}, {3, 65, 8, 16, 7}, {2, 5, 3, 4, 0},
};
enum { NUM_SIZES = sizeof sizes / sizeof sizes[0] };

static void open_rope(struct rig *rig, enum tl_dtype dtype, const struct size *size, double theta,
                      int inverse)
{
    rig_open(rig, "rope", "cpu_plain");
    arg_normal(rig, "qkv", dtype, 1,
               SHAPE(size->batch, size->sequence, size->heads, size->head_dim));
    rig_param(rig, "rotated_heads", size->rotated);
    rig_param(rig, "theta", theta);
    rig_param(rig, "inverse", inverse);
}

static void check_rotation(enum tl_dtype dtype, const struct size *size, double theta)
{
    struct rig rig;
    open_rope(&rig, dtype, size, theta, 0);
    double *x = doubles_of(arg_of(&rig, "qkv"));
    launch_steady(&rig);
    for (int64_t i = 0; i < size->batch * size->sequence * size->heads; i++) {
        int64_t position = i / size->heads % size->sequence, half = size->head_dim / 2;
        for (int64_t pair = 0; pair < half && i % size->heads < size->rotated; pair++) {
            double *u = x + i * size->head_dim + pair;
            double angle = (double)position / pow(theta, (double)pair / (double)half);
            double complex turned = (u[0] + I * u[half]) * cexp(I * angle);
            u[0] = creal(turned);
            u[half] = cimag(turned);
        }
    }
    double tolerance = dtype == TL_FP64 ? 1e-12 : 1e-6;
    assert_near(arg_of(&rig, "qkv"), x, tolerance, tolerance);
    free(x);
    rig_close(&rig);
}

static void forward_is_a_rotation(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SIZES; i++) {
        check_rotation(TL_FP64, &sizes[i], 10000);
        check_rotation(TL_FP32, &sizes[i], 500);
    }
}

static void other_heads_keep_their_bits(void **state)
{
    (void)state;
    struct rig rig;
    open_rope(&rig, TL_FP32, &sizes[1], 10000, 0);
    float *before = bytes_of(arg_of(&rig, "qkv"));
    const float *after = arg_of(&rig, "qkv")->data;
    assert_ok(rig_launch(&rig));
    for (int i = 0; i < 2 * 7; i++)
        assert_memory_equal(before + i * 18 + 12, after + i * 18 + 12, 6 * sizeof(float));
    free(before);
    rig_close(&rig);
}

static void inverse_restores(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SIZES; i++)
        for (int wide = 0; wide < 2; wide++) {
            struct rig rig;
            open_rope(&rig, wide ? TL_FP64 : TL_FP32, &sizes[i], 10000, 0);
            double *before = doubles_of(arg_of(&rig, "qkv"));
            assert_ok(rig_launch(&rig));
            rig_param(&rig, "inverse", 1);
            assert_ok(rig_launch(&rig));
            assert_near(arg_of(&rig, "qkv"), before, wide ? 2e-15 : 1e-6, 0);
            free(before);
            rig_close(&rig);
        }
}

static void inverse_is_the_gradient(void **state)
{
    (void)state;
    struct rig forward, backward;
    const struct size size = {2, 5, 3, 6, 2};
    open_rope(&forward, TL_FP64, &size, 100, 0);
    open_rope(&backward, TL_FP64, &size, 100, 1);
    assert_ok(tl_tensor_random(arg_of(&backward, "qkv"), TL_NORMAL, 0, 1, 5, 5));
    struct rig cotangent;
    open_rope(&cotangent, TL_FP64, &size, 100, 0);
    assert_ok(tl_tensor_copy(arg_of(&cotangent, "qkv"), arg_of(&backward, "qkv"), NULL));
    assert_ok(rig_launch(&backward));
    const struct gradient_output outputs[] = {{"qkv", arg_of(&cotangent, "qkv")}, {NULL, NULL}};
    gradient_check(&forward, outputs, "qkv", arg_of(&backward, "qkv"));
    rig_close(&forward);
    rig_close(&backward);
    rig_close(&cotangent);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig rig;
    const struct size odd = {1, 2, 3, 5, 1};
    open_rope(&rig, TL_FP32, &odd, 10000, 0);
    launch_refused(&rig, TL_ERR_ARGUMENT, "head_dim is 5");
    rig_close(&rig);
    open_rope(&rig, TL_FP32, &sizes[1], 10000, 0);
    rig_param(&rig, "rotated_heads", 4);
    launch_refused(&rig, TL_ERR_ARGUMENT, "rotated_heads is 4");
    rig_param(&rig, "rotated_heads", 1.5);
    launch_refused(&rig, TL_ERR_ARGUMENT, "rotated_heads is 1.5");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_a_rotation), cmocka_unit_test(other_heads_keep_their_bits),
        cmocka_unit_test(inverse_restores),      cmocka_unit_test(inverse_is_the_gradient),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
