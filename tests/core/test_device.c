#include "check.h"

#include <time.h>

static void the_cpu_comes_first(void **state)
{
    (void)state;
    struct tl_device *cpu = cpu_device();
    assert_string_equal(tl_device_name_at(0), "cpu");
    assert_null(tl_device_name_at(1000));
    assert_null(tl_device_name_at(-1));
    assert_string_equal(cpu->name, "cpu");
    assert_string_equal(cpu->api->name, "cpu");
    assert_true(cpu->arch == 0 && cpu->index == 0);
    assert_true(cpu->multiprocessors >= 1 && cpu->memory_bytes > 1u << 20);
    assert_true(cpu->model[0] != 0);
    assert_non_null(cpu->default_stream);
    assert_ptr_equal(cpu->default_stream->device, cpu);
}

static void a_device_is_opened_once(void **state)
{
    (void)state;
    struct tl_device *again;
    assert_ok(tl_device_open("cpu", &again));
    assert_ptr_equal(again, cpu_device());
    assert_ok(tl_device_open("cpu:0", &again));
    assert_ptr_equal(again, cpu_device());
    /* Every name that is listed opens. */
    for (int i = 0; tl_device_name_at(i); i++) {
        char name[64];
        strncpy(name, tl_device_name_at(i), sizeof name - 1);
        name[sizeof name - 1] = 0;
        assert_ok(tl_device_open(name, &again));
        assert_string_equal(again->name, name);
    }
}

static void unknown_names(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",     "cp",    "cpux",   "gpu",    "CPU",
        "cpu:", "cpu:x", "cpu:0x", "cpu:-1", "cpu:99999999999999999999",
        ":0"};
    struct tl_device *device = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_fails(TL_ERR_ARGUMENT, wrong[i], tl_device_open(wrong[i], &device));
        assert_null(device);
    }
    assert_fails(TL_ERR_UNSUPPORTED, "cpu:1", tl_device_open("cpu:1", &device));
    assert_fails(TL_ERR_UNSUPPORTED, "cuda:1000", tl_device_open("cuda:1000", &device));
    assert_null(device);
}

static void memory(void **state)
{
    (void)state;
    struct tl_device *cpu = cpu_device();
    static const size_t sizes[] = {1, 255, 256, 257, 100000};
    for (int i = 0; i < 5; i++) {
        void *memory;
        assert_ok(cpu->api->alloc(cpu, sizes[i], &memory));
        assert_int_equal((uintptr_t)memory % 256, 0);
        memset(memory, 1, sizes[i]);
        cpu->api->free(cpu, memory);
    }
    void *none = &none;
    assert_fails(TL_ERR_MEMORY, "18446744073709551615", cpu->api->alloc(cpu, SIZE_MAX, &none));
    assert_null(none);
    cpu->api->free(cpu, NULL);
}

static void copies_and_fills(void **state)
{
    (void)state;
    struct tl_device *cpu = cpu_device();
    unsigned char host[64], back[64];
    void *memory;
    for (int i = 0; i < 64; i++)
        host[i] = (unsigned char)i;
    assert_ok(cpu->api->alloc(cpu, 64, &memory));
    assert_ok(cpu->api->fill(memory, 0xab, 64, NULL));
    assert_ok(cpu->api->copy_in(memory, host, 60, NULL));
    assert_ok(cpu->api->copy_out(back, memory, 64, cpu->default_stream));
    assert_memory_equal(back, host, 60);
    assert_true(back[60] == 0xab && back[63] == 0xab);
    assert_ok(cpu->api->copy((char *)memory + 8, memory, 32, NULL)); /* may overlap */
    assert_ok(cpu->api->copy_out(back, memory, 64, NULL));
    assert_memory_equal(back + 8, host, 32);
    assert_ok(cpu->api->copy(NULL, NULL, 0, NULL));
    assert_ok(cpu->api->fill(NULL, 0, 0, NULL));
    cpu->api->free(cpu, memory);
}

static void streams_and_events(void **state)
{
    (void)state;
    struct tl_device *cpu = cpu_device();
    struct tl_stream *stream;
    struct tl_event *start, *stop;
    double elapsed_us;
    assert_ok(cpu->api->stream_new(cpu, &stream));
    assert_ptr_equal(stream->device, cpu);
    assert_ok(cpu->api->event_new(cpu, &start));
    assert_ok(cpu->api->event_new(cpu, &stop));
    assert_ok(cpu->api->event_record(start, stream));
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    assert_ok(cpu->api->event_record(stop, stream));
    assert_ok(cpu->api->stream_sync(stream));
    assert_ok(cpu->api->event_elapsed_us(start, stop, &elapsed_us));
    assert_true(elapsed_us >= 5000 && elapsed_us < 5e6);
    cpu->api->event_free(start);
    cpu->api->event_free(stop);
    cpu->api->stream_free(stream);
    cpu->api->event_free(NULL);
    cpu->api->stream_free(NULL);
    assert_ok(cpu->api->stream_sync(NULL));
}

static void the_clock_counts_microseconds(void **state)
{
    (void)state;
    double before = tl_time_us();
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    double passed = tl_time_us() - before;
    assert_true(passed >= 2000 && passed < 2e6);
    double last = tl_time_us();
    for (int i = 0; i < 1000; i++) {
        double now = tl_time_us();
        assert_true(now >= last);
        last = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_comes_first),
        cmocka_unit_test(a_device_is_opened_once),
        cmocka_unit_test(unknown_names),
        cmocka_unit_test(memory),
        cmocka_unit_test(copies_and_fills),
        cmocka_unit_test(streams_and_events),
        cmocka_unit_test(the_clock_counts_microseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
