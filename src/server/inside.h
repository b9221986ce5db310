/* The server object, and what the files of src/server share. Made by server.c. */
#ifndef MT_SERVER_INSIDE_H
#define MT_SERVER_INSIDE_H

#include "api/recent.h"
#include "api/store.h"
#include "files/store.h"
#include "http/http.h"
#include "http/proxies.h"
#include "options/options.h"
#include "server/batches/batches.h"
#include "server/calls/call.h"
#include "server/calls/deadline.h"
#include "server/calls/guard.h"
#include "server/calls/keys.h"
#include "server/calls/mailbox.h"
#include "server/calls/timeout.h"
#include "server/calls/transfer.h"
#include "server/fleet/card.h"
#include "server/fleet/created.h"
#include "server/fleet/fleet.h"
#include "server/fleet/warm.h"
#include "server/metrics/dashboard.h"
#include "server/notify.h"
#include "server/prepare/workers.h"

struct event;
typedef struct mt_pulling mt_pulling;

struct mt_server {
    const mt_options *opt; /* borrowed */
    mt_http_server *http;
    mt_mailbox *mailbox;              /* messages to the io thread */
    mt_workers *lanes[MT_LANE_COUNT]; /* pools of preparation threads; NULL until ready */
    size_t body_most;                 /* most bytes of an uncompressed body */
    /* Bytes for bodies and what is parsed from them. The rest of the memory for requests is for working on them. */
    mt_room room;
    mt_keys keys;
    mt_http_proxies proxies;
    mt_guard guard;
    atomic_bool isolate; /* cached prompts are not shared between accounts */
    mt_fleet fleet;
    mt_store *store;      /* answers kept for clients without an account; NULL: none */
    mt_created creations; /* models that clients have created of others */
    mt_uploads uploaded;  /* pictures that clients have sent, to refer to them */
    mt_files *files;      /* that clients keep here; NULL: they may not */
    mt_rendered rendered; /* of the PDFs of clients */
    mt_batches *batches;  /* beside the files; NULL: there are none */
    mt_cards cards;       /* descriptions of models, for lists */
    int64_t created;      /* start of the server, seconds since 1970 */

    /* Only the io thread uses the following fields. */
    bool ready;           /* calls are accepted; with a single model, once that is loaded */
    bool closing;         /* the event loop has ended: nothing more is sent */
    int signals;          /* how many signals to end were received */
    mt_deadline deadline; /* set by the first signal */
    mt_call *calls;       /* all calls, newest first */
    size_t call_count;
    uint64_t calls_total;     /* calls that were let in */
    uint64_t cancelled_total; /* calls whose client left before the end */
    uint64_t refused_total;   /* calls that found no place or no model */
    uint64_t detached_total;  /* background answers that went on although their client had left */
    uint64_t forsaken_total;  /* background answers that were ended because no client followed them */
    uint64_t memory_refused;  /* mt_alloc_refused_all when it was last logged */
    uint64_t timeouts[MT_TIMEOUT_PHASES];
    uint64_t reloads[2]; /* failed ones, and successful ones */
    mt_dashboard dashboard;
    mt_warm warm;
    mt_pulling *pulls; /* downloads of models for clients */
    size_t pull_count;
    mt_transfer *transfers; /* files that clients send or fetch */
    uint64_t trimmed;       /* calls_total when memory was last given back to the system */
    mt_notify notify;       /* tells systemd how the server is; any thread once opened */
    struct event *wake, *terminated, *interrupted, *tick, *second, *watchdog, *timeouts_look, *quit, *hangup;

    mt_message loaded_message; /* posted when a single model is loaded, or cannot be */
    mt_error load_error;       /* why it cannot; read only after the message, or after the fleet has stopped */
};

/* State of a WebSocket, made by hooks.socket_open. */
typedef struct mt_socket {
    mt_recent *recent; /* owned */
    char *key;         /* the API key that its client has named in a message; owned; NULL: none */
} mt_socket;

/* Io thread: whether a request may go on; false: *refusal, in which status is 401 before. mt_server_admit_greeting: the
   handshake of a WebSocket whose client sends its key later. See admit.c. */
bool mt_server_admit(mt_server *server, mt_http_request *request, mt_http_refusal *refusal) MT_NODISCARD;
bool mt_server_admit_greeting(mt_server *server, mt_http_request *request, mt_http_refusal *refusal) MT_NODISCARD;

/* Answers with an error in the dialect's shape (NULL: OpenAI's), a 429 or 503 with a retry-after header; or with JSON.
   False: the client has left. */
bool mt_server_fail(mt_server *server, mt_http_handle handle, const mt_dialect *dialect, const mt_failure *why);
bool mt_server_json(mt_server *server, mt_http_handle handle, const mt_buf *body);

/* Io thread: appends to out the answer to a GET or the like; false: *why. */
typedef bool mt_teller(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why);

/* Flags of routes. */
enum {
    MT_SERVER_METERED = MT_HTTP_FLAGS_FREE,    /* its calls count against the rates of a key */
    MT_SERVER_WRITES = MT_HTTP_FLAGS_FREE * 2, /* its calls want text of a model, and a place to wait for it */
    MT_SERVER_MODEL = MT_HTTP_FLAGS_FREE * 4,  /* the first parameter of its path names the model */
    /* A WebSocket whose client sends its API key in a message: its handler admits each message (mt_server_admit) */
    MT_SERVER_GREETED = MT_HTTP_FLAGS_FREE * 8
};

/* The table of routes; their handlers get the server as `user`. Free with mt_free. */
mt_http_route *mt_server_routes(mt_server *server, size_t *count);

