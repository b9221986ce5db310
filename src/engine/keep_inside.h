/* What keep.c and the files beside it share: errands between the engine's thread and another one. */
#ifndef MT_ENGINE_KEEP_INSIDE_H
#define MT_ENGINE_KEEP_INSIDE_H

#include <pthread.h>

#include "engine/inside.h"
#include "engine/keep.h"

enum { MT_KEEP_STORES = 4, MT_KEEP_FETCHES = 8, MT_KEEP_STATES = 1, MT_KEEP_ASKS = 2 };
enum { MT_KEEP_ASK_FIRST = MT_KEEP_STORES + MT_KEEP_FETCHES + MT_KEEP_STATES };
enum { MT_KEEP_ERRANDS = MT_KEEP_ASK_FIRST + MT_KEEP_ASKS };
enum { MT_KEEP_VIEWS = 4, MT_KEEP_LOST = 8 };
#define MT_KEEP_ROWS 64      /* of features that are one record */
#define MT_KEEP_BACKLOG 4096 /* pages, states and pieces of features that wait to be stored, at most */

/* Kinds of records. */
enum { MT_KEEP_PAGE = 1, MT_KEEP_STATE = 2, MT_KEEP_FEATURES = 3, MT_KEEP_NOTHING = 0 };

typedef enum mt_errand_state {
    MT_ERRAND_FREE,
    MT_ERRAND_READING, /* the device gives what is to be stored */
    MT_ERRAND_GIVEN,   /* the thread's from here on, */
    MT_ERRAND_UNDER_WAY,
    MT_ERRAND_DONE,   /* to here */
    MT_ERRAND_SENDING /* the device takes what has come back */
} mt_errand_state;

/* Features of a part of a picture that come back. */
typedef struct mt_view {
    mt_medium *medium; /* held, and being filled; NULL: there is none */
    uint8_t digest[32], salt[32];
    const uint32_t *to;     /* its rows */
    size_t rows;            /* how many */
    size_t next, come, end; /* pieces: to be asked for, that have come, all */
} mt_view;

/* What is held until it is stored. */
typedef struct mt_held {
    uint32_t page[MT_KV_GROUPS], slot; /* MT_NO_PAGE: none */
    mt_medium *medium;                 /* of features; pinned; NULL: none */
    uint32_t first, rows;              /* of its rows */
} mt_held;

typedef struct mt_errand {
    mt_errand_state state; /* under the lock */
    bool store, ok;
    bool news;            /* of a page that is stored: the disk had it not */
    mt_tier tier;         /* where it comes from */
    bool far;             /* from a store on the network, which another thread waits for */
    uint64_t order, took; /* took: nanoseconds */
    uint8_t key[MT_TIER_KEY];
    uint32_t kind;
    mt_tier_part part[MT_TIER_PARTS];
    size_t parts;

    /* the engine's */
    uint8_t *room;                         /* for what comes back, and copies of what is stored */
    mt_sending *sending;                   /* of those that bring something back: whose memory the room is */
    mt_reading *reading[MT_KV_GROUPS + 1]; /* of those that store */
    mt_reading *features;                  /* likewise: of these rows */
    mt_tensor *rows;                       /* of those that carry features: copies of them */
    mt_held held;
    mt_sequence *s;               /* who waits for it; NULL: nobody any more */
    mt_view *view;                /* likewise */
    size_t at;                    /* the page, the state's position, or the piece of features */
    uint8_t (*keys)[MT_TIER_KEY]; /* of those that ask: what for, */
    size_t asked;                 /* and how many */
} mt_errand;

/* Something that waits to be stored. */
typedef struct mt_pending {
    uint8_t key[MT_TIER_KEY];
    mt_held held;
} mt_pending;

struct mt_keep {
    mt_tiers tiers;
    mt_pending *backlog; /* a ring */
    size_t backlog_first, backlog_count, backlog_most;
    uint8_t root[32]; /* digest of all that is the same for every request */
    size_t page_bytes[MT_KV_GROUPS], groups, all_bytes, state_bytes;
    size_t feature_bytes;       /* of MT_KEEP_ROWS rows; 0: the model sees nothing */
    double asking;              /* seconds that a store takes to say what it has; 0: not known */
    double pace[MT_TIER_COUNT]; /* seconds that a byte takes to come back; 0: not known */
    mt_errand errand[MT_KEEP_ERRANDS];
    mt_view view[MT_KEEP_VIEWS];
    uint8_t lost[MT_KEEP_LOST][32]; /* keys of features that did not come back: they are made anew */
    size_t losses;
    mt_keep_stats stats;
    mt_engine *engine;
    mt_engine *told; /* of what goes from the disk; NULL: nobody */
    void (*wake)(mt_engine *e);

