/* Files byte by byte, back again, and malformed ones, each refused with its path and its fault. */
#include "check.h"
#include "core/npy.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct tl_tensor counting(struct tl_device *device, enum tl_dtype dtype, int rank,
                                 const int64_t *shape)
{
    struct tl_tensor host, tensor;
    assert_ok(tl_tensor_init(&host, cpu_device(), dtype, rank, shape));
    for (size_t i = 0; i < tl_tensor_bytes(&host); i++)
        ((unsigned char *)host.data)[i] = (unsigned char)(i * 37 + 11);
    assert_ok(tl_tensor_init(&tensor, device, dtype, rank, shape));
    assert_ok(tl_tensor_copy(&tensor, &host, NULL));
    tl_tensor_done(&host);
    return tensor;
}

/* The whole file, as the format's description spells it. */
static void bytes_of_a_file(void **state)
{
    (void)state;
    const char *path = scratch("a.npy");
    struct tl_tensor tensor;
    assert_ok(tl_tensor_init(&tensor, cpu_device(), TL_FP32, 2, (int64_t[]){2, 3}));
    for (int i = 0; i < 6; i++)
        ((float *)tensor.data)[i] = (float)i - 0.5f;
    assert_ok(tl_npy_write(&tensor, path, NULL));
    tl_tensor_done(&tensor);
    unsigned char wanted[128 + 24] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    memset(wanted + 10, ' ', 118);
    memcpy(wanted + 10, dict, strlen(dict));
    wanted[127] = '\n';
    static const unsigned char data[24] = {0, 0, 0,    0xbf, 0, 0, 0,    0x3f, 0, 0, 0xc0, 0x3f,
                                           0, 0, 0x20, 0x40, 0, 0, 0x60, 0x40, 0, 0, 0x90, 0x40};
    memcpy(wanted + 128, data, sizeof data);
    size_t bytes;
    char *got = file_read(path, &bytes);
    assert_int_equal(bytes, sizeof wanted);
    assert_memory_equal(got, wanted, sizeof wanted);
    free(got);
}

static void headers_by_dtype_and_rank(void **state)
{
    (void)state;
    static const struct {
        enum tl_dtype dtype;
        int rank;
        int64_t shape[TL_MAX_RANK];
        const char *dict;
    } cases[] = {
        {TL_FP64, 1, {5}, "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }"},
        {TL_BF16, 3, {1, 2, 3}, "{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2, 3), }"},
        {TL_I32, 2, {0, 7}, "{'descr': '<i4', 'fortran_order': False, 'shape': (0, 7), }"},
        {TL_U8,
         5,
         {2, 1, 2, 1, 3},
         "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 2, 1, 3), }"},
        {TL_E4M3, 1, {4}, "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }"},
        {TL_E8M0, 1, {4}, "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }"},
    };
    const char *path = scratch("b.npy");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tl_tensor tensor =
            counting(cpu_device(), cases[i].dtype, cases[i].rank, cases[i].shape);
        assert_ok(tl_npy_write(&tensor, path, NULL));
        size_t bytes, length = strlen(cases[i].dict), data = tl_tensor_bytes(&tensor);
        char *file = file_read(path, &bytes);
        assert_memory_equal(file, "\x93NUMPY\x01\x00", 8);
        size_t start = 10u + (unsigned char)file[8] + 256u * (unsigned char)file[9];
        assert_int_equal(start % 64, 0);
        assert_int_equal(bytes, start + data);
        assert_memory_equal(file + 10, cases[i].dict, length);
        for (size_t j = 10 + length; j + 1 < start; j++)
            assert_int_equal(file[j], ' ');
        assert_int_equal(file[start - 1], '\n');
        if (data)
            assert_memory_equal(file + start, tensor.data, data);
        free(file);
        tl_tensor_done(&tensor);
    }
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    static const enum tl_dtype dtypes[] = {TL_FP64, TL_FP32, TL_BF16, TL_I32, TL_U8};
    struct tl_device *devices[] = {cpu_device(), fake_device()};
    const char *path = scratch("c.npy");
    for (int d = 0; d < 5; d++) {
        for (int from = 0; from < 2; from++) {
            for (int to = 0; to < 2; to++) {
                struct tl_tensor tensor =
                    counting(devices[from], dtypes[d], 3, (int64_t[]){3, 5, 7});
                struct tl_tensor back, a, b;
                assert_ok(tl_npy_write(&tensor, path, NULL));
                assert_ok(tl_npy_read(&back, devices[to], path));
                assert_ptr_equal(back.device, devices[to]);
                assert_int_equal(back.dtype, dtypes[d]);
                assert_int_equal(back.rank, 3);
                assert_memory_equal(back.shape, tensor.shape, 3 * sizeof back.shape[0]);
                assert_memory_equal(back.stride, tensor.stride, 3 * sizeof back.stride[0]);
                assert_ok(tl_tensor_on_host(&a, &tensor));
                assert_ok(tl_tensor_on_host(&b, &back));
                assert_memory_equal(a.data, b.data, tl_tensor_bytes(&a));
                tl_tensor_done(&a);
                tl_tensor_done(&b);
                tl_tensor_done(&tensor);
                tl_tensor_done(&back);
            }
        }
    }
    struct tl_tensor empty = counting(cpu_device(), TL_FP32, 2, (int64_t[]){0, 9}), back;
    assert_ok(tl_npy_write(&empty, path, NULL));
    assert_ok(tl_npy_read(&back, fake_device(), path));
    assert_true(back.rank == 2 && back.shape[0] == 0 && back.shape[1] == 9);
    tl_tensor_done(&empty);
    tl_tensor_done(&back);
    /* A view writes its own elements. */
    struct tl_tensor whole = counting(cpu_device(), TL_I32, 2, (int64_t[]){4, 3}), rows;
    assert_ok(tl_tensor_rows(&rows, &whole, 1, 3));
    assert_ok(tl_npy_write(&rows, path, NULL));
    assert_ok(tl_npy_read(&back, cpu_device(), path));
    assert_int_equal(tl_tensor_numel(&back), 6);
    assert_memory_equal(back.data, (int32_t *)whole.data + 3, 24);
    tl_tensor_done(&whole);
    tl_tensor_done(&rows);
    tl_tensor_done(&back);
    assert_int_equal(fake_allocations, 0);
}

