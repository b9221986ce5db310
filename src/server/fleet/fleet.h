/* The fleet: the models that a server knows by name, loaded or not; the calls that wait for a model; and which model is
   unloaded to make room. One per server; fleet.c says how it works. */
#ifndef MT_SERVER_FLEET_FLEET_H
#define MT_SERVER_FLEET_FLEET_H

#include "api/failure.h"
#include "engine/rota.h"
#include "options/limits.h"
#include "server/fleet/disk.h"
#include "server/fleet/served.h"

typedef struct mt_fleet mt_fleet;
typedef struct mt_member mt_member;
typedef struct mt_waiter mt_waiter;

typedef enum mt_member_state {
    MT_MEMBER_UNLOADED,
    MT_MEMBER_LOADING,
    MT_MEMBER_READY,
    MT_MEMBER_LEAVING /* being unloaded */
} mt_member_state;

/* Facts about a model from the files of its folder, without loading it. */
typedef struct mt_member_facts {
    bool known;      /* the folder was read */
    bool encoder;    /* computes vectors and writes no text */
    bool scores;     /* an encoder that scores pairs of texts and makes no embeddings */
    bool classifies; /* an encoder whose classifier has several labels, and that makes no embeddings */
    bool embeds;     /* was trained for embeddings */
    bool vision;     /* accepts pictures */
    bool tools;      /* its chat template has tool calls */
    bool thinking;   /* its chat template has reasoning */
    bool chats;      /* has a chat template */
    size_t context;  /* tokens */
    uint64_t pixels; /* that it sees of a picture, at most; 0: not known before it is loaded, or it sees none */
    uint64_t bytes;  /* of the weights */
} mt_member_facts;

/* Counters of a model's engines that have ended: without them, metrics would fall when a model is loaded again. */
typedef struct mt_member_past {
    mt_stats stats;
    mt_constraints_stats constraints;
    mt_histogram pictures_seconds;
    uint64_t pictures;
    mt_encoder_stats encoders[MT_LIMIT_OPTION_LIST + 1]; /* for each target (target.h) */
} mt_member_past;

/* A model of the fleet. Freed only with the fleet. All fields are under the fleet's lock, unless said otherwise. */
struct mt_member {
    mt_fleet *fleet;    /* this and the next two fields never change */
    size_t number;      /* index in the fleet's members; also names the model in voices */
    char *name, *dir;   /* what clients call it; its folder */
    uint64_t slow_step; /* io thread only: begin of the last slow step that was logged */
    bool found;         /* not named on the command line, but found on this machine */
    bool gone;          /* was found, and is deleted; a later member may have the same name */
    mt_member_facts facts;
    mt_member_state state;
    bool open;                /* loaded: `served` is complete and its engine may be read */
    bool expired;             /* to be unloaded as soon as no call uses it or waits for it */
    unsigned tries;           /* failed attempts to load it with too little memory */
    mt_served served;         /* valid while open; a call with a reference may use it without the lock */
    uint64_t need, grant;     /* bytes: the least that it needs; what it has been given */
    bool measured;            /* need was told by its engine, and is no guess */
    size_t references;        /* calls that use it */
    mt_waiter *first, **last; /* calls that wait for it, oldest first */
    size_t waiting;           /* how many */
    bool chosen;              /* is to be unloaded for another that calls wait for */
    bool yields;              /* as chosen, and new calls wait already */
    double keep_alive;        /* seconds that it may be idle before it is unloaded; below 0: for ever */
    uint64_t used;            /* mt_clock_ns: when a call last began or ended to use it */
    uint64_t since;           /* mt_clock_ns: when its state began */
    uint64_t loading;         /* nanoseconds that the last load took */
    uint64_t loads;           /* how often it was loaded */
    uint64_t warmed;          /* `loads` when prompts were last computed for it (warm.c); 0: they are to be */
    mt_kv_events *events;     /* tells routers what it has cached; NULL: none are told */
    mt_error error;           /* why its folder could not be read or the last load failed; MT_OK: neither */
    mt_member_past past;
};

/* A model that is being fetched for a client, under the name it was asked for. All under the fleet's lock. */
typedef struct mt_fleet_fetch mt_fleet_fetch;
struct mt_fleet_fetch {
    const char *name;     /* borrowed */
    uint64_t done, total; /* bytes; total 0: not known yet */
    mt_fleet_fetch *next;
};

/* A call's wait for a model, or its reference to one. Part of mt_call. */
struct mt_waiter {
    mt_member *member; /* that the call has or waits for */
    mt_waiter *next;   /* in the member's list */
    mt_client client;  /* whose call it is */
    uint64_t since;    /* mt_clock_ns: begin of the wait */
    bool waits;        /* is in the member's list; under the fleet's lock */
    bool has;          /* has a reference */
};

