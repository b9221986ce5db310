/* See bytelevel.h. */
#include "text/bytelevel.h"

/* The bytes that are not printable: below LOW; HIGH bytes from 0x7F on; the soft hyphen. */
enum { LOW = 0x21, HIGH = 0x22, SOFT_HYPHEN = 0xAD };

static uint32_t char_of(unsigned char byte)
{
    if (byte < LOW)
        return 0x100u + byte;
    if (byte >= 0x7F && byte <= 0xA0)
        return 0x100u + LOW + (byte - 0x7Fu);
    return byte == SOFT_HYPHEN ? 0x100u + LOW + HIGH : byte;
}

size_t mt_tok_byte_char(unsigned char byte, char out[MT_TOK_BYTE_CHAR_MAX])
{
    uint32_t c = char_of(byte);

    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = (char)(0xC0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3F));
    return 2;
}

int mt_tok_char_byte(uint32_t c)
{
    if (c < 0x100)
        return char_of((unsigned char)c) == c ? (int)c : -1;
    if (c < 0x100 + LOW)
        return (int)(c - 0x100);
    if (c < 0x100 + LOW + HIGH)
        return (int)(c - 0x100 - LOW + 0x7F);
    return c == 0x100 + LOW + HIGH ? SOFT_HYPHEN : -1;
}

size_t mt_tok_byte_chars(const char *bytes, size_t len, char *out)
{
    size_t written = 0;

    for (size_t i = 0; i < len; i++)
        written += mt_tok_byte_char((unsigned char)bytes[i], out + written);
    return written;
}
