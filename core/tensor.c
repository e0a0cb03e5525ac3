/* See tensor.h. Storage is counted without atomics: tensors belong to one host thread. */
#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tl_storage {
    struct tl_device *device;
    void *base;
    int64_t references;
};

static void set_row_major(struct tl_tensor *tensor, int rank, const int64_t *shape)
{
    int64_t stride = 1;
    tensor->rank = rank;
    for (int i = rank - 1; i >= 0; i--) {
        tensor->shape[i] = shape[i];
        tensor->stride[i] = stride;
        stride *= shape[i] > 0 ? shape[i] : 1;
    }
}

/* The element count, checked against overflow of the byte count. */
static enum tl_status check_shape(enum tl_dtype dtype, int rank, const int64_t *shape,
                                  int64_t *numel)
{
    if (rank < 1 || rank > TL_MAX_RANK)
        return TL_FAIL(TL_ERR_ARGUMENT, "a tensor has 1 to %d dimensions, not %d", TL_MAX_RANK,
                       rank);
    int64_t extent = 1; /* the product without zeros, so that strides cannot overflow either */
    *numel = 1;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return TL_FAIL(TL_ERR_ARGUMENT, "dimension %d of a tensor is negative: %lld", i + 1,
                           (long long)shape[i]);
        *numel = shape[i] == 0 ? 0 : *numel;
        if (shape[i] > 0 && __builtin_mul_overflow(extent, shape[i], &extent))
            return TL_FAIL(TL_ERR_ARGUMENT, "a tensor of %d dimensions has more than 2^63 elements",
                           rank);
    }
    int64_t bytes;
    if (__builtin_mul_overflow(extent, (int64_t)tl_dtype_size(dtype), &bytes))
        return TL_FAIL(TL_ERR_ARGUMENT, "a tensor of %lld %s elements has more than 2^63 bytes",
                       (long long)extent, tl_dtype_name(dtype));
    *numel = *numel ? extent : 0;
    return TL_OK;
}

enum tl_status tl_tensor_init(struct tl_tensor *tensor, struct tl_device *device,
                              enum tl_dtype dtype, int rank, const int64_t *shape)
{
    int64_t numel;
    memset(tensor, 0, sizeof *tensor);
    TL_TRY(check_shape(dtype, rank, shape, &numel));
    struct tl_storage *storage = calloc(1, sizeof *storage);
    if (!storage)
        return TL_FAIL(TL_ERR_MEMORY, "no host memory for a tensor's header");
    size_t bytes = (size_t)numel * tl_dtype_size(dtype);
    if (bytes) {
        enum tl_status status = device->api->alloc(device, bytes, &storage->base);
        if (status != TL_OK) {
            free(storage);
            return status;
        }
    }
    storage->device = device;
    storage->references = 1;
    tensor->dtype = dtype;
    tensor->data = storage->base;
    tensor->device = device;
    tensor->storage = storage;
    set_row_major(tensor, rank, shape);
    return TL_OK;
}

void tl_tensor_done(struct tl_tensor *tensor)
{
    struct tl_storage *storage = tensor->storage;
    memset(tensor, 0, sizeof *tensor);
    if (!storage || --storage->references > 0)
        return;
    if (storage->base)
        storage->device->api->free(storage->device, storage->base);
    free(storage);
}

enum tl_status tl_tensor_view(struct tl_tensor *view, const struct tl_tensor *source,
                              int64_t offset, int rank, const int64_t *shape)
{
    int64_t numel, end;
    char text[96];
    struct tl_tensor result = *source; /* aside, since `view` may be `source` */
    TL_TRY(check_shape(source->dtype, rank, shape, &numel));
    if (source->rank == 0 || !tl_tensor_is_contiguous(source))
        return TL_FAIL(TL_ERR_ARGUMENT, "a view needs a contiguous source, not %s",
                       source->rank ? tl_tensor_describe(source, text, sizeof text)
                                    : "an absent tensor");
    if (offset < 0 || __builtin_add_overflow(offset, numel, &end) ||
        end > tl_tensor_numel(source))
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "a view of %lld elements from element %lld does not fit into %s",
                       (long long)numel, (long long)offset,
                       tl_tensor_describe(source, text, sizeof text));
    if (result.data)
        result.data = (char *)result.data + (size_t)offset * tl_dtype_size(source->dtype);
    set_row_major(&result, rank, shape);
    result.storage->references++;
    *view = result;
    return TL_OK;
}

enum tl_status tl_tensor_rows(struct tl_tensor *view, const struct tl_tensor *source, int64_t begin,
                              int64_t end)
{
    if (begin < 0 || end < begin || end > source->shape[0])
        return TL_FAIL(TL_ERR_ARGUMENT, "rows [%lld, %lld) are not in a tensor of %lld rows",
                       (long long)begin, (long long)end, (long long)source->shape[0]);
    int64_t shape[TL_MAX_RANK];
    int64_t row = 1;
    memcpy(shape, source->shape, sizeof shape);
    shape[0] = end - begin;
    for (int i = 1; i < source->rank; i++)
        row *= shape[i];
    return tl_tensor_view(view, source, begin * row, source->rank, shape);
}

int64_t tl_tensor_numel(const struct tl_tensor *tensor)
{
    int64_t numel = tensor->rank > 0;
    for (int i = 0; i < tensor->rank; i++)
        numel *= tensor->shape[i];
    return numel;
}

size_t tl_tensor_bytes(const struct tl_tensor *tensor)
{
    return (size_t)tl_tensor_numel(tensor) * tl_dtype_size(tensor->dtype);
}

bool tl_tensor_is_contiguous(const struct tl_tensor *tensor)
{
    int64_t stride = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->shape[i] != 1 && tensor->stride[i] != stride)
            return false;
        stride *= tensor->shape[i] > 0 ? tensor->shape[i] : 1;
    }
    return true;
}

