/* What the files of shapes share. */
#ifndef MT_CHAT_SHAPE_INSIDE_H
#define MT_CHAT_SHAPE_INSIDE_H

#include "chat/shape.h"

typedef struct mt_shape_writer {
    const mt_shape *shape;
    const mt_tokenizer *tokenizer;
    mt_grammar *g;
    mt_json j;
    mt_error *err;
} mt_shape_writer;

/* Text of a format, in which special tokens stand for themselves. */
mt_expr mt_shape_markup(mt_shape_writer *w, const char *text);

/* Any text up to and with a marker; any text without it. */
mt_expr mt_shape_until(mt_shape_writer *w, const char *marker);
mt_expr mt_shape_without(mt_shape_writer *w, const char *marker);
bool mt_shape_special(const mt_shape_writer *w, const char *text, size_t len, uint32_t *id);

/* shape_calls.c: calls as the format writes them; whether it is one whose calls can be written. *trigger: what the
   first call begins with, "" where nothing marks it; `after` is the rest of it, with further ones. */
typedef struct mt_shape_call_exprs {
    const char *trigger;
    mt_expr after;       /* behind the trigger */
    bool each;           /* further calls have the trigger of their own; else all are in `after` */
    const char *between; /* of such calls */
} mt_shape_call_exprs;

bool mt_shape_has_calls(const char *format);
bool mt_shape_write_calls(mt_shape_writer *w, mt_shape_call_exprs *out) MT_NODISCARD;

/* shape_arguments.c */
typedef struct mt_shape_tags { /* how an argument is written */
    const char *open, *opened; /* around its name */
    const char *string;        /* between that and the value, where it is a string, else other */
    const char *other;
    const char *close;
} mt_shape_tags;

/* The arguments of a tool as JSON, or in tags. strict: a schema that is not supported is an error. */
bool mt_shape_arguments(mt_shape_writer *w, const json_t *schema, bool strict, mt_expr *out) MT_NODISCARD;
bool mt_shape_tagged(mt_shape_writer *w, const json_t *schema, bool strict, const mt_shape_tags *tags,
                     mt_expr *out) MT_NODISCARD;

#endif
