/* A device over host memory whose addresses have the top bit flipped, so that only its own
 * functions can use them; see check.h. */
#include "check.h"

#include <stdlib.h>

int fake_allocations, fake_refuse;

static void *flip(const void *pointer)
{
    return (void *)((uintptr_t)pointer ^ (uintptr_t)1 << 63);
}

static enum tl_status fake_alloc(struct tl_device *device, size_t bytes, void **out)
{
    (void)device;
    if (fake_refuse) {
        fake_refuse = 0;
        return TL_FAIL(TL_ERR_MEMORY, "fake: %zu bytes refused", bytes);
    }
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    assert_non_null(memory);
    fake_allocations++;
    *out = flip(memory);
    return TL_OK;
}

static void fake_free(struct tl_device *device, void *memory)
{
    (void)device;
    fake_allocations--;
    free(flip(memory));
}

static enum tl_status fake_copy_in(void *dst, const void *host, size_t bytes,
                                   struct tl_stream *stream)
{
    (void)stream;
    memcpy(flip(dst), host, bytes);
    return TL_OK;
}

static enum tl_status fake_copy_out(void *host, const void *src, size_t bytes,
                                    struct tl_stream *stream)
{
    (void)stream;
    memcpy(host, flip(src), bytes);
    return TL_OK;
}

static enum tl_status fake_copy(void *dst, const void *src, size_t bytes, struct tl_stream *stream)
{
    (void)stream;
    memmove(flip(dst), flip(src), bytes);
    return TL_OK;
}

static enum tl_status fake_fill(void *dst, uint8_t byte, size_t bytes, struct tl_stream *stream)
{
    (void)stream;
    memset(flip(dst), byte, bytes);
    return TL_OK;
}

struct tl_device *fake_device(void)
{
    static const struct tl_device_api api = {.name = "fake",
                                             .alloc = fake_alloc,
                                             .free = fake_free,
                                             .copy_in = fake_copy_in,
                                             .copy_out = fake_copy_out,
                                             .copy = fake_copy,
                                             .fill = fake_fill};
    static struct tl_stream stream;
    static struct tl_device device = {.api = &api,
                                      .name = "fake",
                                      .model = "fake device",
                                      .arch = 90,
                                      .multiprocessors = 1,
                                      .default_stream = &stream};
    stream.device = &device;
    return &device;
}
