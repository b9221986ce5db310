/* What the files of the server share. */
#ifndef MT_SERVER_INSIDE_H
#define MT_SERVER_INSIDE_H

#include "api/store.h"
#include "http/http.h"
#include "http/proxies.h"
#include "server/call.h"
#include "server/card.h"
#include "server/dashboard.h"
#include "server/deadline.h"
#include "server/fleet.h"
#include "server/guard.h"
#include "server/keys.h"
#include "server/mailbox.h"
#include "server/notify.h"
#include "server/options.h"
#include "server/timeout.h"
#include "server/workers.h"

struct event;
typedef struct mt_pulling mt_pulling;

struct mt_server {
    const mt_options *opt;
    mt_http_server *http;
    mt_mailbox *mailbox;
    mt_workers *lanes[MT_LANE_COUNT]; /* NULL until it is ready */
    size_t body_most;                 /* bytes of a body when it is unpacked */
    mt_room room; /* for bodies and what is made of them; the rest of what is for requests is for making it */
    mt_keys keys;
    mt_http_proxies proxies;
    mt_guard guard;
    atomic_bool isolate; /* what is cached is an account's own */
    mt_fleet fleet;
    mt_store *store;
    mt_cards cards;
    int64_t created; /* seconds since 1970 */

    /* the io thread's */
    bool ready;           /* it takes calls: of one model alone, when that is open */
    bool closing;         /* the loop has ended: nothing is sent any more */
    int signals;          /* SIGTERM and SIGINT so far: from the first on, the server drains */
    mt_deadline deadline; /* from the first signal on */
    mt_call *calls;       /* the newest first */
    size_t call_count;
    uint64_t calls_total;     /* that were let in */
    uint64_t cancelled_total; /* of these, those whose client left */
    uint64_t refused_total;   /* that found no place, or no model */
    uint64_t detached_total;  /* answers in the background that went on though their client had left */
    uint64_t memory_refused;  /* mt_alloc_refused_all when it was last told of */
    uint64_t timeouts[MT_TIMEOUT_PHASES];
    uint64_t reloads[2]; /* that failed, and those that did not */
    mt_dashboard dashboard;
    mt_pulling *pulls; /* models that are being fetched for clients */
    size_t pull_count;
    uint64_t trimmed; /* calls_total when memory was last given back */
    mt_notify notify; /* any thread's, once it is open */
    struct event *wake, *terminated, *interrupted, *tick, *second, *watchdog, *timeouts_look, *quit, *hangup;

    mt_letter loaded_letter; /* the only model is open, or not */
    mt_error load_error;     /* why not; read when the letter has come or the fleet has stopped */
};

/* Answer with what is wrong, in the dialect's shape (NULL: OpenAI's), a 429 or 503 with a retry-after; or with JSON.
   False when the client has left. */
bool mt_server_fail(mt_server *server, mt_http_handle handle, const mt_dialect *dialect, const mt_failure *why);
bool mt_server_json(mt_server *server, mt_http_handle handle, const mt_buf *body);

/* Io thread: writes an answer from what the server knows, or says why not. */
typedef bool mt_teller(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why);

enum {
    MT_SERVER_METERED = MT_HTTP_FLAGS_FREE,   /* a route whose calls count against the rates of a key */
    MT_SERVER_WRITES = MT_HTTP_FLAGS_FREE * 2 /* whose calls all want text of a model, and a place to wait for it */
};

/* The table of routes, whose user is the server. Free with mt_free. */
mt_http_route *mt_server_routes(mt_server *server, size_t *count);

/* In whose shape a client at a path is told what is wrong: that of the route that is most like it. */
const mt_dialect *mt_server_dialect(const char *path);

/* Prometheus' text format, as an account may see it. */
void mt_metrics_write(mt_server *server, const mt_account *account, mt_buf *out);

/* The running and waiting requests of an account, or of all, as JSON. */
void mt_status_write(mt_server *server, const mt_account *account, mt_buf *out);

/* What SIGHUP reads again; what cannot be read leaves what there is, with a line in the log. And, at the start, too:
   opens what accounts keep, of those that have none yet, and says whether accounts are kept apart. Io thread: see
   reload.c. */
void mt_reload(mt_server *server);
void mt_reload_share(mt_server *server);

/* SIGQUIT: writes what the server is at to standard error, as one line of JSON, whole. And, once a second: names steps
   that have run for longer than --slow-step, each once. Io thread: see state.c. */
void mt_state_dump(mt_server *server);
void mt_state_check_steps(mt_server *server);

/* Of a call for vectors: makes its answer in the ask's arena, and one request for each text, which are handed over. On
   preparation threads: see embed.c. */
bool mt_embed_prepare(mt_call *call, mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Streams that had nothing to say since the last time are told so. */
void mt_server_keep_alive(mt_server *server);

extern mt_task mt_task_tokenize, mt_task_detokenize, mt_task_apply_template, mt_task_render, mt_task_render_chat,
    mt_task_tags, mt_task_ps, mt_task_show, mt_task_delete, mt_task_props, mt_task_slots;

/* What other servers tell of themselves: see ollama.c and others.c. */
extern mt_http_handler mt_ollama_pull;
extern mt_teller mt_ollama_version, mt_others_version, mt_others_load;

/* Ends what is fetched for clients, who are told; and waits for that, when nobody can be told any more: see pull.c. */
void mt_pulls_cancel(mt_server *server);
void mt_pulls_stop(mt_server *server);

/* The models there are: see models.c. */
extern mt_teller mt_models_list, mt_models_get, mt_models_unload;
bool mt_models_may(const mt_server *server, const mt_account *account, mt_failure *why); /* unload them */

/* Responses that were given, and those that run: see stored.c. */
extern mt_http_handler mt_stored_get, mt_stored_delete, mt_stored_items, mt_stored_cancel;

#endif