    pthread_t thread[2]; /* the second is for what is far */
    size_t threads;
    pthread_mutex_t lock;
    pthread_cond_t given;
    uint64_t order;
    bool ending;
};

/* ---- keys: keep_key.c ---- */

/* Digests of the first `pages` whole pages of s, into s->kept. */
void mt_keep_seal(const mt_keep *k, mt_sequence *s, size_t pages);

/* Of the state after `position` positions, and of a piece of the features of a picture. */
void mt_keep_state_key(const mt_keep *k, mt_sequence *s, size_t position, uint8_t out[MT_TIER_KEY]);
void mt_keep_features_key(const mt_keep *k, const uint8_t digest[32], const uint8_t salt[32], size_t piece,
                          uint8_t out[MT_TIER_KEY]);

/* ---- errands: keep_errand.c ---- */

bool mt_errands_start(mt_keep *k, mt_error *err) MT_NODISCARD;
void mt_errands_stop(mt_keep *k); /* when all that were given are done */

/* One that is free, of `count` from `first` on; NULL: none is. */
mt_errand *mt_errand_free(mt_keep *k, size_t first, size_t count);
void mt_errand_give(mt_keep *k, mt_errand *x);
mt_errand_state mt_errand_look(mt_keep *k, const mt_errand *x);
void mt_errand_set(mt_keep *k, mt_errand *x, mt_errand_state state);

/* The one that was given first of those that bring something back and are in a state, less those that are done and wait
   for others; NULL: none. */
mt_errand *mt_errand_first(mt_keep *k, mt_errand_state state);

/* It is over, and lets go of what it held. */
void mt_errand_end(mt_engine *e, mt_errand *x);
void mt_held_init(mt_held *h);
void mt_held_release(mt_engine *e, mt_held *h);

/* ---- to the tier: keep_store.c ---- */

/* What s has computed since, and what was encoded of a picture, wait to be stored. */
void mt_keep_store(mt_engine *e, mt_sequence *s);

/* The next of those that wait are read from the device, and those that have been are given to the thread. */
void mt_keep_work_off(mt_engine *e);

/* Nothing waits any more; whether something did. */
bool mt_keep_shed(mt_engine *e);

/* Lets go of what has been stored; whether anything was. */
bool mt_keep_end_stores(mt_engine *e, bool *under_way);

/* ---- back: keep_fetch.c, keep_view.c ---- */

/* What something takes to come back, by where it is: nothing where it is nowhere. */
double mt_keep_time(const mt_keep *k, mt_tier tier, size_t bytes);

/* Whether it comes back in `back` seconds, sooner than it is made in `anew`. */
bool mt_keep_is_quicker(mt_keep *k, double back, double anew);

/* What an errand took to bring. */
void mt_keep_learn(mt_keep *k, const mt_errand *x);

/* Asks for what s waits for, as far as there is room. */
void mt_keep_fetch(mt_engine *e, mt_sequence *s);
void mt_keep_end_fetch(mt_engine *e, mt_sequence *s); /* nothing more comes for it */

/* An errand has brought something, or nothing, or the device has taken it. False where s must go back to the queue. */
bool mt_keep_receive(mt_engine *e, mt_errand *x);
bool mt_keep_received(mt_engine *e, mt_errand *x);

/* Asks what a store on the network has of the pages and states of s; whether s waits for the answer. When that has
   come: whether pages are to be looked for again, of who asked. keep_ask.c */
bool mt_keep_ask_pages(mt_engine *e, mt_sequence *s);
bool mt_keep_heard(mt_engine *e, mt_errand *x);

void mt_keep_fetch_views(mt_engine *e);
void mt_keep_receive_view(mt_engine *e, mt_errand *x);
void mt_keep_end_view(mt_engine *e, mt_view *v, bool whole);

#endif
