/* Opening libraries that are there, that are not, and that are none. */
#include "check.h"
#include "core/dynlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct maths {
    double (*cosine)(double);
    double (*none)(double);
};

static const char *const maths_names[] = {"libm.so.6", NULL};

static const struct tl_dynlib_symbol maths_symbols[] = {
    TL_SYMBOL(struct maths, cosine, "cos"),
    TL_SYMBOL_OPTIONAL(struct maths, none, "no_such_function"),
    {NULL, 0, false},
};

static void a_library_of_the_system(void **state)
{
    (void)state;
    struct tl_dynlib library = {NULL, NULL, ""};
    struct maths maths;
    memset(&maths, 0xff, sizeof maths);
    assert_ok(tl_dynlib_open(&library, "maths", maths_names, "install libc"));
    assert_string_equal(library.path, "libm.so.6");
    assert_ok(tl_dynlib_resolve(&library, &maths, maths_symbols));
    assert_true(maths.cosine(0.0) == 1.0);
    assert_null(maths.none);
    void *handle = library.handle;
    assert_ok(tl_dynlib_open(&library, "maths", maths_names, "install libc"));
    assert_ptr_equal(library.handle, handle);
    tl_dynlib_close(&library);
    tl_dynlib_close(&library);
    assert_null(library.handle);
    assert_fails(TL_ERR_UNSUPPORTED, "not open",
                 tl_dynlib_resolve(&library, &maths, maths_symbols));
}

static void the_first_name_that_loads(void **state)
{
    (void)state;
    static const char *const names[] = {"libtilelab-none.so.1", "libm.so.6", NULL};
    struct tl_dynlib library = {NULL, NULL, ""};
    assert_ok(tl_dynlib_open(&library, "maths", names, "install libc"));
    assert_string_equal(library.path, "libm.so.6");
    tl_dynlib_close(&library);
}

static void a_missing_library(void **state)
{
    (void)state;
    static const char *const names[] = {"libtilelab-none.so.1", "libtilelab-none.so", NULL};
    struct tl_dynlib library = {NULL, NULL, ""};
    assert_fails(TL_ERR_UNSUPPORTED, "libtilelab-none.so.1, libtilelab-none.so",
                 tl_dynlib_open(&library, "None", names, "install none"));
    assert_message("None: cannot load");
    assert_message("install none");
    assert_message("TILELAB_LIBRARY_PATH");
    assert_null(library.handle);
}

static void a_missing_function(void **state)
{
    (void)state;
    static const struct tl_dynlib_symbol symbols[] = {
        TL_SYMBOL(struct maths, cosine, "cos"),
        TL_SYMBOL(struct maths, none, "no_such_function"),
        {NULL, 0, false},
    };
    struct tl_dynlib library = {NULL, NULL, ""};
    struct maths maths;
    assert_ok(tl_dynlib_open(&library, "maths", maths_names, "install libc"));
    assert_fails(TL_ERR_UNSUPPORTED, "no_such_function",
                 tl_dynlib_resolve(&library, &maths, symbols));
    assert_message("libm.so.6");
    tl_dynlib_close(&library);
}

/* A folder of TILELAB_LIBRARY_PATH comes first; a file in it that is no library is named. */
static void listed_folders(void **state)
{
    (void)state;
    static const char *const names[] = {"libtilelab-text.so", NULL};
    struct tl_dynlib library = {NULL, NULL, ""};
    char folder[512], list[1100];
    snprintf(folder, sizeof folder, "%s", scratch("libtilelab-text.so"));
    file_write(folder, "text", 4);
    *strrchr(folder, '/') = 0;
    snprintf(list, sizeof list, "/nowhere::%s:", folder);
    setenv("TILELAB_LIBRARY_PATH", list, 1);
    assert_fails(TL_ERR_UNSUPPORTED, "libtilelab-text.so",
                 tl_dynlib_open(&library, "Text", names, "write a library"));
    assert_message(folder);
    assert_message("file too short");
    unsetenv("TILELAB_LIBRARY_PATH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_of_the_system),
        cmocka_unit_test(the_first_name_that_loads),
        cmocka_unit_test(a_missing_library),
        cmocka_unit_test(a_missing_function),
        cmocka_unit_test(listed_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
