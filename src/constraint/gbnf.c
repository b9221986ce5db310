/* Reads GBNF grammars (gbnf.h) by recursive descent. */
#include "constraint/gbnf.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "constraint/charset.h"
#include "constraint/grammar_names.h"
#include "constraint/limits.h"

enum { SIGNS = 8 }; /* most repetition signs in a row: each wraps the one before, and compiling recurses into them */

typedef struct reader {
    mt_grammar *g;
    const char *text;
    size_t len, at, depth;
    mt_grammar_names names;
    mt_error *err;
} reader;

static bool fail(const reader *r, const char *what)
{
    return mt_grammar_fail("the grammar", what, r->text, r->at < r->len ? r->at : r->len, r->err);
}

static void skip_space(reader *r)
{
    while (r->at < r->len && strchr(" \t\r\n#", r->text[r->at]) && r->text[r->at])
        if (r->text[r->at] == '#')
            while (r->at < r->len && r->text[r->at] != '\n')
                r->at++;
        else
            r->at++;
}

static bool word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool peek(const reader *r, char c)
{
    return r->at < r->len && r->text[r->at] == c;
}

static size_t word_length(const reader *r)
{
    size_t n = 0;

    while (r->at + n < r->len && word_byte(r->text[r->at + n]))
        n++;
    return n;
}

/* Whether a rule's definition begins here. */
static bool at_definition(const reader *r)
{
    reader ahead = *r;
    const size_t len = word_length(&ahead);

    ahead.at += len;
    skip_space(&ahead);
    return len > 0 && ahead.len - ahead.at >= 3 && memcmp(ahead.text + ahead.at, "::=", 3) == 0;
}

static bool read_hex(reader *r, size_t digits, uint32_t *code)
{
    for (*code = 0; digits > 0; digits--, r->at++) {
        const int digit = r->at < r->len ? mt_hex_digit(r->text[r->at]) : -1;

        if (digit < 0)
            return fail(r, "has an escape without its digits");
        *code = *code << 4 | (uint32_t)digit;
    }
    return *code <= MT_CHAR_MAX || fail(r, "has an escape that is no character");
}

/* Reads a character of a text or a class. */
static bool read_char(reader *r, uint32_t *code)
{
    static const char names[] = "nrt0", values[] = "\n\r\t\0";
    const size_t len = mt_utf8_length(r->text + r->at, r->len - r->at);
    const char *name;

    if (len == 0)
        return fail(r, "is not UTF-8");
    *code = mt_utf8_at(r->text + r->at);
    r->at += len;
    if (*code != '\\')
        return true;
    if (r->at == r->len)
        return fail(r, "ends with a backslash");
    *code = (unsigned char)r->text[r->at++];
    if (*code == 'x' || *code == 'u' || *code == 'U')
        return read_hex(r, *code == 'x' ? 2 : *code == 'u' ? 4 : 8, code);
    name = memchr(names, (int)*code, 4);
    if (name)
        *code = (unsigned char)values[name - names];
    return *code < 0x80 || fail(r, "has a backslash before a character that needs none");
}

/* Called behind the opening quote. */
static bool read_text(reader *r, mt_expr *out)
{
    mt_buf text;
    bool ok = true;

    mt_buf_init(&text, r->len + 1);
    while (ok && !peek(r, '"')) {
        char bytes[MT_UTF8_MAX];
        uint32_t code;

        ok = r->at < r->len ? read_char(r, &code) : fail(r, "has a text without its end");
        if (ok && code >= 0xd800 && code < 0xe000)
            ok = fail(r, "has an escape that is no character");
        if (ok)
            mt_buf_add(&text, bytes, mt_utf8_encode(code, bytes));
    }
    r->at++;
    if (ok)
        *out = mt_grammar_literal(r->g, text.data, text.len);
    mt_buf_free(&text);
    return ok;
}

/* Called behind the opening bracket. */
static bool read_class(reader *r, mt_expr *out)
{
    const bool inverted = peek(r, '^');
    mt_charset set = {0};
    bool ok = true;

    r->at += inverted;
    while (ok && !peek(r, ']')) {
        uint32_t low = 0, high;

        ok = r->at < r->len ? read_char(r, &low) : fail(r, "has a class without its end");
        high = low;
        if (ok && peek(r, '-') && r->at + 1 < r->len && r->text[r->at + 1] != ']') {
            r->at++;
            ok = read_char(r, &high) && (high >= low || fail(r, "has a range that runs backwards"));
        }
        if (ok)
            mt_charset_add(&set, low, high);
    }
    r->at++;
    mt_charset_sort(&set);
    if (inverted)
        mt_charset_invert(&set);
    if (ok)
        *out = mt_grammar_chars(r->g, set.at, set.count);
    mt_charset_free(&set);
    return ok;
}

static bool read_any(reader *r, mt_expr *out);

/* Reads a text, a class, a name or a group. */
static bool read_item(reader *r, mt_expr *out)
{
    static const mt_char_range all = {0, MT_CHAR_MAX};
    const size_t len = word_length(r);
    bool ok;

    if (mt_grammar_full(r->g))
        return false;
    if (len > 0) {
        *out = mt_grammar_call(r->g, mt_grammar_names_find(&r->names, r->text + r->at, len)->rule);
        r->at += len;
        return true;
    }
    switch (r->text[r->at++]) {
    case '"': return read_text(r, out);
    case '[': return read_class(r, out);
    case '.': *out = mt_grammar_chars(r->g, &all, 1); return true;
    case '(':
        if (++r->depth > MT_LIMIT_GRAMMAR_NESTING)
            return fail(r, "has too many groups within one another");
        ok = read_any(r, out);
        r->depth--;
        skip_space(r);
        if (ok && !peek(r, ')'))
            return fail(r, "has a \"(\" without its \")\"");
        r->at++;
        return ok;
    default: r->at--; return fail(r, "has something that is no text, class, group or name");
    }
}

