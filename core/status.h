/* Status codes and the last error.
 *
 * Fallible functions return enum tl_status. The message, with file and line, is recorded once,
 * where the failure happened, in thread-local storage; callers pass the code on.
 * TL_TRY returns it from functions that own nothing; TL_GO jumps to the one cleanup label of
 * those that do, and expects a local `enum tl_status status`.
 */
#ifndef TL_STATUS_H
#define TL_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum tl_status {
    TL_OK = 0,
    TL_ERR_ARGUMENT,    /* the caller's mistake: a name, shape, dtype or range */
    TL_ERR_ILLEGAL,     /* this kernel cannot run this problem; the message says why */
    TL_ERR_MEMORY,      /* an allocation was refused */
    TL_ERR_IO,          /* the operating system refused a file operation */
    TL_ERR_FORMAT,      /* a file does not hold what it should */
    TL_ERR_DEVICE,      /* the device or its driver failed */
    TL_ERR_UNSUPPORTED, /* absent on this machine or in this build */
};

#define TL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Short lower-case word for a status, e.g. "argument"; never NULL. */
const char *tl_status_name(enum tl_status status);

/* Records the message as the thread's last error and returns `status`. Use TL_FAIL. */
enum tl_status tl_error_set(enum tl_status status, const char *file, int line, const char *fmt,
                            ...) TL_PRINTF(4, 5);

/* Last message of this thread, "" when none; valid until the next failure on the thread. */
const char *tl_error_message(void);

/* Where it was recorded, "file:line". */
const char *tl_error_where(void);

#define TL_FAIL(status, ...) tl_error_set((status), __FILE__, __LINE__, __VA_ARGS__)

#define TL_TRY(x)                                 \
    do {                                          \
        enum tl_status tl_try_status_ = (x);      \
        if (tl_try_status_ != TL_OK)              \
            return tl_try_status_;                \
    } while (0)

#define TL_GO(label, x)         \
    do {                        \
        status = (x);           \
        if (status != TL_OK)    \
            goto label;         \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
