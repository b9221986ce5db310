/* RFC 8259 and nothing beyond it: no comments, no NaN, no raw control characters in strings, no bytes that are not
   UTF-8. Half of a surrogate pair, which \u can write, becomes U+FFFD. A byte order mark at the beginning is skipped.
   Repeated names within an object are left to the caller.

   The states of the reader say what may come next:

     VALUE        a value                                  (start, after a key)
     VALUE_OR_END a value or ']'                           (after '[')
     KEY_OR_END   a key or '}'                             (after '{')
     AFTER        ',' with what follows it, or the end of the innermost container; at depth 0 the end of the document
     DONE, FAILED repeat their event

   Invariant: stack[0 .. depth) has the opening brackets, and depth <= MT_LIMIT_JSON_DEPTH. */
#include "base/json_reader.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/utf8.h"

enum { VALUE, VALUE_OR_END, KEY_OR_END, AFTER, DONE, FAILED };

void mt_json_reader_init(mt_json_reader *r, const char *data, size_t size)
{
    static const char mark[] = "\xEF\xBB\xBF";
    const bool marked = size >= 3 && memcmp(data, mark, 3) == 0;

    *r = (mt_json_reader){.data = data, .size = size, .pos = marked ? 3 : 0, .state = VALUE};
}

void mt_json_reader_free(mt_json_reader *r)
{
    mt_free(r->scratch);
    r->scratch = NULL;
    r->scratch_cap = 0;
}

MT_PRINTF(3, 4) static mt_json_event fail_at(mt_json_reader *r, size_t at, const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    mt_fail(&r->error, MT_E_INVALID, "invalid JSON at byte %zu: %s", at, text);
    r->state = FAILED;
    return MT_JSON_ERROR;
}

/* Fails at pos with what was expected and what is there. */
static mt_json_event fail_wanted(mt_json_reader *r, const char *wanted)
{
    unsigned char c;

    if (r->pos >= r->size)
        return fail_at(r, r->pos, "expected %s, found the end", wanted);
    c = (unsigned char)r->data[r->pos];
    if (c > 0x20 && c < 0x7F)
        return fail_at(r, r->pos, "expected %s, found '%c'", wanted, c);
    return fail_at(r, r->pos, "expected %s, found byte 0x%02X", wanted, c);
}

static bool at_char(const mt_json_reader *r, char c)
{
    return r->pos < r->size && r->data[r->pos] == c;
}

static bool at_digit(const mt_json_reader *r)
{
    return r->pos < r->size && r->data[r->pos] >= '0' && r->data[r->pos] <= '9';
}

static void skip_space(mt_json_reader *r)
{
    while (at_char(r, ' ') || at_char(r, '\n') || at_char(r, '\t') || at_char(r, '\r'))
        r->pos++;
}

static char *scratch(mt_json_reader *r, size_t size)
{
    if (size > r->scratch_cap) {
        size_t cap = size < 256 ? 256 : size;

        r->scratch = mt_realloc(r->scratch, r->scratch_cap, cap);
        r->scratch_cap = cap;
    }
    return r->scratch;
}