/* The dialect in which errors at a path are written: that of the most similar route; where that is of several APIs, the
   one that the request (NULL: not known) is of. */
const mt_dialect *mt_server_dialect(const char *path, const mt_http_request *request);
/* Of a request to a path that OpenAI's and Anthropic's APIs both have. */
const mt_dialect *mt_server_dialect_spoken(const mt_http_request *request);
const mt_dialect *mt_server_dialect_of(const mt_http_route *route); /* of a route that has one */

/* Appends the running and waiting requests of an account (NULL: of all) as JSON. */
void mt_status_write(mt_server *server, const mt_account *account, mt_buf *out);

/* Io thread, on SIGHUP: reads keys, certificates and the like again; what cannot be read stays as it was, with a line
   in the log. mt_reload_share, also called at the start, opens stores for accounts that have none and decides whether
   accounts share cached prompts. See reload.c. */
void mt_reload(mt_server *server);
void mt_reload_share(mt_server *server);

/* Io thread, on SIGQUIT: writes the server's state to standard error, as one line of JSON. mt_state_check_steps, each
   second: logs steps that have run for longer than --slow-step, once each. See state.c. */
void mt_state_dump(mt_server *server);
void mt_state_check_steps(mt_server *server);

/* Preparation thread, for a call for vectors: makes its answer in the ask's arena and one request for each text, and
   submits them. See embed.c. */
bool mt_embed_prepare(mt_call *call, mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Io thread: writes a comment or the like to streams that were silent since the last time. */
void mt_server_keep_alive(mt_server *server);

/* Tasks: what preparation threads do for calls that need no engine. See tasks.c, render.c, ollama.c, others.c,
   lmstudio.c. */
extern const mt_task mt_task_tokenize, mt_task_detokenize, mt_task_apply_template, mt_task_render, mt_task_render_chat,
    mt_task_tags, mt_task_ps, mt_task_show, mt_task_delete, mt_task_props, mt_task_slots, mt_task_cache_reset,
    mt_task_lmstudio_models, mt_task_lmstudio_model, mt_task_lmstudio_list, mt_task_lmstudio_find,
    mt_task_lmstudio_load, mt_task_lmstudio_config, mt_task_lmstudio_tokenize, mt_task_lmstudio_upload, mt_task_create,
    mt_task_copy, mt_task_blob, mt_task_tokenizer_info;

/* The contents of the cache, and emptying it: see cache.c. mt_cache_may: whether the account may empty it, as it may
   unload models; false: *why. */
extern mt_teller mt_cache_tell;
bool mt_cache_may(const mt_server *server, const mt_account *account, mt_failure *why) MT_NODISCARD;

/* Fetching and deleting models by Ollama's API, which is off unless the operator allows it. mt_ollama_may: whether the
   caller may: with --allow-pull, and where keys are needed, an admin's key; false: *why. mt_ollama_model: the name of
   the model in a body, without the tag ":latest"; NULL: *why; free with mt_free. mt_ollama_plain_name: a name without
   that tag; free with mt_free. */
bool mt_ollama_may(const mt_server *server, const mt_account *account, mt_failure *why) MT_NODISCARD;
char *mt_ollama_model(const json_t *body, mt_failure *why) MT_NODISCARD;
char *mt_ollama_plain_name(const char *name) MT_NODISCARD;

/* Routes of other servers' APIs: see pull.c, ollama.c and others.c. */
extern mt_http_handler mt_ollama_pull;
extern mt_teller mt_others_load, mt_others_push;

/* Metrics in Prometheus' text format, as far as the account may see them: see metrics.c. */
extern mt_teller mt_metrics_tell;

/* mt_pulls_cancel ends downloads and tells their clients; mt_pulls_stop waits for them, when the event loop has ended.
   See pull.c. */
void mt_pulls_cancel(mt_server *server);
void mt_pulls_stop(mt_server *server);

/* Pictures that are sent once and referred to: see uploads.h. */
extern mt_http_handler mt_upload_put;
extern mt_teller mt_upload_get, mt_upload_delete, mt_web_limits;

/* Messages on the WebSockets of LM Studio's SDKs: see lmstudio_socket.c. */
extern mt_http_handler mt_lmstudio_message;

/* Files that models are made of: see blobs.c. */
extern mt_http_handler mt_blobs_put;

/* Files that clients keep here and refer to: see files.c. */
extern mt_http_handler mt_files_put, mt_files_list_get, mt_files_get, mt_files_content, mt_files_delete;

/* Io thread: starts a task of a request without a body, for which the values of its query are the body. */
void mt_files_start_task(mt_server *server, mt_http_request *request, const mt_dialect *dialect, const mt_task *task);

/* Batches: see routes/batches.c. */
extern const mt_task mt_task_batch_create, mt_task_batch_create_list;
extern mt_http_handler mt_batches_get, mt_batches_listed, mt_batches_cancelled, mt_batches_deleted, mt_batches_content;

/* The list of models: see models.c. mt_models_may: whether the account may unload models: where there are
   several, only admins; false: *why, which may be NULL. */
extern mt_teller mt_models_list, mt_models_get, mt_models_unload;
extern mt_teller mt_gemini_models, mt_gemini_model; /* in the shape of Gemini's API: see gemini.c */
bool mt_models_may(const mt_server *server, const mt_account *account, mt_failure *why);

/* Responses that are kept or still run: see stored.c. */
extern mt_http_handler mt_stored_get, mt_stored_delete, mt_stored_items, mt_stored_cancel;

#endif
