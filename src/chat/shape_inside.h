/* What the files of shapes share. */
#ifndef MT_CHAT_SHAPE_INSIDE_H
#define MT_CHAT_SHAPE_INSIDE_H

#include "chat/format.h"
#include "chat/shape.h"

typedef struct mt_shape_writer {
    const mt_shape *shape;
    const mt_tokenizer *tokenizer;
    mt_grammar *g;
    mt_json j;         /* of the content */
    mt_json arguments; /* of calls */
    mt_error *err;
} mt_shape_writer;

/* Expressions one behind the other. */
#define MT_SHAPE_LIST(w, ...) \
    mt_grammar_list((w)->g, (const mt_expr[]){__VA_ARGS__}, sizeof((const mt_expr[]){__VA_ARGS__}) / sizeof(mt_expr))

/* shape_markup.c: text of a format, in which special tokens stand for themselves; NULL for none. */
mt_expr mt_shape_markup(mt_shape_writer *w, const char *text);

bool mt_shape_special(const mt_shape_writer *w, const char *text, size_t len, uint32_t *id);

const mt_format *mt_shape_format(const mt_shape *shape); /* of calls */
bool mt_shape_harmony(const mt_shape *shape);            /* of either */

/* Whether there are tools to call; whether calls must not be written, and their markers neither. */
bool mt_shape_has_tools(const mt_shape *shape);
bool mt_shape_forbids(const mt_shape *shape);

/* shape_text.c: text without markers of calls; reasoning up to and with the marker that ends it; what may stand around
   the content, "" where nothing may. */
mt_expr mt_shape_talk(mt_shape_writer *w);
mt_expr mt_shape_talk_until(mt_shape_writer *w, const char *trigger); /* and with what begins a call */
mt_expr mt_shape_thought(mt_shape_writer *w, const char *close);
void mt_shape_frame(const mt_shape_writer *w, const char **open, const char **close);

/* shape_calls.c: calls as the format writes them. *trigger: what the first call begins with, "" where nothing marks it;
   `after` is the rest of it, with further ones. */
typedef struct mt_shape_call_exprs {
    const char *trigger;
    mt_expr after;       /* behind the trigger */
    bool each;           /* further calls have the trigger of their own; else all are in `after` */
    bool last;           /* no text behind them: nothing ends them, and what follows may be taken for another one */
    const char *between; /* two calls; NULL: there is only one */
} mt_shape_call_exprs;

const char *mt_shape_head(const mt_shape *shape); /* what content begins with, mostly "" */
const char *mt_shape_trigger(mt_shape_writer *w); /* "" where nothing marks a call */
const char *mt_shape_name(const json_t *tool);    /* NULL where it has none */
bool mt_shape_write_calls(mt_shape_writer *w, mt_shape_call_exprs *out) MT_NODISCARD;

/* shape_arguments.c. The arguments of a tool as an object of the notation of w->arguments, in tags, or as
   Python's keyword arguments. strict: a schema that is not supported is an error. */
bool mt_shape_object(mt_shape_writer *w, const json_t *schema, bool strict, mt_expr *out) MT_NODISCARD;
bool mt_shape_tagged(mt_shape_writer *w, const json_t *schema, bool strict, const mt_layout_tags *tags,
                     mt_expr *out) MT_NODISCARD;
bool mt_shape_keywords(mt_shape_writer *w, const json_t *schema, bool strict, mt_expr *out) MT_NODISCARD;

#endif
