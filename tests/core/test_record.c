#include "check.h"
#include "core/record.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const columns[] = {"kernel", "m", "time_us"};

#define ROW(...) ((const char *const[]){__VA_ARGS__})

static void assert_file(const char *path, const char *wanted)
{
    char *text = file_read(path, NULL);
    assert_string_equal(text, wanted);
    free(text);
}

static struct tl_record *created(const char *path, const char *provenance)
{
    struct tl_record *record;
    assert_ok(tl_record_create(&record, path, provenance, columns, 3));
    assert_non_null(record);
    return record;
}

static void a_file_from_start_to_end(void **state)
{
    (void)state;
    const char *path = scratch("a.tsv");
    file_write(path, "old", 3); /* replaced */
    struct tl_record *record = created(path, "commit: 123\nhost: a b\n");
    assert_file(path, "# commit: 123\n# host: a b\nkernel\tm\ttime_us\n");
    /* Every row is in the file before the next call. */
    assert_ok(tl_record_row(record, ROW("cpu_plain", "16", "1.5"), 3));
    assert_file(path, "# commit: 123\n# host: a b\nkernel\tm\ttime_us\ncpu_plain\t16\t1.5\n");
    assert_ok(tl_record_row(record, ROW("x #1", "-", ""), 3));
    assert_ok(tl_record_close(record));
    assert_file(path, "# commit: 123\n# host: a b\nkernel\tm\ttime_us\ncpu_plain\t16\t1.5\n"
                      "x #1\t-\t\n");
    assert_ok(tl_record_close(NULL));
}

static void provenance_lines(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "kernel\tm\ttime_us\n"},
        {"one", "# one\nkernel\tm\ttime_us\n"},
        {"one\n\ntwo", "# one\n# \n# two\nkernel\tm\ttime_us\n"},
    };
    const char *path = scratch("b.tsv");
    for (int i = 0; i < 3; i++) {
        assert_ok(tl_record_close(created(path, cases[i][0])));
        assert_file(path, cases[i][1]);
    }
}

static void cells_are_checked(void **state)
{
    (void)state;
    const char *path = scratch("c.tsv");
    struct tl_record *record = created(path, "");
    assert_fails(TL_ERR_ARGUMENT, "cell 2", tl_record_row(record, ROW("a", "b\tc", "d"), 3));
    assert_message(path);
    assert_message("tab");
    assert_fails(TL_ERR_ARGUMENT, "cell 3", tl_record_row(record, ROW("a", "b", "c\n"), 3));
    assert_fails(TL_ERR_ARGUMENT, "cell 1", tl_record_row(record, ROW("\r", "b", "c"), 3));
    assert_fails(TL_ERR_ARGUMENT, "#", tl_record_row(record, ROW("#a", "b", "c"), 3));
    assert_fails(TL_ERR_ARGUMENT, "cell 2", tl_record_row(record, ROW("a", NULL, "c"), 3));
    assert_fails(TL_ERR_ARGUMENT, "2 cells", tl_record_row(record, ROW("a", "b"), 2));
    assert_message(path);
    assert_message("3");
    assert_fails(TL_ERR_ARGUMENT, "4 cells", tl_record_row(record, ROW("a", "b", "c", "d"), 4));
    assert_fails(TL_ERR_ARGUMENT, "0 cells", tl_record_row(record, NULL, 0));
    assert_ok(tl_record_row(record, ROW("a", "b", "c"), 3)); /* the record goes on */
    assert_ok(tl_record_close(record));
    assert_file(path, "kernel\tm\ttime_us\na\tb\tc\n");
}

static void columns_are_checked(void **state)
{
    (void)state;
    const char *path = scratch("d.tsv");
    struct tl_record *record;
    file_write(path, "precious", 8);
    assert_fails(TL_ERR_ARGUMENT, "column 2",
                 tl_record_create(&record, path, "", ROW("a", "b\tc"), 2));
    assert_null(record);
    assert_fails(TL_ERR_ARGUMENT, "'a'", tl_record_create(&record, path, "", ROW("a", "a"), 2));
    assert_fails(TL_ERR_ARGUMENT, "no name", tl_record_create(&record, path, "", ROW("a", ""), 2));
    assert_fails(TL_ERR_ARGUMENT, "#", tl_record_create(&record, path, "", ROW("#a", "b"), 2));
    assert_fails(TL_ERR_ARGUMENT, "column", tl_record_create(&record, path, "", NULL, 0));
    assert_file(path, "precious"); /* nothing was replaced by these */
}

static void places_that_refuse(void **state)
{
    (void)state;
    struct tl_record *record;
    const char *path = scratch("no/such.tsv");
    assert_fails(TL_ERR_IO, path, tl_record_create(&record, path, "", columns, 3));
    assert_message("No such file or directory");
    assert_null(record);
    assert_fails(TL_ERR_IO, path, tl_record_append(&record, path, columns, 3));
    assert_message("No such file or directory");
    assert_null(record);
    assert_fails(TL_ERR_IO, "/dev/full", tl_record_create(&record, "/dev/full", "", columns, 3));
    assert_message("No space left on device");
    assert_null(record);
    assert_fails(TL_ERR_IO, "Is a directory",
                 tl_record_create(&record, scratch(""), "", columns, 3));
    assert_fails(TL_ERR_IO, "/dev/zero", tl_record_append(&record, "/dev/zero", columns, 3));
    assert_fails(TL_ERR_IO, "regular", tl_record_append(&record, scratch(""), columns, 3));
    path = scratch("pipe.tsv");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_fails(TL_ERR_IO, "regular", tl_record_append(&record, path, columns, 3));
    if (geteuid() != 0) { /* root may write anywhere */
        path = scratch("readonly.tsv");
        assert_ok(tl_record_close(created(path, "")));
        assert_int_equal(chmod(path, 0444), 0);
        assert_fails(TL_ERR_IO, "Permission denied", tl_record_append(&record, path, columns, 3));
        assert_fails(TL_ERR_IO, "Permission denied",
                     tl_record_create(&record, path, "", columns, 3));
    }
}