const char *tl_tensor_describe(const struct tl_tensor *tensor, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < tensor->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "[",
                                 (long long)tensor->shape[i]);
    if (used < size)
        snprintf(text + used, size - used, "] %s", tl_dtype_name(tensor->dtype));
    return text;
}

/* Between two GPUs each half runs on its GPU's default stream, since a stream belongs to one. */
static enum tl_status copy_bytes(struct tl_tensor *dst, const struct tl_tensor *src, size_t bytes,
                                 struct tl_stream *stream)
{
    const struct tl_device_api *to = dst->device->api, *from = src->device->api;
    bool to_host = dst->device->arch == 0, from_host = src->device->arch == 0;
    if (dst->device == src->device)
        return to->copy(dst->data, src->data, bytes, stream);
    if (from_host)
        return to->copy_in(dst->data, src->data, bytes, stream);
    if (to_host)
        return from->copy_out(dst->data, src->data, bytes, stream);
    void *staging = malloc(bytes);
    if (!staging)
        return TL_FAIL(TL_ERR_MEMORY, "no host memory for a copy of %zu bytes", bytes);
    enum tl_status status;
    TL_GO(out, from->copy_out(staging, src->data, bytes, NULL));
    TL_GO(out, to->copy_in(dst->data, staging, bytes, NULL));
out:
    free(staging);
    return status;
}

enum tl_status tl_tensor_copy(struct tl_tensor *dst, const struct tl_tensor *src,
                              struct tl_stream *stream)
{
    char a[96], b[96];
    if (dst->dtype != src->dtype || tl_tensor_numel(dst) != tl_tensor_numel(src) ||
        !tl_tensor_is_contiguous(dst) || !tl_tensor_is_contiguous(src))
        return TL_FAIL(TL_ERR_ARGUMENT, "cannot copy %s to %s: dtype or element count differ",
                       tl_tensor_describe(src, a, sizeof a), tl_tensor_describe(dst, b, sizeof b));
    size_t bytes = tl_tensor_bytes(src);
    return bytes ? copy_bytes(dst, src, bytes, stream) : TL_OK;
}

/* A view of host memory that holds the tensor's elements: the tensor itself on the CPU, else a
 * fresh buffer that the caller frees through *owned. */
static enum tl_status host_buffer(const struct tl_tensor *tensor, bool load, void **data,
                                  void **owned)
{
    *owned = NULL;
    if (tensor->device->arch == 0) {
        *data = tensor->data;
        return TL_OK;
    }
    size_t bytes = tl_tensor_bytes(tensor);
    *data = *owned = malloc(bytes);
    if (!*owned)
        return TL_FAIL(TL_ERR_MEMORY, "no host memory for %zu bytes", bytes);
    return load ? tensor->device->api->copy_out(*data, tensor->data, bytes, NULL) : TL_OK;
}

enum tl_status tl_tensor_convert(struct tl_tensor *dst, const struct tl_tensor *src)
{
    char a[96], b[96];
    int64_t numel = tl_tensor_numel(src);
    if (tl_tensor_numel(dst) != numel || !tl_tensor_is_contiguous(dst) ||
        !tl_tensor_is_contiguous(src))
        return TL_FAIL(TL_ERR_ARGUMENT, "cannot convert %s to %s: element counts differ",
                       tl_tensor_describe(src, a, sizeof a), tl_tensor_describe(dst, b, sizeof b));
    if (dst->dtype == src->dtype)
        return tl_tensor_copy(dst, src, NULL);
    if (numel == 0)
        return TL_OK;
    void *from, *to, *own_from = NULL, *own_to = NULL;
    enum tl_status status;
    TL_GO(out, host_buffer(src, true, &from, &own_from));
    TL_GO(out, host_buffer(dst, false, &to, &own_to));
    TL_GO(out, tl_convert(to, dst->dtype, from, src->dtype, (size_t)numel));
    if (own_to)
        status = dst->device->api->copy_in(dst->data, to, tl_tensor_bytes(dst), NULL);
out:
    free(own_from);
    free(own_to);
    return status;
}

enum tl_status tl_tensor_fill(struct tl_tensor *tensor, double value)
{
    int64_t numel = tl_tensor_numel(tensor);
    size_t size = tl_dtype_size(tensor->dtype);
    if (!(TL_DTYPE_BIT(tensor->dtype) &
          (TL_FLOATS | TL_DTYPE_BIT(TL_I32) | TL_DTYPE_BIT(TL_U8))))
        return TL_FAIL(TL_ERR_UNSUPPORTED, "cannot fill a %s tensor with a number",
                       tl_dtype_name(tensor->dtype));
    if (numel == 0)
        return TL_OK;
    if (value == 0 && !__builtin_signbit(value))
        return tensor->device->api->fill(tensor->data, 0, (size_t)numel * size, NULL);
    void *data, *owned;
    enum tl_status status;
    TL_GO(out, host_buffer(tensor, false, &data, &owned));
    tl_element_set(data, tensor->dtype, 0, value);
    /* Doubling copies: each reads what is already filled. */
    for (int64_t filled = 1; filled < numel; filled *= 2)
        memcpy((char *)data + (size_t)filled * size, data,
               (size_t)(filled < numel - filled ? filled : numel - filled) * size);
    if (owned)
        status = tensor->device->api->copy_in(tensor->data, data, (size_t)numel * size, NULL);
out:
    free(owned);
    return status;
}

enum tl_status tl_tensor_poison(struct tl_tensor *tensor)
{
    size_t bytes = tl_tensor_bytes(tensor);
    return bytes ? tensor->device->api->fill(tensor->data, 0xff, bytes, NULL) : TL_OK;
}
