/* See utf8.h. */
#include "base/utf8.h"

/* Each row: the range of first bytes, the length, and the range of the second byte. Later bytes are 80..BF. */
static const struct {
    unsigned char first_min, first_max, length, second_min, second_max;
} forms[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F},
    {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

size_t mt_utf8_length(const char *s, size_t len)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t form = 0, count = sizeof(forms) / sizeof(forms[0]);

    if (len == 0)
        return 0;
    if (u[0] < 0x80)
        return 1;
    while (form < count && (u[0] < forms[form].first_min || u[0] > forms[form].first_max))
        form++;
    if (form == count || forms[form].length > len)
        return 0;
    if (u[1] < forms[form].second_min || u[1] > forms[form].second_max)
        return 0;
    for (size_t i = 2; i < forms[form].length; i++)
        if ((u[i] & 0xC0) != 0x80)
            return 0;
    return forms[form].length;
}

size_t mt_utf8_encode(uint32_t code, char out[MT_UTF8_MAX])
{
    static const unsigned char lead[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = len; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(lead[len] | code);
    return len;
}
