/* The engine: one thread that owns the model, the encoders, the cache and every sequence, and computes all requests
   together, one step after the other. src/server submits requests to it. See engine.c. */
#ifndef MT_ENGINE_ENGINE_H
#define MT_ENGINE_ENGINE_H

#include "engine/draft.h"
#include "engine/encoder.h"
#include "engine/limits.h"
#include "engine/opened.h"
#include "engine/places.h"
#include "engine/request.h"
#include "engine/rota.h"
#include "engine/stats.h"
#include "engine/voices.h"
#include "events/kv_events.h"
#include "models/vision.h"
#include "sample/limits.h"
#include "text/tokenizer.h"
#include "tier/tiers.h"

typedef struct mt_engine mt_engine;

#define MT_ENGINE_CHOOSE UINT64_MAX /* as a number of bytes in mt_engine_params: the engine chooses */

/* Whether the next step is begun while one runs (ahead.c): as the device has it, or always, or never. */
typedef enum mt_ahead { MT_AHEAD_DEVICE, MT_AHEAD_ALWAYS, MT_AHEAD_NEVER } mt_ahead;

typedef struct mt_engine_params {
    size_t sequences; /* most that run side by side: the seats */
    size_t queue;     /* most choices that wait beside those that run */
    size_t rows;      /* most rows of a step */
    size_t context;   /* most positions of a sequence; 0: what the model allows */
    /* bytes of the device for weights, cache and working memory together; 0: what the device has, less a reserve */
    uint64_t memory;
    /* bytes of the host where the device has memory of its own; 0: what the machine has, less a reserve */
    uint64_t host_memory;
    uint64_t constraints; /* bytes of `memory`, or of the host's, for compiled constraints and their token masks */
    uint64_t masks;       /* bytes of `constraints` for token masks */
    size_t cache;         /* positions of the prefix cache; 0: what memory leaves */
    /* bytes for recurrent states that no running sequence holds; 0: a part of what memory leaves */
    uint64_t state_cache;
    double renew_ms;      /* how long to wait before a device that could not be reopened is tried again */
    double turn_ms;       /* how long a sequence that answers keeps its seat though clients with fewer seats wait */
    double step_ms;       /* longest step while answers run; 0: see MT_STEP_SECONDS in schedule.h */
    double slow_seconds;  /* a step that takes longer is logged with its requests; 0: none is */
    uint64_t media_cache; /* bytes of `memory` for features of pictures; 0: an eighth of what weights leave */
    /* bytes of `memory` that the server uses for request bodies; 0: none, MT_ENGINE_CHOOSE: a part of it */
    uint64_t requests;
    /* bytes of `memory` that are promised to others but not yet touched, so the system does not count them */
    uint64_t besides;
    /* bytes of `memory` for decoded pixels, where the model takes pictures; 0: none, MT_ENGINE_CHOOSE: a part of it */
    uint64_t pictures;
    /* bytes of the host's memory for the host store, a cache tier below a device with memory of its own; 0: none,
       MT_ENGINE_CHOOSE: what host_memory leaves */
    uint64_t host_cache;
    mt_disk *disk;           /* cache tier on disk; borrowed; NULL: none */
    mt_remote_store *remote; /* cache tier on the network, shared with other servers; borrowed; NULL: none */
    uint8_t identity[32];    /* digest of the weights: part of every key in the tiers */
    mt_kv_events *events;    /* told what the cache gains and loses, for routers; borrowed; NULL: no router wants it */
    /* other engines run in this process: then `memory` bounds what this engine allocates, not the process */
    bool shares;
    int64_t held; /* where `shares`: mt_alloc_held() before this engine's model was opened */
    /* where `shares`: set to the least that `memory` must be, whether the engine starts or not; NULL: not wanted */
    uint64_t *need;
    mt_rota *rota; /* turns on a device that several engines share; borrowed; NULL: the device is this engine's alone */
    /* the dashboard's recorder, which several engines may share; borrowed; NULL: the engine makes one */
    mt_voices *voices;
    size_t model;          /* this engine's number in `voices` */
    const mt_tower *tower; /* for tests: replaces the model's vision tower */
    /* encoders that requests name by number, from 1 on; the encoders are borrowed, the list is copied */
    const mt_encoder *const *encoders;
    size_t encoder_count;
    void (*turn)(void *ctx, bool begins); /* for tests: called before and after each step; NULL: nothing is called */
    void *turn_ctx;
    size_t chunk; /* for tests: most prompt positions of a sequence in a step; 0: what fits */
    bool canary;  /* for debugging: free cache memory is NaN, and writes to it are detected (canary.c) */
    mt_speculation speculate;
    size_t draft;   /* most tokens that are guessed ahead, at most MT_LIMIT_DRAFT */
    bool keep_all;  /* for tests: what a tier has is always read from there, even where computing it would be faster */
    bool draft_all; /* for tests: every guess is tried, even where it is not expected to pay */
    mt_ahead ahead; /* other than MT_AHEAD_DEVICE for tests */
} mt_engine_params;

void mt_engine_params_init(mt_engine_params *params);

