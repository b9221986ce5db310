/* See error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static const int statuses[] = {
    [MT_OK] = 200,         [MT_E_INVALID] = 400, [MT_E_NOT_FOUND] = 404,   [MT_E_TOO_LARGE] = 413,
    [MT_E_TOO_LONG] = 400, [MT_E_BUSY] = 429,    [MT_E_UNSUPPORTED] = 501, [MT_E_MEMORY] = 503,
    [MT_E_AWAY] = 503,     [MT_E_IO] = 500,      [MT_E_INTERNAL] = 500,
};

/* C0, DEL and C1: what a terminal may obey. */
static bool is_control(const char *s)
{
    const uint32_t c = mt_utf8_at(s);

    return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

void mt_error_tidy(mt_error *err)
{
    const size_t len = strlen(err->text);

    for (size_t at = 0, size; at < len; at += size) {
        size = mt_utf8_length(err->text + at, len - at);
        if (size == 0 && len == sizeof(err->text) - 1 && len - at < MT_UTF8_MAX)
            err->text[at] = '\0';
        else if (size == 0 || is_control(err->text + at))
            memset(err->text + at, '?', size ? size : 1);
        size = size ? size : 1;
    }
}

bool mt_fail(mt_error *err, mt_code code, const char *fmt, ...)
{
    va_list args;

    if (!err)
        return false;
    err->code = code;
    err->field = NULL;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    mt_error_tidy(err);
    return false;
}

bool mt_fail_within(mt_error *err, const char *fmt, ...)
{
    char old[sizeof(err->text)];
    va_list args;
    size_t len;

    if (!err)
        return false;
    memcpy(old, err->text, sizeof(old));
    va_start(args, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    len = strlen(err->text);
    snprintf(err->text + len, sizeof(err->text) - len, ": %s", old);
    mt_error_tidy(err);
    return false;
}

bool mt_fail_about(mt_error *err, const char *field)
{
    if (err && !err->field)
        err->field = field;
    return false;
}

/* A path of len bytes without its folders: its last part. */
static const char *last_part(const char *path, size_t *len)
{
    size_t begin, end = *len;

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/'; begin--)
        continue;
    *len = end - begin;
    return path + begin;
}

static bool is_path(const char *text, size_t len, const char *name)
{
    static const char mark[] = "://";                   /* of a URL */
    const size_t known = name ? strcspn(name, "@") : 0; /* without the revision */

    if (!memchr(text, '/', len) ||
        (known && known <= len && strncmp(text, name, known) == 0 && (known == len || strchr("@:/", text[known]))))
        return false;
    for (size_t i = 0; i + strlen(mark) <= len; i++)
        if (memcmp(text + i, mark, strlen(mark)) == 0)
            return false;
    return true;
}

void mt_error_hide_paths(mt_error *err, const char *name)
{
    const char *at = err->text;
    char *out = err->text;

    while (*at) {
        const bool quoted = *at == '"';
        const char *part = at + quoted, *end = part + strcspn(part, "\"");
        size_t len = (size_t)(end - part);

        if (quoted && is_path(part, len, name)) {
            part = last_part(part, &len);
            len = *end ? len : 0; /* where the sentence was cut, the last part may be that of a folder */
        }
        if (quoted)
            *out++ = '"';
        memmove(out, part, len);
        out += len;
        if (quoted && *end)
            *out++ = *end++;
        at = end;
    }
    *out = '\0';
}

void mt_error_clear(mt_error *err)
{
    if (!err)
        return;
    err->code = MT_OK;
    err->field = NULL;
    err->text[0] = '\0';
}

int mt_code_status(mt_code code)
{
    return (size_t)code < MT_COUNT(statuses) ? statuses[code] : 500;
}
