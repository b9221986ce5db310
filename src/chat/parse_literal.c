/* Converts Python literals to JSON: strings, numbers, True, False, None, lists, tuples, dicts. Used by parse_python.c
   and parse_gemma.c. */
#include <string.h>

#include "base/hex.h"
#include "base/json_tree.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "chat/limits.h"
#include "chat/parse_core.h"

typedef struct reader {
    const char *at, *end;
    mt_buf *out;
    size_t depth;
} reader;

static bool value(reader *r);

static void skip_space(reader *r)
{
    while (r->at < r->end && mt_parse_space(*r->at))
        r->at++;
}

static bool next_is(reader *r, char b)
{
    skip_space(r);
    return r->at < r->end && *r->at == b;
}

/* Skips b, if it comes next. */
static bool accept(reader *r, char b)
{
    bool there = next_is(r, b);

    r->at += there;
    return there;
}

static bool code_point(reader *r, size_t digits, uint32_t *code)
{
    *code = 0;
    if ((size_t)(r->end - r->at) < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        const int digit = mt_hex_digit(*r->at++);

        if (digit < 0)
            return false;
        *code = *code * 16 + (uint32_t)digit;
    }
    return true;
}

/* Appends what an escape sequence stands for; r->at is after its backslash. */
static bool escape(reader *r, mt_buf *text)
{
    static const char plain[] = "n\nt\tr\rb\bf\fv\va\a0\0\\\\''\"\"\n";
    char b = *r->at++, utf8[MT_UTF8_MAX];
    uint32_t code;

    for (size_t i = 0; i + 1 < sizeof(plain) - 1; i += 2)
        if (plain[i] == b)
            return mt_buf_add(text, plain + i + 1, 1);
    if (b == '\n')
        return true;
    if (b != 'x' && b != 'u' && b != 'U')
        return mt_buf_add(text, "\\", 1) && mt_buf_add(text, &b, 1);
    if (!code_point(r, b == 'x' ? 2 : b == 'u' ? 4 : 8, &code) || code > 0x10ffff)
        return false;
    if (code >= 0xd800 && code < 0xe000)
        code = 0xfffd;
    return mt_buf_add(text, utf8, mt_utf8_encode(code, utf8));
}

static bool string_text(reader *r, mt_buf *text, bool raw)
{
    char quote = *r->at;
    size_t size = r->end - r->at >= 3 && r->at[1] == quote && r->at[2] == quote ? 3 : 1;

    r->at += size;
    while (r->at < r->end) {
        size_t run = 0;

        while (run < size && r->at + run < r->end && r->at[run] == quote)
            run++;
        if (run == size) {
            r->at += size;
            return true;
        }
        if (*r->at == '\\' && !raw && r->end - r->at >= 2) {
            r->at++;
            if (!escape(r, text))
                return false;
        } else {
            mt_buf_add(text, r->at++, 1);
        }
    }
    return false;
}

static bool string(reader *r)
{
    bool raw = *r->at == 'r', ok;
    mt_buf text = {.limit = MT_LIMIT_PARSE_HELD};

    r->at += *r->at != '"' && *r->at != '\'';
    ok = string_text(r, &text, raw);
    if (ok)
        mt_buf_json_string(r->out, text.data ? text.data : "", text.len);
    mt_buf_free(&text);
    return ok;
}

static bool items(reader *r, char close, bool pairs)
{
    bool first = true;

    while (!accept(r, close)) {
        if (!first)
            mt_buf_puts(r->out, ", ");
        first = false;
        skip_space(r);
        if (pairs && !next_is(r, '"') && !next_is(r, '\''))
            return false;
        if (!value(r))
            return false;
        if (pairs && !accept(r, ':'))
            return false;
        if (pairs && (mt_buf_puts(r->out, ": "), !value(r)))
            return false;
        if (!accept(r, ',') && !next_is(r, close))
            return false;
    }
    return true;
}

static bool container(reader *r)
{
    char open = *r->at++;
    bool object = open == '{', ok;

    if (++r->depth > MT_LIMIT_JSON_DEPTH)
        return false;
    mt_buf_puts(r->out, object ? "{" : "[");
    ok = items(r, object ? '}' : open == '[' ? ']' : ')', object);
    mt_buf_puts(r->out, object ? "}" : "]");
    r->depth--;
    return ok;
}

/* True, False, None and the like, or a number, which must be written as in JSON. */
static bool word(reader *r)
{
    static const char *const names[] = {"True", "true", "False", "false", "None", "null",
                                        "true", "true", "false", "false", "null", "null"};
    const char *begin = r->at;
    size_t len;
    json_t *number;

    while (r->at < r->end && (mt_parse_name_byte(*r->at) || *r->at == '+'))
        r->at++;
    len = (size_t)(r->at - begin);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i += 2)
        if (strlen(names[i]) == len && memcmp(names[i], begin, len) == 0)
            return mt_buf_puts(r->out, names[i + 1]);
    number = mt_json_tree_try(begin, len);
    if (json_is_number(number))
        mt_buf_add(r->out, begin, len);
    else
        len = 0;
    json_decref(number);
    return len > 0;
}

static bool value(reader *r)
{
    skip_space(r);
    if (r->at == r->end)
        return false;
    if (*r->at == '"' || *r->at == '\'')
        return string(r);
    if (r->end - r->at >= 2 && strchr("rbfu", *r->at) && (r->at[1] == '"' || r->at[1] == '\''))
        return string(r);
    if (*r->at == '[' || *r->at == '(' || *r->at == '{')
        return container(r);
    return word(r);
}

bool mt_parse_literal(mt_buf *out, const char *text, size_t len)
{
    reader r = {.at = text, .end = text + len, .out = out};

    if (!value(&r))
        return false;
    skip_space(&r);
    return r.at == r.end && !out->full;
}
