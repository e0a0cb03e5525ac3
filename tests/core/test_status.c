/* The last error, and the log beside it. */
#include "check.h"
#include "core/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void names_are_words(void **state)
{
    (void)state;
    assert_string_equal(tl_status_name(TL_OK), "ok");
    assert_string_equal(tl_status_name(TL_ERR_ARGUMENT), "argument");
    assert_string_equal(tl_status_name(TL_ERR_UNSUPPORTED), "unsupported");
    for (int i = TL_OK; i <= TL_ERR_UNSUPPORTED; i++)
        for (int j = TL_OK; j < i; j++)
            assert_string_not_equal(tl_status_name((enum tl_status)i),
                                    tl_status_name((enum tl_status)j));
    assert_non_null(tl_status_name((enum tl_status)99));
    assert_non_null(tl_status_name((enum tl_status) - 1));
}

static void a_failure_is_recorded_where_it_happens(void **state)
{
    (void)state;
    int line = __LINE__ + 1;
    enum tl_status status = TL_FAIL(TL_ERR_IO, "cannot %s %d", "read", 7);
    char where[64];
    assert_int_equal(status, TL_ERR_IO);
    assert_string_equal(tl_error_message(), "cannot read 7");
    snprintf(where, sizeof where, "test_status.c:%d", line);
    assert_non_null(strstr(tl_error_where(), where));
    /* A message may quote the one before it. */
    (void)TL_FAIL(TL_ERR_IO, "outer: %s", tl_error_message());
    assert_string_equal(tl_error_message(), "outer: cannot read 7");
}

static void long_messages_are_cut(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    (void)TL_FAIL(TL_ERR_IO, "%s", text);
    size_t length = strlen(tl_error_message());
    assert_true(length > 500 && length < sizeof text - 1);
    assert_memory_equal(tl_error_message(), text, length);
}

static int steps;

static enum tl_status step(enum tl_status status)
{
    steps++;
    return status;
}

static enum tl_status try_three(enum tl_status second)
{
    TL_TRY(step(TL_OK));
    TL_TRY(step(second));
    TL_TRY(step(TL_OK));
    return TL_OK;
}

static enum tl_status go_three(enum tl_status second, int *cleaned)
{
    enum tl_status status;
    TL_GO(out, step(TL_OK));
    TL_GO(out, step(second));
    TL_GO(out, step(TL_OK));
out:
    ++*cleaned;
    return status;
}

static void macros_stop_at_the_first_failure(void **state)
{
    (void)state;
    int cleaned = 0;
    steps = 0;
    assert_int_equal(try_three(TL_OK), TL_OK);
    assert_int_equal(steps, 3);
    assert_int_equal(try_three(TL_ERR_MEMORY), TL_ERR_MEMORY);
    assert_int_equal(steps, 5);
    assert_int_equal(go_three(TL_OK, &cleaned), TL_OK);
    assert_int_equal(go_three(TL_ERR_DEVICE, &cleaned), TL_ERR_DEVICE);
    assert_int_equal(steps, 10);
    assert_int_equal(cleaned, 2);
}

static void *other_thread(void *seen)
{
    snprintf(seen, 64, "%s", tl_error_message());
    (void)TL_FAIL(TL_ERR_IO, "theirs");
    return NULL;
}

static void each_thread_has_its_own(void **state)
{
    (void)state;
    pthread_t thread;
    char seen[64] = "untouched";
    (void)TL_FAIL(TL_ERR_IO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, seen), 0);
    pthread_join(thread, NULL);
    assert_string_equal(seen, ""); /* none on a new thread */
    assert_string_equal(tl_error_message(), "mine");
}

/* What tl_log writes to stderr, all levels once. */
static char *logged(void)
{
    const char *path = scratch("log");
    int saved = dup(2);
    assert_non_null(freopen(path, "wb", stderr));
    tl_log(TL_LOG_ERROR, "e%d", 1);
    tl_log(TL_LOG_WARN, "w%d", 2);
    tl_log(TL_LOG_INFO, "i%d", 3);
    tl_log(TL_LOG_DEBUG, "d%d", 4);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    return file_read(path, NULL);
}

static void the_level_decides(void **state)
{
    (void)state;
    static const char *const lines[] = {"tilelab: error: e1\n", "tilelab: warning: w2\n",
                                        "tilelab: info: i3\n", "tilelab: debug: d4\n"};
    unsetenv("TILELAB_LOG");
    assert_int_equal(tl_log_level_now(), TL_LOG_WARN);
    for (int level = TL_LOG_ERROR; level <= TL_LOG_DEBUG; level++) {
        char wanted[128] = "";
        for (int i = 0; i <= level; i++)
            strcat(wanted, lines[i]);
        tl_log_set_level((enum tl_log_level)level);
        assert_int_equal(tl_log_level_now(), level);
        char *text = logged();
        assert_string_equal(text, wanted);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_words),
        cmocka_unit_test(a_failure_is_recorded_where_it_happens),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(macros_stop_at_the_first_failure),
        cmocka_unit_test(each_thread_has_its_own),
        cmocka_unit_test(the_level_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
