/* Thread-local last error; see status.h. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_message[1024];
static _Thread_local char last_where[128];

const char *tl_status_name(enum tl_status status)
{
    switch (status) {
    case TL_OK: return "ok";
    case TL_ERR_ARGUMENT: return "argument";
    case TL_ERR_ILLEGAL: return "illegal";
    case TL_ERR_MEMORY: return "memory";
    case TL_ERR_IO: return "io";
    case TL_ERR_FORMAT: return "format";
    case TL_ERR_DEVICE: return "device";
    case TL_ERR_UNSUPPORTED: return "unsupported";
    }
    return "unknown";
}

enum tl_status tl_error_set(enum tl_status status, const char *file, int line, const char *fmt, ...)
{
    /* Formatted aside first: an argument may point into the last message. */
    char message[sizeof last_message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    memcpy(last_message, message, sizeof last_message);
    snprintf(last_where, sizeof last_where, "%s:%d", file, line);
    return status;
}

const char *tl_error_message(void)
{
    return last_message;
}

const char *tl_error_where(void)
{
    return last_where;
}