/* The value of four hexadecimal digits at *at, which moves behind them; -1: they are not there. */
static int32_t hex4(const mt_json_reader *r, size_t *at)
{
    int32_t code = 0;

    if (r->size - *at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const int digit = mt_hex_digit(r->data[*at + (size_t)i]);

        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    *at += 4;
    return code;
}

/* The code point of "\uXXXX" whose 'u' is before *at, with the second half of a surrogate pair; -1: malformed. */
static int32_t unicode_escape(const mt_json_reader *r, size_t *at)
{
    int32_t low, code = hex4(r, at);
    size_t next = *at + 2;

    if (code < 0xD800 || code > 0xDFFF)
        return code;
    if (code > 0xDBFF || r->size - *at < 2 || memcmp(r->data + *at, "\\u", 2) != 0)
        return 0xFFFD;
    low = hex4(r, &next);
    if (low < 0xDC00 || low > 0xDFFF)
        return 0xFFFD; /* what follows is a character of its own */
    *at = next;
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
}

/* Decodes the string data[begin, end), whose escapes are not checked yet, into the scratch buffer. */
static bool decode_string(mt_json_reader *r, size_t begin, size_t end)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    char *out = scratch(r, end - begin); /* no escape is shorter than what it stands for */
    size_t len = 0;

    for (size_t at = begin; at < end;) {
        const char *letter;
        size_t escape;
        int32_t code;

        if (r->data[at] != '\\') {
            out[len++] = r->data[at++];
            continue;
        }
        at++; /* read_string has seen that a character follows */
        letter = r->data[at] ? strchr(letters, r->data[at]) : NULL;
        if (letter) {
            out[len++] = meant[letter - letters];
            at++;
            continue;
        }
        if (r->data[at] != 'u') {
            fail_at(r, at - 1, "unknown escape in a string");
            return false;
        }
        escape = at++ - 1;
        code = unicode_escape(r, &at);
        if (code < 0) {
            fail_at(r, escape, "a \\u escape needs four hexadecimal digits");
            return false;
        }
        len += mt_utf8_encode((uint32_t)code, out + len);
    }
    r->str = out;
    r->len = len;
    return true;
}

/* Reads the string whose opening quote is at pos into str and len. */
static bool read_string(mt_json_reader *r)
{
    size_t begin = ++r->pos;
    bool escapes = false;

    while (r->pos < r->size && r->data[r->pos] != '"') {
        unsigned char c = (unsigned char)r->data[r->pos];
        size_t step = 1;

        if (c < 0x20) {
            fail_at(r, r->pos, "byte 0x%02X in a string must be escaped", c);
            return false;
        }
        if (c == '\\') {
            escapes = true;
            step = 2;
        } else if (c >= 0x80) {
            step = mt_utf8_length(r->data + r->pos, r->size - r->pos);
            if (step == 0) {
                fail_at(r, r->pos, "byte 0x%02X is not UTF-8", c);
                return false;
            }
        }
        r->pos += step;
    }
    if (r->pos >= r->size) {
        fail_at(r, r->size, "the string that begins at byte %zu does not end", begin - 1);
        return false;
    }
    r->str = r->data + begin;
    r->len = r->pos - begin;
    if (escapes && !decode_string(r, begin, r->pos))
        return false;
    r->pos++;
    return true;
}

/* Moves pos over digits. False: there are none. */
static bool skip_digits(mt_json_reader *r)
{
    if (!at_digit(r))
        return false;
    while (at_digit(r))
        r->pos++;
    return true;
}

/* Moves pos over a number. False: there is none. */
static bool skip_number(mt_json_reader *r, bool *integer)
{
    *integer = true;
    if (at_char(r, '-'))
        r->pos++;
    if (at_char(r, '0'))
        r->pos++;
    else if (!skip_digits(r))
        return false;
    if (at_char(r, '.')) {
        *integer = false;
        r->pos++;
        if (!skip_digits(r))
            return false;
    }
    if (at_char(r, 'e') || at_char(r, 'E')) {
        *integer = false;
        r->pos++;
        if (at_char(r, '+') || at_char(r, '-'))
            r->pos++;
        if (!skip_digits(r))
            return false;
    }
    return true;
}

static mt_json_event read_number(mt_json_reader *r)
{
    size_t begin = r->pos, len;
    bool integer;
    char *text;

    if (!skip_number(r, &integer))
        return fail_wanted(r, "a digit");
    len = r->pos - begin;
    text = scratch(r, len + 1); /* strtod needs a NUL, which the document may lack */
    memcpy(text, r->data + begin, len);
    text[len] = '\0';
    r->str = text;
    r->len = len;
    r->num = strtod(text, NULL);
    r->whole = integer;
    errno = 0;
    r->integer = strtoll(text, NULL, 10);
    r->is_int = integer && errno == 0;
    if (!r->is_int)
        r->integer = 0;
    return MT_JSON_NUMBER;
}

static mt_json_event read_word(mt_json_reader *r, const char *word, mt_json_event event)
{
    size_t len = strlen(word);

    if (r->size - r->pos < len || memcmp(r->data + r->pos, word, len) != 0)
        return fail_wanted(r, "a value");
    r->pos += len;
    return event;
}

