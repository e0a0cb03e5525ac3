/* Rows are built in memory and handed to the system in one write, past any buffer of the C library:
 * what was reported as written is out of this process. A row that did not fit on the disk is taken
 * back, so that the file ends with a whole line. */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tl_record {
    int fd;
    int num_columns;
    char *path;
};

static enum tl_status check_cell(const char *path, const char *what, const char *cell, int position)
{
    if (!cell)
        return TL_FAIL(TL_ERR_ARGUMENT, "'%s': %s %d is NULL", path, what, position + 1);
    if (strpbrk(cell, "\t\n\r"))
        return TL_FAIL(TL_ERR_ARGUMENT, "'%s': %s %d holds a tab or a newline: '%s'", path, what,
                       position + 1, cell);
    if (position == 0 && cell[0] == '#')
        return TL_FAIL(TL_ERR_ARGUMENT,
                       "'%s': %s 1 begins with '#', which would make its line a comment: '%s'",
                       path, what, cell);
    return TL_OK;
}

static enum tl_status check_columns(const char *path, const char *const *columns, int num_columns)
{
    if (num_columns < 1)
        return TL_FAIL(TL_ERR_ARGUMENT, "'%s': a record needs a column", path);
    for (int i = 0; i < num_columns; i++) {
        TL_TRY(check_cell(path, "column", columns[i], i));
        if (!*columns[i])
            return TL_FAIL(TL_ERR_ARGUMENT, "'%s': column %d has no name", path, i + 1);
        for (int j = 0; j < i; j++)
            if (strcmp(columns[i], columns[j]) == 0)
                return TL_FAIL(TL_ERR_ARGUMENT, "'%s': columns %d and %d are both '%s'", path,
                               j + 1, i + 1, columns[i]);
    }
    return TL_OK;
}

static void print_line(FILE *out, const char *const *cells, int count)
{
    for (int i = 0; i < count; i++)
        fprintf(out, "%s%s", i ? "\t" : "", cells[i]);
    fputc('\n', out);
}

