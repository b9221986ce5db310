/* One HTTP request that asks the model something, from the io thread's handler to its last byte. See call.c. */
#ifndef MT_SERVER_CALL_H
#define MT_SERVER_CALL_H

#include <pthread.h>

#include "api/answer.h"
#include "engine/engine.h"
#include "http/http.h"
#include "server/account.h"
#include "server/fleet.h"
#include "server/mailbox.h"
#include "server/prefix.h"

typedef struct mt_call mt_call;
typedef struct mt_server mt_server;
typedef struct mt_watcher mt_watcher;

/* What a preparation thread does with a body that is answered at once: appends the answer, or says why not. */
typedef bool mt_task(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why);

/* Where a call is prepared. It begins in one of the first two, and goes on in a later one when it turns out what it
   needs: nobody waits for what takes longer than his own. */
typedef enum mt_lane {
    MT_LANE_SMALL,
    MT_LANE_COMPILE, /* it has a constraint that is not compiled yet */
    MT_LANE_LARGE,   /* its body is large, it has a chat template, or its constraint takes long to compile */
    MT_LANE_MEDIA,   /* it brings pictures */
    MT_LANE_COUNT
} mt_lane;

/* What a call is at, for the io thread: see mt_call_change. */
typedef enum mt_call_state {
    MT_CALL_PREPARING, /* its letter has not come */
    MT_CALL_LEFT,      /* nor has it, and nothing is said any more: the client has gone, or was told what is wrong */
    MT_CALL_ANSWERING, /* nothing has been sent */
    MT_CALL_STREAMING, /* the status line has been */
    MT_CALL_ALONE,     /* nobody waits for the answer, which is given all the same: it is kept */
    MT_CALL_OVER,      /* nothing more is said to the client */
    MT_CALL_KEPT       /* and nobody was there to hear it */
} mt_call_state;

/* The engine's side of a call: one request for each prompt. */
typedef struct mt_call_source {
    mt_call *call;
    size_t prompt;
    mt_request *request; /* NULL once its last event has come; under the call's lock */
} mt_call_source;

struct mt_call {
    mt_letter prepared_letter; /* posted when preparation is over */
    void (*take)(mt_call *call, size_t prompt, const mt_event *event, bool resume); /* see mt_call_event */
    mt_server *server;
    mt_waiter waiter;          /* for its model */
    mt_served *served;         /* that model; NULL until it has it, which is before it is prepared */
    const mt_dialect *dialect; /* NULL: none, and OpenAI's for what is wrong */
    mt_task *task;             /* answers instead of the engine, where it is not NULL */
    uint64_t loading;          /* nanoseconds that it waited for its model */
    bool bodiless;             /* it has no body by its nature: a GET */
    char id[MT_ANSWER_ID];
    char name[MT_LIMIT_HTTP_NAME + 1];    /* what the client calls it, or "" */
    char session[MT_LIMIT_HTTP_NAME + 1]; /* likewise the conversation that it belongs to */
    char *body;                           /* the preparation's, which frees it */
    size_t body_len;
    mt_http_coding coding;
    size_t body_charge; /* bytes of the server's room that it has, until it is prepared */
    size_t charged;     /* and those of what was made of it, until it ends */
    json_t *json;       /* what it says, on the way from one lane of preparation to the other, or to its model */
    size_t encoder;     /* of the engine's, which computes it; 0: the model */
    mt_lane lane;       /* where it is prepared */
    uint64_t received;  /* mt_clock_ns */
    atomic_uint_fast64_t until; /* mt_clock_ns when its time is over; see timeout.c */
    mt_account *account;        /* whose it is; NULL where no key is needed */
    mt_client client;
    size_t crash;     /* where it is named if the program crashes */
    uint64_t refused; /* mt_alloc_refused of the thread that prepares it, before it does */

    /* written by preparation, read by the io thread after the first letter of the call */
    mt_answer *answer;
    mt_buf text;                 /* of what is answered at once */
    const char *type;            /* of that text; NULL: JSON */
    mt_failure failure;          /* status 0: none */
    char prefix[MT_PREFIX_SIZE]; /* what its conversation begins with; "": not known */
    char *warning;               /* value of a header, see mt_call_warn; NULL: none */
    size_t submitted;            /* requests that the engine took; the others are the call's still */
    mt_places *queue;            /* of calls for vectors: where they have places */
    size_t places;               /* so many, and one at least until the last of their texts has ended */

    atomic_bool stop; /* it is cancelled. Whoever finds it unset under the lock, publishes sources that can be */

