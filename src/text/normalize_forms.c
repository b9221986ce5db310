/* The Unicode normalization forms NFC, NFD, NFKC and NFKD, with the tables of utf8proc.
   Most text is already normalized, so characters that a form cannot change are copied. Such characters, called inert
   here and recognised by their first byte, decompose to themselves and combine with no character before them. All
   others form a stretch, together with the inert character before, since marks may combine with that. A stretch is
   decomposed, its marks are ordered and, for NFC and NFKC, it is composed again.
   The tokenizers library has the tables of Unicode 9. Decompositions never change in later versions, so newer tables
   differ only in newer characters; mt_tok_is_later leaves those out.
   The ordering of utf8proc is a bubble sort, which takes hours for a megabyte of marks. Here marks are sorted by
   counting. */
#include "base/utf8.h"
#include "text/normalizer.h"

#include <string.h>
#include <utf8proc.h>

#include "base/alloc.h"
#include "text/chars.h"

enum { CLASSES = 256, MOST_DECOMPOSED = 32 };

/* The code points of one stretch, in growing arrays. */
typedef struct stretch {
    utf8proc_int32_t *chars, *sorted;
    size_t count, cap;
} stretch;

static bool is_inert(mt_tok_change form, unsigned char first)
{
    if (first < 0x80 || (first >= 0xE4 && first <= 0xE9)) /* ASCII; U+4000..U+9FFF */
        return true;
    switch (form) {
    case MT_TOK_NFC: /* below U+0300; U+0400..U+047F; U+B000..U+CFFF */
        return first < 0xCC || first == 0xD0 || first == 0xD1 || first == 0xEB || first == 0xEC;
    case MT_TOK_NFD: /* below U+00C0 */ return first < 0xC3;
    default: return false;
    }
}

static utf8proc_option_t options_of(mt_tok_change form)
{
    switch (form) {
    case MT_TOK_NFC: return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case MT_TOK_NFD: return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case MT_TOK_NFKC: return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    default: return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
    }
}

static int class_of(utf8proc_int32_t c)
{
    int class = utf8proc_get_property(c)->combining_class;

    return class > 0 && mt_tok_is_later((uint32_t)c) ? 0 : class;
}

static void reserve(stretch *s, size_t more)
{
    size_t cap = s->cap;

    s->chars = mt_grow(s->chars, &cap, s->count + more, sizeof(*s->chars));
    s->sorted = mt_grow(s->sorted, &s->cap, s->count + more, sizeof(*s->sorted));
}

static void decompose(stretch *s, const mt_tok_view *in, size_t begin, size_t end, utf8proc_option_t options)
{
    s->count = 0;
    for (size_t at = begin; at < end; at += mt_utf8_size(in->data[at])) {
        utf8proc_int32_t c = (utf8proc_int32_t)mt_utf8_at(in->data + at);
        utf8proc_ssize_t count = 0;
        int last_class = 0;

        reserve(s, MOST_DECOMPOSED);
        if (!mt_tok_is_later((uint32_t)c))
            count = utf8proc_decompose_char(c, s->chars + s->count, MOST_DECOMPOSED, options, &last_class);
        if (count > 0 && count <= MOST_DECOMPOSED)
            s->count += (size_t)count;
        else
            s->chars[s->count++] = c;
    }
}

/* Sorts marks by combining class; marks of the same class keep their order. */
static void sort_marks(utf8proc_int32_t *marks, utf8proc_int32_t *sorted, size_t count)
{
    size_t places[CLASSES + 1] = {0};

    for (size_t i = 0; i < count; i++)
        places[class_of(marks[i]) + 1]++;
    for (size_t i = 1; i < CLASSES; i++)
        places[i] += places[i - 1];
    for (size_t i = 0; i < count; i++)
        sorted[places[class_of(marks[i])]++] = marks[i];
    memcpy(marks, sorted, count * sizeof(*marks));
}

/* Sorts each run of marks. */
static void order(stretch *s)
{
    for (size_t i = 0; i < s->count; i++) {
        size_t begin = i;
        int before = 0, now;
        bool ordered = true;

        for (; i < s->count && (now = class_of(s->chars[i])) > 0; i++, before = now)
            ordered = ordered && now >= before;
        if (!ordered)
            sort_marks(s->chars + begin, s->sorted, i - begin);
    }
}

/* Composes. Characters that Unicode 9 does not have stay, and no mark combines across them. */
static void compose(stretch *s, utf8proc_option_t options)
{
    size_t kept = 0;

    for (size_t begin = 0, end; begin < s->count; begin = end) {
        utf8proc_ssize_t count;

        for (end = begin; end < s->count && !mt_tok_is_later((uint32_t)s->chars[end]);)
            end++;
        count = utf8proc_normalize_utf32(s->chars + begin, (utf8proc_ssize_t)(end - begin),
                                         options & ~(unsigned)UTF8PROC_COMPAT);
        if (count > 0)
            memmove(s->chars + kept, s->chars + begin, (size_t)count * sizeof(*s->chars));
        kept += count > 0 ? (size_t)count : 0;
        if (end < s->count)
            s->chars[kept++] = s->chars[end++];
    }
    s->count = kept;
}

/* Appends the normalized in[begin, end). Returns whether it differs from the original. */
static bool change_stretch(stretch *s, const mt_tok_view *in, size_t begin, size_t end, utf8proc_option_t options,
                           mt_tok_text *out)
{
    unsigned char mark = mt_tok_mark_of(in, begin, end);
    size_t start = out->len;

    decompose(s, in, begin, end, options);
    order(s);
    if (options & UTF8PROC_COMPOSE)
        compose(s, options);
    for (size_t i = 0; i < s->count; i++)
        mt_tok_text_put_char(out, (uint32_t)s->chars[i], mark);
    return out->len - start != end - begin || memcmp(out->data + start, in->data + begin, end - begin) != 0;
}

bool mt_tok_change_form(mt_tok_change form, const mt_tok_view *in, mt_tok_text *out)
{
    utf8proc_option_t options = options_of(form);
    stretch s = {0};
    bool changed = false;
    size_t done = 0;

    for (size_t at = 0;;) {
        size_t begin;

        while (at < in->len && is_inert(form, (unsigned char)in->data[at]))
            at += mt_utf8_size(in->data[at]);
        if (at == in->len)
            break;
        begin = at > done ? mt_utf8_before(in->data, at) : at;
        while (at < in->len && !is_inert(form, (unsigned char)in->data[at]))
            at += mt_utf8_size(in->data[at]);
        mt_tok_text_copy(out, in, done, begin);
        changed |= change_stretch(&s, in, begin, at, options, out);
        done = at;
    }
    if (changed)
        mt_tok_text_copy(out, in, done, in->len);
    mt_free(s.chars);
    mt_free(s.sorted);
    return changed;
}
