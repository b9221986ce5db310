/* UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef MT_BASE_UTF8_H
#define MT_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define MT_UTF8_MAX 4 /* bytes of one character */

/* Bytes (1 to 4) of the valid character at s, of which len bytes may be read; 0: there is none. */
size_t mt_utf8_length(const char *s, size_t len);

/* ---- for text that is known to be valid ---- */

/* Bytes of the character that begins with this byte. */
static inline size_t mt_utf8_size(char first)
{
    const unsigned char c = (unsigned char)first;

    return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

/* The code point of the character at s. */
static inline uint32_t mt_utf8_at(const char *s)
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

/* Where the character before position `at` begins; at > 0. */
static inline size_t mt_utf8_before(const char *s, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)s[at] & 0xC0) == 0x80);
    return at;
}

/* Writes a code point (not a surrogate, at most U+10FFFF) to out. Returns its bytes. */
size_t mt_utf8_encode(uint32_t code, char out[MT_UTF8_MAX]);

#endif
