/* SHA-256 (FIPS 180-4), so that provenance can be checked with sha256sum. */
#ifndef TL_HASH_H
#define TL_HASH_H

#include <stddef.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TL_HASH_TEXT 65 /* 64 hexadecimal digits and the final 0 */

void tl_hash_bytes(const void *data, size_t bytes, char out[TL_HASH_TEXT]);

/* TL_ERR_IO names the path. */
enum tl_status tl_hash_file(const char *path, char out[TL_HASH_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
