/* The models that a server knows by name: which of them are open, who waits for one, who has to go. See fleet.c. */
#ifndef MT_SERVER_FLEET_H
#define MT_SERVER_FLEET_H

#include "api/failure.h"
#include "engine/rota.h"
#include "server/disk.h"
#include "server/served.h"

typedef struct mt_fleet mt_fleet;
typedef struct mt_member mt_member;
typedef struct mt_waiter mt_waiter;

typedef enum mt_member_state {
    MT_MEMBER_UNLOADED,
    MT_MEMBER_LOADING,
    MT_MEMBER_READY,
    MT_MEMBER_LEAVING /* it is being unloaded */
} mt_member_state;

/* What can be known of a folder without opening its weights. */
typedef struct mt_member_facts {
    bool known;    /* the folder was looked at */
    bool encoder;  /* it makes vectors and writes no text */
    bool scores;   /* of an encoder: it scores pairs of texts and makes no embeddings */
    bool embeds;   /* it was made for embeddings */
    bool vision;   /* it takes pictures */
    bool tools;    /* its chat template shows tool calls */
    bool thinking; /* its chat template shows reasoning */
    bool chats;    /* it has a chat template */
    size_t context;
    uint64_t bytes; /* of its weights */
    char family[32];
} mt_member_facts;

/* What was counted by engines that have ended, so that nothing is counted down when a model is loaded anew. */
typedef struct mt_member_past {
    mt_stats stats;
    mt_constraints_stats constraints;
    mt_histogram pictures_seconds;
    uint64_t pictures;
    mt_encoder_stats encoders[MT_LIMIT_OPTION_LIST + 1]; /* of each target */
} mt_member_past;

/* Never freed before the fleet is. Under the fleet's lock but for what is said to be otherwise. */
struct mt_member {
    mt_fleet *fleet;               /* never changes, nor do the next four */
    size_t number;                 /* among the members, and of its voices */
    char *name, *dir;              /* what clients call it; the folder */
    const mt_option_list *aliases; /* NULL: none */
    uint64_t slow_step;            /* the io thread's: when the step began that was last named for its length */
    bool beside;                   /* --embedding-model: asked for vectors, before others, by who names no model */
    int64_t modified;              /* seconds since 1970: its newest file, where it was found; 0: not known */
    bool found;                    /* it was not named but found on this machine */
    bool gone;                     /* and is not any more; one of the same name may be among those behind it */
    mt_member_facts facts;
    mt_member_state state;
    bool open;                /* served is whole, and its engine may be read */
    bool expired;             /* it is to be unloaded as soon as nobody has it or waits for it */
    unsigned tries;           /* of loading it, that have failed for want of memory */
    mt_served served;         /* of one that is open; for whoever has a reference, without the lock */
    uint64_t need, grant;     /* bytes: the least that it can do with; what it has */
    bool measured;            /* need is what it said itself, and not a guess */
    size_t references;        /* calls that have it */
    mt_waiter *first, **last; /* who waits for it; *last is where the next is put */
    size_t waiting;           /* how many they are */
    bool chosen;              /* it is to make way for one that is waited for */
    bool yields;              /* and takes no new calls any more */
    double keep_alive;        /* seconds that it may be idle; below 0: for ever */
    uint64_t used;            /* mt_clock_ns: when it was last had or given back */
    uint64_t since;           /* when its state began */
    uint64_t loading;         /* nanoseconds that loading it took */
    uint64_t loads;           /* how often */
    mt_kv_events *events;     /* who is told of what it has cached; NULL: nobody */
    mt_error error;           /* why it could not be loaded the last time; MT_OK: it could, or nobody tried */
    mt_member_past past;
};

/* Whoever wants a model: part of a call. */
struct mt_waiter {
    mt_member *member; /* that it has, or waits for */
    mt_waiter *next;
    uint64_t since; /* mt_clock_ns when it began to wait */
    bool waits;     /* in the member's list; the fleet's */
    bool has;       /* a reference */
};

typedef struct mt_fleet_params {
    const mt_options *opt;
    /* The wait of one that mt_fleet_take has kept is over: it has its model, or *why says why not. On some thread,
       without the lock. */
    void (*resume)(void *ctx, mt_waiter *waiter, const mt_failure *why);
    /* While it is opened: the folders of models are known, and there are no threads yet. NULL: nobody wants to know. */
    void (*named)(void *ctx);
    /* On the fleet's thread: before anything else; and when the only model there is was opened, or not, and *err says
       why. */
    void (*begun)(void *ctx);
    void (*loaded)(void *ctx, const mt_error *err);
    void *ctx;
} mt_fleet_params;

