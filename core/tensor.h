/* Tensors: a shape over device memory.
 *
 * A tensor is a small value that points into shared, counted storage; views share it. Shapes and
 * strides are in elements, outermost first; strides of a fresh tensor are row-major.
 */
#ifndef TL_TENSOR_H
#define TL_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TL_MAX_RANK 5

struct tl_storage;

struct tl_tensor {
    enum tl_dtype dtype;
    int rank; /* 0 for an absent tensor */
    int64_t shape[TL_MAX_RANK];
    int64_t stride[TL_MAX_RANK];
    void *data; /* on `device`; NULL when the tensor has no elements */
    struct tl_device *device;
    struct tl_storage *storage;
};

/* Allocates uninitialised memory, 256-byte aligned. Sizes may be 0. TL_ERR_ARGUMENT: rank outside
 * 1..TL_MAX_RANK, a negative size, a byte count beyond 2^63; TL_ERR_MEMORY names the size. */
enum tl_status tl_tensor_init(struct tl_tensor *tensor, struct tl_device *device,
                              enum tl_dtype dtype, int rank, const int64_t *shape);

/* Drops this reference; safe on a zeroed tensor and when called twice. */
void tl_tensor_done(struct tl_tensor *tensor);

/* A contiguous view of `shape` that starts `offset` elements into the contiguous `source`, sharing
 * its storage. TL_ERR_ARGUMENT when it does not fit or the source is not contiguous. */
enum tl_status tl_tensor_view(struct tl_tensor *view, const struct tl_tensor *source,
                              int64_t offset, int rank, const int64_t *shape);

/* Rows [begin, end) of the outermost dimension, sharing storage. */
enum tl_status tl_tensor_rows(struct tl_tensor *view, const struct tl_tensor *source, int64_t begin,
                              int64_t end);

int64_t tl_tensor_numel(const struct tl_tensor *tensor);
size_t tl_tensor_bytes(const struct tl_tensor *tensor); /* of its elements, not of its storage */
bool tl_tensor_is_contiguous(const struct tl_tensor *tensor);

/* "[32, 2560, 3072] bf16" into `text`; returns `text`. */
const char *tl_tensor_describe(const struct tl_tensor *tensor, char *text, size_t size);

/* Copies between tensors of the same dtype and element count, both contiguous, on any devices.
 * A copy from or to host memory has completed on return. From one GPU to another the elements go
 * by way of host memory, whatever `stream` is. */
enum tl_status tl_tensor_copy(struct tl_tensor *dst, const struct tl_tensor *src,
                              struct tl_stream *stream);

/* Copies and converts, by way of host memory where the devices or dtypes ask for it. */
enum tl_status tl_tensor_convert(struct tl_tensor *dst, const struct tl_tensor *src);

/* The elements of a contiguous tensor in host memory: a view where they are there already, else a
 * copy. The caller calls tl_tensor_done; `host` is zeroed on failure. */
enum tl_status tl_tensor_on_host(struct tl_tensor *host, const struct tl_tensor *source);

/* Sets every element; poison sets every byte to 0xff, which is a NaN in all float types. */
enum tl_status tl_tensor_fill(struct tl_tensor *tensor, double value);
enum tl_status tl_tensor_poison(struct tl_tensor *tensor);

/* What tl_tensor_random draws. */
enum tl_distribution {
    TL_UNIFORM, /* [low, high): reals rounded to the dtype, for i32 and u8 the integers in it */
    TL_NORMAL,  /* mean `low`, standard deviation `high`; fp64, fp32 and bf16 only */
    TL_BITS,    /* raw bytes, of any dtype */
};

/* Fills a contiguous tensor with element i drawn from counter (seed, sequence, i): the same bits on
 * every device, for any thread count, whatever else was drawn. Floats are computed in double and
 * rounded once, so that a bf16 tensor holds the rounded elements of the fp64 one. See random.h.
 * TL_ERR_ARGUMENT: an empty or infinite interval, one that holds no value of the dtype, a negative
 * deviation, a distribution that the dtype does not have. */
enum tl_status tl_tensor_random(struct tl_tensor *tensor, enum tl_distribution distribution,
                                double low, double high, uint64_t seed, uint64_t sequence);

#ifdef __cplusplus
}
#endif
#endif
