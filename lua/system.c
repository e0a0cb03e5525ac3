/* Time, files, terminal, hashes and what this build is.
 *
 *   lab.time_us()                       monotonic microseconds      lab.sleep(seconds)
 *   lab.mkdir(path) -> true | nil, message, code       with parents; fine when it is there
 *   lab.stat(path) -> {kind = "file" | "folder" | "other", bytes, modified_s} | nil, message, code
 *   lab.list(path) -> sorted names | nil, message, code
 *   lab.realpath(path) -> absolute path | nil, message, code
 *   lab.sync(path) -> true | nil, message, code        a file's content, or a folder's names, are on
 *                                       the disk when it returns
 *   lab.lock(folder) -> lock | nil, message, code      for one process at a time; until
 *                                       lock:close(), the collector, or the process's end, however
 *                                       it comes
 *   lab.is_tty(file)                    whether an open file is a terminal
 *   lab.terminal_width(file) -> columns | nil where it is none
 *   core.has_failed(file)               whether reading or writing an open file ever failed
 *   lab.pid()
 *   lab.hash(text) lab.hash_file(path) -> SHA-256 | nil, message, code
 *   lab.nearest(name, names) -> name | nil
 *   core.build() -> {version, commit, dirty, compiler, cuda, kernels = {folder = hash},
 *       cublaslt = version and path, "" before its first use}
 *   core.host() -> {name, cpu, system, cores, memory_bytes}
 *
 * Codes of files are "io".
 */
#include "binding.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/names.h"
#include "core/provenance.h"
#include "kernels/attention/cudnn_graph.h"
#include "kernels/device/cublaslt.h"

static int refused_by_system(lua_State *L, const char *path)
{
    return tlua_refused(L, TL_FAIL(TL_ERR_IO, "%s: %s", path, strerror(errno)));
}

static int push_true(lua_State *L)
{
    lua_pushboolean(L, 1);
    return 1;
}

/* --- time --- */

static int time_us(lua_State *L)
{
    lua_pushnumber(L, tl_time_us());
    return 1;
}

static int sleep_for(lua_State *L)
{
    double seconds = luaL_checknumber(L, 1);
    luaL_argcheck(L, seconds >= 0 && seconds < 1e9, 1, "expected seconds from 0 on");
    struct timespec left;
    left.tv_sec = (time_t)seconds;
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        tlua_interrupt_check(L);
    return 0;
}

/* --- files --- */

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int make_folder(lua_State *L)
{
    size_t length;
    const char *path = luaL_checklstring(L, 1, &length);
    char partial[PATH_MAX];
    if (length == 0 || length >= sizeof partial) {
        errno = length == 0 ? ENOENT : ENAMETOOLONG;
        return refused_by_system(L, length == 0 ? "the folder ''" : path);
    }
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(partial, path, i);
        partial[i] = 0;
        if (mkdir(partial, 0777) == 0 || (errno == EEXIST && is_folder(partial)))
            continue;
        errno = errno == EEXIST ? ENOTDIR : errno;
        return refused_by_system(L, partial);
    }
    return push_true(L);
}

static int stat_path(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat status;
    if (stat(path, &status) != 0)
        return refused_by_system(L, path);
    lua_createtable(L, 0, 3);
    tlua_set_string(L, "kind", S_ISREG(status.st_mode)   ? "file"
                               : S_ISDIR(status.st_mode) ? "folder"
                                                         : "other");
    tlua_set_integer(L, "bytes", status.st_size);
    tlua_set_number(L, "modified_s",
                    (double)status.st_mtim.tv_sec + (double)status.st_mtim.tv_nsec * 1e-9);
    return 1;
}

static int sync_path(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return refused_by_system(L, path);
    int failed = fsync(file), reason = errno;
    close(file);
    errno = reason;
    return failed ? refused_by_system(L, path) : push_true(L);
}

struct folder_box {
    struct dirent **names;
    int count;
};

static int folder_close(lua_State *L)
{
    struct folder_box *box = lua_touserdata(L, 1);
    for (int i = 0; i < box->count; i++)
        free(box->names[i]);
    free(box->names);
    box->names = NULL;
    box->count = 0;
    return 0;
}

static int list_folder(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct folder_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    memset(box, 0, sizeof *box);
    luaL_setmetatable(L, "tilelab.folder");
    int count = scandir(path, &box->names, NULL, alphasort); /* C locale: by bytes */
    if (count < 0)
        return refused_by_system(L, path);
    box->count = count;
    lua_newtable(L);
    for (int i = 0, listed = 0; i < count; i++) {
        const char *name = box->names[i]->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        lua_pushstring(L, name);
        lua_rawseti(L, -2, ++listed);
    }
    return 1;
}

static int real_path(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    char resolved[PATH_MAX];
    if (!realpath(path, resolved))
        return refused_by_system(L, path);
    lua_pushstring(L, resolved);
    return 1;
}

/* --- locks --- */

#define LOCK_TYPE "tilelab.lock"

static int lock_close(lua_State *L)
{
    int *descriptor = luaL_checkudata(L, 1, LOCK_TYPE);
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
    return 0;
}

