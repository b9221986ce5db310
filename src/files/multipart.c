/* See multipart.h. What may be the beginning of a boundary waits in `pending` until more has come; so that the first
   boundary is found as all others are, the body is read as if a line ended before it. */
#include "files/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "base/utf8.h"

enum { PENDING = 1 << 20 }; /* bytes that are read at a time */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* ---- parameters of header fields: ; name="value" ---- */

/* Reads a value, in quotes or without. Returns what follows it; NULL: it is not closed. */
static const char *read_value(const char *at, mt_buf *value)
{
    if (*at != '"') {
        const size_t len = strcspn(at, "; \t");

        mt_buf_add(value, at, len);
        return at + len;
    }
    for (at++; *at != '"'; at++) {
        /* Browsers send a backslash as it is; other clients put one before a quote or another */
        if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        if (!*at)
            return NULL;
        mt_buf_add(value, at, 1);
    }
    return at + 1;
}

/* Finds a parameter of a field's value. False: there is none. */
static bool find_parameter(const char *field, const char *name, mt_buf *value)
{
    const size_t len = strlen(name);
    const char *at = field + strcspn(field, ";");

    while (at && *at == ';') {
        bool found;

        for (at++; is_blank(*at);)
            at++;
        found = strncasecmp(at, name, len) == 0 && at[len] == '=';
        at += strcspn(at, "=;");
        value->len = 0;
        if (*at == '=')
            at = read_value(at + 1, value);
        if (found)
            return at != NULL;
        while (at && is_blank(*at))
            at++;
    }
    return false;
}

/* Replaces %XX by the byte; of %22, %0D and %0A alone where `all` is false, as browsers write those three. */
static void decode_percent(mt_buf *text, bool all)
{
    size_t out = 0;

    for (size_t i = 0; i < text->len; i++) {
        const bool two = text->data[i] == '%' && i + 2 < text->len;
        const int high = two ? mt_hex_digit(text->data[i + 1]) : -1, low = two ? mt_hex_digit(text->data[i + 2]) : -1;
        const int byte = high < 0 || low < 0 ? -1 : high * 16 + low;

        if (byte >= 0 && (all || byte == '"' || byte == '\r' || byte == '\n')) {
            text->data[out++] = (char)byte;
            i += 2;
        } else
            text->data[out++] = text->data[i];
    }
    text->len = out;
}

/* Copies the last segment of a path that a client has sent as a file's name. */
static bool copy_filename(mt_multipart_head *head, const char *name, size_t len, mt_error *err)
{
    size_t begin = len;

    while (begin > 0 && name[begin - 1] != '/' && name[begin - 1] != '\\')
        begin--;
    len -= begin;
    if (len > MT_LIMIT_FILE_NAME)
        return mt_fail(err, MT_E_INVALID, "the name of the file has more than %d bytes: shorten it",
                       MT_LIMIT_FILE_NAME);
    for (size_t i = 0; i < len;) {
        const size_t size = mt_utf8_length(name + begin + i, len - i);
        const unsigned char c = (unsigned char)name[begin + i];

        if (size == 0)
            return mt_fail(err, MT_E_INVALID, "the name of the file is not UTF-8: send it in that encoding");
        memcpy(head->filename + i, name + begin + i, size);
        if (c < ' ' || c == 0x7F)
            head->filename[i] = '_';
        i += size;
    }
    head->filename[len] = '\0';
    return true;
}

static bool read_filename(mt_multipart_head *head, const char *field, mt_error *err)
{
    mt_buf value = {.limit = MT_LIMIT_FORM_HEAD};
    bool ok = true, wide;
    const char *text;

    wide = find_parameter(field, "filename*", &value) && value.len >= 7 && strncasecmp(value.data, "utf-8''", 7) == 0;
    head->file = wide || find_parameter(field, "filename", &value);
    if (head->file && value.len > 0) {
        decode_percent(&value, wide);
        text = wide ? value.data + 7 : value.data;
        ok = copy_filename(head, text, value.len - (wide ? 7 : 0), err);
    }
    mt_buf_free(&value);
    return ok;
}

/* ---- the head of a part ---- */

