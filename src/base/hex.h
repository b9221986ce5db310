/* Hexadecimal digits. */
#ifndef MT_BASE_HEX_H
#define MT_BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

/* The value of a hexadecimal digit of either case; -1: it is none. */
static inline int mt_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Writes two digits for each byte, and a NUL. */
static inline void mt_hex_text(const uint8_t *bytes, size_t count, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

#endif
