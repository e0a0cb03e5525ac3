/* Format: the magic "\x93NUMPY", version bytes 1 and 0, a little-endian 16-bit header length, the
 * header (a Python dict literal, padded with spaces so that the data starts at a multiple of 64,
 * ending in a newline), then the elements. NEP 1 of the NumPy project describes it. */
#include "npy.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements go to the file as they are");

enum { PREAMBLE = 10, ALIGNMENT = 64, HEADER_MAX = 65535 };
#define PIECE ((size_t)16 << 20) /* bytes that a tensor of another device goes through at a time */
_Static_assert((16 << 20) % TL_CHECKSUM_STEP == 0, "pieces are whole steps");

static const char *descr_of(enum tl_dtype dtype)
{
    switch (dtype) {
    case TL_FP64: return "<f8";
    case TL_FP32: return "<f4";
    case TL_BF16: return "<u2";
    case TL_I32: return "<i4";
    default: return "|u1";
    }
}

/* --- writing ------------------------------------------------------------------------------ */

/* The preamble and the header into `out`; returns their size. */
static size_t print_header(const struct tl_tensor *tensor, char out[512])
{
    static const char preamble[] = "\x93NUMPY\x01";
    memcpy(out, preamble, sizeof preamble); /* the final 0 is the minor version */
    int at = PREAMBLE;
    at += sprintf(out + at, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                  descr_of(tensor->dtype));
    for (int i = 0; i < tensor->rank; i++)
        at += sprintf(out + at, "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
    at += sprintf(out + at, tensor->rank == 1 ? ",), }" : "), }");
    while ((at + 1) % ALIGNMENT)
        out[at++] = ' ';
    out[at++] = '\n';
    out[8] = (char)((at - PREAMBLE) & 0xff);
    out[9] = (char)((at - PREAMBLE) >> 8);
    return (size_t)at;
}

/* Where elements lie on the host: in the tensor, or in a buffer that the caller frees. */
static enum tl_status piece_buffer(const struct tl_tensor *tensor, void **out)
{
    size_t bytes = tl_tensor_bytes(tensor);
    *out = NULL;
    if (tensor->device->arch == 0 || bytes == 0)
        return TL_OK;
    *out = malloc(bytes < PIECE ? bytes : PIECE);
    return *out ? TL_OK : TL_FAIL(TL_ERR_MEMORY, "no host memory for a piece of a tensor");
}

static size_t piece_bytes(const struct tl_tensor *tensor, size_t offset)
{
    size_t left = tl_tensor_bytes(tensor) - offset;
    return left < PIECE ? left : PIECE;
}

static enum tl_status write_elements(const struct tl_tensor *tensor, FILE *file, const char *path,
                                     struct tl_checksum *sum)
{
    void *buffer;
    enum tl_status status;
    TL_TRY(piece_buffer(tensor, &buffer));
    size_t bytes = tl_tensor_bytes(tensor);
    status = TL_OK;
    for (size_t offset = 0; offset < bytes; offset += PIECE) {
        size_t piece = piece_bytes(tensor, offset);
        const char *from = (const char *)tensor->data + offset;
        if (buffer)
            TL_GO(out, tensor->device->api->copy_out(buffer, from, piece, NULL));
        if (sum)
            tl_checksum_add(sum, buffer ? buffer : from, piece);
        if (fwrite(buffer ? buffer : from, 1, piece, file) != piece)
            TL_GO(out, TL_FAIL(TL_ERR_IO, "cannot write '%s': %s", path, strerror(errno)));
    }
out:
    free(buffer);
    return status;
}

/* Writes and closes; the message names `path`, the file may have another name for now. */
static enum tl_status write_file(const struct tl_tensor *tensor, const char *name,
                                 const char *path, struct tl_checksum *sum)
{
    char header[512];
    size_t header_bytes = print_header(tensor, header);
    FILE *file = fopen(name, "wbe");
    if (!file)
        return TL_FAIL(TL_ERR_IO, "cannot create '%s': %s", path, strerror(errno));
    enum tl_status status = TL_OK;
    if (fwrite(header, 1, header_bytes, file) != header_bytes)
        status = TL_FAIL(TL_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    if (status == TL_OK)
        status = write_elements(tensor, file, path, sum);
    if (fclose(file) != 0 && status == TL_OK)
        status = TL_FAIL(TL_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    return status;
}

/* A regular file is written under another name and then renamed, so that a full disk or a killed
 * process leaves the old one. Devices and pipes are written in place. */
static enum tl_status replace_file(const struct tl_tensor *tensor, const char *path,
                                   struct tl_checksum *sum)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return write_file(tensor, path, path, sum);
    char *target = realpath(path, NULL), *part = NULL; /* a link keeps pointing to its file */
    enum tl_status status;
    if (asprintf(&part, "%s.%ld.part", target ? target : path, (long)getpid()) < 0) {
        part = NULL;
        TL_GO(done, TL_FAIL(TL_ERR_MEMORY, "'%s': no memory for a name", path));
    }
    status = write_file(tensor, part, path, sum);
    if (status == TL_OK && rename(part, target ? target : path) != 0)
        status = TL_FAIL(TL_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    if (status != TL_OK)
        unlink(part);
done:
    free(part);
    free(target);
    return status;
}

enum tl_status tl_npy_write(const struct tl_tensor *tensor, const char *path,
                            struct tl_checksum *sum)
{
    if (tensor->rank == 0 || !tl_tensor_is_contiguous(tensor))
        return TL_FAIL(TL_ERR_ARGUMENT, "cannot write '%s': the tensor is %s", path,
                       tensor->rank ? "not contiguous" : "absent");
    if (sum)
        tl_checksum_begin(sum);
    return replace_file(tensor, path, sum);
}

/* --- reading ------------------------------------------------------------------------------ */

struct header {
    const char *at; /* the next character to parse */
    const char *path;
    bool has_descr, has_order, has_shape;
    enum tl_dtype dtype;
    int rank;
    int64_t shape[TL_MAX_RANK];
};

static enum tl_status malformed(const struct header *header, const char *expected)
{
    int shown = (int)strcspn(header->at, "\n");
    return TL_FAIL(TL_ERR_FORMAT, "'%s': malformed .npy header: expected %s at '%.*s'",
                   header->path, expected, shown < 24 ? shown : 24, header->at);
}

static bool accept(struct header *header, char wanted)
{
    header->at += strspn(header->at, " \t\n");
    if (*header->at != wanted)
        return false;
    header->at++;
    return true;
}

static enum tl_status parse_string(struct header *header, char *out, size_t size)
{
    char quote = accept(header, '\'') ? '\'' : accept(header, '"') ? '"' : 0;
    size_t length = quote ? strcspn(header->at, quote == '"' ? "\"\\" : "'\\") : 0;
    if (!quote || header->at[length] != quote || length >= size)
        return malformed(header, "a short string");
    memcpy(out, header->at, length);
    out[length] = 0;
    header->at += length + 1;
    return TL_OK;
}

static enum tl_status parse_descr(struct header *header)
{
    static const enum tl_dtype readable[] = {TL_FP64, TL_FP32, TL_BF16, TL_I32, TL_U8};
    char descr[16];
    TL_TRY(parse_string(header, descr, sizeof descr));
    for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++) {
        if (strcmp(descr, descr_of(readable[i])) == 0) {
            header->dtype = readable[i];
            header->has_descr = true;
            return TL_OK;
        }
    }
    return TL_FAIL(TL_ERR_FORMAT,
                   "'%s': dtype '%s'; readable are <f8, <f4, <i4, |u1 and <u2 (bf16)", header->path,
                   descr);
}

static enum tl_status parse_order(struct header *header)
{
    header->at += strspn(header->at, " \t\n");
    if (strncmp(header->at, "True", 4) == 0)
        return TL_FAIL(TL_ERR_FORMAT,
                       "'%s': Fortran order; save numpy.ascontiguousarray(x) instead",
                       header->path);
    if (strncmp(header->at, "False", 5) != 0)
        return malformed(header, "True or False");
    header->at += 5;
    header->has_order = true;
    return TL_OK;
}

static enum tl_status parse_shape(struct header *header)
{
    if (!accept(header, '('))
        return malformed(header, "a tuple");
    header->rank = 0;
    while (!accept(header, ')')) {
        char *end;
        header->at += strspn(header->at, " \t\n");
        if (*header->at < '0' || *header->at > '9')
            return malformed(header, "a size");
        if (header->rank == TL_MAX_RANK)
            return TL_FAIL(TL_ERR_FORMAT, "'%s': more than %d dimensions", header->path,
                           TL_MAX_RANK);
        errno = 0;
        long long size = strtoll(header->at, &end, 10);
        if (errno == ERANGE)
            return TL_FAIL(TL_ERR_FORMAT, "'%s': dimension %d overflows 64 bits", header->path,
                           header->rank + 1);
        header->shape[header->rank++] = size;
        header->at = end;
        if (accept(header, ','))
            continue;
        if (!accept(header, ')'))
            return malformed(header, "',' or ')'");
        break;
    }
    if (header->rank == 0)
        return TL_FAIL(TL_ERR_FORMAT, "'%s': a scalar (rank 0); tensors have rank 1 to %d",
                       header->path, TL_MAX_RANK);
    header->has_shape = true;
    return TL_OK;
}

static enum tl_status parse_entry(struct header *header)
{
    char key[32];
    TL_TRY(parse_string(header, key, sizeof key));
    if (!accept(header, ':'))
        return malformed(header, "':'");
    if (strcmp(key, "descr") == 0)
        return parse_descr(header);
    if (strcmp(key, "fortran_order") == 0)
        return parse_order(header);
    if (strcmp(key, "shape") == 0)
        return parse_shape(header);
    return TL_FAIL(TL_ERR_FORMAT, "'%s': malformed .npy header: unknown key '%s'", header->path,
                   key);
}

static enum tl_status parse_header(struct header *header)
{
    if (!accept(header, '{'))
        return malformed(header, "'{'");
    while (!accept(header, '}')) {
        TL_TRY(parse_entry(header));
        if (accept(header, ','))
            continue;
        if (!accept(header, '}'))
            return malformed(header, "',' or '}'");
        break;
    }
    header->at += strspn(header->at, " \t\n");
    if (*header->at)
        return malformed(header, "the end");
    if (!header->has_descr || !header->has_order || !header->has_shape)
        return TL_FAIL(TL_ERR_FORMAT, "'%s': malformed .npy header: no '%s'", header->path,
                       !header->has_descr   ? "descr"
                       : !header->has_order ? "fortran_order"
                                            : "shape");
    return TL_OK;
}

/* What ended a short read. */
static enum tl_status short_read(FILE *file, const char *path, const char *part)
{
    if (ferror(file))
        return TL_FAIL(TL_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    return TL_FAIL(TL_ERR_FORMAT, "'%s': truncated: the file ends inside the %s", path, part);
}

/* `text` has room for HEADER_MAX + 1 characters; sets the file's position to the data. */
static enum tl_status read_header(struct header *header, FILE *file, char *text)
{
    unsigned char preamble[PREAMBLE];
    size_t got = fread(preamble, 1, sizeof preamble, file);
    if (ferror(file))
        return short_read(file, header->path, "magic");
    if (got < 6 || memcmp(preamble, "\x93NUMPY", 6) != 0)
        return TL_FAIL(TL_ERR_FORMAT, "'%s': no .npy file: the magic is missing", header->path);
    if (got < sizeof preamble)
        return short_read(file, header->path, "preamble");
    if (preamble[6] != 1 || preamble[7] != 0)
        return TL_FAIL(TL_ERR_FORMAT, "'%s': .npy version %d.%d; readable is 1.0", header->path,
                       preamble[6], preamble[7]);
    size_t length = preamble[8] | (size_t)preamble[9] << 8;
    if (fread(text, 1, length, file) != length)
        return short_read(file, header->path, "header");
    text[length] = 0;
    header->at = text;
    if (strlen(text) != length)
        return TL_FAIL(TL_ERR_FORMAT, "'%s': malformed .npy header: holds a zero byte",
                       header->path);
    return parse_header(header);
}

/* Holds the header's promise against the file's size before memory is asked for. */
static enum tl_status check_size(const struct header *header, FILE *file)
{
    struct stat info;
    int64_t bytes = (int64_t)tl_dtype_size(header->dtype);
    bool is_empty = false;
    for (int i = 0; i < header->rank; i++) {
        /* An empty tensor's other sizes must still have strides. */
        int64_t size = header->shape[i] ? header->shape[i] : 1;
        is_empty |= header->shape[i] == 0;
        if (__builtin_mul_overflow(bytes, size, &bytes))
            return TL_FAIL(TL_ERR_FORMAT, "'%s': the shape overflows 63 bits of bytes",
                           header->path);
    }
    if (is_empty)
        bytes = 0;
    long start = ftell(file);
    if (start < 0 || fstat(fileno(file), &info) != 0)
        return TL_FAIL(TL_ERR_IO, "cannot read '%s': %s", header->path, strerror(errno));
    int64_t held = (int64_t)info.st_size - start;
    if (held != bytes)
        return TL_FAIL(TL_ERR_FORMAT,
                       "'%s': %s: the shape asks for %lld bytes of data, there are %lld",
                       header->path, held < bytes ? "truncated" : "too long", (long long)bytes,
                       (long long)held);
    return TL_OK;
}

static enum tl_status read_elements(struct tl_tensor *tensor, FILE *file, const char *path,
                                    struct tl_checksum *sum)
{
    void *buffer;
    enum tl_status status;
    TL_TRY(piece_buffer(tensor, &buffer));
    size_t bytes = tl_tensor_bytes(tensor);
    status = TL_OK;
    for (size_t offset = 0; offset < bytes; offset += PIECE) {
        size_t piece = piece_bytes(tensor, offset);
        char *to = (char *)tensor->data + offset;
        if (fread(buffer ? buffer : to, 1, piece, file) != piece)
            TL_GO(out, short_read(file, path, "data"));
        if (sum)
            tl_checksum_add(sum, buffer ? buffer : to, piece);
        if (buffer)
            TL_GO(out, tensor->device->api->copy_in(to, buffer, piece, NULL));
    }
out:
    free(buffer);
    return status;
}

/* The file's header, its position then being at the data; the caller closes it. */
static enum tl_status open_file(struct header *header, FILE **out)
{
    struct stat info;
    enum tl_status status;
    char *text = NULL;
    *out = NULL;
    if (stat(header->path, &info) == 0 && !S_ISREG(info.st_mode)) /* to open a pipe is to wait */
        return TL_FAIL(TL_ERR_IO, "cannot read '%s': not a regular file", header->path);
    FILE *file = fopen(header->path, "rbe");
    if (!file)
        return TL_FAIL(TL_ERR_IO, "cannot read '%s': %s", header->path, strerror(errno));
    text = malloc(HEADER_MAX + 1);
    if (!text)
        TL_GO(done, TL_FAIL(TL_ERR_MEMORY, "'%s': no memory for the header", header->path));
    TL_GO(done, read_header(header, file, text));
    TL_GO(done, check_size(header, file));
    *out = file;
done:
    free(text);
    if (!*out)
        fclose(file);
    return status;
}

enum tl_status tl_npy_read(struct tl_tensor *tensor, struct tl_device *device, const char *path)
{
    struct header header = {.path = path};
    enum tl_status status;
    FILE *file;
    memset(tensor, 0, sizeof *tensor);
    TL_TRY(open_file(&header, &file));
    TL_GO(done, tl_tensor_init(tensor, device, header.dtype, header.rank, header.shape));
    status = read_elements(tensor, file, path, NULL);
    if (status != TL_OK)
        tl_tensor_done(tensor);
done:
    fclose(file);
    return status;
}

enum tl_status tl_npy_read_into(struct tl_tensor *tensor, const char *path,
                                struct tl_checksum *sum)
{
    struct header header = {.path = path};
    enum tl_status status;
    char text[96];
    int64_t numel = 1;
    FILE *file;
    TL_TRY(open_file(&header, &file));
    for (int i = 0; i < header.rank; i++)
        numel *= header.shape[i];
    if (header.dtype != tensor->dtype || numel != tl_tensor_numel(tensor) ||
        !tl_tensor_is_contiguous(tensor))
        TL_GO(done, TL_FAIL(TL_ERR_FORMAT, "'%s' holds %lld elements of %s, no %s", path,
                            (long long)numel, tl_dtype_name(header.dtype),
                            tl_tensor_describe(tensor, text, sizeof text)));
    if (sum)
        tl_checksum_begin(sum);
    status = read_elements(tensor, file, path, sum);
done:
    fclose(file);
    return status;
}
