/* The shape of an answer: what it has to look like from its first token to its last, as a grammar. Reasoning comes
   first where the model's format has it, then the calls of tools or what the request wants the content to be. */
#ifndef MT_CHAT_SHAPE_H
#define MT_CHAT_SHAPE_H

#include "chat/opened.h"
#include "chat/parse.h"
#include "sample/constraint/source.h"
#include "text/tokenizer.h"

typedef enum mt_shape_calls {
    MT_SHAPE_CALLS_AUTO,
    MT_SHAPE_CALLS_NONE,
    MT_SHAPE_CALLS_REQUIRED /* the answer is calls and nothing else */
} mt_shape_calls;

typedef struct mt_shape {
    mt_source source; /* of the content */
    mt_shape_calls calls;
    const json_t *names; /* an object with the names of the only tools that may be called; NULL: all may */
    bool one;            /* at most one call */
    const json_t *tools; /* as in OpenAI's chat completions; NULL: none */
    mt_parse_formats formats;
    mt_chat_opened_state opened;
} mt_shape;

/* Whether anything constrains the answer at all. */
bool mt_shape_needed(const mt_shape *shape);

/* Defines the grammar's start. Markers that are special tokens of the tokenizer become tokens. False with a
   sentence. */
bool mt_shape_write(const mt_shape *shape, const mt_tokenizer *tokenizer, mt_grammar *g, mt_error *err) MT_NODISCARD;

#endif
