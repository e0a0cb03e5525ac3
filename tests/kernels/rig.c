/* See rig.h. */
#include "rig.h"

#include "kernels/table.h"

#include <stdlib.h>

static struct tl_device *cpu(void)
{
    static struct tl_device *device;
    if (!device)
        assert_ok(tl_device_open("cpu", &device));
    return device;
}

void rig_open(struct rig *rig, const char *operation, const char *variant)
{
    static bool registered;
    if (!registered)
        assert_ok(tl_kernels_register());
    registered = true;
    memset(rig, 0, sizeof *rig);
    assert_ok(tl_operation_find(operation, &rig->operation));
    assert_ok(tl_kernel_find(operation, variant, &rig->kernel));
    tl_operation_defaults(rig->operation, rig->param);
}

void rig_close(struct rig *rig)
{
    for (int i = 0; i < TL_MAX_ARGS; i++)
        tl_tensor_done(&rig->args.tensor[i]);
}

struct tl_tensor *rig_poison(struct rig *rig, const char *arg, enum tl_dtype dtype, int64_t size0,
                             int64_t size1, int64_t size2)
{
    int64_t shape[] = {size0, size1, size2};
    int position = tl_operation_arg(rig->operation, arg), rank = 0;
    while (rank < 3 && shape[rank] >= 0)
        rank++;
    assert_true(position >= 0);
    struct tl_tensor *tensor = &rig->args.tensor[position];
    tl_tensor_done(tensor);
    assert_ok(tl_tensor_init(tensor, cpu(), dtype, rank, shape));
    assert_ok(tl_tensor_poison(tensor));
    return tensor;
}

struct tl_tensor *rig_normal(struct rig *rig, const char *arg, enum tl_dtype dtype, int64_t size0,
                             int64_t size1, int64_t size2, uint64_t seed)
{
    struct tl_tensor *tensor = rig_poison(rig, arg, dtype, size0, size1, size2);
    assert_ok(tl_tensor_random(tensor, TL_NORMAL, 0, 1, seed, 0));
    return tensor;
}

struct tl_tensor *rig_i32(struct rig *rig, const char *arg, const int32_t *values, int64_t count)
{
    struct tl_tensor *tensor = rig_poison(rig, arg, TL_I32, count, -1, -1);
    if (count)
        memcpy(tensor->data, values, (size_t)count * sizeof *values);
    return tensor;
}

void rig_param(struct rig *rig, const char *param, double value)
{
    int position = tl_operation_param(rig->operation, param);
    assert_true(position >= 0);
    rig->param[position] = value;
}

enum tl_status rig_launch(struct rig *rig)
{
    struct tl_problem problem;
    struct tl_plan plan;
    TL_TRY(tl_problem_bind(&problem, rig->operation, &rig->args, rig->param));
    TL_TRY(tl_plan_init(&plan, rig->kernel, cpu(), &problem));
    size_t bytes = tl_plan_workspace(&plan);
    rig->args.workspace = bytes ? calloc(1, bytes) : NULL;
    enum tl_status status = tl_plan_launch(&plan, &rig->args, NULL);
    free(rig->args.workspace);
    return status;
}

void *bytes_of(const struct tl_tensor *tensor)
{
    size_t bytes = tl_tensor_bytes(tensor);
    void *copy = malloc(bytes + 1);
    assert_non_null(copy);
    if (bytes)
        memcpy(copy, tensor->data, bytes);
    return copy;
}

bool bytes_equal(const struct tl_tensor *tensor, const void *bytes)
{
    size_t size = tl_tensor_bytes(tensor);
    return size == 0 || memcmp(tensor->data, bytes, size) == 0;
}

unsigned char *row_at(const struct tl_tensor *tensor, int64_t row)
{
    return (unsigned char *)tensor->data + row * (int64_t)row_bytes(tensor);
}

size_t row_bytes(const struct tl_tensor *tensor)
{
    return (size_t)tensor->shape[1] * tl_dtype_size(tensor->dtype);
}

double *doubles_of(const struct tl_tensor *tensor)
{
    int64_t numel = tl_tensor_numel(tensor);
    double *values = malloc((size_t)(numel + 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < numel; i++)
        values[i] = tl_element_get(tensor->data, tensor->dtype, i);
    return values;
}

void naive_product(double *d, double *scale, int64_t m, int64_t n, int64_t k,
                   struct naive_operand a, struct naive_operand b, double beta)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            long double sum = beta == 0 ? 0 : (long double)beta * d[i * n + j];
            double size = beta == 0 ? 0 : beta * fabs(d[i * n + j]);
            for (int64_t p = 0; p < k; p++) {
                double left = a.data[i * a.stride + p * a.k_stride];
                double right = b.data[j * b.stride + p * b.k_stride];
                sum += (long double)left * right;
                size += fabs(left * right);
            }
            d[i * n + j] = (double)sum;
            scale[i * n + j] = size;
        }
}

/* Values of another tensor's shape, fp64, on the host. */
static void doubles_tensor(struct tl_tensor *out, const struct tl_tensor *like,
                           const double *values)
{
    assert_ok(tl_tensor_init(out, cpu(), TL_FP64, like->rank, like->shape));
    if (out->data)
        memcpy(out->data, values, tl_tensor_bytes(out));
}

struct tl_comparison compare_naive(const struct tl_tensor *value, const double *d,
                                   const double *scale, int64_t k)
{
    struct tl_tensor reference, scales;
    struct tl_comparison comparison;
    double unit = value->dtype == TL_FP64 ? 0x1p-53 : 0x1p-24;
    doubles_tensor(&reference, value, d);
    doubles_tensor(&scales, value, scale);
    /* k products and k additions of unit roundoff, the sum with d, and operands rounded once. */
    struct tl_bound bound = {.absolute = 1e-30,
                             .relative = value->dtype == TL_BF16 ? 0x1p-8 : 0,
                             .scaled = (double)(k + 4) * unit,
                             .scale = &scales};
    assert_ok(tl_compare(&comparison, value, &reference, &bound));
    tl_tensor_done(&reference);
    tl_tensor_done(&scales);
    return comparison;
}