struct mt_fleet {
    mt_fleet_params params;
    mt_member **members; /* in the order of the command line, then by when they were found */
    size_t count, cap;
    bool alone; /* one model, which was named: it has the process to itself, and is open from the start */
    bool open;  /* none was named: what is found on this machine is served */
    uint64_t memory, memory_given; /* bytes for everything; --memory, which may be 0 */
    uint64_t for_all;              /* of these, what is no model's */
    uint64_t host_memory;          /* bytes of the host's: the same as memory, but where the device has its own */
    uint64_t apart;                /* of these, what is no model's: the process itself, requests, what is recorded */
    uint64_t recorded;             /* of these, what is recorded for the dashboard, and the index of what is on disk */
    uint64_t requests;             /* of these, bytes for requests; 0 until the only model has said */
    size_t work;                   /* of these, bytes for one that is prepared */
    size_t waiting;                /* calls that wait for a model */
    uint64_t changes;              /* of who is open */
    double keep_alive;             /* seconds; of members whose requests do not say */
    mt_device_params device;
    mt_host *host; /* the threads that all of them compute with */
    mt_rota *rota;
    mt_server_disk disk;     /* where what they compute outlives them */
    mt_publisher *publisher; /* of what their caches have; NULL: nobody is told */
    mt_voices *voices;       /* what all of them do */
    uint64_t scanned;        /* mt_clock_ns */
    bool closing;
    bool running; /* the thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* Only whether the models that are named are there and could be opened. False with a sentence. */
bool mt_fleet_check(const mt_options *opt, mt_error *err) MT_NODISCARD;

/* Finds the folders of the models that are named and looks at them. False with a sentence. Close with mt_fleet_close,
   either way. Nothing is opened before mt_fleet_start. */
bool mt_fleet_open(mt_fleet *fleet, const mt_fleet_params *params, mt_error *err) MT_NODISCARD;
bool mt_fleet_start(mt_fleet *fleet, mt_error *err) MT_NODISCARD;

/* Ends the thread: what it is loading is waited for, who waits is told, and nobody waits any more. */
void mt_fleet_stop(mt_fleet *fleet);
void mt_fleet_end(mt_fleet *fleet);   /* ends all engines: events may still come from them during the call */
void mt_fleet_close(mt_fleet *fleet); /* a zeroed one is fine */

/* ---- any thread ---- */

typedef enum mt_fleet_reply { MT_FLEET_HAS, MT_FLEET_WAITS, MT_FLEET_REFUSED } mt_fleet_reply;

/* The model that a call asks for (NULL: it does not say), of which it has a reference then. WAITS: it is being loaded,
   and params.resume says when that is over, perhaps before this returns. REFUSED: *why says why. */
mt_fleet_reply mt_fleet_take(mt_fleet *fleet, mt_waiter *waiter, const char *name, bool vectors, mt_failure *why);
void mt_fleet_give(mt_waiter *waiter); /* gives the reference back; without one is fine */

/* It waits no longer, and is told why, unless it did not wait, or its wait has just ended, which it is being told. */
void mt_fleet_withdraw(mt_fleet *fleet, mt_waiter *waiter, const mt_failure *why);

/* Who has waited too long waits no longer. Called every second or so. */
void mt_fleet_tick(mt_fleet *fleet);

/* From now on it may be idle for so long; below 0: for ever. */
void mt_fleet_keep(mt_member *member, double seconds);

/* Unloads a model as soon as nobody has it or waits for it. False: there is none of that name. */
bool mt_fleet_unload(mt_fleet *fleet, const char *name);

/* The member that clients call so, as mt_fleet_take finds it; NULL: there is none. */
mt_member *mt_fleet_find(mt_fleet *fleet, const char *name, bool vectors);

/* What others may see of a member, copied under the lock. The strings are the member's, and stay. */
typedef struct mt_member_view {
    const mt_member *member;
    const char *name;
    mt_member_state state;
    mt_member_facts facts;
    size_t context;    /* that it has, or its folder promises; 0: not known */
    uint64_t memory;   /* bytes that it has; 0: it is not loaded */
    uint64_t need;     /* bytes that it needs at least, as far as that is known */
    size_t references; /* calls that it answers */
    size_t waiting;    /* calls that wait for it */
    double seconds;    /* since its state began */
    double idle;       /* since it answered last; below 0: it is not loaded, or is needed */
    double expires;    /* seconds until it is unloaded; below 0: it is not */
    mt_error error;    /* why it could not be loaded */
} mt_member_view;

/* All members that there are; looks for new ones first, where none was named. Free with mt_free. */
mt_member_view *mt_fleet_list(mt_fleet *fleet, size_t *count) MT_NODISCARD;
mt_member_view mt_member_look(mt_member *member);
const char *mt_member_state_name(mt_member_state state);

/* What a member has counted, ever. */
void mt_member_count(mt_member *member, mt_member_past *out);

/* Whether no call for text may wait now, whatever it asks: that is known of one model alone. Then MT_E_BUSY. */
bool mt_fleet_full(mt_fleet *fleet, const mt_client *client, mt_error *err);

/* Whether what one computes with has failed and could not be opened anew. */
bool mt_fleet_lost(mt_fleet *fleet);

/* Counts up with every change of who is open and who is known. */
uint64_t mt_fleet_changes(mt_fleet *fleet);

/* Members that are open, for whoever reads their engines: none of them goes until mt_fleet_unlock. */
void mt_fleet_lock(mt_fleet *fleet);
void mt_fleet_unlock(mt_fleet *fleet);

#endif
