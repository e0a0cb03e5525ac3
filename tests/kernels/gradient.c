/* See gradient.h. */
#include "gradient.h"

#include <stdlib.h>

static const double step = 1e-5;

static double inner_product(struct rig *forward, const struct gradient_output *outputs)
{
    double sum = 0;
    assert_ok(rig_launch(forward));
    for (; outputs->arg; outputs++) {
        const struct tl_tensor *value = arg_of(forward, outputs->arg);
        const double *a = value->data, *b = outputs->cotangent->data;
        assert_true(value->dtype == TL_FP64 && outputs->cotangent->dtype == TL_FP64);
        assert_int_equal(tl_tensor_numel(value), tl_tensor_numel(outputs->cotangent));
        for (int64_t i = 0; i < tl_tensor_numel(value); i++)
            sum += a[i] == 0 || b[i] == 0 ? 0 : a[i] * b[i]; /* rows out of use may hold poison */
    }
    return sum;
}

void gradient_check(struct rig *forward, const struct gradient_output *outputs, const char *input,
                    const struct tl_tensor *gradient)
{
    const struct tl_operation *operation = forward->operation;
    void *initial[TL_MAX_ARGS] = {NULL};
    for (int i = 0; i < TL_MAX_ARGS && operation->args[i].name; i++)
        if (operation->args[i].role == TL_INOUT && forward->args.tensor[i].rank)
            initial[i] = bytes_of(&forward->args.tensor[i]);

    struct tl_tensor *tensor = arg_of(forward, input);
    const double *analytic = gradient->data;
    double *x = tensor->data;
    assert_true(tensor->dtype == TL_FP64 && gradient->dtype == TL_FP64);
    assert_int_equal(tl_tensor_numel(tensor), tl_tensor_numel(gradient));
    for (int64_t i = 0; i < tl_tensor_numel(tensor); i++) {
        double value[2];
        for (int side = 0; side < 2; side++) {
            for (int a = 0; a < TL_MAX_ARGS; a++)
                if (initial[a])
                    memcpy(forward->args.tensor[a].data, initial[a],
                           tl_tensor_bytes(&forward->args.tensor[a]));
            double saved = x[i];
            x[i] = saved + (side ? step : -step);
            value[side] = inner_product(forward, outputs);
            x[i] = saved;
        }
        double numeric = (value[1] - value[0]) / (2 * step);
        if (!(fabs(numeric - analytic[i]) <= 2e-8 * (1 + fabs(numeric))))
            fail_msg("%s: d%s[%lld] is %.12g, by differences %.12g", operation->name, input,
                     (long long)i, analytic[i], numeric);
    }
    for (int i = 0; i < TL_MAX_ARGS; i++)
        free(initial[i]);
}
