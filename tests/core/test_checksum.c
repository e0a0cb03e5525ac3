/* Checksums: of the bytes alone, and of every one of them. */
#include "check.h"

#include "core/checksum.h"

enum { BYTES = 1003 };

static void sum_of(const unsigned char *data, size_t bytes, size_t cut, char out[TL_CHECKSUM_TEXT])
{
    struct tl_checksum sum;
    tl_checksum_begin(&sum);
    for (size_t at = 0; at < bytes; at += cut)
        tl_checksum_add(&sum, data + at, bytes - at < cut ? bytes - at : cut);
    tl_checksum_end(&sum, out);
}

static void fill(unsigned char *data)
{
    for (int i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i * 7 + i / 3);
}

static void cuts_do_not_matter(void **state)
{
    (void)state;
    unsigned char data[BYTES];
    char whole[TL_CHECKSUM_TEXT], cut[TL_CHECKSUM_TEXT];
    fill(data);
    sum_of(data, BYTES, BYTES, whole);
    assert_int_equal(strlen(whole), TL_CHECKSUM_TEXT - 1);
    for (size_t steps = 1; steps < 8; steps++) {
        sum_of(data, BYTES, steps * TL_CHECKSUM_STEP, cut);
        assert_string_equal(cut, whole);
    }
}

static void every_bit_matters(void **state)
{
    (void)state;
    unsigned char data[BYTES];
    char whole[TL_CHECKSUM_TEXT], other[TL_CHECKSUM_TEXT];
    fill(data);
    sum_of(data, BYTES, BYTES, whole);
    for (int i = 0; i < BYTES; i++)
        for (int bit = 0; bit < 8; bit++) {
            data[i] ^= (unsigned char)(1 << bit);
            sum_of(data, BYTES, BYTES, other);
            data[i] ^= (unsigned char)(1 << bit);
            assert_string_not_equal(other, whole);
        }
}

static void length_matters(void **state)
{
    (void)state;
    unsigned char data[BYTES] = {0};
    char sums[70][TL_CHECKSUM_TEXT];
    for (size_t bytes = 0; bytes < 70; bytes++) {
        sum_of(data, bytes, BYTES, sums[bytes]);
        for (size_t other = 0; other < bytes; other++)
            assert_string_not_equal(sums[bytes], sums[other]);
    }
}

static void order_matters(void **state)
{
    (void)state;
    unsigned char data[BYTES];
    char whole[TL_CHECKSUM_TEXT], other[TL_CHECKSUM_TEXT];
    fill(data);
    sum_of(data, BYTES, BYTES, whole);
    for (size_t i = 0; i + 16 <= BYTES; i += 8) {
        unsigned char swapped[BYTES];
        memcpy(swapped, data, BYTES);
        memcpy(swapped + i, data + i + 8, 8);
        memcpy(swapped + i + 8, data + i, 8);
        sum_of(swapped, BYTES, BYTES, other);
        assert_string_not_equal(other, whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_do_not_matter),
        cmocka_unit_test(every_bit_matters),
        cmocka_unit_test(length_matters),
        cmocka_unit_test(order_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
