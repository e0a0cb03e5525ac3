#include "check.h"
#include "core/hash.h"
#include "core/provenance.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void is_hexadecimal(const char *text, size_t length)
{
    assert_int_equal(strlen(text), length);
    for (; *text; text++)
        assert_true(isdigit((unsigned char)*text) || (*text >= 'a' && *text <= 'f'));
}

static void compiled_in(void **state)
{
    (void)state;
    int major, minor, patch;
    assert_int_equal(sscanf(tl_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    if (strcmp(tl_commit(), "unknown") != 0)
        is_hexadecimal(tl_commit(), 40);
    assert_true(tl_commit_dirty() == 0 || tl_commit_dirty() == 1);
    assert_int_equal(sscanf(tl_compiler(), "gcc %d.%d.%d", &major, &minor, &patch), 3);
    if (strcmp(tl_cuda_toolkit(), "none") != 0)
        assert_int_equal(sscanf(tl_cuda_toolkit(), "%d.%d", &major, &minor), 2);
}

static void kernel_hashes(void **state)
{
    (void)state;
    assert_string_equal(tl_kernel_hash("no_such_folder"), "");
    assert_string_equal(tl_kernel_hash(""), "");
    assert_null(tl_kernel_hash_folder_at(-1));
    assert_null(tl_kernel_hash_folder_at(100000));
    int count = 0;
    for (; tl_kernel_hash_folder_at(count); count++) {
        const char *folder = tl_kernel_hash_folder_at(count);
        is_hexadecimal(tl_kernel_hash(folder), 64);
        assert_string_not_equal(folder, "device"); /* part of every hash, no operation */
        for (int i = 0; i < count; i++)
            assert_string_not_equal(folder, tl_kernel_hash_folder_at(i));
    }
    assert_null(tl_kernel_hash_folder_at(count));
}

/* .ci/version on trees of its own: none, an empty folder, sources shared and not. */
static char *version_of_tree(const char *build)
{
    const char *folder = scratch("tree"), *out = scratch("version.h");
    char command[4096];
    snprintf(command, sizeof command,
             "rm -rf '%s' && mkdir -p '%s/.ci' && cp .ci/version '%s/.ci/' && cd '%s' && { %s; } "
             "&& .ci/version gcc '' > '%s'",
             folder, folder, folder, folder, build, out);
    assert_int_equal(system(command), 0);
    return file_read(out, NULL);
}

static void version_script(void **state)
{
    (void)state;
    if (access(".ci/version", X_OK) != 0) {
        print_message("# not run from the root of the repository\n");
        skip();
    }
    static const char *const without[] = {":", "mkdir kernels", "mkdir -p kernels/device",
                                          "mkdir kernels; touch kernels/table.c"};
    for (int i = 0; i < 4; i++) {
        char *text = version_of_tree(without[i]);
        assert_non_null(strstr(text, "#define TL_KERNEL_HASHES\n"));
        free(text);
    }
    char *text = version_of_tree("mkdir -p kernels/gemm kernels/empty kernels/device; "
                                 "printf b > kernels/gemm/op.h; printf a > kernels/device/x.h; "
                                 "printf c > 'kernels/gemm/ref file.c'");
    char row[128], hash[TL_HASH_TEXT];
    tl_hash_bytes("abc", 3, hash); /* device/x.h, gemm/op.h, gemm/ref file.c */
    snprintf(row, sizeof row, "{\"gemm\", \"%s\"},", hash);
    assert_non_null(strstr(text, row));
    tl_hash_bytes("a", 1, hash);
    snprintf(row, sizeof row, "{\"empty\", \"%s\"},", hash);
    assert_non_null(strstr(text, row));
    assert_null(strstr(text, "{\"device\""));
    assert_non_null(strstr(text, "#define TL_CUDA_TOOLKIT \"none\"\n"));
    free(text);
}

static void the_host(void **state)
{
    (void)state;
    struct tl_host host;
    char name[256] = "";
    memset(&host, 0xa5, sizeof host);
    tl_host_describe(&host);
    gethostname(name, sizeof name - 1);
    assert_string_equal(host.name, name);
    assert_true(host.cpu[0] != 0 && host.cpu[0] != ' ');
    assert_non_null(memchr(host.cpu, 0, sizeof host.cpu));
    assert_non_null(strstr(host.system, "Linux "));
    assert_true(host.cores >= 1);
    assert_true(host.memory_bytes > 16u << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_in),
        cmocka_unit_test(kernel_hashes),
        cmocka_unit_test(version_script),
        cmocka_unit_test(the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
