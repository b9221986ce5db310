/* See failure.h. */
#include "api/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_tree.h"
#include "base/json_write.h"

static const char *type_of(int status)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {{401, "authentication_error"},
                 {403, "permission_error"},
                 {429, "rate_limit_error"},
                 {503, "service_unavailable_error"},
                 {504, "timeout_error"}};

    for (size_t i = 0; i < MT_COUNT(types); i++)
        if (types[i].status == status)
            return types[i].type;
    return status >= 500 ? "server_error" : "invalid_request_error";
}

bool mt_failure_set(mt_failure *why, int status, const char *code, const char *param, const char *fmt, ...)
{
    va_list args;

    why->status = status;
    why->code = code;
    why->retry_after = 0;
    snprintf(why->param, sizeof(why->param), "%s", param ? param : "");
    va_start(args, fmt);
    vsnprintf(why->text, sizeof(why->text), fmt, args);
    va_end(args);
    return false;
}

bool mt_failure_field(mt_failure *why, const char *code, const char *name, const char *fmt, ...)
{
    char rest[MT_LIMIT_ERROR_TEXT];
    va_list args;

    va_start(args, fmt);
    vsnprintf(rest, sizeof(rest), fmt, args);
    va_end(args);
    return mt_failure_set(why, 400, code, name, "\"%s\" %s", name, rest);
}

bool mt_failure_type(mt_failure *why, const char *name, const json_t *value, const char *wanted)
{
    return mt_failure_field(why, "invalid_type", name, "is %s: send %s", mt_json_kind(value), wanted);
}

/* Clients retry after 429 and 5xx by themselves, so an error that every retry would meet again has another status. */
bool mt_failure_from(mt_failure *why, const mt_error *err, const char *param)
{
    const int status = err->code == MT_E_UNSUPPORTED ? 400 : mt_code_status(err->code);
    const char *code = err->code == MT_E_BUSY          ? "queue_full"
                       : err->code == MT_E_UNSUPPORTED ? "unsupported"
                       : err->code == MT_E_MEMORY      ? "out_of_memory"
                       : err->code == MT_E_AWAY        ? "unavailable"
                                                       : NULL;

    return mt_failure_set(why, status, code, err->field ? err->field : param, "%s", err->text);
}

bool mt_failure_from_files(mt_failure *why, const mt_error *err, const char *param, const char *name)
{
    mt_error shown = *err;

    mt_error_hide_paths(&shown, name);
    return mt_failure_from(why, &shown, param);
}

bool mt_failure_memory(mt_failure *why, const char *param)
{
    return mt_failure_set(why, 413, "request_too_large", param,
                          "the request needs more memory than one may have: make %s%s%s smaller", param ? "\"" : "",
                          param ? param : "it", param ? "\"" : "");
}

bool mt_failure_starved(mt_failure *why)
{
    return mt_failure_set(why, 503, "out_of_memory", NULL,
                          "the system has no memory for this request: try again in a moment");
}

void mt_failure_rename(mt_failure *why, const char *to)
{
    const size_t len = strlen(why->param);
    char text[MT_LIMIT_ERROR_TEXT];

    memcpy(text, why->text, sizeof(text));
    if (text[0] == '"' && strncmp(text + 1, why->param, len) == 0)
        mt_failure_set(why, why->status, why->code, to, "\"%s%s", to, text + 1 + len);
    else
        mt_failure_set(why, why->status, why->code, to, "%s", text);
}

static const char *code_of(const mt_failure *why)
{
    return why->code && *why->code ? why->code : NULL;
}

void mt_failure_write_event(mt_buf *out, const mt_failure *why)
{
    const char *type = type_of(why->status);

    mt_json_write(out, "{'type':'error','status':%d,'error':{'message':%s,'type':%s,'param':%s,'code':%s}}",
                  why->status, why->text, type, *why->param ? why->param : NULL, code_of(why) ? code_of(why) : type);
}

void mt_failure_write(mt_buf *out, const mt_failure *why)
{
    mt_json_write(out, "{'error':{'message':%s,'type':%s,'param':%s,'code':%s}}", why->text, type_of(why->status),
                  *why->param ? why->param : NULL, code_of(why));
}