static bool read_disposition(mt_multipart_head *head, const char *field, mt_error *err)
{
    mt_buf name = {.limit = MT_LIMIT_FORM_HEAD};
    const bool ok = find_parameter(field, "name", &name) && name.len > 0 && name.len < sizeof(head->name) &&
                    !memchr(name.data, '\0', name.len);

    if (ok)
        memcpy(head->name, name.data, name.len + 1);
    mt_buf_free(&name);
    return ok ? read_filename(head, field, err)
              : mt_fail(err, MT_E_INVALID, "a part of the form has no name, or one that is too long: name it");
}

/* Reads one line of a head. */
static bool read_field(mt_multipart_head *head, const char *line, mt_error *err)
{
    static const char disposition[] = "content-disposition:", type[] = "content-type:";
    const char *value;

    if (strncasecmp(line, disposition, sizeof(disposition) - 1) == 0)
        return read_disposition(head, line + sizeof(disposition) - 1, err);
    if (strncasecmp(line, type, sizeof(type) - 1) != 0)
        return true;
    for (value = line + sizeof(type) - 1; is_blank(*value);)
        value++;
    for (const char *c = value; *c; c++)
        if (*c < ' ' || *c > '~')
            return mt_fail(err, MT_E_INVALID, "the content type of a part of the form has bytes that it may not have");
    if (strlen(value) < sizeof(head->type))
        memcpy(head->type, value, strlen(value) + 1);
    return true;
}

/* Reads the lines of a head: len bytes, in which each ends with CR and LF. */
static bool read_head(mt_multipart_head *head, char *lines, size_t len, mt_error *err)
{
    if (memchr(lines, '\0', len))
        return mt_fail(err, MT_E_INVALID, "the head of a part of the form has a NUL character in it: leave it out");
    while (len > 0) {
        char *end = strstr(lines, "\r\n");
        const size_t line = (size_t)(end - lines);

        *end = '\0';
        if (!read_field(head, lines, err))
            return false;
        lines += line + 2;
        len -= line + 2;
    }
    return *head->name || mt_fail(err, MT_E_INVALID, "a part of the form has no content-disposition: name it");
}

/* ---- the states: each takes what it can of what is pending, and returns how much; SIZE_MAX: *err ---- */

static const char *find(const char *text, size_t len, const char *mark, size_t mark_len)
{
    const char *end = text + len;

    for (const char *at = text; (size_t)(end - at) >= mark_len; at++) {
        at = memchr(at, mark[0], (size_t)(end - at) - mark_len + 1);
        if (!at)
            return NULL;
        if (memcmp(at, mark, mark_len) == 0)
            return at;
    }
    return NULL;
}

/* Data up to the next boundary, which is dropped before the first part. */
static size_t take_data(mt_multipart *m, const char *text, size_t len, mt_error *err)
{
    const char *mark = find(text, len, m->mark, m->mark_len);
    const size_t kept = m->mark_len - 1, data = mark ? (size_t)(mark - text) : len > kept ? len - kept : 0;
    const bool told = m->state == MT_MULTIPART_DATA;

    if (told && data > 0 && !m->sink->data(m->user, text, data, err))
        return SIZE_MAX;
    if (!mark)
        return data;
    if (told && !m->sink->end(m->user, err))
        return SIZE_MAX;
    m->state = MT_MULTIPART_BEHIND;
    return data + m->mark_len;
}

static size_t take_behind(mt_multipart *m, const char *text, size_t len, mt_error *err)
{
    size_t blanks = 0;

    if (len >= 2 && text[0] == '-' && text[1] == '-') {
        m->state = MT_MULTIPART_OVER;
        return 2;
    }
    while (blanks < len && is_blank(text[blanks]))
        blanks++;
    if (len >= blanks + 2 && text[blanks] == '\r' && text[blanks + 1] == '\n') {
        m->state = MT_MULTIPART_HEAD;
        return blanks; /* the end of the line remains: a head may have no lines */
    }
    if (len < blanks + 2 && blanks < MT_LIMIT_FORM_HEAD)
        return 0;
    mt_fail(err, MT_E_INVALID, "behind a boundary of the form stands something else than the end of its line");
    return SIZE_MAX;
}

