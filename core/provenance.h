/* What a measurement was made with and on.
 *
 * Commit, dirty flag, compiler and kernel hashes are compiled in (build/version.h, written by the
 * Makefile), since the binary may run far from its repository.
 */
#ifndef TL_PROVENANCE_H
#define TL_PROVENANCE_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

const char *tl_version(void);      /* "0.1.0" */
const char *tl_commit(void);       /* 40 hexadecimal digits, or "unknown" outside a repository */
int tl_commit_dirty(void);         /* 1 when the tree had uncommitted changes at build time */
const char *tl_compiler(void);     /* "gcc 12.2.0" */
const char *tl_cuda_toolkit(void); /* "13.0", or "none" for a build without CUDA */

/* SHA-256 over the sources of kernels/<operation folder>/ and of what kernels share (device/,
 * host/), "" for an unknown folder. Positions enumerate the folders; NULL past the end. */
const char *tl_kernel_hash(const char *folder);
const char *tl_kernel_hash_folder_at(int position);

/* The host: name, CPU model, logical cores, kernel release, total memory. Pointers to static
 * storage, "unknown" where the system does not say. */
struct tl_host {
    char name[128];
    char cpu[128];
    char system[128];
    int cores;
    size_t memory_bytes;
};
void tl_host_describe(struct tl_host *host);

#ifdef __cplusplus
}
#endif
#endif
