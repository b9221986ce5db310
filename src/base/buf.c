/* See buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_escape.h"

/* Bytes; a larger buffer may be refused by the system, which counts as beyond the limit */
enum { CAP_FIRST = 64, CAP_SURE = 1 << 20 };

void mt_buf_init(mt_buf *buf, size_t limit)
{
    *buf = (mt_buf){.limit = limit};
}

void mt_buf_free(mt_buf *buf)
{
    mt_free(buf->data);
    mt_buf_init(buf, buf->limit);
}

/* Makes space for len more bytes and a NUL. False: they do not fit. */
static bool reserve(mt_buf *buf, size_t len)
{
    size_t cap = buf->cap ? buf->cap : CAP_FIRST;
    char *grown;

    if (buf->full || len > buf->limit - buf->len) {
        buf->full = true;
        return false;
    }
    if (len < buf->cap && buf->len < buf->cap - len)
        return true;
    while (cap <= buf->len + len)
        cap = cap > buf->limit / 2 ? buf->limit + 1 : cap * 2;
    grown = cap > CAP_SURE ? mt_realloc_try(buf->data, buf->cap, cap) : mt_realloc(buf->data, buf->cap, cap);
    if (!grown) {
        buf->full = buf->refused = true;
        return false;
    }
    buf->data = grown;
    buf->cap = cap;
    return true;
}

bool mt_buf_add(mt_buf *buf, const void *data, size_t len)
{
    if (!reserve(buf, len))
        return false;
    if (len)
        memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return true;
}

bool mt_buf_puts(mt_buf *buf, const char *s)
{
    return mt_buf_add(buf, s, strlen(s));
}

bool mt_buf_printf(mt_buf *buf, const char *fmt, ...)
{
    const size_t room = buf->full ? 0 : buf->cap - buf->len; /* into which most texts fit */
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(room ? buf->data + buf->len : NULL, room, fmt, args);
    va_end(args);
    if (len < 0 || !reserve(buf, (size_t)len)) {
        if (room)
            buf->data[buf->len] = '\0';
        buf->full = true;
        return false;
    }
    if ((size_t)len >= room) {
        va_start(args, fmt);
        vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, args);
        va_end(args);
    }
    buf->len += (size_t)len;
    return true;
}

/* Number of bytes at the beginning of s that need no escape in a JSON string. */
static size_t plain_run(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && (unsigned char)s[n] >= 0x20 && (unsigned char)s[n] < 0x7F && s[n] != '"' && s[n] != '\\')
        n++;
    return n;
}

bool mt_buf_json_string(mt_buf *buf, const char *s, size_t len)
{
    size_t start = buf->len, taken;
    char escaped[MT_JSON_ESCAPE_MAX];
    bool fits = mt_buf_add(buf, "\"", 1);

    while (fits && len > 0) {
        taken = plain_run(s, len);
        if (taken > 0)
            fits = mt_buf_add(buf, s, taken);
        else
            fits = mt_buf_add(buf, escaped, mt_json_escape(s, len, escaped, &taken));
        s += taken;
        len -= taken;
    }
    if (fits && mt_buf_add(buf, "\"", 1))
        return true;
    buf->len = start;
    if (buf->data)
        buf->data[start] = '\0';
    return false;
}
