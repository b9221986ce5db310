/* Shared by keep.c and the files keep_*.c. A transfer moves one record to or from a tier: the engine's thread
   prepares it, a thread of its own performs it, and the engine's thread takes the result. */
#ifndef MT_ENGINE_KEEP_INSIDE_H
#define MT_ENGINE_KEEP_INSIDE_H

#include <pthread.h>

#include "engine/inside.h"
#include "engine/keep.h"

/* How many transfers there are of each kind. In mt_keep.transfer they stand in this order: those that store, that fetch
   pages or features, that fetch a state, that ask the remote store what it has. */
enum { MT_KEEP_STORES = 4, MT_KEEP_FETCHES = 8, MT_KEEP_STATES = 1, MT_KEEP_ASKS = 2 };
enum { MT_KEEP_ASK_FIRST = MT_KEEP_STORES + MT_KEEP_FETCHES + MT_KEEP_STATES };
enum { MT_KEEP_TRANSFERS = MT_KEEP_ASK_FIRST + MT_KEEP_ASKS };

/* Parts of pictures that are read at the same time; features whose loss is remembered. */
enum { MT_KEEP_VIEWS = 4, MT_KEEP_LOST = 8 };
#define MT_KEEP_ROWS 64      /* rows of features in one record */
#define MT_KEEP_BACKLOG 4096 /* most pages, states and pieces of features that wait to be stored */

/* Kinds of records; MT_KEEP_NOTHING: the transfer brings no record. */
enum { MT_KEEP_PAGE = 1, MT_KEEP_STATE = 2, MT_KEEP_FEATURES = 3, MT_KEEP_NOTHING = 0 };

typedef enum mt_keep_transfer_state {
    MT_KEEP_TRANSFER_FREE,
    MT_KEEP_TRANSFER_READING,   /* the device is copying what is to be stored */
    MT_KEEP_TRANSFER_GIVEN,     /* waits for the transfers' thread */
    MT_KEEP_TRANSFER_UNDER_WAY, /* that thread performs it */
    MT_KEEP_TRANSFER_DONE,      /* performed; the engine's thread takes the result */
    MT_KEEP_TRANSFER_SENDING    /* the device is copying what was read into its memory */
} mt_keep_transfer_state;

/* Features of one part of a picture that are being read from a tier, as pieces of MT_KEEP_ROWS rows. */
typedef struct mt_view {
    mt_medium *medium; /* the part's entry in the feature cache: held, and being filled; NULL: this view is free */
    uint8_t digest[32], salt[32];
    const uint32_t *to;     /* the rows of features where they go */
    size_t rows;            /* number of these rows */
    size_t next, come, end; /* pieces: the next to ask for; how many have come; how many there are */
} mt_view;

/* The pages and state that a record to be stored holds in the device's memory until it is written. */
typedef struct mt_held {
    uint32_t page[MT_KV_GROUPS], slot; /* pages of each group; slot of a recurrent state; MT_NO_PAGE: none */
    mt_medium *medium;                 /* for features: their entry in the feature cache, pinned; NULL: none */
    uint32_t first, rows;              /* which rows of that entry */
} mt_held;

typedef struct mt_keep_transfer {
    mt_keep_transfer_state state; /* changed under mt_keep.lock */
    /* whether it stores or fetches; whether that succeeded */
    bool store, ok;
    bool news;            /* of a page that was stored: the disk did not have it before */
    mt_tier tier;         /* where the record is fetched from */
    bool far;             /* it is fetched from the remote store, which the second thread does */
    uint64_t order, took; /* order: numbers transfers as they are given; took: nanoseconds */
    uint8_t key[MT_TIER_KEY];
    uint32_t kind;
    mt_tier_part part[MT_TIER_PARTS]; /* the pieces of memory that the record consists of */
    size_t parts;

    /* used by the engine's thread alone */
    uint8_t *room;       /* memory for what is fetched, and for copies of what is stored */
    mt_sending *sending; /* of transfers that fetch: copies `room` to the device, and owns that memory */
    mt_reading *reading[MT_KV_GROUPS + 1]; /* of transfers that store: copy pages and states from the device */
    mt_reading *features;                  /* of transfers that store: copies features from the device */
    mt_tensor *rows;                       /* of transfers that carry features: the rows side by side */
    mt_held held;
    mt_sequence *s; /* the sequence that waits for the record; NULL: none, or it has gone */
    mt_view *view;  /* the view that waits for the record; NULL: none */
    /* which page, which state's position, or which piece of features the record is; of transfers that ask: 1 where they
       ask for features, else 0 */
    size_t at;
    uint8_t (*keys)[MT_TIER_KEY]; /* of transfers that ask: the keys that are asked for */
    size_t asked;                 /* and how many they are */
} mt_keep_transfer;

/* A record that waits to be stored. */
typedef struct mt_pending {
    uint8_t key[MT_TIER_KEY];
    mt_held held;
} mt_pending;

