/* What the tests of core share: cmocka with its includes, checks of a status and its message, files
 * in a scratch folder, and a device whose memory the host cannot touch. */
#ifndef TL_TESTS_CHECK_H
#define TL_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/device.h"
#include "core/status.h"

#define assert_ok(x)                                                                               \
    do {                                                                                           \
        enum tl_status status_ = (x);                                                              \
        if (status_ != TL_OK)                                                                      \
            fail_msg("%s: %s", tl_status_name(status_), tl_error_message());                       \
    } while (0)

/* The message of the last failure holds `words`. */
#define assert_message(words)                                                                      \
    do {                                                                                           \
        if (!strstr(tl_error_message(), words))                                                    \
            fail_msg("no '%s' in: %s", words, tl_error_message());                                 \
    } while (0)

#define assert_fails(wanted, words, x)                                                             \
    do {                                                                                           \
        enum tl_status status_ = (x);                                                              \
        if (status_ != (wanted))                                                                   \
            fail_msg("%s, not %s: %s", tl_status_name(status_), tl_status_name(wanted),            \
                     status_ ? tl_error_message() : "");                                           \
        assert_message(words);                                                                     \
    } while (0)

/* The CPU device. */
struct tl_device *cpu_device(void);

/* A path inside a folder that is removed when the process ends; valid for the next 7 calls. */
const char *scratch(const char *name);

/* Whole files; file_read returns malloc'd memory with a 0 behind it. */
void file_write(const char *path, const void *data, size_t bytes);
char *file_read(const char *path, size_t *bytes);
int file_exists(const char *path);

/* How many entries the scratch folder has. */
int scratch_count(void);

/* A device named "fake" of arch 90. Its pointers are no host addresses: code that reads or writes
 * them itself instead of through the device's functions crashes. Counts live allocations. */
struct tl_device *fake_device(void);
extern int fake_allocations;
extern int fake_refuse; /* 1: the next allocation fails */

#endif
