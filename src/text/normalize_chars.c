/* Stages of the normalizer that change each character on its own. */
#include "base/utf8.h"
#include "text/normalizer.h"

#include "text/bytelevel.h"
#include "text/chars.h"

/* The replacement of a character. */
typedef struct outcome {
    uint32_t chars[MT_TOK_LOWER_MAX];
    size_t count;
} outcome;

static outcome become(uint32_t c)
{
    return (outcome){.chars = {c}, .count = 1};
}

static outcome vanish(void)
{
    return (outcome){.count = 0};
}

static outcome clean(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r')
        return become(' ');
    if (c == 0 || c == 0xFFFD || mt_tok_is_other(c))
        return vanish();
    return become(mt_tok_is_space(c) ? ' ' : c);
}

static outcome nmt(uint32_t c)
{
    if ((c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
        return vanish();
    if (c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
        c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD)
        return become(' ');
    return become(c);
}

static outcome outcome_of(mt_tok_change change, uint32_t c)
{
    outcome o;

    switch (change) {
    case MT_TOK_LOWERCASE: o.count = mt_tok_lower(c, o.chars); return o;
    case MT_TOK_STRIP_MARKS: return c >= 0x80 && mt_tok_is_mark(c) ? vanish() : become(c);
    case MT_TOK_STRIP_OVERLAYS: return c >= 0x80 && mt_tok_is_overlay(c) ? vanish() : become(c);
    case MT_TOK_CLEAN: return clean(c);
    case MT_TOK_NMT: return nmt(c);
    default: return become(c);
    }
}

static bool change_each(mt_tok_change change, const mt_tok_view *in, mt_tok_text *out)
{
    size_t done = 0;

    for (size_t at = 0, size; at < in->len; at += size) {
        uint32_t c = mt_utf8_at(in->data + at);
        outcome o = outcome_of(change, c);

        size = mt_utf8_size(in->data[at]);
        if (o.count == 1 && o.chars[0] == c)
            continue;
        mt_tok_text_copy(out, in, done, at);
        for (size_t i = 0; i < o.count; i++)
            mt_tok_text_put_char(out, o.chars[i], mt_tok_mark_of(in, at, at + size));
        if (out->len == 0)
            out->beheaded = true;
        done = at + size;
    }
    if (done > 0)
        mt_tok_text_copy(out, in, done, in->len);
    return done > 0;
}

/* Puts blanks around ideographs. */
static bool set_apart(const mt_tok_view *in, mt_tok_text *out)
{
    size_t done = 0;

    for (size_t at = 0, size; at < in->len; at += size) {
        size = mt_utf8_size(in->data[at]);
        if (size < 3 || !mt_tok_is_ideograph(mt_utf8_at(in->data + at)))
            continue;
        mt_tok_text_copy(out, in, done, at);
        mt_tok_text_put(out, " ", 1, mt_tok_mark(in, at));
        mt_tok_text_copy(out, in, at, at + size);
        mt_tok_text_put(out, " ", 1, mt_tok_mark(in, at));
        done = at + size;
    }
    if (done > 0)
        mt_tok_text_copy(out, in, done, in->len);
    return done > 0;
}

/* Writes the text in the byte-level alphabet. */
static bool byte_chars(const mt_tok_view *in, mt_tok_text *out)
{
    for (size_t at = 0; at < in->len; at++) {
        char c[MT_TOK_BYTE_CHAR_MAX];

        mt_tok_text_put(out, c, mt_tok_byte_char((unsigned char)in->data[at], c), mt_tok_mark(in, at));
    }
    return in->len > 0;
}

bool mt_tok_change_chars(const mt_tok_stage *s, const mt_tok_view *in, mt_tok_text *out)
{
    if (s->change == MT_TOK_SET_APART)
        return set_apart(in, out);
    if (s->change == MT_TOK_BYTE_CHARS)
        return byte_chars(in, out);
    return change_each(s->change, in, out);
}
