/* A request to the engine, and the events that answer it: the one interface between the engine and all that speaks to
   clients. Nothing here knows of text formats or protocols (src/chat, src/api), nor of how numbers are computed
   (src/models). */
#ifndef MT_ENGINE_REQUEST_H
#define MT_ENGINE_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "engine/clients.h"
#include "sample/logprobs.h"
#include "sample/settings.h"
#include "text/stop.h"

typedef struct mt_constraint mt_constraint;     /* constraint/constraint.h */
typedef struct mt_figure mt_figure;             /* cache/text.h */
typedef struct mt_media_span mt_media_span;     /* models/picture.h */
typedef struct mt_picture mt_picture;           /* models/picture.h */
typedef struct mt_media_part mt_media_part;     /* engine/media_parts.h */
typedef struct mt_thought_rule mt_thought_rule; /* sample/thought.h */

typedef struct mt_request mt_request;

typedef enum mt_finish {
    MT_FINISH_STOP,   /* a token that ends the model's turn, a stop id or a stop string */
    MT_FINISH_LENGTH, /* max_tokens, the end of the context, or repeat_limit was reached */
    /* the caller set mt_request.cancelled */
    MT_FINISH_CANCELLED,
    MT_FINISH_ERROR
} mt_finish;

/* How the final hidden states of the prompt become one vector, where a request wants a vector instead of tokens. */
typedef enum mt_pool {
    MT_POOL_NONE,  /* no vector: the request generates tokens */
    MT_POOL_LAST,  /* the state of the last position */
    MT_POOL_FIRST, /* the state of the first position */
    MT_POOL_MEAN,  /* the mean over all positions, summed in their order in fp32 */
    MT_POOL_EACH,  /* the states of all positions, one behind the other */
    /* for encoders with a classifier: what it gives to a text, or to a pair of texts, one number a label */
    MT_POOL_CLASSES
} mt_pool;

typedef enum mt_event_kind {
    MT_EVENT_BEGUN,  /* once a choice, when it begins to run; `cached` is set */
    MT_EVENT_PROMPT, /* once a prompt position, in order; only where prompt_logprobs is set */
    MT_EVENT_TOKEN,  /* a generated token; `text` is the text that became certain with it, and may be empty */
    MT_EVENT_DONE    /* the last event of a choice; `text` is what was held back until the end */
} mt_event_kind;

/* The argument of mt_request.event. The event and all it points to are valid during that call only. A comment that
   begins with "of DONE" names the only kind of event in which the field is set. */
typedef struct mt_event {
    mt_event_kind kind;
    uint32_t choice;
    uint32_t token;        /* of PROMPT and TOKEN */
    bool has_logprob;      /* the first prompt position has none */
    float logprob;         /* of token */
    size_t rank;           /* of PROMPT: the token's place among all by their logprobs, from 1; 0: it has none */
    const mt_logprob *top; /* the likeliest tokens at this position, highest first */
    size_t top_count;
    const char *text; /* whole UTF-8 characters, not NUL-terminated */
    size_t text_len;
    mt_finish finish;             /* of DONE */
    const mt_error *error;        /* of DONE with MT_FINISH_ERROR */
    mt_stop_string stop;          /* of DONE: the stop string that was met; its str is NULL for none */
    uint32_t stop_token;          /* of DONE: the token id that ended the answer; MT_TOKEN_NONE for none */
    bool repeated;                /* of DONE with MT_FINISH_LENGTH: repeat_limit ended the answer */
    size_t cached;                /* of BEGUN and DONE: prompt tokens that came from the cache */
    size_t prompt_tokens, tokens; /* of DONE */
    uint64_t waited, spoke; /* of DONE: ns from receipt to the first token, and from the first token to the last */
    size_t guessed, taken;  /* of DONE: tokens that were guessed ahead, and how many of the guesses were right */
    const float
        *vector; /* of DONE with MT_FINISH_STOP where the request pools: the vector, or the vectors; else NULL */
    size_t vector_len;
    bool ending; /* of TOKEN: the choice's DONE follows within the same step */
    bool last;   /* of DONE: no event of any choice follows, and the request is freed after this call */
} mt_event;