static void print_provenance(FILE *out, const char *text)
{
    while (text && *text) {
        int length = (int)strcspn(text, "\n");
        fprintf(out, "# %.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

/* Writes all of it; on failure what was written of it is cut off again, where the file allows. */
static enum tl_status write_whole(struct tl_record *record, const char *text, size_t bytes)
{
    struct stat before;
    bool regular = fstat(record->fd, &before) == 0 && S_ISREG(before.st_mode);
    while (bytes) {
        ssize_t written = write(record->fd, text, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            enum tl_status status =
                TL_FAIL(TL_ERR_IO, "cannot write '%s': %s", record->path, strerror(errno));
            if (regular && ftruncate(record->fd, before.st_size) != 0)
                return TL_FAIL(TL_ERR_IO, "cannot write '%s', whose last line is now cut: %s",
                               record->path, strerror(errno));
            return status;
        }
        text += written;
        bytes -= (size_t)written;
    }
    return TL_OK;
}

/* Takes over `fd`, also on failure. */
static enum tl_status record_new(struct tl_record **out, int fd, const char *path, int num_columns)
{
    struct tl_record *record = calloc(1, sizeof *record);
    char *copy = strdup(path);
    if (!record || !copy) {
        free(record);
        free(copy);
        close(fd);
        return TL_FAIL(TL_ERR_MEMORY, "'%s': no memory for a record", path);
    }
    *record = (struct tl_record){.fd = fd, .num_columns = num_columns, .path = copy};
    *out = record;
    return TL_OK;
}

static void record_free(struct tl_record *record)
{
    free(record->path);
    free(record);
}

enum tl_status tl_record_create(struct tl_record **out, const char *path, const char *provenance,
                                const char *const *columns, int num_columns)
{
    *out = NULL;
    TL_TRY(check_columns(path, columns, num_columns));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return TL_FAIL(TL_ERR_IO, "cannot create '%s': %s%s", path, strerror(errno),
                       errno == ENOENT ? "; its folder must exist" : "");
    struct tl_record *record = NULL;
    TL_TRY(record_new(&record, fd, path, num_columns));

    char *text = NULL;
    size_t bytes = 0;
    enum tl_status status;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory) {
        print_provenance(memory, provenance);
        print_line(memory, columns, num_columns);
    }
    if (!memory || fclose(memory) != 0)
        TL_GO(fail, TL_FAIL(TL_ERR_MEMORY, "'%s': no memory for the header", path));
    TL_GO(fail, write_whole(record, text, bytes));
    free(text);
    *out = record;
    return TL_OK;
fail:
    free(text);
    close(fd);
    record_free(record);
    return status;
}

static int count_cells(const char *line)
{
    int cells = 1;
    for (; *line; line++)
        cells += *line == '\t';
    return cells;
}

/* `line` has lost its newline. The message names the first column that differs. */
static enum tl_status check_header(const char *path, long number, const char *line,
                                   const char *const *columns, int num_columns)
{
    const char *cell = line;
    for (int i = 0; i < num_columns; i++) {
        size_t length = strcspn(cell, "\t");
        if (strlen(columns[i]) != length || memcmp(cell, columns[i], length) != 0)
            return TL_FAIL(TL_ERR_FORMAT, "%s:%ld: column %d is '%.*s', expected '%s'", path,
                           number, i + 1, (int)length, cell, columns[i]);
        cell += length;
        if (*cell == '\t' && i + 1 < num_columns)
            cell++;
    }
    if (*cell)
        return TL_FAIL(TL_ERR_FORMAT, "%s:%ld: has %d columns, expected %d", path, number,
                       count_cells(line), num_columns);
    return TL_OK;
}

/* Reads the whole file: the comment block, the header row, then rows of as many cells. */
static enum tl_status check_file(FILE *file, const char *path, const char *const *columns,
                                 int num_columns)
{
    enum tl_status status = TL_OK;
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    long number = 0;
    bool seen_header = false;
    while ((length = getline(&line, &room, file)) > 0) {
        number++;
        if (line[length - 1] != '\n')
            TL_GO(done,
                  TL_FAIL(TL_ERR_FORMAT, "%s:%ld: the last line is cut off; remove it to append",
                          path, number));
        line[length - 1] = 0;
        if (line[0] == '#')
            continue;
        if (!seen_header) {
            TL_GO(done, check_header(path, number, line, columns, num_columns));
            seen_header = true;
        } else if (count_cells(line) != num_columns) {
            TL_GO(done, TL_FAIL(TL_ERR_FORMAT, "%s:%ld: has %d cells, the header has %d", path,
                                number, count_cells(line), num_columns));
        }
    }
    if (ferror(file))
        TL_GO(done, TL_FAIL(TL_ERR_IO, "cannot read '%s': %s", path, strerror(errno)));
    if (!seen_header)
        TL_GO(done, TL_FAIL(TL_ERR_FORMAT, "%s:%ld: the header row is missing", path, number + 1));
done:
    free(line);
    return status;
}

enum tl_status tl_record_append(struct tl_record **out, const char *path,
                                const char *const *columns, int num_columns)
{
    *out = NULL;
    TL_TRY(check_columns(path, columns, num_columns));
    struct stat info;
    /* A device might never end, and a pipe never open. */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return TL_FAIL(TL_ERR_IO, "cannot append to '%s': not a regular file", path);
    FILE *file = fopen(path, "re");
    if (!file)
        return TL_FAIL(TL_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    enum tl_status status = check_file(file, path, columns, num_columns);
    fclose(file);
    TL_TRY(status);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return TL_FAIL(TL_ERR_IO, "cannot append to '%s': %s", path, strerror(errno));
    return record_new(out, fd, path, num_columns);
}

enum tl_status tl_record_row(struct tl_record *record, const char *const *cells, int num_cells)
{
    if (num_cells != record->num_columns)
        return TL_FAIL(TL_ERR_ARGUMENT, "'%s': a row of %d cells, the header has %d", record->path,
                       num_cells, record->num_columns);
    for (int i = 0; i < num_cells; i++)
        TL_TRY(check_cell(record->path, "cell", cells[i], i));
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory)
        print_line(memory, cells, num_cells);
    enum tl_status status;
    if (!memory || fclose(memory) != 0)
        status = TL_FAIL(TL_ERR_MEMORY, "'%s': no memory for a row", record->path);
    else
        status = write_whole(record, text, bytes);
    free(text);
    return status;
}

enum tl_status tl_record_close(struct tl_record *record)
{
    if (!record)
        return TL_OK;
    enum tl_status status = TL_OK;
    if (close(record->fd) != 0)
        status = TL_FAIL(TL_ERR_IO, "cannot close '%s': %s", record->path, strerror(errno));
    record_free(record);
    return status;
}
