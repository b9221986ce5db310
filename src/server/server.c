/* The thread that calls mt_serve becomes the io thread. It checks the models' folders and listens before a single model
   is loaded on the fleet's thread: so an early client gets a 503 rather than no connection, and a wrong folder or a
   port in use is reported at once. With several models none is loaded before a call asks for it, and the server is
   ready at once.

   The end has an order, so that no thread posts to what is freed: the event loop ends (the http server has completed or
   dropped all exchanges), loading ends, preparation ends, the engines end, remaining messages are opened with `closing`
   set, the http server is freed. */
#include "server/server.h"
#include "hub/names.h"
#include "hub/upload.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "api/json_body.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/signals.h"
#include "http/limits.h"
#include "media/decode_process.h"
#include "ranks/ranks.h"
#include "server/inside.h"
#include "server/limits.h"
#include "server/lockdown.h"
#include "server/routes/web.h"

/* SECOND: in milliseconds; KEEP_SECONDS: how long files are kept by default */
enum { SECOND = 1000, KEEP_SECONDS = 30 * 86400 };

/* The http server's hook: whether a request may go on, judged by its head. */
static bool admit(void *user, mt_http_request *request, mt_http_refusal *refusal)
{
    mt_server *server = user;

    if (!(request->route->flags & MT_SERVER_GREETED))
        return mt_server_admit(server, request, refusal);
    return request->socket || mt_server_admit_greeting(server, request, refusal);
}

/* The http server's hook: adds headers to each answer. */
static void add_headers(void *user, const void *who, mt_http_extra *extra)
{
    (void)user;
    mt_account_headers((mt_account *)(uintptr_t)who, mt_clock_ns(), extra);
}

/* The http server's hook: writes the body of errors that it finds itself. */
static void error_body(void *user, const mt_http_route *route, const mt_http_request *request, const char *path,
                       int status, const char *code, const char *sentence, mt_buf *body)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {{401, "invalid_api_key"},        {403, "forbidden"},           {404, "not_found"},
                 {405, "method_not_allowed"},     {408, "request_timeout"},     {413, "request_too_large"},
                 {415, "unsupported_media_type"}, {414, "request_too_large"},   {431, "request_too_large"},
                 {426, "upgrade_required"},       {429, "rate_limit_exceeded"}, {503, "overloaded"}};
    mt_failure why;

    (void)user;
    for (size_t i = 0; i < MT_COUNT(codes) && !code; i++)
        if (codes[i].status == status)
            code = codes[i].code;
    mt_failure_set(&why, status, code, NULL, "%s", sentence);
    (route ? mt_server_dialect_of(route) : mt_server_dialect(path, request))->error(body, &why);
}

/* The http server's hooks: what a WebSocket has for itself. */
static void *open_socket(void *user)
{
    mt_socket *socket = mt_alloc(sizeof(*socket));

    socket->recent = mt_recent_new(&((mt_server *)user)->room);
    return socket;
}

static void close_socket(void *user, void *state)
{
    mt_socket *socket = state;

    (void)user;
    mt_recent_release(socket->recent);
    mt_free(socket->key);
    mt_free(socket);
}

/* The mailbox has messages. */
static void wake(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;

    (void)fd;
    (void)what;
    mt_mailbox_open(server->mailbox);
}

/* Gives memory that the C library has kept from earlier requests back to the system, while there is no call: else the
   process stays larger than --memory says. */
static void trim(mt_server *server)
{
    if (server->call_count > 0 || server->trimmed == server->calls_total)
        return;
    mt_alloc_trim();
    server->trimmed = server->calls_total;
}

/* Timer, every --keep-alive-seconds. */
static void tick(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;

    (void)fd;
    (void)what;
    mt_server_keep_alive(server);
    trim(server);
}

/* Timer that runs only while there are calls. */
static void check_timeouts(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;

    (void)fd;
    (void)what;
    mt_timeouts_check(server);
    if (server->calls)
        mt_timeouts_watch(server);
}

/* Where one of several ranks is lost, nothing can be computed any more: waiting clients get an error, and the server
   ends. */
static void check_ranks_alive(mt_server *server)
{
    mt_error why = {0};

    mt_ranks_check(mt_ranks_all());
    if (server->load_error.code != MT_OK || mt_ranks_well(mt_ranks_all(), &why))
        return;
    server->load_error = why;
    if (!mt_deadline_set(&server->deadline, MT_LIMIT_END_MS))
        mt_log_warn("server.deadline", "no thread can be started that sees to the end: all others are waited for");
    mt_notify_send(&server->notify, "STOPPING=1\nSTATUS=%s", why.text);
    mt_http_server_drain(server->http, SECOND);
}

