/* See chars.h. */
#include "text/chars.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/unicode_data.h"

size_t mt_tok_char_open(const char *s, size_t len)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t size;

    if (len == 0 || u[0] < 0xC2 || u[0] > 0xF4)
        return 0;
    size = mt_utf8_size(s[0]);
    if (len > 1 && size > 2) {
        unsigned char least = u[0] == 0xE0 ? 0xA0 : u[0] == 0xF0 ? 0x90 : 0x80;
        unsigned char most = u[0] == 0xED ? 0x9F : u[0] == 0xF4 ? 0x8F : 0xBF;

        if (u[1] < least || u[1] > most)
            return 1;
        if (len > 2 && size > 3 && (u[2] & 0xC0) == 0x80)
            return 3;
        return 2;
    }
    return 1;
}

size_t mt_tok_valid(const char *s, size_t len)
{
    size_t at = 0, size;

    for (;;) {
        uint64_t word;

        while (len - at >= sizeof(word)) {
            memcpy(&word, s + at, sizeof(word));
            if (word & 0x8080808080808080u)
                break;
            at += sizeof(word);
        }
        size = mt_utf8_length(s + at, len - at);
        if (size == 0)
            return at;
        at += size;
    }
}

static int compare(const void *key, const void *range)
{
    const uint32_t c = *(const uint32_t *)key;
    const mt_unicode_range *at = range;

    return c < at->first ? -1 : c > at->last;
}

/* Finds the row for c in a sorted table whose rows begin with an mt_unicode_range; NULL: none. */
static const void *row_of(const void *table, size_t count, size_t size, uint32_t c)
{
    return bsearch(&c, table, count, size, compare);
}

static bool is_in(mt_unicode_set_name name, uint32_t c)
{
    const mt_unicode_set *set = &mt_unicode_sets[name];

    return row_of(set->at, set->count, sizeof(*set->at), c) != NULL;
}

bool mt_tok_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool mt_tok_is_numeric(uint32_t c)
{
    return c < 0x80 ? c >= '0' && c <= '9' : is_in(MT_UNICODE_NUMERIC_16, c);
}

static bool is_ascii_punct(uint32_t c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool mt_tok_is_punct(uint32_t c)
{
    return c < 0x80 ? is_ascii_punct(c) : is_in(MT_UNICODE_PUNCT_8, c);
}

bool mt_tok_is_other(uint32_t c)
{
    return is_in(MT_UNICODE_OTHER_8, c);
}

bool mt_tok_is_mark(uint32_t c)
{
    return is_in(MT_UNICODE_MARK_9, c);
}

bool mt_tok_is_overlay(uint32_t c)
{
    return is_in(MT_UNICODE_OVERLAY_8, c);
}

bool mt_tok_is_new(uint32_t c)
{
    return c >= 0x80 && row_of(mt_unicode_changes, mt_unicode_change_count, sizeof(*mt_unicode_changes), c);
}

bool mt_tok_is_later(uint32_t c)
{
    if (c < 0x10000 && !(mt_unicode_pages[c >> 9] >> (c >> 6 & 7) & 1)) /* fast answer for most characters */
        return false;
    return is_in(MT_UNICODE_UNASSIGNED_9, c);
}

bool mt_tok_is_word(uint32_t c)
{
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    return is_in(MT_UNICODE_WORD_16, c);
}

bool mt_tok_is_ideograph(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static uint32_t lower_of(uint32_t c)
{
    const mt_unicode_run *run = row_of(mt_unicode_lower, mt_unicode_lower_count, sizeof(*run), c);

    return run && (c - run->of.first) % run->step == 0 ? (uint32_t)((int32_t)c + run->delta) : c;
}

size_t mt_tok_lower(uint32_t c, uint32_t out[MT_TOK_LOWER_MAX])
{
    if (c < 0x80) {
        out[0] = c >= 'A' && c <= 'Z' ? c + 32 : c;
        return 1;
    }
    if (c == 0x130) { /* the only character whose lower case has two code points */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = lower_of(c);
    return 1;
}
