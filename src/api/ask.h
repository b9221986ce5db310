/* An ask: what a call asks for, in whatever dialect it came. The dialect's reader fills it from the body; what the body
   leaves out keeps the defaults of the model and the operator. */
#ifndef MT_API_ASK_H
#define MT_API_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/arena.h"
#include "chat/chat.h"
#include "chat/shape.h"
#include "sample/settings.h"
#include "text/stop.h"

/* Defaults that the operator or the model's generation_config.json sets. */
typedef struct mt_ask_defaults {
    mt_sample_settings sampling;
    int64_t max_tokens;   /* 0: all that the context leaves */
    int64_t repeat_limit; /* see mt_ask; 0: none */
} mt_ask_defaults;

void mt_ask_defaults_init(mt_ask_defaults *defaults); /* plain sampling at temperature 1 */

/* Which end of a prompt is cut where it is too long and the call allows truncation. */
typedef enum mt_truncation_side { MT_TRUNCATE_DEFAULT, MT_TRUNCATE_LEFT, MT_TRUNCATE_RIGHT } mt_truncation_side;
enum { MT_TRUNCATE_NONE = -2, MT_TRUNCATE_FIT = -1 }; /* values of mt_ask.truncate */

/* Whether embeddings are scaled to length 1, and scores to between 0 and 1. DEFAULT: as the model does it. */
typedef enum mt_scaling { MT_SCALING_DEFAULT, MT_SCALING_ON, MT_SCALING_OFF } mt_scaling;

/* What is wanted of a text: one vector, a vector for each of its tokens, what a classifier says of it, or, for ANY, the
   first or the last of these, as the model can. */
typedef enum mt_ask_vectors { MT_ASK_ONE, MT_ASK_EACH, MT_ASK_CLASSES, MT_ASK_ANY } mt_ask_vectors;

/* How the answer is to be given. */
typedef struct mt_form {
    bool stream, include_usage;
    bool continuous_usage; /* every chunk tells how many tokens were used so far */
    bool background;       /* the client does not wait: the answer is kept, and asked for later */
    bool timings;          /* the answer says how long it took */
    bool timings_each;     /* every chunk says how long it took so far */
    bool context;          /* the answer ends with all token ids of the conversation, as Ollama has it */
    bool prompt_text;      /* the answer tells the text of the prompt */
    bool return_token_ids;
    bool tokens_as_ids; /* tokens in logprobs are written as "token_id:7" */
    bool echo;          /* the answer begins with the prompt */
    bool include_reasoning;
    bool old_calls; /* tools came in OpenAI's old form, "functions", and calls are answered in it: "function_call" */
    bool vectors;   /* embeddings or scores of the prompts are wanted, not text; never streamed */
    mt_scaling scaling;
    int64_t prompt_logprobs; /* as sampling.logprobs, for the prompt's tokens */
} mt_form;

/* A part of a prompt that has texts and token ids side by side. */
typedef struct mt_ask_piece {
    mt_chat_text text; /* data is NULL where it is ids */
    bool plain;        /* spellings of special tokens in the text are ordinary text */
    const uint32_t *ids;
    size_t count;
} mt_ask_piece;

/* Text with a gap that the answer fills (fill in the middle). */
typedef struct mt_ask_infill {
    const char *field;                   /* of the body that has the suffix, for errors */
    mt_chat_text prefix, prompt, suffix; /* prompt: stands behind the prefix; data may be NULL */
    const json_t *extra;                 /* a list of {"filename", "text"} of other files; NULL: none */
} mt_ask_infill;

/* A prompt or text of a call that has no messages: one of text, ids, pieces and infill. */
typedef struct mt_ask_prompt {
    mt_chat_text query; /* of scores: the text is scored against this; data is NULL elsewhere */
    mt_chat_text text;
    const uint32_t *ids;
    size_t count;
    const mt_ask_piece *pieces; /* NULL: none */
    size_t piece_count;
    const mt_ask_infill *infill; /* NULL: none */
} mt_ask_prompt;

