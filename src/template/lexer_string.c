/* Escape sequences in string literals. Part of lexer.h. */
#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "template/lexer.h"

/* The value of up to `most` digits at *at, which moves behind them. *count: how many there were. */
static uint32_t digits(const char *text, size_t len, size_t *at, int base, size_t most, size_t *count)
{
    uint32_t value = 0;

    for (*count = 0; *count < most && *at < len; ++*count, ++*at) {
        const int digit = mt_hex_digit(text[*at]);

        if (digit < 0 || digit >= base)
            break;
        value = value * (uint32_t)base + (uint32_t)digit;
    }
    return value;
}

/* \xNN, \uNNNN or \UNNNNNNNN; *at is after the letter. */
static bool hex_escape(mt_tpl_build *b, const char *text, size_t len, size_t *at, char letter)
{
    size_t wanted = letter == 'x' ? 2 : letter == 'u' ? 4 : 8, count;
    uint32_t c = digits(text, len, at, 16, wanted, &count);

    if (count < wanted)
        return mt_tpl_fail(b->run, "truncated \\%c%.*s escape", letter, (int)wanted, "XXXXXXXX");
    if (c > 0x10FFFF)
        return mt_tpl_fail(b->run, "illegal Unicode character");
    if (c >= 0xD800 && c < 0xE000)
        return mt_tpl_fail(b->run,
                           "a surrogate is no character; write the character itself, or \\U and its eight digits");
    mt_tpl_build_char(b, c, false);
    return true;
}

/* An escape sequence; *at is after the backslash. */
static bool escape(mt_tpl_build *b, const char *text, size_t len, size_t *at)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    char c = text[*at];
    const char *simple = c ? strchr(from, c) : NULL;
    size_t count;

    if (c == '\n') { /* the line continues */
        ++*at;
        return true;
    }
    if (simple) {
        ++*at;
        mt_tpl_build_add(b, &to[simple - from], 1, false);
        return true;
    }
    if (c >= '0' && c <= '7') {
        mt_tpl_build_char(b, digits(text, len, at, 8, 3, &count), false);
        return true;
    }
    if (c == 'x' || c == 'u' || c == 'U') {
        ++*at;
        return hex_escape(b, text, len, at, c);
    }
    if (c == 'N')
        return mt_tpl_fail(b->run, "\\N{...} is not supported; write the character itself, or \\u and its four digits");
    mt_tpl_build_lit(b, "\\"); /* no escape: the backslash stays */
    if ((unsigned char)c >= 0x80) {
        /* Jinja2 first makes escapes of characters that are not ASCII; this backslash then escapes theirs. */
        uint32_t code = mt_utf8_at(text + *at);

        mt_tpl_build_printf(b, code < 0x100 ? "x%02x" : code < 0x10000 ? "u%04x" : "U%08x", code);
        *at += mt_utf8_size(c);
    }
    return true;
}

mt_tpl_str *mt_tpl_lex_unescape(mt_tpl_run *run, const char *text, size_t len)
{
    mt_tpl_build b = {.run = run};

    if (!len || !memchr(text, '\\', len))
        return mt_tpl_str_new(run, text, len, false);
    for (size_t at = 0; at < len;) {
        const char *slash = memchr(text + at, '\\', len - at);
        size_t plain = slash ? (size_t)(slash - text) : len;

        mt_tpl_build_add(&b, text + at, plain - at, false);
        at = plain + 1;
        if (slash && !escape(&b, text, len, &at))
            return NULL;
    }
    return mt_tpl_build_end(&b);
}
