/* Vectors of FIPS 180-4 as NIST publishes them, then sha256sum on every length around a block. */
#include "check.h"
#include "core/hash.h"

#include <stdio.h>
#include <stdlib.h>

static const char *hash_of(const void *data, size_t bytes)
{
    static char text[TL_HASH_TEXT];
    tl_hash_bytes(data, bytes, text);
    return text;
}

static void published_vectors(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
         "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(hash_of(cases[i][0], strlen(cases[i][0])), cases[i][1]);
    char *many = malloc(1000000);
    assert_non_null(many);
    memset(many, 'a', 1000000);
    assert_string_equal(hash_of(many, 1000000),
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(many);
}

static void agrees_with_sha256sum(void **state)
{
    (void)state;
    static const size_t lengths[] = {0,  1,   54,  55,  56,  57,  63,  64,    65,
                                     66, 118, 119, 120, 127, 128, 129, 16384, 40001};
    static unsigned char data[40001];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 131 + (i >> 8));
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const char *path = scratch("data");
        char command[600], wanted[TL_HASH_TEXT] = "", got[TL_HASH_TEXT];
        file_write(path, data, lengths[i]);
        snprintf(command, sizeof command, "sha256sum '%s'", path);
        FILE *pipe = popen(command, "r");
        assert_non_null(pipe);
        assert_int_equal(fread(wanted, 1, 64, pipe), 64);
        pclose(pipe);
        assert_ok(tl_hash_file(path, got));
        assert_string_equal(got, wanted);
        assert_string_equal(hash_of(data, lengths[i]), wanted);
    }
}

static void names_the_path(void **state)
{
    (void)state;
    char text[TL_HASH_TEXT];
    const char *path = scratch("absent");
    assert_fails(TL_ERR_IO, path, tl_hash_file(path, text));
    assert_message("No such file");
    assert_fails(TL_ERR_IO, "Is a directory", tl_hash_file(scratch(""), text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(agrees_with_sha256sum),
        cmocka_unit_test(names_the_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
