/* The waist of the program: what to compute, and the events that come out. Text and protocol lie above, numbers
   below. */
#ifndef MT_ENGINE_REQUEST_H
#define MT_ENGINE_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "cache/tree.h"
#include "engine/clients.h"
#include "engine/sight.h"
#include "sample/constraint/constraint.h"
#include "sample/logprobs.h"
#include "sample/settings.h"
#include "text/stop.h"

typedef enum mt_finish {
    MT_FINISH_STOP,   /* an end of the model's, a stop id or a stop string */
    MT_FINISH_LENGTH, /* max_tokens, the end of the context, or repeat_limit */
    MT_FINISH_CANCELLED,
    MT_FINISH_ERROR
} mt_finish;

/* What becomes of the prompt's final hidden states where vectors are wanted instead of tokens. */
typedef enum mt_pool {
    MT_POOL_NONE, /* tokens are wanted */
    MT_POOL_LAST,
    MT_POOL_FIRST,
    MT_POOL_MEAN, /* summed in the order of positions, in fp32 */
    MT_POOL_SCORE /* of a cross-encoder: what its classifier makes of a pair of texts */
} mt_pool;

typedef enum mt_event_kind {
    MT_EVENT_BEGUN,  /* once a choice: it has its place; cached is known */
    MT_EVENT_PROMPT, /* where prompt_logprobs is set: once a prompt position, in order */
    MT_EVENT_TOKEN,  /* a generated token; text is what has become certain with it, and may be empty */
    MT_EVENT_DONE    /* the last of a choice; text is what was held back until then */
} mt_event_kind;

/* Valid during the call only. */
typedef struct mt_event {
    mt_event_kind kind;
    uint32_t choice;
    uint32_t token;        /* of PROMPT and TOKEN */
    bool has_logprob;      /* the first prompt position has none */
    float logprob;         /* of token */
    const mt_logprob *top; /* highest first */
    size_t top_count;
    const char *text; /* whole characters */
    size_t text_len;
    mt_finish finish;             /* of DONE */
    const mt_error *error;        /* of DONE with MT_FINISH_ERROR */
    const char *stop;             /* of DONE: the stop string that was met, NUL-terminated; NULL for none */
    uint32_t stop_token;          /* of DONE: the id that ended it; MT_TOKEN_NONE for none */
    bool repeated;                /* of DONE with MT_FINISH_LENGTH: it went in circles */
    size_t cached;                /* of BEGUN and DONE: prompt tokens that were not computed */
    size_t prompt_tokens, tokens; /* of DONE */
    uint64_t waited, spoke;       /* of DONE: ns from its coming to its first token, and from there to its last */
    size_t guessed, taken;        /* of DONE: tokens that were guessed ahead, and those of them that came */
    const float *vector;          /* of DONE, where the request pools and has finished; NULL elsewhere */
    size_t vector_len;
    bool last; /* of DONE: no event of any choice will follow, and the request is about to go */
} mt_event;

struct mt_request {
    /* Everything below lives in it. The engine frees it after the last event. */
    mt_arena *arena;
    uint64_t id;
    const char *name; /* as clients know it: "chatcmpl-..." */

    const uint32_t *prompt; /* at least one token, all within the vocabulary */
    size_t prompt_len;
    const uint32_t *cuts; /* ascending positions where turns begin; later requests may continue there */
    size_t cut_count;
    const uint32_t *expected; /* what the answer may well be: the better it is, the sooner the answer is there */
    size_t expected_count;
    const mt_picture *pictures; /* in the order of the prompt; they and their patches live as long as the arena */
    size_t picture_count;
    const mt_media_span *spans; /* where their features stand in the prompt: ascending, all rows of each in order */
    size_t span_count;
    uint8_t salt[32];      /* requests share what is cached only with those of the same; zeros: none */
    const char *salt_name; /* what others call it, where it comes from nothing else; NULL: nothing */

    mt_pool
        pool; /* where it is not MT_POOL_NONE, nothing is generated, there is one choice, and DONE brings a vector */
    size_t encoder; /* of the engine's, from 1 on, that does so; 0: the model */
    size_t second;  /* where the second text of a pair begins, for encoders that tell them apart; 0: there is none */

    mt_sample_settings sampling;
    mt_constraint *constraint;          /* that every answer follows; the arena holds a reference; NULL: none */
    uint32_t choices;                   /* at least 1: answers to the one prompt, numbered from 0 */
    size_t max_tokens;                  /* of each; clamped to what the context leaves */
    uint32_t repeat_limit;              /* tokens of an answer that goes in circles, after which it ends; 0: none */
    const mt_stop *stop;                /* NULL: no stop strings */
    const mt_stop_string *stop_strings; /* what it was made of, each NUL-terminated */
    bool skip_special;                  /* special tokens give no text */
    bool include_stop;                  /* text of a stop string that was met comes out */
    bool prompt_logprobs;               /* an event for each prompt position; nothing is taken from the cache then */
    int prompt_top;                     /* likeliest tokens of each of them */
    int32_t priority;                   /* lower comes first, as in vLLM */
    mt_client client;                   /* requests of one client share its part of the machine */
    uint64_t received;                  /* mt_clock_ns when it came in; 0: at submission */

    bool placed; /* on places that who submits it has taken, and gives back; else it takes its own, until it ends */

    /* Called on the engine's thread, between steps. Must return at once and never block. */
    void (*event)(void *ctx, const mt_event *event);
    void *ctx;

    atomic_bool cancelled; /* set by anybody, at any time before the last event */
    atomic_bool paused;    /* while set, nothing more is generated: its reader is slow */

    /* the engine's own */
    mt_guest *guest;               /* whose it is */
    struct mt_sequence *sequences; /* [choices] */
    struct mt_voice *voice;        /* where it names an encoder; else its sequences have theirs */
    mt_sight *sights;              /* the pictures in parts */
    size_t sight_count;
    mt_figure *figures; /* where they stand in the prompt, for the cache */
    size_t figure_count;
    float *vector; /* what it pools */
    size_t vector_len;
    uint32_t live;  /* of them that have not ended */
    uint64_t order; /* of arrival */
};

/* A zeroed request in an arena of its own, with default settings and one choice. */
mt_request *mt_request_new(void);
void mt_request_free(mt_request *request); /* of one that was never submitted; NULL is fine */

const char *mt_finish_name(mt_finish finish); /* "stop", "length", "cancelled", "error" */

#endif
