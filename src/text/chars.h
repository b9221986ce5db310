/* Characters as the stages of a tokenizer class them. Texts here are valid UTF-8: mt_tok_repair sees to it. */
#ifndef MT_TEXT_CHARS_H
#define MT_TEXT_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_TOK_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* Bytes of the character that begins with this byte. */
static inline size_t mt_tok_char_size(char first)
{
    unsigned char c = (unsigned char)first;

    return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

static inline uint32_t mt_tok_char_at(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;

    if (u[0] < 0x80)
        return u[0];
    if (u[0] < 0xE0)
        return (u[0] & 0x1Fu) << 6 | (u[1] & 0x3Fu);
    if (u[0] < 0xF0)
        return (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
    return (u[0] & 0x07u) << 18 | (u[1] & 0x3Fu) << 12 | (u[2] & 0x3Fu) << 6 | (u[3] & 0x3Fu);
}

/* Where the character that ends before `at` begins; at > 0. */
static inline size_t mt_tok_char_before(const char *s, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)s[at] & 0xC0) == 0x80);
    return at;
}

/* Bytes at s, 1 to 3, that are the start of a character and are not followed by its rest; 0 when no character starts
   so. Where s does not begin with a whole character, max(1, this) bytes are one U+FFFD. */
size_t mt_tok_char_open(const char *s, size_t len);

/* The length of the longest start of s that is UTF-8. */
size_t mt_tok_valid(const char *s, size_t len);

bool mt_tok_is_space(uint32_t c);   /* White_Space */
bool mt_tok_is_numeric(uint32_t c); /* N* */
bool mt_tok_is_punct(uint32_t c);   /* P* of Unicode 8, and all that is neither letter nor digit in ASCII */
bool mt_tok_is_other(uint32_t c);   /* Cc, Cf, Co of Unicode 8 */
bool mt_tok_is_mark(uint32_t c);    /* M* of Unicode 9 */
bool mt_tok_is_overlay(uint32_t c); /* Mn of Unicode 8 */
bool mt_tok_is_word(uint32_t c);    /* \w: Alphabetic, M*, Nd, Pc, joiners */
bool mt_tok_is_ideograph(uint32_t c);

/* Whether a mark, a punctuation or format character, or one that decomposes, came after a version: 8 or 9. */
bool mt_tok_is_later(uint32_t c, unsigned version);

#define MT_TOK_LOWER_MAX 2
size_t mt_tok_lower(uint32_t c, uint32_t out[MT_TOK_LOWER_MAX]); /* how many */

#endif