/* A disk that fills up in the middle of a row: the row is reported and taken back whole. */
static void a_full_disk_leaves_whole_lines(void **state)
{
    (void)state;
    const char *path = scratch("e.tsv");
    struct tl_record *record = created(path, "");
    assert_ok(tl_record_row(record, ROW("a", "1", "2"), 3));
    struct rlimit old, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 30; /* the file holds 23 bytes */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum tl_status status = tl_record_row(record, ROW("a long name", "1", "2"), 3);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, TL_ERR_IO);
    assert_message(path);
    assert_message("File too large");
    assert_file(path, "kernel\tm\ttime_us\na\t1\t2\n");
    assert_ok(tl_record_row(record, ROW("b", "1", "2"), 3));
    assert_ok(tl_record_close(record));
    assert_file(path, "kernel\tm\ttime_us\na\t1\t2\nb\t1\t2\n");
}

static void appends(void **state)
{
    (void)state;
    const char *path = scratch("f.tsv");
    struct tl_record *record = created(path, "seed: 1");
    assert_ok(tl_record_row(record, ROW("a", "1", "2"), 3));
    assert_ok(tl_record_close(record));
    for (int i = 0; i < 2; i++) {
        assert_ok(tl_record_append(&record, path, columns, 3));
        assert_fails(TL_ERR_ARGUMENT, "2 cells", tl_record_row(record, ROW("a", "b"), 2));
        assert_ok(tl_record_row(record, ROW("b", "3", "4"), 3));
        assert_ok(tl_record_close(record));
    }
    assert_file(path, "# seed: 1\nkernel\tm\ttime_us\na\t1\t2\nb\t3\t4\nb\t3\t4\n");
    /* A header without rows will do. */
    assert_ok(tl_record_close(created(path, "")));
    assert_ok(tl_record_append(&record, path, columns, 3));
    assert_ok(tl_record_close(record));
}

static void refuses_to_append(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *words;
    } cases[] = {
        {"# x\nkernel\tm\n", ":2:", "'time_us'"},
        {"# x\nkernel\tm\ttime_us\tmore\n", ":2:", "4 columns, expected 3"},
        {"kernel\ttime_us\tm\n", ":1:", "column 2 is 'time_us', expected 'm'"},
        {"kernel\tm\ttime_ms\n", ":1:", "'time_ms', expected 'time_us'"},
        {"kernel\tm\ttime_usx\n", ":1:", "'time_usx'"},
        {"kernel m time_us\n", ":1:", "'kernel m time_us'"},
        {"# x\nkernel\tm\ttime_us\na\t1\t2\na\t1\t", ":4:", "cut off"},
        {"# x\nkernel\tm\ttime_us\na\t1\t2", ":3:", "cut off"},
        {"# x\nkernel\tm\ttime_us", ":2:", "cut off"},
        {"# x\n# y", ":2:", "cut off"},
        {"# x\nkernel\tm\ttime_us\na\t1\n", ":3:", "2 cells"},
        {"# x\nkernel\tm\ttime_us\na\t1\t2\t3\na\t1\t2\n", ":3:", "4 cells"},
        {"# x\nkernel\tm\ttime_us\n\na\t1\t2\n", ":3:", "1 cells"},
        {"# x\n", ":2:", "header row is missing"},
        {"", ":1:", "header row is missing"},
    };
    const char *path = scratch("g.tsv");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tl_record *record;
        char place[600];
        snprintf(place, sizeof place, "%s%s", path, cases[i].place);
        file_write(path, cases[i].text, strlen(cases[i].text));
        assert_fails(TL_ERR_FORMAT, place, tl_record_append(&record, path, columns, 3));
        assert_message(cases[i].words);
        assert_null(record);
        assert_file(path, cases[i].text);
    }
}

/* Killed without warning, a process loses none of the rows it reported. */
static void rows_survive_a_kill(void **state)
{
    (void)state;
    const char *path = scratch("h.tsv");
    pid_t child = fork();
    if (child == 0) {
        struct tl_record *record;
        if (tl_record_create(&record, path, "", columns, 3) == TL_OK &&
            tl_record_row(record, ROW("a", "1", "2"), 3) == TL_OK)
            raise(SIGKILL);
        _exit(1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    assert_file(path, "kernel\tm\ttime_us\na\t1\t2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_from_start_to_end),
        cmocka_unit_test(provenance_lines),
        cmocka_unit_test(cells_are_checked),
        cmocka_unit_test(columns_are_checked),
        cmocka_unit_test(places_that_refuse),
        cmocka_unit_test(a_full_disk_leaves_whole_lines),
        cmocka_unit_test(appends),
        cmocka_unit_test(refuses_to_append),
        cmocka_unit_test(rows_survive_a_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