typedef struct mt_fleet_params {
    const mt_options *opt;
    /* A wait that mt_fleet_take began is over: the call has its model, or *why says why not. Called on any thread,
       without the lock. */
    void (*resume)(void *ctx, mt_waiter *waiter, const mt_failure *why);
    /* Called on the fleet's thread: `begun` first of all; `loaded` where there is one model alone, once it is loaded,
       or with *err where it cannot be. */
    void (*begun)(void *ctx);
    void (*loaded)(void *ctx, const mt_error *err);
    void *ctx;
} mt_fleet_params;

struct mt_fleet {
    mt_fleet_params params;
    mt_member **members; /* in the order of the command line, then by when they were found */
    size_t count, cap;
    /* One model, named on the command line: it has all memory and is loaded at the start */
    bool alone;
    bool open;             /* no model was named: all that are found on this machine are served */
    uint64_t memory;       /* bytes for everything on the device */
    uint64_t memory_given; /* value of --memory; 0: not given */
    uint64_t for_all;      /* of memory: bytes that are no model's */
    uint64_t host_memory;  /* bytes on the host: the same as memory, unless the device has memory of its own */
    uint64_t apart;        /* of host_memory: bytes that are no model's: the process, requests, records */
    /* Of apart: bytes for the dashboard's recorder and for the index of the cache on disk */
    uint64_t recorded;
    uint64_t requests; /* of apart: bytes for requests; 0 until a single model's engine has chosen */
    size_t work;       /* of requests: bytes for one request while it is prepared */
    size_t waiting;    /* calls that wait for any model */
    mt_places places;  /* bounds these calls, for all clients and for each */
    /* The time that loading models has taken for each client lately: the client with the least comes first */
    mt_clients loading;
    /* Grows whenever models are loaded, unloaded, found or deleted; any thread reads it without the lock */
    _Atomic(uint64_t) changes;
    double keep_alive; /* seconds; for models whose requests do not say otherwise */
    mt_device_params device;
    mt_host *host;           /* threads that all models compute with */
    mt_rota *rota;           /* lets the engines of several models take turns */
    mt_server_disk disk;     /* caches of all models beyond memory */
    mt_publisher *publisher; /* tells routers what the caches have; NULL: no --kv-events */
    mt_voices *voices;       /* the recorder for the dashboard, of all models */
    uint64_t scanned;        /* mt_clock_ns: when this machine was last searched for models */
    size_t removing;         /* models that are being deleted: meanwhile no search counts */
    uint64_t removals;       /* how many deletions have begun: a search that one overlaps does not count */
    mt_fleet_fetch *fetches; /* models that are being fetched */
    bool closing;
    bool running; /* thread has to be joined */
    pthread_t thread;
    pthread_mutex_t lock;   /* while a thread holds it, no engine is opened or closed, so that it may read them */
    pthread_cond_t changed; /* wakes the thread: something may be to do */
};

/* Loads each model that the options name, and unloads it. Where they name none, only whether there are any is looked
   at. False: *err. */
bool mt_fleet_check(const mt_options *opt, mt_error *err) MT_NODISCARD;
/* Opens the addresses of --kv-events for a moment. */
bool mt_fleet_check_events(const mt_options *opt, mt_error *err) MT_NODISCARD;

/* mt_fleet_open finds and reads the folders of the named models, mt_fleet_equip opens device, publisher and disk, whose
   threads begin here. False: *err. Close with mt_fleet_close either way. No model is loaded before mt_fleet_start,
   which starts the fleet's own thread. */
bool mt_fleet_open(mt_fleet *fleet, const mt_fleet_params *params, mt_error *err) MT_NODISCARD;
bool mt_fleet_equip(mt_fleet *fleet, mt_error *err) MT_NODISCARD;
bool mt_fleet_start(mt_fleet *fleet, mt_error *err) MT_NODISCARD;

/* Ends the thread after the load it is at; calls that wait get an error. */
void mt_fleet_stop(mt_fleet *fleet);
void mt_fleet_end(mt_fleet *fleet);   /* ends all engines: their last events may come during the call */
void mt_fleet_close(mt_fleet *fleet); /* frees everything; a zeroed one is fine */

/* ---- any thread ---- */

typedef enum mt_fleet_reply { MT_FLEET_HAS, MT_FLEET_WAITS, MT_FLEET_REFUSED } mt_fleet_reply;

