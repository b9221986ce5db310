/* The one engine: a thread that owns the model, the encoders, the cache and every sequence, and takes all requests
   through one step after the other. Always batching, nothing else. See engine.c. */
#ifndef MT_ENGINE_ENGINE_H
#define MT_ENGINE_ENGINE_H

#include "engine/draft.h"
#include "engine/encoder.h"
#include "engine/opened.h"
#include "engine/places.h"
#include "engine/request.h"
#include "engine/rota.h"
#include "engine/stats.h"
#include "engine/voices.h"
#include "events/kv_events.h"
#include "models/vision.h"
#include "text/tokenizer.h"
#include "tier/tiers.h"

typedef struct mt_engine mt_engine;

#define MT_ENGINE_CHOOSE UINT64_MAX

typedef struct mt_engine_params {
    size_t sequences; /* most that run side by side */
    size_t queue;     /* most choices that wait */
    size_t rows;      /* most rows of a step */
    size_t context;   /* most positions of a sequence; 0: what the model allows */
    uint64_t memory;  /* bytes for weights, cache and working memory together; 0: what the device has, less a reserve */
    uint64_t
        host_memory; /* bytes of the host's where the device has its own; 0: what the machine has, less a reserve */
    uint64_t constraints; /* bytes of it for constraints, masks among them; 0: no request has one */
    uint64_t masks;       /* bytes of those for masks */
    size_t cache;         /* positions of the cache; 0: what memory leaves */
    uint64_t state_cache; /* bytes for recurrent states that nobody runs with; 0: a part of what memory leaves */
    double renew_ms;      /* before a device that could not be opened anew is tried once more */
    double turn_ms;       /* that a seat is kept, once its sequence answers, though clients with fewer want it */
    double step_ms;       /* what a step with running answers may take; 0: what schedule.h says */
    double slow_seconds;  /* a step that takes longer is named in the log; 0: none is */
    uint64_t media_cache; /* bytes of it for features of pictures; 0: an eighth of what weights leave */
    uint64_t requests; /* bytes of it for requests that others read and keep; 0: none, MT_ENGINE_CHOOSE: a part of it */
    uint64_t besides;  /* bytes of it that others have taken and not touched yet */
    uint64_t pictures; /* bytes of it for pixels of a model that sees; 0: none, MT_ENGINE_CHOOSE: a part of it */
    uint64_t host_cache;  /* bytes of the host's for what the device has no room for; 0: none, MT_ENGINE_CHOOSE: what is
                            left of them where the device has its own */
    mt_disk *disk;        /* where what is computed is kept, too; borrowed; NULL: nowhere */
    mt_depot *remote;     /* where others find it, and this one what they have computed; likewise */
    uint8_t identity[32]; /* of the weights, by which it is found there */
    mt_kv_events *events; /* who is told of what the cache has; borrowed; NULL: nobody */
    bool shares;          /* other engines are in the process: memory is for what this one has, and nothing else */
    int64_t held;         /* mt_alloc_held before its model was opened, where it shares */
    uint64_t *need; /* where it shares: set to the least that memory must be, whether it starts or not; NULL: unasked */
    mt_rota *rota;  /* turns that it takes for its steps; borrowed; NULL: the device is its own */
    mt_voices *voices;     /* where it records what it does, which others may do too; borrowed; NULL: one of its own */
    size_t model;          /* its number there */
    const mt_tower *tower; /* instead of the model's, for tests */
    const mt_encoder *const *encoders; /* that requests may name, from 1 on; they are borrowed, the list is not */
    size_t encoder_count;
    void (*turn)(void *ctx, bool begins); /* before and after each step, for tests; NULL: nobody waits */
    void *turn_ctx;
    size_t chunk; /* most prompt positions of a sequence in a step, for tests; 0: what fits */
    bool canary;  /* for debugging: what is free is NaN, and it is checked that nobody has written there */
    mt_speculation speculate;
    size_t draft;   /* most tokens guessed ahead, at most MT_LIMIT_DRAFT */
    bool keep_all;  /* what a tier has is taken from there, whatever that costs, for tests */
    bool draft_all; /* all guesses are tried, whatever they cost, for tests */
} mt_engine_params;

