/* See checksum.h. A step is FNV-1a's (Fowler, Noll, Vo) on words in the place of bytes, with a
 * rotation that carries high bits down. */
#include "checksum.h"

#include <stdio.h>
#include <string.h>

static const uint64_t prime = 0x100000001b3, basis = 0xcbf29ce484222325;

static uint64_t step(uint64_t lane, uint64_t word)
{
    uint64_t product = (lane ^ word) * prime;
    return product << 29 | product >> 35;
}

void tl_checksum_begin(struct tl_checksum *sum)
{
    for (uint64_t i = 0; i < 4; i++)
        sum->lane[i] = basis + i;
    sum->bytes = 0;
}

static void add_step(struct tl_checksum *sum, const unsigned char *data)
{
    uint64_t word[4];
    memcpy(word, data, sizeof word);
    for (int i = 0; i < 4; i++)
        sum->lane[i] = step(sum->lane[i], word[i]);
}

void tl_checksum_add(struct tl_checksum *sum, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    unsigned char last[TL_CHECKSUM_STEP] = {0};
    size_t whole = bytes / TL_CHECKSUM_STEP * TL_CHECKSUM_STEP;
    struct tl_checksum local = *sum; /* in registers */
    for (size_t i = 0; i < whole; i += TL_CHECKSUM_STEP)
        add_step(&local, at + i);
    if (whole < bytes) {
        memcpy(last, at + whole, bytes - whole);
        add_step(&local, last);
    }
    local.bytes += bytes;
    *sum = local;
}

void tl_checksum_end(const struct tl_checksum *sum, char out[TL_CHECKSUM_TEXT])
{
    uint64_t all = sum->bytes;
    for (int i = 0; i < 4; i++)
        all = step(all, sum->lane[i]);
    snprintf(out, TL_CHECKSUM_TEXT, "%016llx", (unsigned long long)all);
}
