/* Level and format are set once, at the start. A line is built on the stack and written by one write(), so that nothing
   is allocated within a step.

   A pipe without a reader must not stop the server: a line waits PATIENCE_MS for it, later ones not at all until the
   pipe is read again, which then begins with how many were lost. The lock is for this: of two threads that find room
   for a line in the pipe, the second might wait for ever. Making standard error non-blocking was rejected: it may be
   shared with other programs. */
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
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
enum { PATIENCE_MS = 1000 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* Relaxed throughout: a reader uses the value alone, and no other memory is published with it. */
static atomic_int log_level = MT_LOG_INFO;
static atomic_int log_format = MT_LOG_TEXT;
static atomic_bool passing; /* a progress line is on the screen: the next writer clears it */

static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* protects the two below; held while a line is written */
static bool unread;                                         /* the last line found no room */
static size_t lost;                                         /* lines that were not written and not told of */

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

/* members: "" or more members of the object, as JSON. */
static void build_json(line *l, mt_log_level level, const char *event, const char *members, const char *message)
{
    static const char tail[] = "\"}";

    l->limit -= strlen(tail);
    add_str(l, "{\"time\":\"");
    add_time(l, MT_LOG_JSON);
    add_str(l, "\",\"level\":\"");
    add_str(l, level_names[level]);
    add_str(l, "\",\"event\":\"");
    add_escaped(l, event, MT_LOG_JSON);
    add_str(l, "\",");
    if (*members && l->len + strlen(members) < l->limit / 2) {
        add_str(l, members);
        add_str(l, ",");
    }
    add_str(l, "\"message\":\"");
    add_escaped(l, message, MT_LOG_JSON);
    l->limit += strlen(tail);
    add_str(l, tail);
}

static void build(line *l, mt_log_level level, const char *event, const char *members, const char *message)
{
    if (atomic_load_explicit(&log_format, memory_order_relaxed) == MT_LOG_JSON)
        build_json(l, level, event, members, message);
    else
        build_text(l, level, event, message);
    l->text[l->len++] = '\n';
}

/* Whether standard error takes a line without waiting; call with the lock held. */
static bool has_room(void)
{
    struct pollfd end = {.fd = STDERR_FILENO, .events = POLLOUT};
    int n;

    do
        n = poll(&end, 1, unread ? 0 : PATIENCE_MS);
    while (n < 0 && errno == EINTR);
    unread = n == 0;
    return !unread;
}

/* Call with the lock held. */
static bool write_all(const char *text, size_t len)
{
    while (len > 0) {
        /* a pipe with room takes PIPE_BUF bytes */
        const ssize_t n = has_room() ? write(STDERR_FILENO, text, len < PIPE_BUF ? len : PIPE_BUF) : 0;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        len -= (size_t)n;
    }
    return true;
}

/* Tells how many lines were lost, if any were; call with the lock held. */
static void tell_lost(void)
{
    line l = {.len = 0, .limit = MT_LIMIT_LOG_LINE - 1};
    char message[100];

    if (lost == 0)
        return;
    snprintf(message, sizeof(message), "%zu lines are missing here: nobody read them, or there was no room", lost);
    build(&l, MT_LOG_WARN, "log.lost", "", message);
    if (write_all(l.text, l.len))
        lost = 0;
}

void mt_log_write(const char *text, size_t len)
{
    pthread_mutex_lock(&writing);
    tell_lost();
    lost += !write_all(text, len);
    pthread_mutex_unlock(&writing);
}

static void write_line(const line *l)
{
    mt_log_write(l->text, l->len);
}

static void write_event(mt_log_level level, const char *event, const char *members, const char *fmt, va_list args)
{
    line l = {.len = 0, .limit = MT_LIMIT_LOG_LINE - 1};
    char message[MT_LIMIT_LOG_LINE];

    if (!mt_log_enabled(level))
        return;
    vsnprintf(message, sizeof(message), fmt, args);
    if (atomic_exchange_explicit(&passing, false, memory_order_relaxed))
        add_str(&l, CLEAR);
    build(&l, level, event, members, message);
    write_line(&l);
}

void mt_log(mt_log_level level, const char *event, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_event(level, event, "", fmt, args);
    va_end(args);
}

void mt_log_fields(mt_log_level level, const char *event, const char *members, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_event(level, event, members, fmt, args);
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
        write_event(MT_LOG_INFO, event, "", fmt, args);
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
