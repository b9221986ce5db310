/* See flow.h. */
#include "text/flow.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/limits.h"

enum { FIRST_CAP = 256, SHORT = 64 }; /* bytes; a shorter text may grow as much as one of SHORT bytes */

size_t mt_tok_text_limit(size_t len)
{
    len = len > SHORT ? len : SHORT;
    return len < MT_LIMIT_TOKENIZER_TEXT / MT_LIMIT_TOKENIZER_GROWTH ? len * MT_LIMIT_TOKENIZER_GROWTH
                                                                     : MT_LIMIT_TOKENIZER_TEXT;
}

void mt_tok_text_init(mt_tok_text *text, bool marked, size_t limit)
{
    *text = (mt_tok_text){.marked = marked, .limit = limit};
}

void mt_tok_text_free(mt_tok_text *text)
{
    mt_free(text->data);
    mt_free(text->marks);
    mt_tok_text_init(text, text->marked, text->limit);
}

void mt_tok_text_clear(mt_tok_text *text)
{
    text->len = 0;
    text->beheaded = text->full = false;
}

static bool reserve(mt_tok_text *text, size_t len)
{
    size_t cap = text->cap ? text->cap : FIRST_CAP;

    if (text->full || len > text->limit - text->len) {
        text->full = true;
        return false;
    }
    if (len <= text->cap - text->len)
        return true;
    while (cap < text->len + len)
        cap *= 2;
    text->data = mt_realloc(text->data, text->cap, cap);
    if (text->marked)
        text->marks = mt_realloc(text->marks, text->cap, cap);
    text->cap = cap;
    return true;
}

void mt_tok_text_put(mt_tok_text *text, const char *s, size_t len, unsigned char mark)
{
    if (len == 0 || !reserve(text, len))
        return;
    memcpy(text->data + text->len, s, len);
    if (text->marked)
        memset(text->marks + text->len, mark, len);
    text->len += len;
}

void mt_tok_text_put_char(mt_tok_text *text, uint32_t c, unsigned char mark)
{
    char bytes[MT_UTF8_MAX];

    mt_tok_text_put(text, bytes, mt_utf8_encode(c, bytes), mark);
}

void mt_tok_text_copy(mt_tok_text *text, const mt_tok_view *from, size_t begin, size_t end)
{
    size_t len = end - begin;

    if (len == 0 || !reserve(text, len))
        return;
    memcpy(text->data + text->len, from->data + begin, len);
    if (text->marked && from->marks)
        memcpy(text->marks + text->len, from->marks + begin, len);
    else if (text->marked)
        memset(text->marks + text->len, 0, len);
    text->len += len;
}

unsigned char mt_tok_mark_of(const mt_tok_view *view, size_t begin, size_t end)
{
    unsigned char mark = 0;

    for (size_t at = begin; view->marks && at < end; at++)
        mark |= view->marks[at];
    return mark;
}