/* Timer, each second. */
static void each_second(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;

    (void)fd;
    (void)what;
    check_ranks_alive(server);
    mt_fleet_tick(&server->fleet);
    mt_state_check_steps(server);
    mt_warm_check(server);
}

/* Timer for the service manager's watchdog: tells it that we are alive if all engines are. That this runs shows that
   the io thread is. */
static void feed_watchdog(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;
    bool alive = true;

    (void)fd;
    (void)what;
    pthread_mutex_lock(&server->fleet.lock);
    for (size_t i = 0; i < server->fleet.count; i++) {
        const mt_member *m = server->fleet.members[i];

        alive =
            alive && (!m->open || mt_notify_alive(&server->notify, mt_clock_ns(), mt_engine_turn(m->served.engine)));
    }
    pthread_mutex_unlock(&server->fleet.lock);
    if (alive)
        mt_notify_send(&server->notify, "WATCHDOG=1");
}

/* SIGTERM and SIGINT. */
static void signalled(evutil_socket_t number, short what, void *user)
{
    mt_server *server = user;

    (void)what;
    if (server->signals++ > 0) {
        mt_log_warn("server.killed", "a second signal: ending at once");
        _exit(128 + (int)number);
    }
    mt_log_info("server.draining", "%zu calls may end within %lld s; a second signal ends at once", server->call_count,
                (long long)server->opt->drain_seconds);
    if (!mt_deadline_set(&server->deadline, (int)server->opt->drain_seconds * SECOND + MT_LIMIT_END_MS))
        mt_log_warn("server.deadline", "no thread can be started that sees to the end: all others are waited for");
    mt_notify_send(&server->notify, "STOPPING=1\nSTATUS=answering what has begun");
    mt_dashboard_end(server);
    if (server->batches)
        mt_batches_drain(server->batches);
    mt_pulls_cancel(server);
    mt_transfer_cancel_all(server);
    mt_http_server_leave(server->http, number == SIGTERM ? (int)server->opt->drain_listen_seconds * SECOND : 0);
    mt_http_server_drain(server->http, (int)server->opt->drain_seconds * SECOND);
}

/* SIGQUIT. */
static void asked_for_state(evutil_socket_t number, short what, void *user)
{
    (void)number;
    (void)what;
    mt_state_dump(user);
}

/* SIGHUP. */
static void asked_to_reload(evutil_socket_t number, short what, void *user)
{
    (void)number;
    (void)what;
    mt_reload(user);
}

/* SIGHUP reloads, unless the server was started on a terminal: then it ends when the terminal is closed. */
static bool add_reload(mt_server *server, struct event_base *loop)
{
    if (isatty(STDERR_FILENO))
        return true;
    server->hangup = evsignal_new(loop, SIGHUP, asked_to_reload, server);
    return server->hangup && !event_add(server->hangup, NULL);
}

/* Starts the lanes, the last first: a lane hands calls on to later ones. */
static bool start_lanes(mt_server *server)
{
    const size_t text = (size_t)server->opt->prep_threads, media = (size_t)server->opt->media_threads;
    const struct {
        size_t threads, spare, calls;
        /* A third of MT_LIMIT_PREPARING is for other clients */
    } lanes[] = {[MT_LANE_SMALL] = {text, MT_LIMIT_PREPARING_SPARE, 2 * MT_LIMIT_PREPARING},
                 [MT_LANE_COMPILE] = {text, MT_LIMIT_PREPARING_SPARE, MT_LIMIT_PREPARING},
                 /* There is memory for one large body at a time; other lanes add calls, too */
                 [MT_LANE_LARGE] = {1, 0, 2 * MT_LIMIT_PREPARING_LARGE},
                 [MT_LANE_MEDIA] = {media, MT_LIMIT_PREPARING_SPARE, MT_LIMIT_PREPARING_MEDIA}};

    for (size_t i = MT_LANE_COUNT; i-- > 0;) {
        const mt_workers_settings settings = {.threads = lanes[i].threads,
                                              .spare = lanes[i].spare,
                                              .long_ms = MT_LIMIT_PREPARING_LONG_MS,
                                              .capacity = lanes[i].calls + MT_LIMIT_LOADING,
                                              .prepare = mt_call_prepare};

        server->lanes[i] = mt_workers_start(&settings, &server->load_error);
        if (!server->lanes[i])
            return false;
    }
    return true;
}

/* Of the memory for requests, two fifths are for requests that are read, wait or run; the rest is for working on the
   one large body that is prepared at a time. */
