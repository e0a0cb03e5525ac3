/* SHA-256 after FIPS 180-4, a block of 64 bytes at a time. */
#include "hash.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;    /* taken so far */
    uint8_t block[64]; /* the last bytes % 64 of them */
};

/* First 32 bits of the fractional parts of the square roots of the first eight primes. */
static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* The same of the cube roots of the first 64 primes. */
static const uint32_t constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, int by)
{
    return word >> by | word << (32 - by);
}

static void absorb(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    uint32_t v[8]; /* a .. h of the standard */
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t sum1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + sum1 + choice + constant[t] + w[t];
        uint32_t sum0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + sum0 + majority;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

static void start(struct sha256 *hash)
{
    memcpy(hash->state, initial, sizeof initial);
    hash->bytes = 0;
}

static void update(struct sha256 *hash, const uint8_t *data, size_t bytes)
{
    while (bytes) {
        size_t used = hash->bytes % 64;
        size_t take = bytes < 64 - used ? bytes : 64 - used;
        memcpy(hash->block + used, data, take);
        hash->bytes += take;
        data += take;
        bytes -= take;
        if (used + take == 64)
            absorb(hash->state, hash->block);
    }
}

static void finish(struct sha256 *hash, char out[TL_HASH_TEXT])
{
    uint64_t bits = hash->bytes * 8;
    uint8_t padding[72] = {0x80}, length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    update(hash, padding, (119 - hash->bytes % 64) % 64 + 1); /* up to 8 bytes short of a block */
    update(hash, length, sizeof length);
    for (int i = 0; i < 8; i++)
        snprintf(out + 8 * i, 9, "%08x", hash->state[i]);
}

void tl_hash_bytes(const void *data, size_t bytes, char out[TL_HASH_TEXT])
{
    struct sha256 hash;
    start(&hash);
    update(&hash, data, bytes);
    finish(&hash, out);
}

enum tl_status tl_hash_file(const char *path, char out[TL_HASH_TEXT])
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return TL_FAIL(TL_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    enum tl_status status = TL_OK;
    struct sha256 hash;
    uint8_t chunk[16384];
    size_t bytes;
    start(&hash);
    while ((bytes = fread(chunk, 1, sizeof chunk, file)) > 0)
        update(&hash, chunk, bytes);
    if (ferror(file))
        status = TL_FAIL(TL_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    else
        finish(&hash, out);
    fclose(file);
    return status;
}
