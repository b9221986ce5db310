/* Decodes base64 text, and writes it (source.h). */

#include "media/source.h"

enum { BLANK = 64, PAD = 65, WRONG = 66 };

/* A character's 6 bits, or one of the values above. */
static unsigned value_of(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26u;
    if (c >= '0' && c <= '9')
        return c - '0' + 52u;
    switch (c) {
    case '+': return 62;
    case '/': return 63;
    case '=': return PAD;
    case ' ':
    case '\t':
    case '\r':
    case '\n': return BLANK;
    default: return WRONG;
    }
}

typedef struct state {
    uint8_t part[3072]; /* decoded bytes that are not yet appended */
    size_t len;
    uint32_t bits;             /* bits of the letters of the present group of four */
    unsigned letters, padding; /* letters and padding of the group so far */
} state;

static bool flush(mt_buf *out, state *s, mt_error *err)
{
    if (!mt_buf_add(out, s->part, s->len))
        return mt_fail(err, MT_E_INVALID, "the base64 text stands for more than the %zu bytes allowed: send less",
                       out->limit);
    s->len = 0;
    return true;
}

/* Decodes an incomplete last group: two letters are one byte, three are two. */
static bool finish(mt_buf *out, state *s, mt_error *err)
{
    if (s->letters == 1 || (s->padding && s->letters + s->padding != 4))
        return mt_fail(err, MT_E_INVALID, "the base64 text ends within a group of four: send the whole of it");
    if (s->letters >= 2)
        s->part[s->len++] = (uint8_t)(s->bits >> (s->letters * 6 - 8));
    if (s->letters == 3)
        s->part[s->len++] = (uint8_t)(s->bits >> 2);
    return flush(out, s, err);
}

bool mt_base64_decode(mt_buf *out, const char *text, size_t len, mt_error *err)
{
    state s = {0};

    for (size_t i = 0; i < len; i++) {
        unsigned value = value_of((unsigned char)text[i]);

        if (value == BLANK)
            continue;
        if (value == PAD && s.letters + s.padding < 4 && s.letters > 0) {
            s.padding++;
            continue;
        }
        if (value >= BLANK || s.padding)
            return mt_fail(err, MT_E_INVALID, "the base64 text has a byte of value %u at %zu, where none may be: %s",
                           (unsigned)(unsigned char)text[i], i, "send the letters A-Z, a-z, 0-9, + and /");
        s.bits = s.bits << 6 | value;
        if (++s.letters < 4)
            continue;
        s.part[s.len++] = (uint8_t)(s.bits >> 16);
        s.part[s.len++] = (uint8_t)(s.bits >> 8);
        s.part[s.len++] = (uint8_t)s.bits;
        s.letters = 0;
        if (s.len == sizeof(s.part) && !flush(out, &s, err))
            return false;
    }
    return finish(out, &s, err);
}

bool mt_base64_add(mt_buf *out, const void *data, size_t len)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = data;
    char part[4096];
    size_t n = 0;

    for (size_t i = 0; i < len; i += 3) {
        const size_t have = len - i < 3 ? len - i : 3;
        const uint32_t bits =
            (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (have > 2 ? p[i + 2] : 0);

        for (size_t k = 0; k < 4; k++)
            part[n++] = k <= have ? letters[bits >> (18 - 6 * k) & 63] : '=';
        if (n == sizeof(part) || i + 3 >= len) {
            if (!mt_buf_add(out, part, n))
                return false;
            n = 0;
        }
    }
    return true;
}
