/* embedding bit for bit, and its backward against differences. */
#include "gradient.h"

#include <stdlib.h>

static const int64_t sizes[][3] = {{1, 1, 1}, {7, 33, 5}, {0, 4, 3}, {300, 100, 7}}; /* .. vocab */
enum { NUM_SIZES = sizeof sizes / sizeof sizes[0] };

static void open_forward(struct rig *rig, enum tl_dtype dtype, const int64_t *size)
{
    rig_open(rig, "embedding", "cpu_plain");
    arg_below(rig, "ids", (int32_t)size[2], 4, SHAPE(size[0]));
    arg_normal(rig, "table", dtype, 1, SHAPE(size[2], size[1]));
    arg_poison(rig, "y", dtype, SHAPE(size[0], size[1]));
}

static void open_backward(struct rig *rig, struct rig *forward, enum tl_dtype dtype,
                          const int64_t *size)
{
    rig_open(rig, "embedding_backward", "cpu_plain");
    arg_share(rig, "ids", arg_of(forward, "ids"));
    arg_normal(rig, "dy", dtype, 1, SHAPE(size[0], size[1]));
    arg_fill(rig, "dtable", dtype, 0, SHAPE(size[2], size[1]));
}

static void rows_are_copies(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * NUM_SIZES; i++) {
        struct rig rig;
        const int64_t *size = sizes[i / 2];
        open_forward(&rig, i % 2 ? TL_FP64 : TL_FP32, size);
        launch_steady(&rig);
        double *table = doubles_of(arg_of(&rig, "table")), *y = doubles_of(arg_of(&rig, "y"));
        const int32_t *ids = arg_of(&rig, "ids")->data;
        for (int64_t at = 0; at < size[0] * size[1]; at++)
            assert_true(y[at] == table[ids[at / size[1]] * size[1] + at % size[1]]);
        free(table);
        free(y);
        rig_close(&rig);
    }
}

static void backward_is_the_gradient(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct rig forward, backward;
        open_forward(&forward, TL_FP64, sizes[i]);
        open_backward(&backward, &forward, TL_FP64, sizes[i]);
        launch_steady(&backward);
        const struct gradient_output outputs[] = {{"y", arg_of(&backward, "dy")}, {NULL, NULL}};
        gradient_check(&forward, outputs, "table", arg_of(&backward, "dtable"));
        rig_close(&forward);
        rig_close(&backward);
    }
}

static void backward_accumulates(void **state)
{
    (void)state;
    struct rig forward, backward;
    const int64_t *size = sizes[3];
    open_forward(&forward, TL_FP32, size);
    open_backward(&backward, &forward, TL_FP32, size);
    arg_fill(&backward, "dtable", TL_FP32, 2, SHAPE(size[2], size[1]));
    double *dy = doubles_of(arg_of(&backward, "dy"));
    double *expected = doubles_of(arg_of(&backward, "dtable"));
    const int32_t *ids = arg_of(&backward, "ids")->data;
    launch_steady(&backward);
    for (int64_t at = 0; at < size[0] * size[1]; at++)
        expected[ids[at / size[1]] * size[1] + at % size[1]] += dy[at];
    assert_near(arg_of(&backward, "dtable"), expected, 5e-6, 1e-5);
    free(dy);
    free(expected);
    rig_close(&forward);
    rig_close(&backward);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct rig forward, backward;
    open_forward(&forward, TL_FP32, sizes[1]);
    open_backward(&backward, &forward, TL_FP32, sizes[1]);
    int32_t *ids = arg_of(&forward, "ids")->data;
    ids[6] = 5;
    launch_refused(&forward, TL_ERR_ARGUMENT, "ids[6] is 5, but must be at least 0 and below 5");
    launch_refused(&backward, TL_ERR_ARGUMENT, "ids[6] is 5");
    ids[6] = 0;
    ids[0] = -1;
    launch_refused(&forward, TL_ERR_ARGUMENT, "ids[0] is -1");
    launch_refused(&backward, TL_ERR_ARGUMENT, "ids[0] is -1");
    rig_close(&forward);
    rig_close(&backward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_copies),
        cmocka_unit_test(backward_is_the_gradient),
        cmocka_unit_test(backward_accumulates),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