static bool read_number(reader *r, uint32_t *out)
{
    size_t begin;

    skip_space(r);
    begin = r->at;
    for (*out = 0; r->at < r->len && r->text[r->at] >= '0' && r->text[r->at] <= '9'; r->at++)
        if (*out < MT_LIMIT_GRAMMAR_NODES)
            *out = *out * 10 + (uint32_t)(r->text[r->at] - '0');
    if (r->at == begin)
        return false;
    skip_space(r);
    return true;
}

/* Called behind the opening brace. */
static bool read_bounds(reader *r, uint32_t *least, uint32_t *most)
{
    if (!read_number(r, least))
        return fail(r, "has a brace without a number");
    *most = *least;
    if (peek(r, ',')) {
        r->at++;
        if (!read_number(r, most))
            *most = MT_GRAMMAR_UNLIMITED;
    }
    if (!peek(r, '}') || *least > *most || *least >= MT_LIMIT_GRAMMAR_NODES ||
        (*most != MT_GRAMMAR_UNLIMITED && *most >= MT_LIMIT_GRAMMAR_NODES))
        return fail(r, "has bounds that are too large, in the wrong order, or not closed");
    r->at++;
    return true;
}

/* Reads an item with its repetition signs. */
static bool read_repeated(reader *r, mt_expr *out)
{
    static const char signs[] = "*+?{";
    const char *sign;

    if (!read_item(r, out))
        return false;
    for (size_t wrapped = 0;; wrapped++) {
        uint32_t least = 0, most = MT_GRAMMAR_UNLIMITED;

        sign = r->at < r->len && r->text[r->at] ? strchr(signs, r->text[r->at]) : NULL;
        if (!sign)
            return true;
        if (wrapped == SIGNS)
            return fail(r, "repeats what is repeated, more than 8 times over");
        r->at++;
        least = *sign == '+';
        most = *sign == '?' ? 1 : most;
        if (*sign == '{' && !read_bounds(r, &least, &most))
            return false;
        *out = mt_grammar_repeat(r->g, *out, least, most);
    }
}

/* Reads items up to a "|", a ")", the next definition or the end. */
static bool read_list(reader *r, mt_expr *out)
{
    mt_grammar_parts list = {0};
    bool ok = true;

    for (skip_space(r); ok && r->at < r->len && !peek(r, '|') && !peek(r, ')') && !at_definition(r); skip_space(r)) {
        mt_expr item = 0;

        ok = read_repeated(r, &item);
        mt_grammar_parts_add(&list, item);
    }
    *out = mt_grammar_list(r->g, list.at, list.count);
    mt_free(list.at);
    return ok;
}

/* Reads alternatives, separated by "|". */
static bool read_any(reader *r, mt_expr *out)
{
    mt_grammar_parts list = {0};
    mt_expr one = 0;
    bool ok = read_list(r, &one);

    mt_grammar_parts_add(&list, one);
    while (ok && peek(r, '|')) {
        r->at++;
        ok = read_list(r, &one);
        mt_grammar_parts_add(&list, one);
    }
    *out = mt_grammar_any(r->g, list.at, list.count);
    mt_free(list.at);
    return ok;
}

/* Reads one definition. */
static bool read_rule(reader *r)
{
    const char *name = r->text + r->at;
    const size_t len = word_length(r);
    mt_grammar_name *s;
    mt_rule rule;
    mt_expr value;

    if (!at_definition(r))
        return fail(r, "has something that is no rule (name ::= ...)");
    s = mt_grammar_names_find(&r->names, name, len);
    if (s->defined)
        return fail(r, "defines a rule twice");
    s->defined = true;
    rule = s->rule;
    r->at += len;
    skip_space(r);
    r->at += 3;
    if (!read_any(r, &value))
        return false;
    mt_grammar_define(r->g, rule, value);
    skip_space(r);
    return !peek(r, ')') || fail(r, "has a \")\" without its \"(\"");
}

static bool read_all(reader *r, mt_expr *out)
{
    mt_rule root;

    *out = mt_grammar_never(r->g);
    for (skip_space(r); r->at < r->len && !mt_grammar_full(r->g); skip_space(r))
        if (!read_rule(r) && !mt_grammar_full(r->g))
            return false;
    if (mt_grammar_full(r->g)) /* compiling reports it */
        return true;
    if (!mt_grammar_names_check(&r->names, r->err))
        return false;
    if (!mt_grammar_names_rule(&r->names, "root", &root))
        return mt_fail(r->err, MT_E_INVALID, "the grammar has no rule \"root\"; add one");
    *out = mt_grammar_call(r->g, root);
    return true;
}

bool mt_gbnf_expr(mt_grammar *g, const char *text, size_t len, mt_expr *out, mt_error *err)
{
    reader r = {.g = g, .text = text, .len = len, .names = {.g = g}, .err = err};
    bool ok;

    if (len > MT_LIMIT_GRAMMAR_TEXT)
        return mt_fail(err, MT_E_INVALID, "the grammar has %zu bytes; write at most %u", len, MT_LIMIT_GRAMMAR_TEXT);
    ok = read_all(&r, out);
    mt_grammar_names_free(&r.names);
    return ok;
}