static void share_memory(mt_server *server)
{
    mt_fleet *fleet = &server->fleet;
    const size_t all = (size_t)fleet->requests, most = all / 5 * 3 / MT_LIMIT_PREPARE_COST;

    server->room.limit = all / 5 * 2;
    fleet->work = all / 5 * 3;
    mt_json_body_bound(fleet->work / 3 * 2);
    server->body_most = most < (size_t)server->opt->max_body ? most : (size_t)server->opt->max_body;
    mt_http_server_bound(server->http, server->body_most);
    mt_uploads_allow(&server->uploaded, (uint64_t)server->opt->upload_bytes < server->room.limit / 4
                                            ? (size_t)server->opt->upload_bytes
                                            : server->room.limit / 4);
}

/* From here on calls are accepted. */
static bool get_ready(mt_server *server)
{
    share_memory(server);
    server->ready = start_lanes(server) && mt_dashboard_open(server) &&
                    (!server->batches || mt_batches_start(server->batches, server->body_most, &server->load_error));
    return server->ready;
}

/* The message that a single model is loaded, or cannot be: its engine has decided how much memory is for requests. */
static void open_loaded(mt_message *message)
{
    mt_server *server = (mt_server *)(void *)((char *)message - offsetof(mt_server, loaded_message));
    mt_member *only = server->fleet.members[0];

    if (server->closing)
        return;
    if (server->load_error.code == MT_OK) {
        server->fleet.requests = only->served.requests;
        if (get_ready(server)) {
            only->served.work = server->fleet.work;
            mt_notify_send(&server->notify, "READY=1\nSTATUS=serving \"%s\"", only->name);
            mt_warm_check(server);
            return;
        }
    }
    mt_http_server_drain(server->http, 0);
}

/* The fleet's callback, on its thread. */
static void begun(void *ctx)
{
    mt_server *server = ctx;

    mt_guard_resolve(&server->guard);
}

/* The fleet's callback, on its thread: a single model is loaded, or cannot be. */
static void loaded(void *ctx, const mt_error *err)
{
    mt_server *server = ctx;

    if (err)
        server->load_error = *err;
    mt_mailbox_post(server->mailbox, &server->loaded_message);
}

/* The fleet's callback: a call's wait for its model is over. */
static void resume(void *ctx, mt_waiter *waiter, const mt_failure *why)
{
    (void)ctx;
    mt_call_resume((mt_call *)(void *)((char *)waiter - offsetof(mt_call, waiter)), why);
}

static mt_http_server *listen_on(mt_server *server, const mt_http_route *routes, size_t count, mt_error *err)
{
    const mt_options *opt = server->opt;
    mt_http_config config = {.host = opt->host ? opt->host : "127.0.0.1",
                             .port = (int)opt->port,
                             .routes = routes,
                             .route_count = count,
                             .hooks = {.user = server,
                                       .admit = admit,
                                       .headers = add_headers,
                                       .error_body = error_body,
                                       .socket_open = open_socket,
                                       .socket_closed = close_socket},
                             .origins = opt->origins.at,
                             .origin_count = opt->origins.count,
                             .tls_certificate = opt->tls_cert,
                             .tls_key = opt->tls_key,
                             .proxies = &server->proxies,
                             .room = &server->room,
                             .limits = mt_http_limits_default()};

    mt_uploads_init(&server->uploaded, &server->room);
    mt_rendered_init(&server->rendered, &server->room);
    server->room.limit = MT_LIMIT_HTTP_BODIES_BYTES; /* until the models' memory is known */
    config.limits.connections = (size_t)opt->max_connections;
    config.limits.head_bytes = (size_t)opt->max_header;
    config.limits.body_bytes = (size_t)opt->max_body;
    config.limits.idle_ms = (int)opt->idle_seconds * SECOND;
    return mt_http_server_new(&config, err);
}

