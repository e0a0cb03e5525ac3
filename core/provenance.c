/* See provenance.h. */
#include "provenance.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "version.h"

static const struct {
    const char *folder, *hash;
} kernel_hashes[] = {TL_KERNEL_HASHES{NULL, NULL}};

const char *tl_version(void)
{
    return TL_VERSION;
}

const char *tl_commit(void)
{
    return TL_COMMIT;
}

int tl_commit_dirty(void)
{
    return TL_COMMIT_DIRTY;
}

const char *tl_compiler(void)
{
    return TL_COMPILER;
}

const char *tl_cuda_toolkit(void)
{
    return TL_CUDA_TOOLKIT;
}

const char *tl_kernel_hash(const char *folder)
{
    for (int i = 0; kernel_hashes[i].folder; i++)
        if (strcmp(kernel_hashes[i].folder, folder) == 0)
            return kernel_hashes[i].hash;
    return "";
}

const char *tl_kernel_hash_folder_at(int position)
{
    int count = (int)(sizeof kernel_hashes / sizeof kernel_hashes[0]) - 1;
    return position >= 0 && position < count ? kernel_hashes[position].folder : NULL;
}

/* x86 says "model name"; other architectures say less, some nothing. */
static void describe_cpu(char *out, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256], text[sizeof line];
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "model name : %255[^\n]", text) == 1 ||
            sscanf(line, "Hardware : %255[^\n]", text) == 1 ||
            sscanf(line, "cpu model : %255[^\n]", text) == 1) {
            snprintf(out, size, "%.*s", (int)size - 1, text);
            break;
        }
    }
    if (file)
        fclose(file);
}

void tl_host_describe(struct tl_host *host)
{
    struct utsname names;
    *host = (struct tl_host){.name = "unknown", .cpu = "unknown", .system = "unknown", .cores = 1};
    if (uname(&names) == 0) {
        snprintf(host->name, sizeof host->name, "%s", names.nodename);
        snprintf(host->system, sizeof host->system, "%.31s %.63s %.31s", names.sysname,
                 names.release, names.machine);
    }
    describe_cpu(host->cpu, sizeof host->cpu);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores > 0)
        host->cores = (int)cores;
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0)
        host->memory_bytes = (size_t)pages * (size_t)page_bytes;
}
