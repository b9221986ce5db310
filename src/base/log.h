/* One line per event, to stderr. Text: "12:34:56.789 info  event sentence"; JSON: one object per line with time,
   level, event and message. Control characters are escaped and a line ends at MT_LIMIT_LOG_LINE. */
#ifndef MT_BASE_LOG_H
#define MT_BASE_LOG_H

#include <stdbool.h>

#include "base/compiler.h"

typedef enum mt_log_level { MT_LOG_ERROR, MT_LOG_WARN, MT_LOG_INFO, MT_LOG_DEBUG } mt_log_level;
typedef enum mt_log_format { MT_LOG_TEXT, MT_LOG_JSON } mt_log_format;

void mt_log_setup(mt_log_level level, mt_log_format format);
bool mt_log_enabled(mt_log_level level);

/* event: a short name such as "weights.mapped"; fmt gives the sentence of the event. Safe from any thread. */
void mt_log(mt_log_level level, const char *event, const char *fmt, ...) MT_PRINTF(3, 4);

/* How far something long has come. On a terminal the line stays only until the next one, or until mt_log_passed, even
   where information is not wanted; elsewhere it is an event of level info. See base/progress.h. */
void mt_log_passing(const char *event, const char *fmt, ...) MT_PRINTF(2, 3);
void mt_log_passed(void);
bool mt_log_on_terminal(void); /* and as text */

#define mt_log_error(...) mt_log(MT_LOG_ERROR, __VA_ARGS__)
#define mt_log_warn(...) mt_log(MT_LOG_WARN, __VA_ARGS__)
#define mt_log_info(...) mt_log(MT_LOG_INFO, __VA_ARGS__)
#define mt_log_debug(...) mt_log(MT_LOG_DEBUG, __VA_ARGS__)

#endif
