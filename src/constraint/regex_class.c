/* Characters, escapes and classes of regular expressions (regex_class.h). */
#include "constraint/regex_class.h"

#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "constraint/limits.h"

void *mt_regex_fail(mt_regex_reader *r, const char *what)
{
    mt_fail(r->err, MT_E_INVALID, "the regular expression \"%.*s\" %s", (int)(r->len < 200 ? r->len : 200), r->text,
            what);
    return NULL;
}

static bool fail(mt_regex_reader *r, const char *what)
{
    return mt_regex_fail(r, what) != NULL;
}

static bool read_char(mt_regex_reader *r, uint32_t *out)
{
    const size_t len = mt_utf8_length(r->text + r->at, r->len - r->at);

    if (len == 0)
        return fail(r, "is not UTF-8");
    *out = mt_utf8_at(r->text + r->at);
    r->at += len;
    return true;
}

/* Reads `count` digits; 0: up to a closing brace. */
static bool read_hex(mt_regex_reader *r, size_t count, uint32_t *out)
{
    size_t i = 0;

    for (*out = 0; r->at < r->len && mt_hex_digit(r->text[r->at]) >= 0 && (count == 0 || i < count); i++, r->at++)
        if (*out <= MT_CHAR_MAX)
            *out = *out << 4 | (uint32_t)mt_hex_digit(r->text[r->at]);
    if (i == 0 || (count && i < count) || (count == 0 && !mt_regex_accept(r, '}')) || *out > MT_CHAR_MAX)
        return fail(r, "has an escape whose number is no character");
    return true;
}

/* Reads \u; a surrogate pair is one character. */
static bool read_unicode(mt_regex_reader *r, uint32_t *out)
{
    uint32_t second;
    size_t begin;

    if (mt_regex_accept(r, '{'))
        return read_hex(r, 0, out);
    if (!read_hex(r, 4, out))
        return false;
    begin = r->at;
    if (*out >= 0xd800 && *out < 0xdc00 && mt_regex_accept(r, '\\') && mt_regex_accept(r, 'u')) {
        if (!read_hex(r, 4, &second))
            return false;
        if (second >= 0xdc00 && second < 0xe000) {
            *out = 0x10000 + ((*out - 0xd800) << 10) + (second - 0xdc00);
            return true;
        }
    }
    r->at = begin;
    return true;
}

static void add_words(mt_charset *set)
{
    mt_charset_add(set, '0', '9');
    mt_charset_add(set, 'A', 'Z');
    mt_charset_add(set, '_', '_');
    mt_charset_add(set, 'a', 'z');
}

static void add_spaces(mt_charset *set)
{
    static const mt_char_range spaces[] = {{9, 13},          {32, 32},         {0xa0, 0xa0},     {0x1680, 0x1680},
                                           {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                                           {0x3000, 0x3000}, {0xfeff, 0xfeff}};

    for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++)
        mt_charset_add(set, spaces[i].low, spaces[i].high);
}

/* Reads \p{L}, \p{Lu}, \p{General_Category=Lu}. */
static bool read_category(mt_regex_reader *r, mt_charset *set)
{
    const char *begin, *end, *equals;

    if (!mt_regex_accept(r, '{'))
        return fail(r, "has \\p without a category in braces");
    begin = r->text + r->at;
    end = memchr(begin, '}', r->len - r->at);
    if (!end)
        return fail(r, "has \\p without a category in braces");
    r->at += (size_t)(end - begin) + 1;
    if (++r->categories > MT_LIMIT_REGEX_CATEGORIES)
        return fail(r, "has too many categories of Unicode");
    equals = memchr(begin, '=', (size_t)(end - begin));
    if (equals)
        begin = equals + 1;
    return mt_charset_add_category(set, begin, (size_t)(end - begin)) ||
           fail(r, "has \\p with something that is no category of Unicode: write L, Lu, Nd and the like");
}

