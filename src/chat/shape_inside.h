/* Shared by the files shape*.c. */
#ifndef MT_CHAT_SHAPE_INSIDE_H
#define MT_CHAT_SHAPE_INSIDE_H

#include "chat/format.h"
#include "chat/shape.h"

/* A grammar in the making. */
typedef struct mt_shape_writer {
    const mt_shape *shape;
    const mt_tokenizer *tokenizer;
    mt_grammar *g;
    mt_json j;         /* how JSON content is written */
    mt_json arguments; /* how arguments are written */
    mt_error *err;
} mt_shape_writer;

/* Expressions in sequence. */
#define MT_SHAPE_LIST(w, ...) \
    mt_grammar_list((w)->g, (const mt_expr[]){__VA_ARGS__}, sizeof((const mt_expr[]){__VA_ARGS__}) / sizeof(mt_expr))

/* shape_markup.c: text of a format, in which special tokens become tokens; NULL: nothing */
mt_expr mt_shape_markup(mt_shape_writer *w, const char *text);

/* Whether a text is a special token, and its id. */
bool mt_shape_special(const mt_shape_writer *w, const char *text, size_t len, uint32_t *id);

const mt_format *mt_shape_format(const mt_shape *shape); /* of calls */
bool mt_shape_harmony(const mt_shape *shape);            /* whether calls or reasoning have the format harmony */

/* Whether there are tools to call; whether calls are forbidden, so that not even their markers may be written. */
bool mt_shape_has_tools(const mt_shape *shape);
bool mt_shape_forbids(const mt_shape *shape);

/* shape_text.c: text without markers of calls; reasoning with the marker that ends it; what may stand before and after
   the content ("": nothing) */
mt_expr mt_shape_talk(mt_shape_writer *w);
mt_expr mt_shape_talk_until(mt_shape_writer *w, const char *trigger); /* text up to and with the beginning of a call */
mt_expr mt_shape_thought(mt_shape_writer *w, const char *close);
void mt_shape_frame(const mt_shape_writer *w, const char **open, const char **close);

/* shape_calls.c: calls as the format writes them */
typedef struct mt_shape_call_exprs {
    const char *trigger; /* what the first call begins with; "": no marker */
    mt_expr after;       /* the rest of the first call after the trigger, with further calls unless `each` */
    bool each;           /* further calls have a trigger of their own */
    bool last;           /* no text may follow the calls: nothing ends them, and it could be read as another call */
    const char *between; /* what stands between two calls; NULL: there is only one */
} mt_shape_call_exprs;

const char *mt_shape_head(const mt_shape *shape); /* what content begins with, mostly "" */
const char *mt_shape_trigger(mt_shape_writer *w); /* "": calls have no marker */
const char *mt_shape_name(const json_t *tool);    /* NULL: it has none */
bool mt_shape_write_calls(mt_shape_writer *w, mt_shape_call_exprs *out) MT_NODISCARD;

/* shape_arguments.c: the arguments of a tool as an object in the notation of w->arguments, in tags, or as Python's
   keyword arguments. strict: a schema that is not supported is an error. False: w->err. */
bool mt_shape_object(mt_shape_writer *w, const json_t *schema, bool strict, mt_expr *out) MT_NODISCARD;
bool mt_shape_tagged(mt_shape_writer *w, const json_t *schema, bool strict, const mt_layout_tags *tags,
                     mt_expr *out) MT_NODISCARD;
bool mt_shape_keywords(mt_shape_writer *w, const json_t *schema, bool strict, mt_expr *out) MT_NODISCARD;

#endif
