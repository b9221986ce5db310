/* A call: one HTTP request that asks a model something, from the handler on the io thread to the last byte of its
   answer. Made by the handlers of routes.c; call.c says on which threads it lives and when it is freed. */
#ifndef MT_SERVER_CALLS_CALL_H
#define MT_SERVER_CALLS_CALL_H

#include <pthread.h>

#include "api/answer.h"
#include "engine/engine.h"
#include "http/http.h"
#include "http/limits.h"
#include "server/calls/account.h"
#include "server/calls/mailbox.h"
#include "server/fleet/fleet.h"
#include "server/prepare/prefix.h"

typedef struct mt_call mt_call;
typedef struct mt_preparation mt_preparation; /* server/prepare/preparation.h */
typedef struct mt_server mt_server;
typedef struct mt_watcher mt_watcher;

/* The work of a preparation thread for a call that needs no engine. */
typedef struct mt_task {
    /* Appends the answer to out, or returns false with *why */
    bool (*run)(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why);
    bool no_model; /* run uses no model, so the call neither names one nor waits until one is loaded */
    bool no_body;  /* the request needs no body, whatever its method */
} mt_task;

/* The queue of preparation threads in which a call is prepared. A call begins in the small or the large lane and moves
   to a later one once it is known what it needs, so that no call waits behind slower kinds of work. */
typedef enum mt_lane {
    MT_LANE_SMALL,   /* the body has at most MT_LIMIT_SMALL_BODY bytes */
    MT_LANE_COMPILE, /* a constraint of the call is not compiled yet */
    MT_LANE_LARGE,   /* a large body, a chat template of its own, or a constraint that takes long to compile */
    MT_LANE_MEDIA,   /* the call brings pictures or videos */
    MT_LANE_COUNT
} mt_lane;

/* How far a call is. Belongs to the io thread; changed by mt_call_change. */
typedef enum mt_call_state {
    MT_CALL_PREPARING, /* a preparation thread has it, or its lane's queue, or the fleet */
    MT_CALL_LEFT,      /* still being prepared, but the client has left or was told an error: nothing more is sent */
    MT_CALL_ANSWERING, /* prepared; nothing has been sent yet */
    MT_CALL_STREAMING, /* the status line of a stream has been sent */
    /* The client has left or was let go; the answer is computed all the same and kept in the store */
    MT_CALL_ALONE,
    MT_CALL_OVER, /* nothing more is sent to the client */
    MT_CALL_KEPT  /* as MT_CALL_OVER, after MT_CALL_ALONE */
} mt_call_state;

/* A request of a call that the engine computes; a call has one for each prompt and choice. */
typedef struct mt_call_source {
    mt_call *call;
    size_t prompt;       /* number of the request within the call */
    mt_request *request; /* NULL once its last event has come; under the call's lock */
} mt_call_source;

struct mt_call {
    mt_message prepared_message; /* posted to the io thread when preparation is over */
    void (*over)(mt_call *call); /* of mt_call_start_own: called on the io thread before the call is freed; else NULL */
    void *job;                   /* for `over`, which the call's maker set */
    mt_server *server;
    mt_waiter waiter; /* the call's reference to its model, or its wait for that to be loaded */
    /* The model; NULL before the call has its reference, which it gets before it is prepared */
    mt_served *served;
    const mt_dialect *dialect; /* NULL: a call of no dialect; its errors are written as OpenAI's */
    const mt_task *task;       /* answers the call in place of the engine; NULL: the engine does */
    uint64_t loading;          /* nanoseconds until the call had its model */
    bool bodiless;             /* the request has no body, and needs none */
    char id[MT_RANDOM_ID];
    char name[MT_LIMIT_HTTP_NAME + 1];    /* the client's name for this request (a header), or "" */
    char session[MT_LIMIT_HTTP_NAME + 1]; /* the client's name for the conversation this request belongs to, or "" */
    json_t *created; /* the settings of a model that a client has created (created.h); owned; NULL: the model is none */
    char *param;     /* the first parameter of the request's path; NULL: none */
    bool names_model; /* param is the name of the model; else the body has it */
    char *body;       /* freed by the preparation thread once it is parsed */
    size_t body_len;
    mt_http_coding coding; /* how the body is compressed */
    /* Bytes taken from the server's room for the body, until the call is prepared */
    size_t body_charge;
    /* Bytes taken from the server's room for prompts and answer, until the call ends */
    size_t charged;
    /* The parsed body while the call changes its lane or waits for its model; else NULL */
    json_t *json;
    size_t encoder; /* which encoder of the engine computes it; 0: the model itself */
    mt_lane lane;
    mt_call *behind; /* the next call in the lane's queue; under the lane's lock */
    mt_client_record
        *client_record;         /* the client's record in the lane, while the call waits there; under the lane's lock */
    uint64_t received;          /* mt_clock_ns */
    atomic_uint_fast64_t until; /* deadline, mt_clock_ns; see timeout.c */
    mt_account *account;        /* NULL where the server needs no API keys */
    struct mt_recent *recent;   /* of the WebSocket on which the call came; NULL: it came on none */
    int64_t channel;  /* the number by which the client cancels the call on its WebSocket; -1: none. Io thread */
    uint64_t address; /* a hash of the address it came from */
    mt_client client; /* the client, to whom its share of the server is charged (client.h) */
    mt_prep prep;     /* what preparing it needs and costs; see pictures.h */
    mt_preparation *preparation; /* what is prepared so far; only a preparation thread uses it; NULL: nothing */
    /* Entry in the list of calls that is written to the log when the program crashes (base/crash.h) */
    size_t crash;
    /* mt_alloc_refused of the preparing thread before preparation: more later means memory was refused */
    uint64_t refused;