/* Adds \d, \w, \s or \p, or its complement. */
static bool read_shorthand(mt_regex_reader *r, char c, mt_charset *set)
{
    mt_charset own = {0};
    bool ok = true;

    switch (c | 0x20) {
    case 'd': mt_charset_add(&own, '0', '9'); break;
    case 'w': add_words(&own); break;
    case 's': add_spaces(&own); break;
    default: ok = read_category(r, &own); break;
    }
    mt_charset_sort(&own);
    if (!(c & 0x20))
        mt_charset_invert(&own);
    mt_charset_add_all(set, &own);
    mt_charset_free(&own);
    return ok;
}

/* Called behind a backslash. *single: it is one character, *code; else its characters are added to set. */
static bool read_escape(mt_regex_reader *r, mt_charset *set, uint32_t *code, bool *single)
{
    static const char names[] = "fnrtv", values[] = "\f\n\r\t\v";
    const char *name;
    char c;

    if (r->at == r->len)
        return fail(r, "ends with a backslash");
    c = r->text[r->at];
    *single = true;
    if (strchr("dDwWsSpP", c) && c) {
        r->at++;
        *single = false;
        return read_shorthand(r, c, set);
    }
    name = c ? strchr(names, c) : NULL;
    if (name) {
        r->at++;
        *code = (unsigned char)values[name - names];
        return true;
    }
    if (mt_regex_accept(r, 'x'))
        return read_hex(r, 2, code);
    if (mt_regex_accept(r, 'u'))
        return read_unicode(r, code);
    if (mt_regex_accept(r, '0')) {
        *code = 0;
        return true;
    }
    if (mt_regex_accept(r, 'c')) {
        *code = r->at < r->len ? (uint32_t)(unsigned char)r->text[r->at++] % 32 : 0;
        return true;
    }
    if ((c >= '1' && c <= '9') || c == 'k')
        return fail(r, "refers back, which is not supported");
    return read_char(r, code);
}

/* Reads one end of a range in a class. */
static bool read_member(mt_regex_reader *r, mt_charset *set, uint32_t *code, bool *single)
{
    *single = true;
    if (mt_regex_at(r, '\\') && r->at + 1 < r->len && r->text[r->at + 1] == 'b') {
        r->at += 2;
        *code = 8;
        return true;
    }
    return mt_regex_accept(r, '\\') ? read_escape(r, set, code, single) : read_char(r, code);
}

/* Called behind "[". */
static bool read_bracket(mt_regex_reader *r, mt_charset *set)
{
    const bool inverted = mt_regex_accept(r, '^');
    bool single, other;

    while (!mt_regex_accept(r, ']')) {
        uint32_t low = 0, high = 0;

        if (r->at == r->len)
            return fail(r, "has a \"[\" without its \"]\"");
        if (!read_member(r, set, &low, &single))
            return false;
        if (!single)
            continue;
        high = low;
        if (mt_regex_at(r, '-') && r->at + 1 < r->len && r->text[r->at + 1] != ']') {
            r->at++;
            if (!read_member(r, set, &high, &other))
                return false;
            if (!other) {
                mt_charset_add(set, '-', '-');
                high = low;
            }
        }
        if (high < low)
            return fail(r, "has a range that runs backwards");
        mt_charset_add(set, low, high);
    }
    mt_charset_sort(set);
    if (inverted)
        mt_charset_invert(set);
    return true;
}

bool mt_regex_read_class(mt_regex_reader *r, mt_charset *set)
{
    uint32_t code = 0;
    bool single = true;

    if (mt_regex_accept(r, '['))
        return read_bracket(r, set);
    if (mt_regex_accept(r, '.')) {
        mt_charset_add(set, '\n', '\n');
        mt_charset_add(set, '\r', '\r');
        mt_charset_add(set, 0x2028, 0x2029);
        mt_charset_invert(set);
        return true;
    }
    if (mt_regex_accept(r, '\\')) {
        if (!read_escape(r, set, &code, &single))
            return false;
    } else if (!read_char(r, &code)) {
        return false;
    }
    if (single)
        mt_charset_add(set, code, code);
    mt_charset_sort(set);
    return true;
}