static size_t take_head(mt_multipart *m, char *text, size_t len, mt_error *err)
{
    const char *end = find(text, len, "\r\n\r\n", 4);
    mt_multipart_head head = {.file = false};
    size_t lines;

    if ((size_t)(end ? end - text : (ptrdiff_t)len) > MT_LIMIT_FORM_HEAD) {
        mt_fail(err, MT_E_TOO_LARGE, "the head of a part of the form has more than %d bytes", MT_LIMIT_FORM_HEAD);
        return SIZE_MAX;
    }
    if (!end)
        return 0;
    if (m->parts++ == MT_LIMIT_FORM_PARTS) {
        mt_fail(err, MT_E_TOO_LARGE, "the form has more than %d parts: send fewer", MT_LIMIT_FORM_PARTS);
        return SIZE_MAX;
    }
    lines = (size_t)(end - text); /* the line before the head ends with the first two bytes */
    if (!read_head(&head, text + 2, lines, err) || !m->sink->begin(m->user, &head, err))
        return SIZE_MAX;
    m->state = MT_MULTIPART_DATA;
    return lines + 4;
}

static size_t take(mt_multipart *m, char *text, size_t len, mt_error *err)
{
    switch (m->state) {
    case MT_MULTIPART_PREAMBLE:
    case MT_MULTIPART_DATA: return take_data(m, text, len, err);
    case MT_MULTIPART_BEHIND: return take_behind(m, text, len, err);
    case MT_MULTIPART_HEAD: return take_head(m, text, len, err);
    case MT_MULTIPART_OVER: break;
    }
    return len;
}

/* Reads what is pending as far as it goes. */
static bool go_on(mt_multipart *m, mt_error *err)
{
    size_t done = 0;

    for (;;) {
        const mt_multipart_state state = m->state;
        const size_t taken = take(m, m->pending.data + done, m->pending.len - done, err);

        if (taken == SIZE_MAX)
            return false;
        done += taken;
        if (taken == 0 && m->state == state)
            break;
    }
    m->pending.len -= done;
    memmove(m->pending.data, m->pending.data + done, m->pending.len + 1);
    return true;
}

bool mt_multipart_init(mt_multipart *m, const char *type, const mt_multipart_sink *sink, void *user, mt_error *err)
{
    static const char wanted[] = "multipart/form-data";
    mt_buf boundary = {.limit = MT_LIMIT_FORM_HEAD};
    bool ok;

    *m = (mt_multipart){.sink = sink, .user = user, .pending = {.limit = PENDING + MT_LIMIT_FORM_HEAD}};
    ok = type && strncasecmp(type, wanted, sizeof(wanted) - 1) == 0 && find_parameter(type, "boundary", &boundary) &&
         boundary.len > 0 && boundary.len <= MT_MULTIPART_BOUNDARY;
    if (ok) {
        snprintf(m->mark, sizeof(m->mark), "\r\n--%s", boundary.data);
        m->mark_len = strlen(m->mark);
        ok = mt_buf_puts(&m->pending, "\r\n");
    }
    mt_buf_free(&boundary);
    return ok || mt_fail(err, MT_E_INVALID,
                         "the body is no form with a boundary: send it as multipart/form-data, as curl's -F does");
}

void mt_multipart_free(mt_multipart *m)
{
    mt_buf_free(&m->pending);
}

bool mt_multipart_add(mt_multipart *m, const char *data, size_t len, mt_error *err)
{
    while (len > 0) {
        const size_t room = m->pending.limit - m->pending.len, piece = len < room ? len : room;

        if (!mt_buf_add(&m->pending, data, piece))
            return mt_fail(err, MT_E_MEMORY, "there is no memory for the form: try again in a moment");
        data += piece;
        len -= piece;
        if (!go_on(m, err))
            return false;
    }
    return true;
}

bool mt_multipart_end(mt_multipart *m, mt_error *err)
{
    return m->state == MT_MULTIPART_OVER ||
           mt_fail(err, MT_E_INVALID, "the form ends before its last boundary: send all of it");
}