/* A file with this dict, padded, and `data` bytes of 1 behind it. */
static const char *write_file(const char *dict, size_t data)
{
    const char *path = scratch("made.npy");
    char text[2048];
    size_t length = strlen(dict) + 1; /* and the newline */
    memset(text, 1, sizeof text);
    memcpy(text, "\x93NUMPY\x01\x00", 8);
    text[8] = (char)(length & 0xff), text[9] = (char)(length >> 8);
    memcpy(text + 10, dict, length - 1);
    text[9 + length] = '\n';
    file_write(path, text, 10 + length + data);
    return path;
}

static void other_writers_are_read(void **state)
{
    (void)state;
    static const char *const dicts[] = {
        "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }",
        "{\"shape\":(2,3),\"descr\":\"<u2\",\"fortran_order\":False}",
        "  { 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , 'descr' : '<u2' }   ",
    };
    for (int i = 0; i < 3; i++) {
        struct tl_tensor tensor;
        assert_ok(tl_npy_read(&tensor, cpu_device(), write_file(dicts[i], 12)));
        assert_true(tensor.dtype == TL_BF16 && tensor.rank == 2);
        assert_true(tensor.shape[0] == 2 && tensor.shape[1] == 3);
        assert_int_equal(((uint16_t *)tensor.data)[5], 0x0101);
        tl_tensor_done(&tensor);
    }
}