static bool add_events(mt_server *server)
{
    struct event_base *loop = mt_http_server_loop(server->http);
    const struct timeval often = {.tv_sec = server->opt->keep_alive_seconds}, second = {.tv_sec = 1};
    /* Of the watchdog's time, so that one late sign does no harm */
    const uint64_t quarter = server->notify.watchdog_ns / 4;
    const struct timeval watched = {.tv_sec = (time_t)(quarter / 1000000000),
                                    .tv_usec = (suseconds_t)(quarter % 1000000000 / 1000)};

    server->wake = event_new(loop, mt_mailbox_fd(server->mailbox), EV_READ | EV_PERSIST, wake, server);
    server->terminated = evsignal_new(loop, SIGTERM, signalled, server);
    server->interrupted = evsignal_new(loop, SIGINT, signalled, server);
    server->quit = evsignal_new(loop, SIGQUIT, asked_for_state, server);
    server->tick = event_new(loop, -1, EV_PERSIST, tick, server);
    server->second = event_new(loop, -1, EV_PERSIST, each_second, server);
    server->timeouts_look = event_new(loop, -1, 0, check_timeouts, server);
    if (watched.tv_sec || watched.tv_usec) {
        server->watchdog = event_new(loop, -1, EV_PERSIST, feed_watchdog, server);
        if (!server->watchdog || event_add(server->watchdog, &watched))
            return false;
    }
    return server->wake && server->terminated && server->interrupted && server->tick && server->second &&
           server->timeouts_look && server->quit && !event_add(server->quit, NULL) && add_reload(server, loop) &&
           !event_add(server->wake, NULL) && !event_add(server->terminated, NULL) &&
           !event_add(server->interrupted, NULL) && !event_add(server->tick, &often) &&
           !event_add(server->second, &second);
}

static void free_event(struct event *event)
{
    if (event)
        event_free(event);
}

/* Logs where the server listens. */
static void report(const mt_server *server)
{
    const char *host = server->opt->host ? server->opt->host : "127.0.0.1", *scheme = server->opt->tls_cert ? "s" : "";

    if (mt_http_server_port(server->http))
        mt_log_info("server.listening", "http%s://%s:%d", scheme, host, mt_http_server_port(server->http));
    else
        mt_log_info("server.listening", "%s", host);
}

/* Opens the accounts' stores. Where there is one account alone, it gets the answers that were kept while no keys were
   needed. */
static void share_store(mt_server *server)
{
    mt_reload_share(server);
    if (server->keys.account_count == 1)
        mt_store_adopt(server->keys.accounts[0]->store);
}

/* Batches, in a folder of the files'. */
static bool open_batches(mt_server *server, int64_t keep, mt_error *err)
{
    const mt_options *opt = server->opt;
    const mt_batches_settings settings = {.server = server,
                                          .files = server->files,
                                          .at_once = opt->batch_lines ? (size_t)opt->batch_lines
                                                                      : MT_MAX((size_t)opt->max_sequences / 2, 1),
                                          .keep = keep};
    char folder[MT_LIMIT_PATH];

    if (snprintf(folder, sizeof(folder), "%s/batches", opt->files_dir) >= (int)sizeof(folder))
        return mt_fail(err, MT_E_INVALID, "the name of the folder \"%.200s\" is too long", opt->files_dir);
    server->batches = mt_batches_open(folder, &settings, err);
    return server->batches != NULL;
}

static bool open_files(mt_server *server, mt_error *err)
{
    const double keep = server->opt->files_keep;
    const mt_files_limits limits = {.bytes = (uint64_t)server->opt->files_bytes,
                                    .files = MT_LIMIT_FILES,
                                    .seconds = isnan(keep) ? KEEP_SECONDS
                                               : keep < 0  ? 0
                                                           : (int64_t)keep};

    server->files = mt_files_open(server->opt->files_dir, limits, err);
    return server->files && open_batches(server, limits.seconds, err);
}

static bool begin(mt_server *server, const mt_http_route *routes, size_t count, mt_error *err)
{
    const mt_store_size limits = {.entries = server->opt->store_entries, .bytes = server->opt->store_bytes};

    const mt_fleet_params fleet = {
        .opt = server->opt, .resume = resume, .begun = begun, .loaded = loaded, .ctx = server};

    if ((server->opt->warm_prompts && !mt_warm_read(&server->warm.list, server->opt->warm_prompts, err)) ||
        !mt_fleet_open(&server->fleet, &fleet, err))
        return false;
    mt_lockdown(server->opt, &server->fleet);
    if (!mt_fleet_equip(&server->fleet, err) ||
        !mt_keys_read(&server->keys, &server->opt->api_keys, server->opt->keys, err) ||
        !mt_warm_may(server->opt, &server->keys, err) ||
        !mt_guard_init(&server->guard, server->opt, server->keys.count > 0, err))
        return false;
    for (size_t i = 0; i < server->opt->trusted_proxies.count; i++)
        if (!mt_http_proxies_add(&server->proxies, server->opt->trusted_proxies.at[i], err))
            return false;
    for (size_t i = 0; i < server->opt->web_connect.count; i++)
        if (!mt_web_may_connect(server->opt->web_connect.at[i], err))
            return false;
    server->store = mt_store_open(server->opt->store, limits, err);
    if (!server->store)
        return false;
    share_store(server);
    if (server->opt->files_dir && !open_files(server, err))
        return false;
    server->http = listen_on(server, routes, count, err);
    if (!server->http)
        return false;
    server->mailbox = mt_mailbox_new();
    if (!server->mailbox || !add_events(server))
        return mt_fail(err, MT_E_IO, "the event loop cannot be set up; are there file descriptors left?");
    report(server);
    server->loaded_message.open = open_loaded;
    if (server->fleet.alone)
        mt_notify_send(&server->notify, "STATUS=loading \"%s\"", server->fleet.members[0]->name);
    else if (get_ready(server))
        mt_notify_send(&server->notify, "READY=1\nSTATUS=serving models when they are asked for");
    else {
        *err = server->load_error;
        return false;
    }
    return mt_fleet_start(&server->fleet, err);
}