/* The bytes that params->memory and params->host_memory stand for on this device. */
uint64_t mt_engine_memory(const mt_engine_params *params, const mt_device *dev);
uint64_t mt_engine_host_memory(const mt_engine_params *params, const mt_device *dev);

/* How much of `bytes` is for large requests: one part of so many, or up to two where that is too little for one. */
uint64_t mt_engine_requests(uint64_t bytes, uint64_t parts);

/* Loads the model of an opened checkpoint and starts the thread. All that is passed is borrowed until mt_engine_stop.
   tokenizer may be NULL: then events have no text. Where `opened` has a device but no checkpoint, the engine runs
   encoders only. NULL on failure, with a sentence that says what to change. Free with mt_engine_stop. */
mt_engine *mt_engine_start(mt_opened *opened, const mt_tokenizer *tokenizer, const mt_engine_params *params,
                           mt_error *err) MT_NODISCARD;

/* Cancels all requests and joins the thread. Counters no longer change afterwards, and requests are refused. NULL is
   fine. */
void mt_engine_halt(mt_engine *engine);
void mt_engine_stop(mt_engine *engine); /* halts, then frees everything */

/* ---- from any thread ---- */

/* On success the engine owns the request; its events may begin before this returns. MT_E_BUSY where it has no place
   left, MT_E_TOO_LARGE where the request can never fit; then the caller still owns it. A request for an encoder must
   have tokens of that encoder's vocabulary, fit its context, and use MT_POOL_CLASSES exactly where the
   encoder has a classifier. */
bool mt_engine_submit(mt_engine *engine, mt_request *request, mt_error *err) MT_NODISCARD;

/* The places of an encoder, or of the model (0), for callers that take places for several requests at once and set
   mt_request.placed. */
mt_places *mt_engine_places(mt_engine *engine, size_t encoder);

/* Wakes the engine after mt_request.cancelled or paused was changed. NULL is fine, and so is a halted engine. */
void mt_engine_poke(mt_engine *engine);

/* Has the engine forget what is cached and no request holds, in memory and in the host's: requests that are submitted
   after this find nothing of it. Disk and remote store are not the engine's own. */
void mt_engine_reset(mt_engine *engine);

/* mt_clock_ns when the thread began the turn of its loop that it is in; 0: it waits for work. */
uint64_t mt_engine_turn(const mt_engine *engine);

size_t mt_engine_context(const mt_engine *engine); /* most positions of a sequence */

uint32_t mt_engine_fingerprint(const mt_engine *engine); /* that of its device (R12 of docs/numerics.md) */

/* Copies of the counters: of the model, and of an encoder (from 1 on). */
void mt_engine_stats(mt_engine *engine, mt_stats *out);
uint64_t mt_engine_used(mt_engine *engine); /* bytes: weights, working memory, what of the cache holds something */
mt_encoder_stats mt_engine_encoder_stats(mt_engine *engine, size_t encoder);

/* The recorder of the last hour; lives as long as the engine. */
mt_voices *mt_engine_voices(mt_engine *engine);

/* A choice as mt_engine_list shows it. */
typedef enum mt_phase { MT_PHASE_WAITING, MT_PHASE_ENCODE, MT_PHASE_PREFILL, MT_PHASE_DECODE } mt_phase;

typedef struct mt_engine_row {
    char name[64];        /* of the request, as clients know it */
    uint64_t client;      /* mt_client.id */
    uint32_t choice;      /* number of the choice within its request */
    mt_phase phase;       /* what it does or waits for */
    size_t prompt_tokens; /* of these `cached` came from the cache */
    size_t cached;
    size_t computed; /* positions of prompt and answer that are in the cache or were computed */
    size_t tokens;   /* of the answer so far */
    double seconds;  /* since the request was received */
} mt_engine_row;

/* One choice's part of the step under way. */
typedef struct mt_engine_part {
    char name[64];
    uint32_t choice;
    size_t rows, computed; /* its rows in this step; positions computed before it */
} mt_engine_part;

/* The step under way. */
typedef struct mt_engine_batch {
    uint64_t began;       /* mt_clock_ns; 0: no step runs */
    size_t rows, parts;   /* of the whole step */
    size_t jobs;          /* jobs that have a slice in it: pictures, texts of encoders */
    mt_engine_part *part; /* the first of the parts, up to the number that was asked for */
} mt_engine_batch;

/* Describes the step under way; out->part has room for `most`. Works from any thread, also while a step hangs. */
void mt_engine_look(mt_engine *engine, mt_engine_batch *out, size_t most);

/* Writes "512 rows of 3 answers: chatcmpl-1 510 behind 64, ..." for the log. batch->part has room for
   MT_LIMIT_STEP_NAMED parts. */
void mt_engine_batch_name(const mt_engine_batch *batch, char *out, size_t size);

/* Lists up to `most` choices that wait or run, of one client (NULL: of all), the oldest first. Returns how many there
   are in all. */
size_t mt_engine_list(mt_engine *engine, const mt_client *client, mt_engine_row *rows, size_t most);

#endif