#define DICT(descr, order, shape)                                                                  \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static void malformed_headers(void **state)
{
    (void)state;
    static const struct {
        const char *dict, *words;
    } cases[] = {
        {DICT("'<f4'", "True", "(2, 2)"), "Fortran order"},
        {DICT("'>f4'", "False", "(2, 2)"), ">f4"},
        {DICT("'<f2'", "False", "(2, 2)"), "<f2"},
        {DICT("'<i8'", "False", "(2, 2)"), "<i8"},
        {DICT("'|O'", "False", "(2, 2)"), "|O"},
        {DICT("''", "False", "(2, 2)"), "dtype"},
        {DICT("[('a', '<f4')]", "False", "(2, 2)"), "a short string"},
        {DICT("'aaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "False", "(2, 2)"), "a short string"},
        {DICT("'<f4'", "Maybe", "(2, 2)"), "True or False"},
        {DICT("'<f4'", "False", "[2, 2]"), "a tuple"},
        {DICT("'<f4'", "False", "(2, -2)"), "a size"},
        {DICT("'<f4'", "False", "(2, x)"), "a size"},
        {DICT("'<f4'", "False", "(2 2)"), "','"},
        {DICT("'<f4'", "False", "(2.5, 2)"), "','"},
        {DICT("'<f4'", "False", "(2, 2"), "a size"},
        {DICT("'<f4'", "False", "()"), "rank 0"},
        {DICT("'<f4'", "False", "(1, 1, 1, 1, 1, 1)"), "more than 5 dimensions"},
        {DICT("'<f4'", "False", "(99999999999999999999,)"), "overflows"},
        {DICT("'<f4'", "False", "(4294967296, 4294967296)"), "overflows"},
        {DICT("'<f4'", "False", "(9223372036854775807,)"), "overflows"},
        {DICT("'<f8'", "False", "(1152921504606846976,)"), "overflows"},
        {DICT("'<f4'", "False", "(0, 4294967296, 4294967296)"), "overflows"},
        {DICT("'<f4'", "False", "(1000000000, 1000000)"), "truncated"},
        {DICT("'<f4'", "False", "(2, 3)"), "truncated"},
        {DICT("'<f4'", "False", "(1, 3)"), "too long"},
        {"{'fortran_order': False, 'shape': (2, 2), }", "descr"},
        {"{'descr': '<f4', 'shape': (2, 2), }", "fortran_order"},
        {"{'descr': '<f4', 'fortran_order': False, }", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'more': 1}", "more"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} x", "the end"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (2, 2)}", "','"},
        {"{'descr', '<f4'}", "':'"},
        {"{'descr", "a short string"},
        {"{'desc\\'r': '<f4'}", "a short string"},
        {"{", "a short string"},
        {"[]", "'{'"},
        {"", "'{'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tl_tensor tensor;
        const char *path = write_file(cases[i].dict, 16);
        assert_fails(TL_ERR_FORMAT, path, tl_npy_read(&tensor, cpu_device(), path));
        assert_message(cases[i].words);
        tl_tensor_done(&tensor); /* safe: nothing is in it */
    }
    /* The dict that all of these spoil is itself fine. */
    struct tl_tensor tensor;
    assert_ok(tl_npy_read(&tensor, cpu_device(), write_file(DICT("'<f4'", "False", "(2, 2)"), 16)));
    tl_tensor_done(&tensor);
}

static void damaged_files(void **state)
{
    (void)state;
    const char *path = scratch("d.npy"), *cut = scratch("cut.npy");
    struct tl_tensor tensor = counting(cpu_device(), TL_FP32, 2, (int64_t[]){4, 4}), back;
    assert_ok(tl_npy_write(&tensor, path, NULL));
    tl_tensor_done(&tensor);
    size_t bytes;
    char *file = file_read(path, &bytes);
    for (size_t keep = 0; keep < bytes; keep++) { /* every shorter file */
        file_write(cut, file, keep);
        assert_fails(TL_ERR_FORMAT, cut, tl_npy_read(&back, cpu_device(), cut));
        assert_message(keep < 6 ? "magic" : "truncated");
    }
    file[0] = 'x';
    file_write(cut, file, bytes);
    assert_fails(TL_ERR_FORMAT, "magic", tl_npy_read(&back, cpu_device(), cut));
    assert_message(cut);
    file[0] = (char)0x93;
    for (int version = 0; version < 4; version++) {
        if (version == 1)
            continue;
        file[6] = (char)version;
        file_write(cut, file, bytes);
        assert_fails(TL_ERR_FORMAT, "version", tl_npy_read(&back, cpu_device(), cut));
        assert_message(cut);
    }
    file[6] = 1, file[7] = 1;
    file_write(cut, file, bytes);
    assert_fails(TL_ERR_FORMAT, "version 1.1", tl_npy_read(&back, cpu_device(), cut));
    file[7] = 0, file[20] = 0;
    file_write(cut, file, bytes);
    assert_fails(TL_ERR_FORMAT, "zero byte", tl_npy_read(&back, cpu_device(), cut));
    free(file);
}

static void files_that_are_not_there(void **state)
{
    (void)state;
    struct tl_tensor tensor = counting(cpu_device(), TL_FP32, 1, (int64_t[]){100000}), back;
    const char *absent = scratch("absent.npy"), *folder = scratch("no/folder.npy");
    assert_fails(TL_ERR_IO, absent, tl_npy_read(&back, cpu_device(), absent));
    assert_message("No such file or directory");
    assert_fails(TL_ERR_IO, "regular file", tl_npy_read(&back, cpu_device(), scratch("")));
    assert_fails(TL_ERR_IO, "regular file", tl_npy_read(&back, cpu_device(), "/dev/zero"));
    const char *pipe = scratch("pipe.npy");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_fails(TL_ERR_IO, "regular file", tl_npy_read(&back, cpu_device(), pipe));
    assert_fails(TL_ERR_IO, folder, tl_npy_write(&tensor, folder, NULL));
    assert_message("No such file or directory");
    assert_fails(TL_ERR_IO, "/dev/full", tl_npy_write(&tensor, "/dev/full", NULL));
    assert_message("No space left on device");
    assert_true(file_exists("/dev/full")); /* devices are neither replaced nor removed */
    assert_fails(TL_ERR_IO, "Is a directory", tl_npy_write(&tensor, scratch(""), NULL));
    tl_tensor_done(&tensor);
}

/* A write that fails half way leaves the former file and nothing beside it. */
static void no_partial_file(void **state)
{
    (void)state;
    const char *path = scratch("e.npy"), *fresh = scratch("fresh.npy");
    struct tl_tensor small = counting(cpu_device(), TL_U8, 1, (int64_t[]){10}), back;
    struct tl_tensor large = counting(cpu_device(), TL_U8, 1, (int64_t[]){1000000});
    struct rlimit old, limit;
    assert_ok(tl_npy_write(&small, path, NULL));
    int entries = scratch_count();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 100000; /* a full disk for this process: writes beyond give EFBIG */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum tl_status replaced = tl_npy_write(&large, path, NULL);
    enum tl_status created = tl_npy_write(&large, fresh, NULL);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(replaced, TL_ERR_IO);
    assert_int_equal(created, TL_ERR_IO);
    assert_message(fresh);
    assert_message("File too large");
    assert_int_equal(scratch_count(), entries);
    assert_ok(tl_npy_read(&back, cpu_device(), path));
    assert_int_equal(tl_tensor_numel(&back), 10);
    tl_tensor_done(&back);
    /* A link still leads to its file. */
    const char *link = scratch("link.npy");
    assert_int_equal(symlink(path, link), 0);
    assert_ok(tl_npy_write(&large, link, NULL));
    assert_ok(tl_npy_read(&back, cpu_device(), path));
    assert_int_equal(tl_tensor_numel(&back), 1000000);
    tl_tensor_done(&back);
    tl_tensor_done(&small);
    tl_tensor_done(&large);
}

static void refuses(void **state)
{
    (void)state;
    const char *path = scratch("f.npy");
    struct tl_tensor tensor = counting(cpu_device(), TL_FP32, 2, (int64_t[]){2, 3});
    struct tl_tensor absent = {0}, strided = tensor;
    strided.stride[0] = 1, strided.stride[1] = 2;
    assert_fails(TL_ERR_ARGUMENT, "contiguous", tl_npy_write(&strided, path, NULL));
    assert_fails(TL_ERR_ARGUMENT, "absent", tl_npy_write(&absent, path, NULL));
    assert_false(file_exists(path));
    /* A device that is out of memory fails the read, and nothing leaks. */
    struct tl_tensor back;
    assert_ok(tl_npy_write(&tensor, path, NULL));
    fake_refuse = 1;
    assert_fails(TL_ERR_MEMORY, "fake", tl_npy_read(&back, fake_device(), path));
    assert_int_equal(fake_allocations, 0);
    tl_tensor_done(&tensor);
}

/* More than goes through the host at a time, into a tensor that is there. */
static void pieces(void **state)
{
    (void)state;
    const char *path = scratch("large.npy");
    const int64_t shape[] = {2, (16 << 20) + 21}, flat[] = {2 * ((16 << 20) + 21)}, less[] = {7};
    struct tl_checksum written, read, of_host;
    char texts[3][TL_CHECKSUM_TEXT];
    struct tl_tensor tensor = counting(fake_device(), TL_U8, 2, shape), back, host, other;
    assert_ok(tl_npy_write(&tensor, path, &written));
    assert_ok(tl_tensor_init(&back, fake_device(), TL_U8, 1, flat));
    assert_ok(tl_npy_read_into(&back, path, &read));
    assert_ok(tl_tensor_on_host(&host, &back));
    tl_checksum_begin(&of_host);
    tl_checksum_add(&of_host, host.data, tl_tensor_bytes(&host));
    tl_checksum_end(&written, texts[0]);
    tl_checksum_end(&read, texts[1]);
    tl_checksum_end(&of_host, texts[2]);
    assert_string_equal(texts[0], texts[1]);
    assert_string_equal(texts[0], texts[2]);
    for (size_t i = 0; i < tl_tensor_bytes(&host); i++)
        assert_int_equal(((unsigned char *)host.data)[i], (unsigned char)(i * 37 + 11));
    assert_ok(tl_tensor_init(&other, cpu_device(), TL_U8, 1, less));
    assert_fails(TL_ERR_FORMAT, "elements of u8, no [7] u8", tl_npy_read_into(&other, path, NULL));
    tl_tensor_done(&other);
    tl_tensor_done(&host);
    tl_tensor_done(&back);
    tl_tensor_done(&tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_a_file),
        cmocka_unit_test(headers_by_dtype_and_rank),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(other_writers_are_read),
        cmocka_unit_test(malformed_headers),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(files_that_are_not_there),
        cmocka_unit_test(no_partial_file),
        cmocka_unit_test(refuses),
        cmocka_unit_test(pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