/* From here on signals have their default effect. A signal that was caught as the loop ended is handled first. */
static void end_signals(mt_server *server)
{
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (server->http)
        event_base_loop(mt_http_server_loop(server->http), EVLOOP_NONBLOCK);
    free_event(server->terminated);
    free_event(server->interrupted);
}

/* Ends everything in the order that this file's first comment gives. A model that is being loaded, or a request that is
   being prepared, is waited for until the deadline; a second signal ends the process at once. */
static void end(mt_server *server)
{
    server->closing = true;
    free_event(server->wake);
    free_event(server->tick);
    free_event(server->second);
    free_event(server->watchdog);
    free_event(server->timeouts_look);
    free_event(server->quit);
    free_event(server->hangup);
    server->timeouts_look = NULL;
    mt_dashboard_close(server);
    end_signals(server);
    mt_batches_stop(server->batches);
    mt_fleet_stop(&server->fleet);
    mt_pulls_stop(server);
    mt_transfer_stop_all(server);
    for (size_t i = 0; i < MT_LANE_COUNT; i++) /* the first lane first: it hands calls on to later ones */
        mt_workers_stop(server->lanes[i]);
    mt_fleet_end(&server->fleet);
    mt_mailbox_free(server->mailbox);
    mt_http_server_free(server->http);
    mt_fleet_close(&server->fleet);
    mt_keys_free(&server->keys);
    mt_store_close(server->store);
    mt_created_close(&server->creations);
    mt_uploads_free(&server->uploaded);
    mt_rendered_free(&server->rendered);
    mt_batches_close(server->batches);
    mt_files_close(server->files);
    mt_cards_free(&server->cards);
    mt_warm_free(&server->warm.list);
    mt_deadline_meet(&server->deadline);
}

/* Before there are threads, since it forks. */
static void open_decode_process(const mt_options *opt)
{
    if (opt->sandbox == MT_SANDBOX_OFF)
        return;
    if (!mt_decode_process_open())
        mt_log_warn("server.sandbox",
                    "pictures are decoded by the server itself: the system gives no processes for it");
    else if (!mt_decode_process_is_filtered())
        mt_log_info("server.sandbox",
                    "pictures are decoded in processes with limits on memory and time, but the kernel "
                    "does not filter what they may do (seccomp)");
}

/* Ignores signals that must not end the process. SIGQUIT and SIGHUP ask for something: this holds before the loop that
   answers them is there and after its end, when libevent puts back what it found. */
static void ignore_signals(void)
{
    signal(SIGQUIT, SIG_IGN);
    if (!isatty(STDERR_FILENO))
        signal(SIGHUP, SIG_IGN);
    mt_signals_ignore();
}

bool mt_serve(const mt_options *opt, mt_error *err)
{
    mt_server server = {.opt = opt, .created = (int64_t)time(NULL)};
    size_t count;
    mt_http_route *routes = mt_server_routes(&server, &count);
    char cache[MT_LIMIT_PATH];
    bool ok;

    ignore_signals();
    open_decode_process(opt);
    /* Memory to refuse requests with when the system has none left */
    mt_alloc_reserve();
    mt_json_body_setup();
    mt_cards_init(&server.cards);
    mt_created_open(&server.creations, mt_hub_cache(cache, getenv) ? cache : NULL);
    if (opt->allow_pull && server.creations.folder)
        mt_upload_sweep(cache);
    mt_notify_open(&server.notify, getenv);
    mt_progress_watch(mt_notify_progress, &server.notify);
    ok = begin(&server, routes, count, err);
    if (ok)
        mt_http_server_run(server.http);
    end(&server);
    mt_decode_process_close();
    mt_progress_watch(NULL, NULL);
    mt_notify_close(&server.notify);
    mt_free(routes);
    if (ok && server.load_error.code != MT_OK) {
        *err = server.load_error;
        return false;
    }
    if (ok)
        mt_log_info("server.ended", "%llu calls were answered", (unsigned long long)server.calls_total);
    return ok;
}