/* Gets a call a reference to the model it asks for (NULL: it does not say). HAS: waiter has it. WAITS: the model is not
   loaded, and params.resume is called when the wait is over, perhaps before this returns. REFUSED: *why. */
mt_fleet_reply mt_fleet_take(mt_fleet *fleet, mt_waiter *waiter, const mt_client *client, const char *name,
                             bool vectors, mt_failure *why);
bool mt_fleet_hold(mt_member *member,
                   mt_waiter *waiter); /* gets a reference to a model that is loaded; false: it is not */
void mt_fleet_give(mt_waiter *waiter); /* gives a reference back; none is fine */

/* Ends a wait: params.resume is called with *why. Does nothing where the call does not wait (any more). */
void mt_fleet_withdraw(mt_fleet *fleet, mt_waiter *waiter, const mt_failure *why);

/* Ends waits that took longer than --load-seconds. Called about every second. */
void mt_fleet_tick(mt_fleet *fleet);

/* Sets how long the model may be idle before it is unloaded; below 0: for ever; NaN: the server's default. */
void mt_fleet_keep(mt_member *member, double seconds);

/* Unloads a model as soon as no call uses it or waits for it. Returns it; NULL: there is none of that name. */
mt_member *mt_fleet_unload(mt_fleet *fleet, const char *name);

/* Before and after the files of a model are deleted. affects: whether the deletion takes files of what is in use at a
   path; called without the lock. begin: the models whose files are to go leave the list, and are unloaded where they
   are loaded and idle. False: one of them, or what belongs to it, is named on the command line, has calls, or is being
   loaded, and nothing has changed; then there is no end. */
bool mt_fleet_remove_begin(mt_fleet *fleet, bool (*affects)(void *ctx, const char *path), void *ctx);
void mt_fleet_remove_end(mt_fleet *fleet);

/* While a model is being fetched, calls that ask for it are refused with how far that is, unless an older state of it
   is here. The fetch belongs to the caller from begin to end. */
void mt_fleet_fetch_begin(mt_fleet *fleet, mt_fleet_fetch *fetch);
void mt_fleet_fetch_told(mt_fleet *fleet, mt_fleet_fetch *fetch, uint64_t done, uint64_t total);
void mt_fleet_fetch_end(mt_fleet *fleet, mt_fleet_fetch *fetch);

/* *why says that there is no model of that name. advice: "", or words that end with a blank. Returns false. */
bool mt_fleet_lacks(const char *name, const char *advice, mt_failure *why);

/* *why says that the model of that name is an encoder, which writes no text. Returns false. */
bool mt_fleet_mute(const char *name, mt_failure *why);

/* The member of that name or alias, as mt_fleet_take finds it; NULL: there is none. */
mt_member *mt_fleet_find(mt_fleet *fleet, const char *name, bool vectors);

/* The member of exactly that name or alias, whatever other names are taken for it (--any-model); NULL: none. */
mt_member *mt_fleet_find_named(mt_fleet *fleet, const char *name);

/* A copy of what others may know of a member. The strings belong to the member and live as long as the fleet. */
typedef struct mt_member_view {
    const mt_member *member;
    const char *name;
    mt_member_state state;
    mt_member_facts facts;
    size_t context;    /* tokens that it can read: as loaded, else as its folder says; 0: not known */
    uint64_t memory;   /* bytes that it has been given; 0: not loaded */
    uint64_t used;     /* of these, what it has in use now; 0: not loaded */
    uint64_t need;     /* bytes that it needs at least, as far as known */
    bool too_large;    /* it is not loaded, and all of --memory would not be enough for it */
    size_t references; /* calls that use it */
    size_t waiting;    /* calls that wait for it */
    double seconds;    /* since its state began */
    double idle;       /* seconds since it was last used; below 0: not loaded, or in use */
    double expires;    /* seconds until it is unloaded; below 0: it stays */
    mt_error error;    /* as in mt_member, without paths */
} mt_member_view;

/* Copies of all members; where no model was named, searches this machine for new ones first. Free with mt_free. */
mt_member_view *mt_fleet_list(mt_fleet *fleet, size_t *count) MT_NODISCARD;
mt_member_view mt_member_look(mt_member *member);

/* All that a member has counted since the server started. With the lock held. */
void mt_member_count(mt_member *member, mt_member_past *out);

/* Whether every call for text would be refused now, for lack of places; known only where there is one model alone.
   True: *err, MT_E_BUSY. */
bool mt_fleet_full(mt_fleet *fleet, const mt_client *client, mt_error *err);

/* Whether a device has failed and could not be opened again. */
bool mt_fleet_lost(mt_fleet *fleet);

#endif
