#include "text/chars.h"

#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

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

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
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
    if (c < 0x80)
        return c >= '0' && c <= '9';
    switch (category(c)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return true;
    default: return false;
    }
}

static bool is_ascii_punct(uint32_t c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool mt_tok_is_punct(uint32_t c)
{
    if (c < 0x80)
        return is_ascii_punct(c);
    if (c == 0x166D || c == 0x111C9) /* they were, in Unicode 8 */
        return true;
    switch (category(c)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return !mt_tok_is_later(c, 8);
    default: return false;
    }
}

bool mt_tok_is_other(uint32_t c)
{
    switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO: return !mt_tok_is_later(c, 8);
    default: return false;
    }
}

static bool is_any_mark(uint32_t c)
{
    switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return true;
    default: return false;
    }
}

bool mt_tok_is_mark(uint32_t c)
{
    return c == 0x1CF2 || c == 0x1CF3 || (is_any_mark(c) && !mt_tok_is_later(c, 9)); /* two were, in Unicode 9 */
}

bool mt_tok_is_overlay(uint32_t c)
{
    return c == 0x1734 || (category(c) == UTF8PROC_CATEGORY_MN && !mt_tok_is_later(c, 8)); /* one was, in Unicode 8 */
}

/* Symbols that count as letters: circled, squared and other boxed ones. */
static bool is_boxed_letter(uint32_t c)
{
    return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
           (c >= 0x1F170 && c <= 0x1F189);
}

bool mt_tok_is_word(uint32_t c)
{
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return is_any_mark(c) || c == 0x200C || c == 0x200D || is_boxed_letter(c);
    }
}

bool mt_tok_is_ideograph(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

size_t mt_tok_lower(uint32_t c, uint32_t out[MT_TOK_LOWER_MAX])
{
    if (c < 0x80) {
        out[0] = c >= 'A' && c <= 'Z' ? c + 32 : c;
        return 1;
    }
    if (c == 0x130) { /* the only character whose lower case is two */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return 1;
}
