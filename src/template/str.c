/* See str.h. */
#include "template/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

mt_tpl_str *mt_tpl_str_new(mt_tpl_run *run, const char *data, size_t len, bool untrusted)
{
    struct {
        mt_tpl_str str;
        mt_range span;
    } *made = mt_tpl_alloc(run, sizeof(*made));

    if (!made)
        return NULL;
    made->str.data = data;
    made->str.len = len;
    made->str.chars = MT_TPL_UNCOUNTED;
    if (untrusted && len > 0) {
        made->span.end = len;
        made->str.spans = &made->span;
        made->str.span_count = 1;
    }
    return &made->str;
}

mt_tpl_str *mt_tpl_str_lit(mt_tpl_run *run, const char *text)
{
    return mt_tpl_str_new(run, text, strlen(text), false);
}

/* The index of the first span that ends after `at`. */
static size_t first_span(const mt_tpl_str *s, size_t at)
{
    size_t low = 0, high = s->span_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (s->spans[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool mt_tpl_str_untrusted(const mt_tpl_str *s, size_t begin, size_t end)
{
    size_t i = first_span(s, begin);

    return i < s->span_count && s->spans[i].begin < end && begin < end;
}

mt_tpl_str *mt_tpl_str_sub(mt_tpl_run *run, const mt_tpl_str *s, size_t begin, size_t end)
{
    size_t first = first_span(s, begin), last = first;
    mt_tpl_str *sub = mt_tpl_str_new(run, s->data + begin, end - begin, false);
    mt_range *spans;

    if (!sub)
        return NULL;
    sub->markup = s->markup;
    if (begin == end)
        return sub;
    while (last < s->span_count && s->spans[last].begin < end)
        last++;
    if (first == last)
        return sub;
    spans = mt_tpl_alloc_array(run, last - first, sizeof(*spans));
    if (!spans)
        return NULL;
    for (size_t i = first; i < last; i++) {
        const mt_range *from = &s->spans[i];

        spans[i - first].begin = from->begin > begin ? from->begin - begin : 0;
        spans[i - first].end = (from->end < end ? from->end : end) - begin;
    }
    sub->spans = spans;
    sub->span_count = last - first;
    return sub;
}

mt_tpl_str *mt_tpl_str_concat(mt_tpl_run *run, const mt_tpl_str *a, const mt_tpl_str *b)
{
    mt_tpl_build *room = a ? a->room : NULL;

    if (!a || !b)
        return NULL;
    if (!room || room->data != a->data || room->len != a->len || room->span_count != a->span_count) {
        room = mt_tpl_copy(run, &(mt_tpl_build){.run = run}, sizeof(*room));
        if (!room)
            return NULL;
        mt_tpl_build_str(room, a);
    }
    mt_tpl_build_str(room, b);
    mt_tpl_str *joined = mt_tpl_build_end(room);
    if (joined)
        joined->room = room;
    return joined;
}

mt_tpl_str *mt_tpl_str_escape(mt_tpl_run *run, const mt_tpl_str *s)
{
    static const char signs[] = "&<>\"'", *const codes[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    mt_tpl_build b = {.run = run};
    mt_tpl_str *escaped;

    for (size_t at = 0, end = 0; s && at < s->len; at = ++end) {
        while (end < s->len && !memchr(signs, s->data[end], sizeof(signs) - 1))
            end++;
        mt_tpl_build_sub(&b, s, at, end);
        if (end < s->len) {
            const char *code = codes[strchr(signs, s->data[end]) - signs];

            mt_tpl_build_add(&b, code, strlen(code), mt_tpl_str_untrusted(s, end, end + 1));
        }
    }
    escaped = mt_tpl_build_end(&b);
    if (escaped)
        escaped->markup = true;
    return escaped;
}

mt_tpl_str *mt_tpl_str_plain(mt_tpl_run *run, mt_tpl_str *s)
{
    mt_tpl_str *plain;

    if (!s || !s->markup)
        return s;
    plain = mt_tpl_copy(run, s, sizeof(*s));
    if (plain)
        plain->markup = false;
    return plain;
}

size_t mt_tpl_str_chars(mt_tpl_str *s)
{
    if (s->chars == MT_TPL_UNCOUNTED) {
        size_t n = 0;

        for (size_t i = 0; i < s->len; i++)
            n += ((unsigned char)s->data[i] & 0xC0) != 0x80;
        s->chars = n;
    }
    return s->chars;
}

size_t mt_tpl_str_offset(mt_tpl_str *s, size_t index)
{
    size_t at = 0;

    if (mt_tpl_str_chars(s) == s->len || index == 0)
        return index;
    if (index == s->chars)
        return s->len;
    while (index-- > 0)
        at += mt_utf8_size(s->data[at]);
    return at;
}

bool mt_tpl_str_equal(const mt_tpl_str *a, const mt_tpl_str *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

bool mt_tpl_str_is(const mt_tpl_str *s, const char *text)
{
    return strlen(text) == s->len && (s->len == 0 || memcmp(s->data, text, s->len) == 0);
}

/* UTF-8 bytes have the same order as code points. */
int mt_tpl_str_compare(const mt_tpl_str *a, const mt_tpl_str *b)
{
    size_t shorter = a->len < b->len ? a->len : b->len;
    int order = shorter ? memcmp(a->data, b->data, shorter) : 0;

    if (order == 0)
        return a->len < b->len ? -1 : a->len > b->len;
    return order < 0 ? -1 : 1;
}

static bool fail_longest(mt_tpl_run *run)
{
    return mt_tpl_fail_limit(run, "a text of more than %zu bytes; make the template write less", run->longest);
}

static bool reserve(mt_tpl_build *b, size_t len)
{
    if (b->run->failed)
        return false;
    if (len > b->run->longest - b->len)
        return fail_longest(b->run);
    return mt_tpl_grow(b->run, &b->data, b->len, len, &b->cap, 1);
}

static void mark(mt_tpl_build *b, size_t begin, size_t end)
{
    if (b->span_count && b->spans[b->span_count - 1].end >= begin)
        b->spans[b->span_count - 1].end = end;
    else if (mt_tpl_grow(b->run, &b->spans, b->span_count, 1, &b->span_cap, sizeof(*b->spans)))
        b->spans[b->span_count++] = (mt_range){begin, end};
}

void mt_tpl_build_add(mt_tpl_build *b, const char *data, size_t len, bool untrusted)
{
    if (len == 0 || !reserve(b, len))
        return;
    memcpy(b->data + b->len, data, len);
    if (untrusted)
        mark(b, b->len, b->len + len);
    b->len += len;
}

void mt_tpl_build_lit(mt_tpl_build *b, const char *text)
{
    mt_tpl_build_add(b, text, strlen(text), false);
}

void mt_tpl_build_char(mt_tpl_build *b, uint32_t c, bool untrusted)
{
    char bytes[MT_UTF8_MAX];

    mt_tpl_build_add(b, bytes, mt_utf8_encode(c, bytes), untrusted);
}

void mt_tpl_build_fill(mt_tpl_build *b, const mt_tpl_str *s, size_t count)
{
    const bool uniform = s->span_count == 0 || (s->spans[0].begin == 0 && s->spans[0].end >= s->len);
    const size_t at = b->len;

    if (s->len == 0 || count == 0 || b->run->failed)
        return;
    if (count > b->run->longest / s->len || !reserve(b, count * s->len)) {
        fail_longest(b->run);
        return;
    }
    if (!uniform) {
        while (count-- > 0 && !b->run->failed)
            mt_tpl_build_str(b, s);
        return;
    }
    if (!mt_tpl_charge_bytes(b->run, count * s->len))
        return;
    for (size_t i = 0; i < count; i++)
        memcpy(b->data + at + i * s->len, s->data, s->len);
    b->len += count * s->len;
    if (s->span_count)
        mark(b, at, b->len);
}

void mt_tpl_build_str(mt_tpl_build *b, const mt_tpl_str *s)
{
    if (s)
        mt_tpl_build_sub(b, s, 0, s->len);
}

void mt_tpl_build_sub(mt_tpl_build *b, const mt_tpl_str *s, size_t begin, size_t end)
{
    size_t at = b->len;

    if (begin >= end || !mt_tpl_charge_bytes(b->run, end - begin) || !reserve(b, end - begin))
        return;
    memcpy(b->data + at, s->data + begin, end - begin);
    b->len += end - begin;
    for (size_t i = first_span(s, begin); i < s->span_count && s->spans[i].begin < end; i++) {
        size_t from = s->spans[i].begin > begin ? s->spans[i].begin : begin;
        size_t to = s->spans[i].end < end ? s->spans[i].end : end;

        mark(b, at + from - begin, at + to - begin);
    }
}

void mt_tpl_build_printf(mt_tpl_build *b, const char *fmt, ...)
{
    char text[512];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len > 0)
        mt_tpl_build_add(b, text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1, false);
}

mt_tpl_str *mt_tpl_build_end(mt_tpl_build *b)
{
    mt_tpl_str *s;

    if (b->run->failed)
        return NULL;
    s = mt_tpl_str_new(b->run, b->data ? b->data : "", b->len, false);
    if (s) {
        s->spans = b->spans;
        s->span_count = b->span_count;
    }
    return s;
}

mt_tpl_str *mt_tpl_build_end_like(mt_tpl_build *b, const mt_tpl_str *s)
{
    mt_tpl_str *made = mt_tpl_build_end(b);

    if (made)
        made->markup = s->markup;
    return made;
}