    /* Written by the preparation thread; read by the io thread once prepared_message is opened. */
    mt_answer *answer;
    mt_arena *arena;             /* memory of a task while it works; else NULL */
    mt_buf text;                 /* the answer of a task */
    const char *type;            /* content type of text; NULL: JSON */
    mt_failure failure;          /* why preparation failed; status 0: it did not */
    char prefix[MT_PREFIX_SIZE]; /* digest of how its conversation begins (prefix.h); "": not known */
    char *warning;               /* value of the "warning" header, see mt_call_warn; NULL: none */
    size_t submitted;            /* how many requests the engine has got; the others are still owned by the call */
    mt_places *queue;            /* for vectors: the queue of the engine that the call has places in */
    size_t places;               /* how many places; at least one until the last of the texts has ended */

    /* The call is cancelled. Requests are published in `sources` only where this is unset, checked under the lock: so
       whoever sets it finds all requests there are. */
    atomic_bool stop;

    pthread_mutex_t lock;    /* of the five fields below */
    bool choked;             /* too many events wait for the io thread: the requests are paused */
    bool slow;               /* the client reads too slowly: the requests are paused */
    size_t pending;          /* events that wait for the io thread */
    mt_call_source *sources; /* one for each request; NULL before they are published */
    size_t source_count;

    /* Only the io thread uses the rest. */
    mt_http_handle handle;
    mt_call *next, *prev; /* in the server's list of calls */
    mt_watcher *watchers; /* other clients that read the same stream (watch.h) */
    mt_call_state state;
    uint64_t alone_since; /* mt_clock_ns when it was last followed or asked about, in the state MT_CALL_ALONE */
    bool spoke;           /* something was sent since the last mt_server_keep_alive */
    bool timed_out;       /* ended because its deadline passed */
    bool held;            /* must not be freed: a function further up the stack uses it */
    /* The http server still refers to the call and will report that the client has left */
    bool followed;
    size_t ended;                      /* requests whose last event has come */
    mt_buf out;                        /* bytes of the answer that could not be sent yet */
    uint64_t first_token, prepared_at; /* mt_clock_ns; 0: not yet */
};

static inline bool mt_call_is_prepared(const mt_call *call)
{
    return call->state != MT_CALL_PREPARING && call->state != MT_CALL_LEFT;
}

/* Nothing more is sent to the client. */
static inline bool mt_call_is_over(const mt_call *call)
{
    return call->state == MT_CALL_LEFT || call->state == MT_CALL_OVER || call->state == MT_CALL_KEPT;
}

/* Prepared, and not over. */
static inline bool mt_call_answers(const mt_call *call)
{
    return mt_call_is_prepared(call) && !mt_call_is_over(call);
}

/* Io thread: changes the state; asserts that there is such a change. mt_call_end changes it to the one after which
   nothing more is sent, from whichever state the call is in. */
void mt_call_change(mt_call *call, mt_call_state to);
void mt_call_end(mt_call *call);

/* Io thread: whether the engine may have a place for the request, judged by its head alone. False where all places are
   taken: *why, and the refusal is counted. */