/* flock on the folder itself leaves no file behind. Where the file system has no locks, nothing is
 * locked: that is no reason to refuse. */
static int lock_folder(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    int *descriptor = lua_newuserdatauv(L, sizeof *descriptor, 0);
    *descriptor = -1;
    luaL_setmetatable(L, LOCK_TYPE);
    *descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*descriptor < 0)
        return refused_by_system(L, path);
    if (flock(*descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return tlua_refused(L, TL_FAIL(TL_ERR_IO, "%s: another process is at work there", path));
    return 1;
}

/* --- terminal and process --- */

static FILE *check_file(lua_State *L)
{
    luaL_Stream *stream = luaL_checkudata(L, 1, LUA_FILEHANDLE);
    luaL_argcheck(L, stream->closef, 1, "this file is closed");
    return stream->f;
}

/* print has nobody to tell. */
static int has_failed(lua_State *L)
{
    lua_pushboolean(L, ferror(check_file(L)));
    return 1;
}

static int is_tty(lua_State *L)
{
    lua_pushboolean(L, isatty(fileno(check_file(L))));
    return 1;
}

static int terminal_width(lua_State *L)
{
    struct winsize size;
    if (ioctl(fileno(check_file(L)), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        luaL_pushfail(L);
    else
        lua_pushinteger(L, size.ws_col);
    return 1;
}

static int pid(lua_State *L)
{
    lua_pushinteger(L, getpid());
    return 1;
}

/* --- hashes and names --- */

static int hash_text(lua_State *L)
{
    char digest[TL_HASH_TEXT];
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    tl_hash_bytes(text, length, digest);
    lua_pushstring(L, digest);
    return 1;
}

static int hash_file(lua_State *L)
{
    char digest[TL_HASH_TEXT];
    enum tl_status status = tl_hash_file(luaL_checkstring(L, 1), digest);
    if (status != TL_OK)
        return tlua_refused(L, status);
    lua_pushstring(L, digest);
    return 1;
}

static int nearest(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    int count = (int)lua_rawlen(L, 2);
    const char **names = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *names, 0);
    for (int i = 0; i < count; i++) {
        if (lua_rawgeti(L, 2, i + 1) != LUA_TSTRING)
            return luaL_error(L, "name %d is a %s", i + 1, luaL_typename(L, -1));
        names[i] = lua_tostring(L, -1); /* the list keeps it */
        lua_pop(L, 1);
    }
    lua_pushstring(L, tl_name_nearest(name, names, count));
    return 1;
}

/* --- the build and the machine --- */

static int build(lua_State *L)
{
    const char *folder;
    lua_newtable(L);
    tlua_set_string(L, "version", tl_version());
    tlua_set_string(L, "commit", tl_commit());
    tlua_set_string(L, "compiler", tl_compiler());
    tlua_set_string(L, "cuda", tl_cuda_toolkit());
    tlua_set_boolean(L, "dirty", tl_commit_dirty());
    lua_newtable(L);
    for (int i = 0; (folder = tl_kernel_hash_folder_at(i)) != NULL; i++)
        tlua_set_string(L, folder, tl_kernel_hash(folder));
    lua_setfield(L, -2, "kernels");
#if TL_CUDA
    tlua_set_string(L, "cublaslt", tl_cublaslt_version());
    tlua_set_string(L, "cudnn", tl_cudnn_version());
#else
    tlua_set_string(L, "cublaslt", "");
    tlua_set_string(L, "cudnn", "");
#endif
    return 1;
}

static int host(lua_State *L)
{
    struct tl_host described;
    tl_host_describe(&described);
    lua_newtable(L);
    tlua_set_string(L, "name", described.name);
    tlua_set_string(L, "cpu", described.cpu);
    tlua_set_string(L, "system", described.system);
    tlua_set_integer(L, "cores", described.cores);
    tlua_set_integer(L, "memory_bytes", (int64_t)described.memory_bytes);
    return 1;
}

static const luaL_Reg functions[] = {
    {"time_us", time_us},
    {"sleep", sleep_for},
    {"mkdir", make_folder},
    {"stat", stat_path},
    {"list", list_folder},
    {"realpath", real_path},
    {"lock", lock_folder},
    {"sync", sync_path},
    {"has_failed", has_failed},
    {"is_tty", is_tty},
    {"terminal_width", terminal_width},
    {"pid", pid},
    {"hash", hash_text},
    {"hash_file", hash_file},
    {"nearest", nearest},
    {"build", build},
    {"host", host},
    {NULL, NULL},
};

static const luaL_Reg folder_meta[] = {
    {"__gc", folder_close},
    {NULL, NULL},
};

static const luaL_Reg lock_methods[] = {
    {"close", lock_close},
    {NULL, NULL},
};

static const luaL_Reg lock_meta[] = {
    {"__gc", lock_close},
    {"__close", lock_close},
    {NULL, NULL},
};

void tlua_system_open(lua_State *L)
{
    tlua_metatable(L, LOCK_TYPE, lock_meta, lock_methods, NULL);
    luaL_newmetatable(L, "tilelab.folder");
    luaL_setfuncs(L, folder_meta, 0);
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