struct mt_keep {
    mt_tiers tiers;      /* the host store, the disk and the remote store, as far as they exist */
    mt_pending *backlog; /* ring buffer of backlog_most elements */
    size_t backlog_first, backlog_count, backlog_most;
    uint8_t root[32]; /* digest of all that is the same for every request: weights, number formats, shape of pages */
    /* of one record; all_bytes: of a page of every group */
    size_t page_bytes[MT_KV_GROUPS], groups, all_bytes, state_bytes;
    size_t feature_bytes;       /* of MT_KEEP_ROWS rows; 0: the model takes no pictures */
    double asking;              /* seconds that the remote store takes to answer what it has; 0: not known yet */
    double pace[MT_TIER_COUNT]; /* seconds a byte takes from each tier; 0: not known yet */
    mt_keep_transfer transfer[MT_KEEP_TRANSFERS];
    mt_view view[MT_KEEP_VIEWS];
    /* keys of features that did not come though a tier had them: they are encoded instead */
    uint8_t lost[MT_KEEP_LOST][32];
    size_t losses; /* counts entries of `lost`, which is a ring */
    mt_keep_stats stats;
    mt_engine *engine;
    mt_engine *told;            /* the engine whose routers are told when the disk drops a record; NULL: none */
    void (*wake)(mt_engine *e); /* called when a transfer is done */

    pthread_t thread[2]; /* the second is for the remote store */
    size_t threads;
    pthread_mutex_t lock; /* protects transfer[].state, order and ending */
    pthread_cond_t given; /* a transfer was given, or the end has come */
    uint64_t order;       /* of the next transfer */
    bool ending;          /* mt_transfers_stop was called */
};

/* ---- keys: keep_key.c ---- */

/* Computes the keys of the first `pages` whole pages of s, in s->kept. */
void mt_keep_seal(const mt_keep *k, mt_sequence *s, size_t pages);

/* The keys of the state after `position` positions, and of a piece of a picture's features. */
void mt_keep_state_key(const mt_keep *k, mt_sequence *s, size_t position, uint8_t out[MT_TIER_KEY]);
void mt_keep_features_key(const mt_keep *k, const uint8_t digest[32], const uint8_t salt[32], size_t piece,
                          uint8_t out[MT_TIER_KEY]);

/* ---- transfers: keep_transfer.c ---- */

bool mt_transfers_start(mt_keep *k, mt_error *err) MT_NODISCARD;
void mt_transfers_stop(mt_keep *k); /* after all transfers that were given are done */

/* A free transfer of the `count` from number `first` on; NULL: none is free. */
mt_keep_transfer *mt_keep_transfer_free(mt_keep *k, size_t first, size_t count);

/* Hands a transfer to its thread; reads and sets its state, under the lock. */
void mt_keep_transfer_give(mt_keep *k, mt_keep_transfer *x);
mt_keep_transfer_state mt_keep_transfer_look(mt_keep *k, const mt_keep_transfer *x);
void mt_keep_transfer_set(mt_keep *k, mt_keep_transfer *x, mt_keep_transfer_state state);

/* Of the transfers that fetch and are in `state`, the one that was given first; NULL: none. Leaves out what is done
   and waits for others of its sequence: a state for its pages, a page for those before it. */
mt_keep_transfer *mt_keep_transfer_first(mt_keep *k, mt_keep_transfer_state state);

/* Frees the transfer for the next use and releases what it held. */
void mt_keep_transfer_end(mt_engine *e, mt_keep_transfer *x);
void mt_held_init(mt_held *h);
void mt_held_release(mt_engine *e, mt_held *h);

/* ---- to the tier: keep_store.c ---- */

/* Queues the pages and states that s has computed since the last call. */
void mt_keep_store(mt_engine *e, mt_sequence *s);

/* Has the device copy the next records of the backlog, and gives those that are copied to the transfers' thread. */
void mt_keep_work_off(mt_engine *e);

/* Empties the backlog without storing. Whether it held anything. */
bool mt_keep_shed(mt_engine *e);

/* Releases what has been stored; whether anything was. *under_way: whether transfers that store are left. */
bool mt_keep_end_stores(mt_engine *e, bool *under_way);

/* ---- back: keep_fetch.c, keep_view.c ---- */

/* Seconds until a record of so many bytes comes from a tier; 0 where it is in none. */
double mt_keep_time(const mt_keep *k, mt_tier tier, size_t bytes);

/* Whether reading, which takes `back` seconds, is quicker than computing, which takes `anew`. */
bool mt_keep_is_quicker(mt_keep *k, double back, double anew);

/* Learns from what a finished transfer took. */
void mt_keep_learn(mt_keep *k, const mt_keep_transfer *x);

/* Starts transfers for what s waits for, as many as are free. */
void mt_keep_fetch(mt_engine *e, mt_sequence *s);
void mt_keep_end_fetch(mt_engine *e, mt_sequence *s); /* gives up what is still being read for s */

/* Handle a transfer that has come: mt_keep_receive when its bytes are in the host's memory (or are not to be had),
   mt_keep_received when the device has copied them. False where s must go back to the queue. */
bool mt_keep_receive(mt_engine *e, mt_keep_transfer *x);
bool mt_keep_received(mt_engine *e, mt_keep_transfer *x);

/* Asks the remote store which pages and states of s it has; whether s waits for the answer. mt_keep_heard takes the
   answer: true where pages should be looked for again for the sequence that asked. See keep_ask.c. */
bool mt_keep_ask_pages(mt_engine *e, mt_sequence *s);
bool mt_keep_heard(mt_engine *e, mt_keep_transfer *x);

/* The same for features: start transfers for all views; handle one that has come; end a view, which is `whole` if all
   its pieces have come. */
void mt_keep_fetch_views(mt_engine *e);
void mt_keep_receive_view(mt_engine *e, mt_keep_transfer *x);
void mt_keep_end_view(mt_engine *e, mt_view *v, bool whole);

#endif
