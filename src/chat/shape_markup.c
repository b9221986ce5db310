/* Text of a format, in which special tokens become tokens; and which formats a shape has. */
#include <string.h>

#include "chat/limits.h"
#include "chat/shape_inside.h"

bool mt_shape_special(const mt_shape_writer *w, const char *text, size_t len, uint32_t *id)
{
    *id = mt_tokenizer_find(w->tokenizer, text, len);
    return *id != MT_TOKEN_NONE && mt_tokenizer_special(w->tokenizer, *id);
}

/* The length of the special token that the text begins with; 0: none. */
static size_t special_at(const mt_shape_writer *w, const char *text, uint32_t *id)
{
    if (*text != '<' && *text != '[')
        return 0;
    for (size_t len = strnlen(text, MT_LIMIT_GRAMMAR_MARKER); len > 1; len--)
        if (mt_shape_special(w, text, len, id))
            return len;
    return 0;
}

mt_expr mt_shape_markup(mt_shape_writer *w, const char *text)
{
    mt_expr all = mt_grammar_empty(w->g);
    size_t begin = 0, at = 0, len;
    uint32_t id;

    while (text && text[at]) {
        len = special_at(w, text + at, &id);
        if (len == 0) {
            at++;
            continue;
        }
        all = MT_SHAPE_LIST(w, all, mt_grammar_literal(w->g, text + begin, at - begin), mt_grammar_token(w->g, id));
        begin = at += len;
    }
    return begin == at ? all : mt_grammar_seq(w->g, all, mt_grammar_literal(w->g, text + begin, at - begin));
}

/* An unknown name counts as "none": it was refused when the parser was made. */
const mt_format *mt_shape_format(const mt_shape *s)
{
    const mt_format *format = mt_format_find_tools(s->formats.tools);

    return format ? format : &mt_format_none;
}

bool mt_shape_harmony(const mt_shape *s)
{
    const mt_format *reasoning = mt_format_find_reasoning(s->formats.reasoning);

    return mt_shape_format(s) == &mt_format_harmony || (reasoning && reasoning->read == mt_format_harmony.read);
}

bool mt_shape_has_tools(const mt_shape *s)
{
    return json_array_size(s->tools) > 0 && mt_shape_format(s) != &mt_format_none;
}

bool mt_shape_forbids(const mt_shape *s)
{
    return s->calls == MT_SHAPE_CALLS_NONE && mt_shape_has_tools(s);
}