struct mt_request {
    /* Owns the memory of the request and of all it points to. The engine frees it after the last event. */
    mt_arena *arena;
    const char *name; /* as clients know the request: "chatcmpl-..." */

    const uint32_t *prompt; /* at least one token, all within the vocabulary */
    size_t prompt_len;
    const uint32_t *cuts; /* ascending positions where turns begin; later requests may continue there */
    size_t cut_count;
    const uint32_t *expected; /* a guess at the answer (predicted outputs): where it is right, tokens come faster */
    size_t expected_count;
    const mt_picture *pictures; /* in the order of the prompt; they and their patches live in the arena */
    size_t picture_count;
    /* where the pictures' features stand in the prompt: ascending, all rows of each picture in order */
    const mt_media_span *spans;
    size_t span_count;
    uint8_t salt[32]; /* cached pages are shared only between requests with the same salt; zeros: no salt */
    /* the name of the salt in events for routers, where the salt comes from that name alone; else NULL */
    const char *salt_name;

    mt_pool pool;   /* not MT_POOL_NONE: nothing is generated, there is one choice, and DONE brings a vector */
    size_t encoder; /* number of the engine's encoder that computes the vector, from 1 on; 0: the model does */
    size_t second;  /* for encoders of text pairs: the position where the second text begins; 0: there is one text */

    mt_sample_settings sampling;     /* what it points to lives in the arena */
    mt_constraint *constraint;       /* a grammar that every answer follows; the arena holds a reference; NULL: none */
    const mt_thought_rule *thinking; /* limits how long each answer thinks; in the arena; NULL: nothing does */
    uint32_t choices;                /* how many answers to the one prompt are wanted, at least 1; numbered from 0 */
    size_t max_tokens;               /* of each choice; clamped to what the context leaves */
    uint32_t repeat_limit; /* an answer that repeats itself ends after so many repeated tokens (repeat.h); 0: never */
    const mt_stop *stop;   /* NULL: no stop strings */
    const mt_stop_string *stop_strings; /* the strings that `stop` was made of */
    bool skip_special;                  /* special tokens give no text */
    bool include_stop;                  /* the text of the stop string that ended the answer is part of the answer */
    bool prompt_logprobs;               /* an event for each prompt position; nothing is read from the cache then */
    int prompt_top;                     /* how many of the likeliest tokens each of those events has */
    int32_t priority;                   /* lower comes first, as in vLLM */
    mt_client client;                   /* the client of the request: the engine divides its time among clients */
    double spent;                       /* seconds of a processor that preparing it took, which its client owes */
    uint64_t received;                  /* mt_clock_ns when the request came in; 0: when it was submitted */

    /* The submitter has taken places (places.h) for this request and will give them back. Where false, the engine takes
       a place for each choice, and gives it back when the choice ends. */
    bool placed;

    /* Called on the engine's thread, between steps. Must return at once and never block. */
    void (*event)(void *ctx, const mt_event *event);
    void *ctx;

    atomic_bool cancelled; /* set by any thread, at any time before the last event */
    /* set by any thread: while true, no further token is generated, since the client reads too slowly */
    atomic_bool paused;

    /* set and used by the engine alone */
    mt_client_record *client_record; /* the engine's record of the request's client */
    struct mt_sequence *sequences;   /* one for each choice */
    struct mt_voice *voice;     /* the dashboard's record, where `encoder` is not 0; else each sequence has its own */
    mt_media_part *media_parts; /* the pictures, cut into parts that are encoded separately */
    size_t media_part_count;
    mt_figure *figures; /* where the pictures stand in the prompt, as the prefix tree needs it */
    size_t figure_count;
    float *vector; /* the result, where the request pools */
    size_t vector_len;
    uint32_t live;  /* choices that have not ended */
    uint64_t order; /* number of arrival: a lower one came earlier */
};

/* A zeroed request in an arena of its own, with default settings and one choice. */
mt_request *mt_request_new(void);
void mt_request_free(mt_request *request); /* for a request that was never submitted; NULL is fine */

const char *mt_finish_name(mt_finish finish); /* "stop", "length", "cancelled", "error" */

#endif