static mt_json_event open_container(mt_json_reader *r)
{
    char bracket = r->data[r->pos];

    if (r->depth == MT_LIMIT_JSON_DEPTH)
        return fail_at(r, r->pos, "more than %d containers inside one another", MT_LIMIT_JSON_DEPTH);
    r->pos++;
    r->stack[r->depth++] = (unsigned char)bracket;
    r->state = bracket == '{' ? KEY_OR_END : VALUE_OR_END;
    return bracket == '{' ? MT_JSON_OBJECT_BEGIN : MT_JSON_ARRAY_BEGIN;
}

static mt_json_event close_container(mt_json_reader *r)
{
    r->pos++;
    r->state = AFTER;
    return r->stack[--r->depth] == '{' ? MT_JSON_OBJECT_END : MT_JSON_ARRAY_END;
}

static mt_json_event read_value(mt_json_reader *r)
{
    char c = r->pos < r->size ? r->data[r->pos] : '\0';

    if (c == '{' || c == '[')
        return open_container(r);
    r->state = AFTER;
    if (c == '"')
        return read_string(r) ? MT_JSON_STRING : MT_JSON_ERROR;
    if (c == '-' || at_digit(r))
        return read_number(r);
    if (c == 't')
        return read_word(r, "true", MT_JSON_TRUE);
    if (c == 'f')
        return read_word(r, "false", MT_JSON_FALSE);
    if (c == 'n')
        return read_word(r, "null", MT_JSON_NULL);
    return fail_wanted(r, "a value");
}

static mt_json_event read_key(mt_json_reader *r)
{
    if (!at_char(r, '"'))
        return fail_wanted(r, "a key in quotes");
    if (!read_string(r))
        return MT_JSON_ERROR;
    skip_space(r);
    if (!at_char(r, ':'))
        return fail_wanted(r, "':' after a key");
    r->pos++;
    r->state = VALUE;
    return MT_JSON_KEY;
}

static mt_json_event read_after(mt_json_reader *r)
{
    bool object;

    if (r->depth == 0) {
        if (r->pos < r->size)
            return fail_wanted(r, "nothing after the document");
        r->state = DONE;
        return MT_JSON_END;
    }
    object = r->stack[r->depth - 1] == '{';
    if (at_char(r, object ? '}' : ']'))
        return close_container(r);
    if (!at_char(r, ','))
        return fail_wanted(r, object ? "',' or '}'" : "',' or ']'");
    r->pos++;
    skip_space(r);
    return object ? read_key(r) : read_value(r);
}

mt_json_event mt_json_next(mt_json_reader *r)
{
    if (r->state == DONE)
        return MT_JSON_END;
    if (r->state == FAILED)
        return MT_JSON_ERROR;
    skip_space(r);
    switch (r->state) {
    case VALUE_OR_END: return at_char(r, ']') ? close_container(r) : read_value(r);
    case KEY_OR_END: return at_char(r, '}') ? close_container(r) : read_key(r);
    case AFTER: return read_after(r);
    default: return read_value(r);
    }
}

bool mt_json_is_object(const char *text, size_t len)
{
    mt_json_reader r;
    mt_json_event event;
    bool object;

    mt_json_reader_init(&r, text, len);
    object = mt_json_next(&r) == MT_JSON_OBJECT_BEGIN;
    do
        event = mt_json_next(&r);
    while (event != MT_JSON_END && event != MT_JSON_ERROR);
    mt_json_reader_free(&r);
    return object && event == MT_JSON_END;
}

bool mt_json_skip(mt_json_reader *r)
{
    unsigned depth = r->depth;
    mt_json_event event = mt_json_next(r);

    assert(event != MT_JSON_KEY); /* the caller must read a key before it skips its value */
    if (event == MT_JSON_END || event == MT_JSON_ARRAY_END || event == MT_JSON_OBJECT_END)
        fail_at(r, r->pos, "expected a value, found none");
    while (event != MT_JSON_ERROR && r->depth > depth)
        event = mt_json_next(r);
    return r->state != FAILED;
}
