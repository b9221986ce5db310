/* What a call asks for, whatever dialect it came in. Values a call leaves out are those the ask was initialised with:
   the model's and the operator's defaults. */
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

/* What an operator or the model's generation_config.json sets for calls that say nothing. */
typedef struct mt_ask_defaults {
    mt_sample_settings sampling;
    int64_t max_tokens;   /* 0: what the context leaves */
    int64_t repeat_limit; /* 0: none */
} mt_ask_defaults;

void mt_ask_defaults_init(mt_ask_defaults *defaults); /* plain sampling at temperature 1 */

/* What is cut of a prompt that is too long, where a call allows it. */
typedef enum mt_truncation_side { MT_TRUNCATE_DEFAULT, MT_TRUNCATE_LEFT, MT_TRUNCATE_RIGHT } mt_truncation_side;
enum { MT_TRUNCATE_NONE = -2, MT_TRUNCATE_FIT = -1 };

/* What a model makes of its last numbers by itself: embeddings are scaled to length 1, scores are between 0 and 1. */
typedef enum mt_scaling { MT_SCALING_DEFAULT, MT_SCALING_ON, MT_SCALING_OFF } mt_scaling;

typedef struct mt_ask_prompt {
    mt_chat_text query; /* that it is scored for; data is NULL elsewhere */
    mt_chat_text text;  /* data is NULL where it is token ids */
    const uint32_t *ids;
    size_t count;
} mt_ask_prompt;

/* Lives in the arena, and borrows from the body. */
typedef struct mt_ask {
    mt_arena *arena;        /* borrowed */
    const json_t *body;     /* borrowed until the ask is done with */
    json_t *owned;          /* a list of what else it borrows from; NULL: nothing */
    json_t *extra;          /* what the dialect wants to know again when it answers; the ask's reference, or NULL */
    struct mt_store *store; /* of answers that may be referred to; borrowed; NULL: none */
    json_t *schema;         /* that was sent as text; a reference of its own, or NULL */
    char ignored[200];      /* what it brings that is not looked at, for a line in the log; "" where nothing is */

    const char *model, *user, *cache_salt; /* NULL: not given */
    bool stream, include_usage;
    bool continuous_usage; /* every chunk tells how much was used until then */
    bool background;       /* the client does not wait for it: it asks later */
    bool timings;          /* the answer tells how long it took */
    bool return_token_ids;
    bool tokens_as_ids; /* tokens in logprobs are spelled "token_id:7" */
    bool add_special_tokens;
    bool echo;
    bool skip_special_tokens, include_stop;
    bool include_reasoning;
    int64_t n, priority;
    double
        keep_alive; /* seconds that the model stays loaded afterwards; below 0: for ever; NaN: as the server has it */

    mt_chat_text prediction; /* what the answer may well be; data is NULL where nothing is expected */

    mt_source source;         /* what the content has to look like */
    const char *source_field; /* where it says so */
    mt_shape_calls calls;     /* whether tools are called */
    json_t *call_names;       /* an object with those of the only ones that may be; the ask's reference; NULL: all */
    bool parallel_calls;
    bool old_calls; /* tools came as functions, and a call goes out as one of these */
    bool is_chat;   /* it has a chat; else prompts has what to complete */
    mt_chat chat;
    bool forgets;        /* of a chat that does not fit, the oldest messages are left out */
    const char *nothing; /* there is nothing to compute: the model is to "load" or to "unload"; NULL: there is */
    mt_ask_prompt *prompts;
    size_t prompt_count;

    bool vectors;       /* what is asked for are embeddings of the prompts, or scores; such an ask is never streamed */
    bool scores;        /* of them, these: each prompt has a query */
    size_t query_count; /* one for all prompts, or as many as there are */
    const char *text_field;          /* where the prompts stand in the body */
    int64_t max_query, max_document; /* tokens of the two that are looked at; 0: all */
    mt_scaling scaling;
    int64_t dimensions; /* of an embedding; 0: all */

    mt_sample_settings
        sampling; /* but what only the model knows: its ends, and allowed_ids and bad_words as it has them */
    bool seeded;
    int64_t max_tokens;         /* -1 when not given */
    int64_t prompt_logprobs;    /* as sampling.logprobs, of the prompt's tokens */
    int64_t default_max_tokens; /* 0: what the context leaves */
    int64_t repeat_limit;       /* tokens of an answer that goes in circles; 0: it may */
    uint32_t *allowed_ids;      /* the only tokens that may be chosen; NULL: all */
    size_t allowed_id_count;
    const json_t *bad_words; /* a list of strings, none of them empty; NULL: none */
    mt_stop_string *stops;
    size_t stop_count;
    int64_t truncate; /* how many tokens of a prompt are kept; MT_TRUNCATE_FIT: what fits; MT_TRUNCATE_NONE: all */
    mt_truncation_side side; /* that is cut */
} mt_ask;

void mt_ask_init(mt_ask *ask, mt_arena *arena, const json_t *body, const mt_ask_defaults *defaults);
void mt_ask_free(mt_ask *ask); /* what does not lie in the arena */

/* Keeps JSON until the ask is done with; takes it, and returns it. */
const json_t *mt_ask_own(mt_ask *ask, json_t *json);

/* Something of that type is not looked at; each is noted once, as far as there is room. */
void mt_ask_ignore(mt_ask *ask, const char *type);

#endif
