/* See dynlib.h. */
#include "dynlib.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What was tried, for the message of a failure. */
struct trail {
    char folders[400];
    char reason[256]; /* of a file that is there but does not load, else the first one */
    bool found;
};

/* The folder of the program or of the shared object that this code is part of, "" if unknown. */
static void own_folder(char *out, size_t size)
{
    char path[PATH_MAX] = "";
    Dl_info info;
    /* The program's own name may be relative to a PATH entry; /proc knows better then. */
    if (!dladdr(&own_folder, &info) || !info.dli_fname || !strchr(info.dli_fname, '/') ||
        !realpath(info.dli_fname, path)) {
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
    }
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    snprintf(out, size, "%s", slash ? path : "");
}

static bool try_path(struct tl_dynlib *library, const char *path, struct trail *trail)
{
    bool exists = strchr(path, '/') != NULL;
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle) {
        snprintf(library->path, sizeof library->path, "%s", path);
        return true;
    }
    const char *reason = dlerror();
    if (reason && (!trail->reason[0] || (exists && !trail->found)))
        snprintf(trail->reason, sizeof trail->reason, "%s", reason);
    trail->found = trail->found || exists;
    return false;
}

/* `folder` followed by `below`; only a file that exists is loaded, so that the reason of a failure
 * is about a file or else about the plain name. */
static bool try_folder(struct tl_dynlib *library, const char *folder, const char *below,
                       const char *name, struct trail *trail)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s", folder, below);
    if (length < 0 || (size_t)length >= sizeof path || access(path, F_OK) != 0)
        return false;
    size_t used = strlen(trail->folders);
    if (!strstr(trail->folders, path))
        snprintf(trail->folders + used, sizeof trail->folders - used, "%s%s", used ? ", " : "",
                 path);
    snprintf(path + length, sizeof path - (size_t)length, "/%s", name);
    return access(path, F_OK) == 0 && try_path(library, path, trail);
}

/* The folders that the user names. */
static bool try_listed(struct tl_dynlib *library, const char *name, struct trail *trail)
{
    const char *list = getenv("TILELAB_LIBRARY_PATH");
    while (list && *list) {
        char folder[PATH_MAX];
        size_t length = strcspn(list, ":");
        snprintf(folder, sizeof folder, "%.*s", (int)length, list);
        if (length && try_folder(library, folder, "", name, trail))
            return true;
        list += length;
        list += *list == ':';
    }
    return false;
}

static bool try_everywhere(struct tl_dynlib *library, const char *name, struct trail *trail)
{
    static const char *const below[] = {"/lib64", "/lib", "/extras/CUPTI/lib64"};
    char build[PATH_MAX], toolkit[PATH_MAX + 32];
    own_folder(build, sizeof build);
    snprintf(toolkit, sizeof toolkit, "%s/toolkit/nvidia/cu13", build);
    const char *roots[] = {getenv("CUDA_HOME"), "/usr/local/cuda", "/usr/local/nvidia", toolkit};
    if (try_listed(library, name, trail) || try_path(library, name, trail))
        return true;
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        for (size_t j = 0; roots[i] && j < sizeof below / sizeof below[0]; j++)
            if (try_folder(library, roots[i], below[j], name, trail))
                return true;
    return false;
}

enum tl_status tl_dynlib_open(struct tl_dynlib *library, const char *title,
                              const char *const *names, const char *remedy)
{
    struct trail trail = {.folders = ""};
    char tried[256] = "";
    library->title = title;
    if (library->handle)
        return TL_OK;
    for (; *names; names++) {
        if (try_everywhere(library, *names, &trail))
            return TL_OK;
        size_t used = strlen(tried);
        snprintf(tried + used, sizeof tried - used, "%s%s", used ? ", " : "", *names);
    }
    return TL_FAIL(TL_ERR_UNSUPPORTED,
                   "%s: cannot load %s (looked in the system's folders%s%s): %s; %s, or name its "
                   "folder in TILELAB_LIBRARY_PATH",
                   title, tried, trail.folders[0] ? ", " : "", trail.folders, trail.reason, remedy);
}

enum tl_status tl_dynlib_resolve(const struct tl_dynlib *library, void *table,
                                 const struct tl_dynlib_symbol *symbols)
{
    if (!library->handle)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "%s is not open",
                       library->title ? library->title : "a library");
    for (; symbols->name; symbols++) {
        void *function = dlsym(library->handle, symbols->name);
        if (!function && !symbols->optional)
            return TL_FAIL(TL_ERR_UNSUPPORTED, "%s: %s has no function %s; it is another version",
                           library->title, library->path, symbols->name);
        /* ISO C has no conversion from an object's to a function's pointer; POSIX gives them one
         * representation. */
        memcpy((char *)table + symbols->offset, &function, sizeof function);
    }
    return TL_OK;
}

void tl_dynlib_close(struct tl_dynlib *library)
{
    if (library->handle)
        dlclose(library->handle);
    library->handle = NULL;
    library->path[0] = 0;
}
