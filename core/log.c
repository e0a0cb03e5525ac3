/* See log.h. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {"error", "warning", "info", "debug"};
static int level_now = -1; /* not read from the environment yet */

enum tl_log_level tl_log_level_now(void)
{
    if (level_now < 0) {
        const char *wanted = getenv("TILELAB_LOG");
        level_now = TL_LOG_WARN;
        for (int i = 0; wanted && i <= TL_LOG_DEBUG; i++)
            if (*wanted && strncmp(level_names[i], wanted, strlen(wanted)) == 0)
                level_now = i;
    }
    return (enum tl_log_level)level_now;
}

void tl_log_set_level(enum tl_log_level level)
{
    level_now = (int)level;
}

void tl_log(enum tl_log_level level, const char *fmt, ...)
{
    if (level > tl_log_level_now())
        return;
    char message[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    fprintf(stderr, "tilelab: %s: %s\n", level_names[level], message);
}
