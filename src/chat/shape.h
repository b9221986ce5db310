/* A shape: what an answer has to look like from its first token to its last, written as a grammar. Reasoning comes
   first, where the model's format has it, then tool calls or what the request wants as content. */
#ifndef MT_CHAT_SHAPE_H
#define MT_CHAT_SHAPE_H

#include "chat/opened.h"
#include "chat/parse.h"
#include "constraint/source.h"
#include "text/tokenizer.h"

typedef enum mt_shape_calls {
    MT_SHAPE_CALLS_AUTO,
    MT_SHAPE_CALLS_NONE,
    MT_SHAPE_CALLS_REQUIRED /* the answer consists of calls only */
} mt_shape_calls;

typedef struct mt_shape {
    mt_source source; /* what the content has to look like */
    mt_shape_calls calls;
    const json_t *names;         /* an object whose keys are the only tools that may be called; NULL: all may */
    bool one;                    /* at most one call */
    const json_t *tools;         /* as in OpenAI's chat completions; NULL: none */
    mt_parse_formats formats;    /* in which the model writes */
    mt_chat_opened_state opened; /* what the prompt's end has begun */
} mt_shape;

/* Whether the answer needs to be constrained at all. */
bool mt_shape_needed(const mt_shape *shape);

/* Defines the start rule of the grammar. Markers that are special tokens of the tokenizer become tokens. False:
   *err. */
bool mt_shape_write(const mt_shape *shape, const mt_tokenizer *tokenizer, mt_grammar *g, mt_error *err) MT_NODISCARD;

#endif