void mt_engine_params_init(mt_engine_params *params);

/* What params->memory comes to on this device. */
uint64_t mt_engine_memory(const mt_engine_params *params, const mt_device *dev);
uint64_t mt_engine_host_memory(const mt_engine_params *params, const mt_device *dev);

/* Loads the model of an opened checkpoint and starts the thread. Borrows all it is given; tokenizer may be NULL: then
   events have no text. Where nothing but a device is opened, there are encoders only. NULL with a sentence that says
   what to change. Free with mt_engine_stop. */
mt_engine *mt_engine_start(mt_opened *opened, const mt_tokenizer *tokenizer, const mt_engine_params *params,
                           mt_error *err) MT_NODISCARD;

/* Cancels what is left and waits for the thread: from here on nothing is counted any more, and no request is taken.
   NULL is fine. */
void mt_engine_halt(mt_engine *engine);
void mt_engine_stop(mt_engine *engine); /* the same, and frees everything */

/* ---- from any thread ---- */

/* Takes the request on success; its events begin at once, perhaps before this returns. MT_E_BUSY when there is no
   place for it, MT_E_TOO_LARGE when it can never fit; then it is the caller's still. Where it names an encoder, its
   tokens must be within that one's vocabulary and context, and it must pool by score where the encoder scores and
   nowhere else. */
bool mt_engine_submit(mt_engine *engine, mt_request *request, mt_error *err) MT_NODISCARD;

/* Where those who submit several requests for an encoder, or the model (0), take places for them: all at once, or fewer
   than there are requests. */
mt_places *mt_engine_places(mt_engine *engine, size_t encoder);

/* Wakes the engine after a change of cancelled or paused. NULL, an engine that has ended, is fine. */
void mt_engine_poke(mt_engine *engine);

/* When the turn that it is at began, as mt_clock_ns tells it; 0: it waits for something to do. */
uint64_t mt_engine_turn(const mt_engine *engine);

size_t mt_engine_context(const mt_engine *engine); /* most positions of a sequence */

/* What has happened so far, and what is: to the model, and to an encoder. */
void mt_engine_stats(mt_engine *engine, mt_stats *out);
mt_encoder_stats mt_engine_encoder_stats(mt_engine *engine, size_t encoder);

/* What it did in the last hour; lives as long as the engine. */
mt_voices *mt_engine_voices(mt_engine *engine);

typedef enum mt_phase { MT_PHASE_WAITING, MT_PHASE_ENCODE, MT_PHASE_PREFILL, MT_PHASE_DECODE } mt_phase;

typedef struct mt_engine_row {
    char name[64];
    uint64_t client;
    uint32_t choice;
    mt_phase phase;
    size_t prompt_tokens, cached, computed, tokens;
    double seconds; /* since it was received */
} mt_engine_row;

/* What a step does for a choice. */
typedef struct mt_engine_part {
    char name[64];
    uint32_t choice;
    size_t rows, computed; /* of this step, and before it */
} mt_engine_part;

/* The step that runs. */
typedef struct mt_engine_batch {
    uint64_t began;       /* mt_clock_ns; 0: none runs */
    size_t rows, parts;   /* of all */
    size_t jobs;          /* that have a slice of it: pictures, texts of encoders */
    mt_engine_part *part; /* up to as many as were asked for, and as there are */
} mt_engine_batch;

/* Fills out->part, which has room for `most`. May be asked while the step hangs. */
void mt_engine_look(mt_engine *engine, mt_engine_batch *out, size_t most);

/* "512 rows of 3 answers: chatcmpl-1 510 behind 64, ...", of what has room for MT_LIMIT_STEP_NAMED parts. */
void mt_engine_batch_name(const mt_engine_batch *batch, char *out, size_t size);

/* Up to `most` choices that wait or run, of one client (NULL: of all), the oldest first; returns how many there are. */
size_t mt_engine_list(mt_engine *engine, const mt_client *client, mt_engine_row *rows, size_t most);

#endif