bool mt_call_may_start(mt_server *server, const mt_http_request *request, mt_failure *why) MT_NODISCARD;

/* Io thread: makes a call of a request and hands it to a lane, or answers with an error and returns NULL. Owns and
   frees request. dialect may be NULL; task NULL: the engine answers. The call may be used until the io thread is
   back in its loop. */
mt_call *mt_call_start(mt_server *server, mt_http_request *request, const mt_dialect *dialect, const mt_task *task);

/* A call that the server itself makes. */
typedef struct mt_call_own {
    const mt_dialect *dialect;
    char *body; /* owned by the call */
    size_t body_len;
    const mt_waiter *waiter; /* has a reference to the model, which the call owns; NULL: the body names the model */
    size_t charged;          /* bytes taken from the server's room for the body, which the call gives back */
    mt_account *account;     /* the account whose call it is; NULL: the server needs no keys */
    void (*over)(mt_call *call);
    void *job;
} mt_call_own;

/* Io thread: makes a call of the server itself, which has no client. No deadline holds for it, and it comes after the
   calls of all clients. When `over` is called, call->out has the answer; or call->failure says why there is none. */
void mt_call_start_own(mt_server *server, const mt_call_own *own);

/* Io thread: the call of that id that is not over and belongs to the account (NULL: to any); NULL: there is none. */
mt_call *mt_call_find(const mt_server *server, const mt_account *account, const char *id);

/* The store of answers for the call's account. */
mt_store *mt_call_store(const mt_call *call);

/* Io thread: frees the call where invariant 1 of call.c allows it, else does nothing. */
void mt_call_release(mt_call *call);

/* Io thread, while call->held: ends the call with an error, as the whole answer or within its stream. */
void mt_call_fail(mt_call *call, const mt_failure *why);

/* The headers that every answer of a call has. Returns how many; their texts belong to the call. */
enum { MT_CALL_HEADERS = 4 };
size_t mt_call_headers(const mt_call *call, mt_http_header out[MT_CALL_HEADERS]);

/* Io thread: sends the head of a stream of events. False: the client has left. */
bool mt_call_begin_stream(const mt_call *call, mt_http_handle handle) MT_NODISCARD;

/* Io thread: handles an event of the call's request number `prompt`. resume: the requests were paused because too many
   events waited, and none waits any more. */
void mt_call_receive(mt_call *call, size_t prompt, const mt_event *event, bool resume);

/* Any thread: nothing more is computed for the call. */
void mt_call_cancel(mt_call *call);

/* Preparation thread, before mt_call_submit: makes call->answer, to an ask with so many prompts, by the model of that
   name; logs and warns the client about fields of the ask that are ignored. NULL: *why. */
mt_answer *mt_call_answer(mt_call *call, const mt_ask *ask, size_t prompts, const char *model,
                          mt_failure *why) MT_NODISCARD;

/* Preparation thread: adds a sentence to the "warning" header of the answer. Characters that no header may have become
   blanks. */
void mt_call_warn(mt_call *call, const char *fmt, ...) MT_PRINTF(2, 3);

/* Preparation thread: the parsed body, which the caller frees. NULL: *why, or the call's lane has changed. See
   body.c. */
json_t *mt_call_body(mt_call *call, mt_failure *why) MT_NODISCARD;

/* Preparation thread: prepares a call and posts its message, or hands it on: to another lane, or to the fleet until its
   model is loaded. Returns the seconds of a processor that it took, those of the decoder process included. See
   prepare.c. */
double mt_call_prepare(mt_call *call);

/* Any thread: goes on preparing a call that waited for its model, or ends it because of *why (NULL: go on). */
void mt_call_resume(mt_call *call, const mt_failure *why);

/* Preparation thread: hands prepared requests to the engine, all of them or none; frees them where it returns false. A
   call for vectors may have many: it is let in with one place, and hands over only as many requests as it has
   places. */
bool mt_call_submit(mt_call *call, mt_request **requests, size_t count, mt_error *err) MT_NODISCARD;
bool mt_call_cancelled(mt_call *call);

/* Io thread: gives back the places beyond `needed`. */
void mt_call_give_places(mt_call *call, size_t needed);

/* Io thread, after preparation: hands over more requests of a call for vectors, as places become free. */
bool mt_call_more(mt_call *call, mt_error *err) MT_NODISCARD;

#endif
