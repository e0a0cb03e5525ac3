/* NVTX ranges: names on the timeline of nsys, ncu's filter, and nothing else.
 *
 * Without a tool attached a range costs a few nanoseconds; in a build without CUDA's headers the
 * functions do nothing. Ranges of a thread nest.
 */
#ifndef TL_NVTX_H
#define TL_NVTX_H

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a range; returns its depth, 1 for the outermost. */
int tl_nvtx_push(const char *name);

/* Closes the range that was opened at `depth`, and those inside it that are still open; nothing
 * where it is closed already. */
void tl_nvtx_close(int depth);

/* How many ranges of this thread are open. */
int tl_nvtx_depth(void);

#ifdef __cplusplus
}
#endif
#endif