/* Lies in the arena; its strings and JSON values belong to the body or to `owned`. */
typedef struct mt_ask {
    mt_arena *arena;          /* borrowed */
    const json_t *body;       /* borrowed until mt_ask_free */
    json_t *owned;            /* a list of further JSON values that the ask refers to; NULL: none */
    json_t *extra;            /* what the dialect needs again when it answers; owned; may be NULL */
    struct mt_store *store;   /* kept answers of this account; borrowed; NULL: none */
    struct mt_recent *recent; /* the latest answer of the WebSocket the ask came on; borrowed; NULL: it came on none */
    json_t *schema;           /* a schema that was sent as text, parsed; owned; may be NULL */
    char ignored[400];        /* names of fields that are ignored, for the log and a warning; "" */

    const char *model, *user, *cache_salt; /* NULL: not given */
    mt_form form;
    bool add_special_tokens, skip_special_tokens, include_stop;
    int64_t n, priority;
    /* Seconds that the model stays loaded when idle; below 0: for ever; NaN: the server's default. */
    double keep_alive;

    mt_chat_text prediction; /* what the client expects the answer to be; data is NULL where it does not say */

    mt_source source;         /* what the answer's content has to look like */
    const char *source_field; /* the field of the body that says so */
    mt_shape_calls calls;     /* whether tools may, must or must not be called */
    json_t *call_names;       /* an object whose keys are the only tools that may be called; owned; NULL: all may */
    bool parallel_calls;
    bool is_chat; /* the ask has a chat; else it has prompts */
    /* Token ids that come before those of the chat, which is text alone; an earlier answer's "context" */
    const uint32_t *before;
    size_t before_count;
    mt_chat chat;
    mt_chat *further; /* more conversations, each a prompt of its own, with the tools and settings of `chat` */
    size_t further_count;
    int64_t think_budget;    /* most tokens of thinking; -1: as many as the effort allows (mt_ask_budget) */
    const char *think_field; /* the field that says how much to think, for warnings; NULL: none does */
    bool forgets;            /* where the chat is too long, its oldest messages are left out */
    bool renders;            /* only the text of the prompt is wanted */
    const char *nothing;     /* not NULL: nothing is computed, the model is only to "load" or "unload" */
    mt_ask_prompt *prompts;
    size_t prompt_count;

    bool scores;                     /* scores are wanted: each prompt has a query */
    mt_ask_vectors vectors;          /* what is wanted of texts without a query */
    size_t query_count;              /* distinct queries: 1, or one for each prompt */
    const char *text_field;          /* the field of the body that has the prompts */
    int64_t max_query, max_document; /* most tokens of a query and of a text that are used; 0: all */
    int64_t context;                 /* most tokens of a text to embed; 0: as many as the model takes */
    int64_t dimensions;              /* numbers of an embedding; 0: all */

    /* Without what depends on the model: its end tokens, and allowed_ids and bad_words as tokens. */
    mt_sample_settings sampling;
    bool seeded;
    int64_t max_tokens;         /* -1: not given */
    int64_t default_max_tokens; /* 0: all that the context leaves */
    int64_t repeat_limit;       /* an answer that repeats itself for so many tokens is ended; 0: never */
    uint32_t *allowed_ids;      /* the only tokens that may be chosen; NULL: all */
    size_t allowed_id_count;
    const json_t *bad_words; /* a list of strings that are not empty; NULL: none */
    mt_stop_string *stops;
    size_t stop_count;
    /* Tokens of a prompt that are kept; MT_TRUNCATE_FIT: as many as fit; MT_TRUNCATE_NONE: all */
    int64_t truncate;
    mt_truncation_side side; /* which end is cut */
} mt_ask;

void mt_ask_init(mt_ask *ask, mt_arena *arena, const json_t *body, const mt_ask_defaults *defaults);
void mt_ask_free(mt_ask *ask); /* frees what does not lie in the arena */

/* Most tokens of thinking; -1: any number. by_template: the template itself makes something of the effort. */
int64_t mt_ask_budget(const mt_ask *ask, bool by_template);

/* Owns json from here on, until mt_ask_free. Returns it. */
const json_t *mt_ask_own(mt_ask *ask, json_t *json);

/* Notes in ask->ignored that a field or a thing of that name is ignored: once each, as far as there is space. Where
   there is none, "..." stands for the rest. */
void mt_ask_ignore(mt_ask *ask, const char *type);

#endif
