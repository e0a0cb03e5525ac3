/* Messages to stderr. The level comes from TILELAB_LOG (error, warn, info, debug); default warn. */
#ifndef TL_LOG_H
#define TL_LOG_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tl_log_level { TL_LOG_ERROR, TL_LOG_WARN, TL_LOG_INFO, TL_LOG_DEBUG };

/* "tilelab: warning: ..." and a newline, in one write; nothing above the level. */
void tl_log(enum tl_log_level level, const char *fmt, ...) TL_PRINTF(2, 3);
void tl_log_set_level(enum tl_log_level level);
enum tl_log_level tl_log_level_now(void);

#ifdef __cplusplus
}
#endif
#endif
