/* The log: one line for each event, to standard error. As text, "12:34:56.789 info  event sentence"; as JSON, an object
   with time, level, event, message, and members of its own where an event has some. Control characters are escaped, and
   a line is cut at MT_LIMIT_LOG_LINE. Where the log is not read, or the disk is full, lines are lost, and the
   next one that is not says how many. */
#ifndef MT_BASE_LOG_H
#define MT_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/limits.h"

typedef enum mt_log_level { MT_LOG_ERROR, MT_LOG_WARN, MT_LOG_INFO, MT_LOG_DEBUG } mt_log_level;
typedef enum mt_log_format { MT_LOG_TEXT, MT_LOG_JSON } mt_log_format;

void mt_log_setup(mt_log_level level, mt_log_format format);
bool mt_log_enabled(mt_log_level level);

/* event: a short name such as "weights.mapped"; fmt: the sentence. Any thread. */
void mt_log(mt_log_level level, const char *event, const char *fmt, ...) MT_PRINTF(3, 4);

/* The same with members that only the JSON object gets, for programs: "\"tokens\":7,\"finish\":\"stop\"". They are left
   out where they do not fit beside the sentence. */
void mt_log_fields(mt_log_level level, const char *event, const char *members, const char *fmt, ...) MT_PRINTF(4, 5);

/* Writes text that is no event, line end included, as events are written. Any thread. */
void mt_log_write(const char *text, size_t len);

/* A line of progress. On a terminal it is replaced by the next line, or removed by mt_log_passed, and is shown whatever
   the level; elsewhere it is an event of level info. See base/progress.h. */
void mt_log_passing(const char *event, const char *fmt, ...) MT_PRINTF(2, 3);
void mt_log_passed(void);
bool mt_log_on_terminal(void); /* and the format is text */

#define mt_log_error(...) mt_log(MT_LOG_ERROR, __VA_ARGS__)
#define mt_log_warn(...) mt_log(MT_LOG_WARN, __VA_ARGS__)
#define mt_log_info(...) mt_log(MT_LOG_INFO, __VA_ARGS__)
#define mt_log_debug(...) mt_log(MT_LOG_DEBUG, __VA_ARGS__)

#endif
