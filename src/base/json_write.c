/* See json_write.h. */
#include "base/json_write.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A value ends with a quote, a bracket, a digit or a letter. What may stand before the first value, as in a stream of
   events, ends with white space. */
static void add_comma(mt_buf *out)
{
    if (out->len > 0 && !strchr("{[:, \n", out->data[out->len - 1]))
        mt_buf_add(out, ",", 1);
}

static void add_form(mt_buf *out, const char *form, size_t len)
{
    const size_t begin = out->len;

    if (mt_buf_add(out, form, len))
        for (size_t i = begin; i < out->len; i++)
            if (out->data[i] == '\'')
                out->data[i] = '"';
}

static void add_string(mt_buf *out, const char *s, bool raw)
{
    if (!s || raw)
        mt_buf_puts(out, s ? s : "null");
    else
        mt_buf_json_string(out, s, strlen(s));
}

static void add_integer(mt_buf *out, uint64_t value, bool negative)
{
    char digits[24], *p = digits + sizeof(digits);

    for (; value > 9; value /= 10)
        *--p = (char)('0' + value % 10);
    *--p = (char)('0' + value);
    if (negative)
        *--p = '-';
    mt_buf_add(out, p, (size_t)(digits + sizeof(digits) - p));
}

static void add_signed(mt_buf *out, int64_t value)
{
    add_integer(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

static void add_real(mt_buf *out, const char *spec, char kind, double value)
{
    const int digits = *spec == '.' ? (int)strtol(spec + 1, NULL, 10) : 6;

    if (kind == 'f')
        mt_buf_printf(out, "%.*f", digits, value);
    else
        mt_buf_printf(out, "%.*g", digits, value);
}

/* Appends the argument that the text after a % asks for. Returns the length of that text. */
static size_t add_value(mt_buf *out, const char *spec, va_list *args)
{
    const size_t at = strcspn(spec, "sdufg");
    const size_t longs = at > 0 && spec[at - 1] == 'l' ? at > 1 && spec[at - 2] == 'l' ? 2 : 1 : 0;

    switch (spec[at]) {
    case 's': add_string(out, va_arg(*args, const char *), *spec == '-'); break;
    case 'd':
        if (*spec == 'h')
            mt_buf_puts(out, va_arg(*args, int) ? "true" : "false");
        else
            add_signed(out, longs == 2   ? va_arg(*args, long long)
                            : longs == 1 ? va_arg(*args, long)
                                         : va_arg(*args, int));
        break;
    case 'u':
        add_integer(out,
                    *spec == 'z' ? va_arg(*args, size_t)
                    : longs == 2 ? va_arg(*args, unsigned long long)
                    : longs == 1 ? va_arg(*args, unsigned long)
                                 : va_arg(*args, unsigned),
                    false);
        break;
    default: add_real(out, spec, spec[at], va_arg(*args, double)); break;
    }
    return at + 1;
}

void mt_json_write(mt_buf *out, const char *form, ...)
{
    va_list args;

    if (*form != '}' && *form != ']' && *form != ':')
        add_comma(out);
    va_start(args, form);
    for (;;) {
        const size_t fixed = strcspn(form, "%");

        add_form(out, form, fixed);
        form += fixed;
        if (!*form)
            break;
        form += 1 + add_value(out, form + 1, &args);
    }
    va_end(args);
}

void mt_json_text(mt_buf *out, const char *key, const char *text, size_t len)
{
    if (key)
        mt_json_write(out, "%s:", key);
    else
        add_comma(out);
    mt_buf_json_string(out, text, len);
}
