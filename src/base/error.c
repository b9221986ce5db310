/* See error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const int statuses[] = {
    [MT_OK] = 200,         [MT_E_INVALID] = 400, [MT_E_NOT_FOUND] = 404,   [MT_E_TOO_LARGE] = 413,
    [MT_E_TOO_LONG] = 400, [MT_E_BUSY] = 429,    [MT_E_UNSUPPORTED] = 501, [MT_E_MEMORY] = 503,
    [MT_E_AWAY] = 503,     [MT_E_IO] = 500,      [MT_E_INTERNAL] = 500,
};

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
    return false;
}

bool mt_fail_about(mt_error *err, const char *field)
{
    if (err && !err->field)
        err->field = field;
    return false;
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
