/* See charsmap.h. The table has a 32-bit length, that many bytes of a double array in the layout of Darts-clone, then
   strings that end with NUL. A value of the array is the offset of its string. Numbers are little-endian.
   The file may hold anything: every position is checked before it is read. */
#include "text/charsmap.h"

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/chars.h"

enum { MOST_CLUSTER = 5 }; /* most bytes of a cluster that is looked up as a whole */

struct mt_tok_charsmap {
    unsigned char *data;        /* the decoded table */
    const unsigned char *units; /* the double array, in data */
    size_t unit_count;
    const char *texts; /* the strings, in data */
    size_t texts_len;
};

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes base64 into data, which has room for len / 4 * 3 bytes. Returns the number of bytes; 0: it is not base64. */
static size_t decode(const char *base64, size_t len, unsigned char *data)
{
    size_t pad = len > 0 && base64[len - 1] == '=' ? (len > 1 && base64[len - 2] == '=' ? 2 : 1) : 0, written = 0;

    if (len % 4 != 0)
        return 0;
    for (size_t i = 0; i < len; i += 4) {
        size_t digits = i + 4 == len ? 4 - pad : 4;
        uint32_t bits = 0;

        for (size_t k = 0; k < 4; k++) {
            int value = k < digits ? base64_value(base64[i + k]) : 0;

            if (value < 0)
                return 0;
            bits = bits << 6 | (uint32_t)value;
        }
        for (size_t k = 0; k + 1 < digits; k++)
            data[written++] = (unsigned char)(bits >> (16 - 8 * k));
    }
    return written;
}

static uint32_t word_at(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

mt_tok_charsmap *mt_tok_charsmap_new(const char *base64, size_t len, mt_error *err)
{
    mt_tok_charsmap *map = mt_alloc(sizeof(*map));
    size_t size, units;

    map->data = mt_alloc(len / 4 * 3 + 1);
    size = decode(base64, len, map->data);
    units = size >= 4 ? word_at(map->data) / 4 : 0;
    if (units == 0 || units > (size - 4) / 4) {
        mt_fail(err, MT_E_INVALID,
                "its \"precompiled_charsmap\" is not a table of SentencePiece; download the file again");
        mt_tok_charsmap_free(map);
        return NULL;
    }
    map->units = map->data + 4;
    map->unit_count = units;
    map->texts = (const char *)map->units + 4 * units;
    map->texts_len = size - 4 - 4 * units;
    if (mt_tok_valid(map->texts, map->texts_len) != map->texts_len) {
        mt_fail(err, MT_E_INVALID, "its \"precompiled_charsmap\" holds what is not UTF-8; download the file again");
        mt_tok_charsmap_free(map);
        return NULL;
    }
    return map;
}

void mt_tok_charsmap_free(mt_tok_charsmap *map)
{
    if (!map)
        return;
    mt_free(map->data);
    mt_free(map);
}

static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* The replacement for the shortest beginning of s that is in the table; NULL: none. */
static const char *lookup(const mt_tok_charsmap *map, const char *s, size_t len, size_t *text_len)
{
    uint32_t at = offset_of(word_at(map->units));

    for (size_t i = 0; i < len && s[i]; i++) {
        uint32_t unit;

        at ^= (unsigned char)s[i];
        if (at >= map->unit_count)
            return NULL;
        unit = word_at(map->units + 4 * (size_t)at);
        if ((unit & (1u << 31 | 0xFF)) != (unsigned char)s[i])
            return NULL;
        at ^= offset_of(unit);
        if (unit >> 8 & 1) {
            uint32_t begin = at < map->unit_count ? word_at(map->units + 4 * (size_t)at) & 0x7FFFFFFF : UINT32_MAX;

            if (begin > map->texts_len || (begin < map->texts_len && ((unsigned char)map->texts[begin] & 0xC0) == 0x80))
                return NULL;
            *text_len = strnlen(map->texts + begin, map->texts_len - begin);
            return map->texts + begin;
        }
    }
    return NULL;
}

/* The end of the grapheme cluster (a character with its combining marks) that begins at `at`. */
static size_t cluster_end(const mt_tok_view *in, size_t at)
{
    utf8proc_int32_t before = (utf8proc_int32_t)mt_utf8_at(in->data + at), state = 0;

    at += mt_utf8_size(in->data[at]);
    while (at < in->len) {
        utf8proc_int32_t c = (utf8proc_int32_t)mt_utf8_at(in->data + at);

        if (before >= ' ' && before < 0x7F && c < 0x7F) /* fast answer for two ASCII characters */
            break;
        if (utf8proc_grapheme_break_stateful(before, c, &state))
            break;
        before = c;
        at += mt_utf8_size(in->data[at]);
    }
    return at;
}

bool mt_tok_charsmap_apply(const mt_tok_charsmap *map, const mt_tok_view *in, mt_tok_text *out)
{
    bool changed = false;

    for (size_t at = 0; at < in->len;) {
        size_t end = cluster_end(in, at), len;
        const char *text = end - at <= MOST_CLUSTER ? lookup(map, in->data + at, end - at, &len) : NULL;

        if (text) {
            mt_tok_text_put(out, text, len, mt_tok_mark_of(in, at, end));
            changed = true;
            at = end;
        }
        while (at < end) {
            size_t size = mt_utf8_size(in->data[at]);

            text = lookup(map, in->data + at, size, &len);
            if (text)
                mt_tok_text_put(out, text, len, mt_tok_mark_of(in, at, at + size));
            else
                mt_tok_text_copy(out, in, at, at + size);
            changed |= text != NULL;
            at += size;
        }
    }
    return changed;
}
