/* Digits of escapes, URLs and chunk sizes. */
#ifndef MT_BASE_HEX_H
#define MT_BASE_HEX_H

/* What a hexadecimal digit of either case stands for; -1 for all other characters. */
static inline int mt_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