    pthread_mutex_t lock; /* of the next five */
    bool choked;          /* too many events wait for the io thread */
    bool slow;            /* the client reads too slowly */
    size_t pending;       /* events that wait for the io thread */
    mt_call_source *sources;
    size_t source_count;

    /* the io thread's */
    mt_http_handle handle;
    mt_call *next, *prev;
    mt_watcher *watchers; /* who follows it besides */
    mt_call_state state;
    bool spoke;                        /* something was written since the last mt_server_keep_alive */
    bool timed_out;                    /* it ended because its time was over */
    bool held;                         /* a function up the stack still needs it */
    bool followed;                     /* http will say that the client has gone */
    size_t ended;                      /* requests that had their last event */
    mt_buf out;                        /* written before the status line may be sent */
    uint64_t first_token, prepared_at; /* mt_clock_ns; 0: not yet */
};

static inline bool mt_call_is_prepared(const mt_call *call)
{
    return call->state != MT_CALL_PREPARING && call->state != MT_CALL_LEFT;
}

static inline bool mt_call_is_over(const mt_call *call)
{
    return call->state == MT_CALL_LEFT || call->state == MT_CALL_OVER || call->state == MT_CALL_KEPT;
}

/* Prepared, and not over. */
static inline bool mt_call_answers(const mt_call *call)
{
    return mt_call_is_prepared(call) && !mt_call_is_over(call);
}

/* Io thread: from one state to another, which asserts that there is such a way. Ends what is said to the client, in
   whichever state. */
void mt_call_change(mt_call *call, mt_call_state to);
void mt_call_end(mt_call *call);

/* Io thread: whether there may be a place for what a request asks, of which the body need not be known. False, and
   it is counted as refused: *why. */
bool mt_call_may_start(mt_server *server, const mt_http_request *request, mt_failure *why) MT_NODISCARD;

/* Io thread. Takes request. */
void mt_call_start(mt_server *server, mt_http_request *request, const mt_dialect *dialect, mt_task *task);

/* Io thread: one that still has something to say, of an account (NULL: of any); NULL: there is none of that id. */
mt_call *mt_call_find(const mt_server *server, const mt_account *account, const char *id);

/* What is kept for whoever calls. */
mt_store *mt_call_store(const mt_call *call);

/* Io thread: frees it when invariant 1 of call.c allows that. */
void mt_call_release(mt_call *call);

/* Io thread, of one that is held: ends it with what is wrong, as an answer or within its stream. */
void mt_call_fail(mt_call *call, const mt_failure *why);

/* What every answer carries. Returns how many headers that are. */
enum { MT_CALL_HEADERS = 4 };
size_t mt_call_headers(const mt_call *call, mt_http_header out[MT_CALL_HEADERS]);

/* Io thread: the head of a stream of events. False: the client has left. */
bool mt_call_begin_stream(const mt_call *call, mt_http_handle handle) MT_NODISCARD;

/* Any thread: no more is computed for it. */
void mt_call_cancel(mt_call *call);

/* Preparation thread, before mt_call_submit: says what of the ask is not looked at, in the log and to the client. */
void mt_call_note(mt_call *call, const mt_ask *ask);

/* The same of a sentence: the answer carries it in a "warning" header, behind those before it. What no header may hold
   becomes a blank. */
void mt_call_warn(mt_call *call, const char *fmt, ...) MT_PRINTF(2, 3);

/* Preparation thread: what its body says. NULL: the lane has changed, or *why says why not. See body.c. */
json_t *mt_call_body(mt_call *call, mt_failure *why) MT_NODISCARD;

/* Preparation thread: makes the call's letter ready and posts it; or parks it until it has its model. See prepare.c. */
void mt_call_prepare(mt_call *call);

/* Any thread: a call that was parked goes on, or ends because of *why. */
void mt_call_resume(mt_call *call, const mt_failure *why);

/* Preparation thread: hands prepared requests over to the engine, all or none. A call for vectors may have many: it is
   let in with a place for one, and hands over as many as it has places for. */
bool mt_call_submit(mt_call *call, mt_request **requests, size_t count, mt_error *err) MT_NODISCARD;
bool mt_call_cancelled(mt_call *call);

/* Io thread: keeps no more places than are needed. */
void mt_call_give_places(mt_call *call, size_t needed);

/* Io thread, after preparation: hands over more of the requests, where there are many. */
bool mt_call_more(mt_call *call, mt_error *err) MT_NODISCARD;

/* The engine's thread; ctx is an mt_call_source. The io thread is given a copy of the event: call->take. resume: as
   many waited as may, and now none does. */
void mt_call_event(void *ctx, const mt_event *event);

#endif
