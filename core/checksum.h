/* A checksum of what is read back later, at the speed of memory: it finds damage, not forgery
 * (hash.h does). Four lanes of 64-bit words, each a chain of one-to-one steps, so that a single
 * wrong word always shows.
 *
 *   struct tl_checksum sum;
 *   tl_checksum_begin(&sum);
 *   tl_checksum_add(&sum, data, bytes);   any number of times
 *   tl_checksum_end(&sum, text);
 *
 * The text depends on the bytes alone, not on how they were cut into calls, as long as all calls
 * but the last bring a multiple of TL_CHECKSUM_STEP bytes.
 */
#ifndef TL_CHECKSUM_H
#define TL_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#define TL_CHECKSUM_STEP 32 /* bytes */
#define TL_CHECKSUM_TEXT 17 /* 16 hexadecimal digits and the final 0 */

struct tl_checksum {
    uint64_t lane[4];
    uint64_t bytes;
};

void tl_checksum_begin(struct tl_checksum *sum);
void tl_checksum_add(struct tl_checksum *sum, const void *data, size_t bytes);
void tl_checksum_end(const struct tl_checksum *sum, char out[TL_CHECKSUM_TEXT]);

#endif
