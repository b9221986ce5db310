/* Level and format are set once, at the start; the only other state is whether a progress line is on the screen. A line
   is built on the stack and written by one write(), so lines of several threads never mix, no lock is held, and nothing
   is allocated within a step. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_escape.h"
#include "base/limits.h"

#define CLEAR "\r\033[K" /* clears the terminal's line */

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* Relaxed throughout: a reader uses the value alone, and no other memory is published with it. */
static atomic_int log_level = MT_LOG_INFO;
static atomic_int log_format = MT_LOG_TEXT;
static atomic_bool passing; /* a progress line is on the screen: the next writer clears it */

typedef struct line {
    char text[MT_LIMIT_LOG_LINE];
    size_t len;
    size_t limit; /* of len; lowered to keep the end of the line free */
} line;

void mt_log_setup(mt_log_level level, mt_log_format format)
{
    atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
    atomic_store_explicit(&log_format, (int)format, memory_order_relaxed);
}

bool mt_log_enabled(mt_log_level level)
{
    return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static bool add(line *l, const char *s, size_t len)
{
    if (len > l->limit - l->len)
        return false;
    memcpy(l->text + l->len, s, len);
    l->len += len;
    return true;
}

static void add_str(line *l, const char *s)
{
    add(l, s, strlen(s));
}

/* Both formats escape as JSON does, so that an event stays one line. Text keeps quotes and backslashes. */
static void add_escaped(line *l, const char *s, mt_log_format format)
{
    size_t len = strlen(s), taken;
    char escaped[MT_JSON_ESCAPE_MAX];

    for (; len > 0; s += taken, len -= taken) {
        size_t size = mt_json_escape(s, len, escaped, &taken);
        bool as_is = format == MT_LOG_TEXT && (*s == '"' || *s == '\\');

        if (!add(l, as_is ? s : escaped, as_is ? 1 : size))
            return;
    }
}

static void add_time(line *l, mt_log_format format)
{
    char text[MT_CLOCK_TEXT];
    struct timespec now;
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &now);
    if (format == MT_LOG_JSON)
        mt_clock_text(now, 3, text);
    else {
        const size_t len = strftime(text, sizeof(text), "%H:%M:%S", localtime_r(&now.tv_sec, &tm));

        snprintf(text + len, sizeof(text) - len, ".%03d", (int)(now.tv_nsec / 1000000));
    }
    add_str(l, text);
}

static void build_text(line *l, mt_log_level level, const char *event, const char *message)
{
    char head[16];

    snprintf(head, sizeof(head), " %-5s ", level_names[level]);
    add_time(l, MT_LOG_TEXT);
    add_str(l, head);
    add_escaped(l, event, MT_LOG_TEXT);
    add_str(l, " ");
    add_escaped(l, message, MT_LOG_TEXT);
}

static void build_json(line *l, mt_log_level level, const char *event, const char *message)
{
    static const char tail[] = "\"}";

    l->limit -= strlen(tail);
    add_str(l, "{\"time\":\"");
    add_time(l, MT_LOG_JSON);
    add_str(l, "\",\"level\":\"");
    add_str(l, level_names[level]);
    add_str(l, "\",\"event\":\"");
    add_escaped(l, event, MT_LOG_JSON);
    add_str(l, "\",\"message\":\"");
    add_escaped(l, message, MT_LOG_JSON);
    l->limit += strlen(tail);
    add_str(l, tail);
}

static void write_line(const line *l)
{
    size_t done = 0;

    while (done < l->len) {
        ssize_t n = write(STDERR_FILENO, l->text + done, l->len - done);

        if (n <= 0)
            return; /* there is nowhere to report it */
        done += (size_t)n;
    }
}

static void write_event(mt_log_level level, const char *event, const char *fmt, va_list args)
{
    line l = {.len = 0, .limit = MT_LIMIT_LOG_LINE - 1};
    char message[MT_LIMIT_LOG_LINE];

    if (!mt_log_enabled(level))
        return;
    vsnprintf(message, sizeof(message), fmt, args);
    if (atomic_exchange_explicit(&passing, false, memory_order_relaxed))
        add_str(&l, CLEAR);
    if (atomic_load_explicit(&log_format, memory_order_relaxed) == MT_LOG_JSON)
        build_json(&l, level, event, message);
    else
        build_text(&l, level, event, message);
    l.text[l.len++] = '\n';
    write_line(&l);
}

void mt_log(mt_log_level level, const char *event, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_event(level, event, fmt, args);
    va_end(args);
}

bool mt_log_on_terminal(void)
{
    const char *kind = getenv("TERM");

    return atomic_load_explicit(&log_format, memory_order_relaxed) == MT_LOG_TEXT && isatty(STDERR_FILENO) && kind &&
           strcmp(kind, "dumb") != 0;
}

void mt_log_passing(const char *event, const char *fmt, ...)
{
    line l = {.len = 0, .limit = MT_LIMIT_LOG_LINE - 1};
    char message[MT_LIMIT_LOG_LINE];
    va_list args;

    va_start(args, fmt);
    if (mt_log_on_terminal()) {
        vsnprintf(message, sizeof(message), fmt, args);
        add_str(&l, CLEAR);
        add_escaped(&l, message, MT_LOG_TEXT);
        atomic_store_explicit(&passing, true, memory_order_relaxed);
        write_line(&l);
    } else
        write_event(MT_LOG_INFO, event, fmt, args);
    va_end(args);
}

void mt_log_passed(void)
{
    line l = {.len = 0, .limit = MT_LIMIT_LOG_LINE - 1};

    if (!atomic_exchange_explicit(&passing, false, memory_order_relaxed))
        return;
    add_str(&l, CLEAR);
    write_line(&l);
}
