/* Finds the CUPTI that pretends beside the test's program; see fake/cupti.h. */
#include "fake/cupti.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *library;

struct fake_cupti *fake_cupti_open(void)
{
    char path[4096], file[4200];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    path[length > 0 ? length : 0] = 0;
    char *slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    strcpy(slash + 1, "fake");
    snprintf(file, sizeof file, "%s/libcupti.so.13", path);
    setenv("TILELAB_LIBRARY_PATH", path, 1);
    library = dlopen(file, RTLD_NOW);
    return library ? dlsym(library, "fake_cupti") : NULL;
}

fake_launch_function *fake_cupti_launch(void)
{
    void *symbol = library ? dlsym(library, "fake_launch") : NULL;
    fake_launch_function *launch;
    memcpy(&launch, &symbol, sizeof launch);
    return launch;
}
