/* The thread that calls mt_serve becomes the io thread. It looks whether the folders hold models, listens, and then has
   the fleet's thread open one, so that a client that comes early gets a 503 rather than no connection, and a wrong
   folder or a port that is taken is said at once. Of several models none is opened before somebody asks for it, and
   the server is ready at once.

   The end, in this order, so that nobody posts to what is gone: the loop ends (http has dropped or completed all
   exchanges), loading ends, preparation ends, the engines end, remaining letters are opened with `closing` set, http
   is freed. */
#include "server/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "api/json_body.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"
#include "media/darkroom.h"
#include "ranks/ranks.h"
#include "server/inside.h"
#include "server/lockdown.h"

enum { SECOND = 1000 };

/* Whoever has a key may ask, at the rates of his account. */
static bool admit_account(mt_server *server, mt_http_request *request, mt_http_refusal *refusal)
{
    mt_account *account = mt_keys_find(&server->keys, mt_http_request_key(request));

    if (!account) {
        refusal->status = 401;
        snprintf(refusal->text, sizeof(refusal->text),
                 "the API key is missing or wrong: send it as \"authorization: Bearer KEY\" or "
                 "\"x-api-key: KEY\"");
        return false;
    }
    request->who = account;
    refusal->status = 429;
    return !(request->route->flags & MT_SERVER_METERED) ||
           mt_account_ask(account, mt_clock_ns(), refusal->text, &refusal->retry_after);
}

/* A large body is not read in vain. A small one is, by mt_call_start's leave: its connection can go on. */
static bool admit_large(mt_server *server, const mt_http_request *request, mt_http_refusal *refusal)
{
    mt_failure why;

    if (request->announced <= MT_LIMIT_SMALL_BODY || mt_call_may_start(server, request, &why))
        return true;
    refusal->status = why.status;
    refusal->code = why.code;
    refusal->retry_after = 1;
    snprintf(refusal->text, sizeof(refusal->text), "%s", why.text);
    return false;
}

static bool admit(void *user, mt_http_request *request, mt_http_refusal *refusal)
{
    mt_server *server = user;

    return (server->keys.count == 0 ? mt_guard_admit(&server->guard, request, refusal)
                                    : admit_account(server, request, refusal)) &&
           admit_large(server, request, refusal);
}

static void add_headers(void *user, const void *who, mt_http_extra *extra)
{
    (void)user;
    mt_account_headers((mt_account *)(uintptr_t)who, mt_clock_ns(), extra);
}

/* What http refuses by itself. */
static void error_body(void *user, const char *path, int status, const char *code, const char *sentence, mt_buf *body)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {{401, "invalid_api_key"},        {403, "forbidden"},         {404, "not_found"},
                 {405, "method_not_allowed"},     {408, "request_timeout"},   {413, "request_too_large"},
                 {415, "unsupported_media_type"}, {414, "request_too_large"}, {431, "request_too_large"},
                 {429, "rate_limit_exceeded"},    {503, "overloaded"}};
    mt_failure why;

    (void)user;
    for (size_t i = 0; i < MT_COUNT(codes) && !code; i++)
        if (codes[i].status == status)
            code = codes[i].code;
    mt_failure_set(&why, status, code, NULL, "%s", sentence);
    mt_server_dialect(path)->error(body, &why);
}

static void wake(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;

    (void)fd;
    (void)what;
    mt_mailbox_open(server->mailbox);
}

/* What many requests took stays with the C library, and with it the process is larger than --memory says. It is given
   back when nobody has to wait for that. */
static void trim(mt_server *server)
{
    if (server->call_count > 0 || server->trimmed == server->calls_total)
        return;
    mt_alloc_trim();
    server->trimmed = server->calls_total;
}

static void tick(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;

    (void)fd;
    (void)what;
    mt_server_keep_alive(server);
    trim(server);
}

/* Nobody is woken for it while there is no call. */
static void look_at_time(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;

    (void)fd;
    (void)what;
    mt_timeouts_check(server);
    if (server->calls)
        mt_timeouts_watch(server);
}

/* Without one of several ranks nothing can be computed any more: who waits is told so, and then all end. */
static void look_at_ranks(mt_server *server)
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

static void look_at_waiters(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;

    (void)fd;
    (void)what;
    look_at_ranks(server);
    mt_fleet_tick(&server->fleet);
    mt_state_check_steps(server);
}

/* The io thread is alive where this runs; the engines are asked. */
static void pat(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;
    bool alive = true;

    (void)fd;
    (void)what;
    mt_fleet_lock(&server->fleet);
    for (size_t i = 0; i < server->fleet.count; i++) {
        const mt_member *m = server->fleet.members[i];

        alive =
            alive && (!m->open || mt_notify_alive(&server->notify, mt_clock_ns(), mt_engine_turn(m->served.engine)));
    }
    mt_fleet_unlock(&server->fleet);
    if (alive)
        mt_notify_send(&server->notify, "WATCHDOG=1");
}

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
    mt_pulls_cancel(server);
    mt_http_server_drain(server->http, (int)server->opt->drain_seconds * SECOND);
}

static void asked_for_state(evutil_socket_t number, short what, void *user)
{
    (void)number;
    (void)what;
    mt_state_dump(user);
}

static void asked_to_reload(evutil_socket_t number, short what, void *user)
{
    (void)number;
    (void)what;
    mt_reload(user);
}

/* Whoever started it on a terminal wants it to end when that is closed. */
static bool hear_of_reload(mt_server *server, struct event_base *loop)
{
    if (isatty(STDERR_FILENO))
        return true;
    server->hangup = evsignal_new(loop, SIGHUP, asked_to_reload, server);
    return server->hangup && !event_add(server->hangup, NULL);
}

/* The last first: a lane hands calls over to later ones. */
static bool start_lanes(mt_server *server)
{
    const size_t text = (size_t)server->opt->prep_threads, media = (size_t)server->opt->media_threads;
    const struct {
        size_t threads, calls;
    } lanes[] = {[MT_LANE_SMALL] = {text, 2 * MT_LIMIT_PREPARING}, /* a third is for other clients */
                 [MT_LANE_COMPILE] = {text, MT_LIMIT_PREPARING},
                 [MT_LANE_LARGE] = {1, 2 * MT_LIMIT_PREPARING_LARGE}, /* others than this thread put calls in, too */
                 [MT_LANE_MEDIA] = {media, MT_LIMIT_PREPARING_MEDIA}};

    for (size_t i = MT_LANE_COUNT; i-- > 0;) {
        server->lanes[i] =
            mt_workers_start(lanes[i].threads, lanes[i].calls + MT_LIMIT_LOADING, mt_call_prepare, &server->load_error);
        if (!server->lanes[i])
            return false;
    }
    return true;
}

/* Of what there is for requests, two fifths are for those that are read, wait or run. The rest is for the one large
   body that is prepared at a time. */
static void share_memory(mt_server *server)
{
    mt_fleet *fleet = &server->fleet;
    const size_t all = (size_t)fleet->requests, most = all / 5 * 3 / MT_LIMIT_PREPARE_COST;

    server->room.limit = all / 5 * 2;
    fleet->work = all / 5 * 3;
    mt_json_body_bound(fleet->work / 3 * 2);
    server->body_most = most < (size_t)server->opt->max_body ? most : (size_t)server->opt->max_body;
    mt_http_server_bound(server->http, server->body_most);
}

/* From here on calls are taken. */
static bool get_ready(mt_server *server)
{
    share_memory(server);
    server->ready = start_lanes(server) && mt_dashboard_open(server);
    return server->ready;
}

/* The only model says what is left for requests. */
static void open_loaded(mt_letter *letter)
{
    mt_server *server = (mt_server *)(void *)((char *)letter - offsetof(mt_server, loaded_letter));
    mt_member *only = server->fleet.members[0];

    if (server->closing)
        return;
    if (server->load_error.code == MT_OK) {
        server->fleet.requests = only->served.requests;
        if (get_ready(server)) {
            only->served.work = server->fleet.work;
            mt_notify_send(&server->notify, "READY=1\nSTATUS=serving \"%s\"", only->name);
            return;
        }
    }
    mt_http_server_drain(server->http, 0);
}

static void named(void *ctx)
{
    const mt_server *server = ctx;

    mt_lockdown(server->opt, &server->fleet);
}

static void begun(void *ctx)
{
    mt_server *server = ctx;

    mt_guard_resolve(&server->guard);
}

static void loaded(void *ctx, const mt_error *err)
{
    mt_server *server = ctx;

    if (err)
        server->load_error = *err;
    mt_mailbox_post(server->mailbox, &server->loaded_letter);
}

static void resume(void *ctx, mt_waiter *waiter, const mt_failure *why)
{
    (void)ctx;
    mt_call_resume((mt_call *)(void *)((char *)waiter - offsetof(mt_call, waiter)), why);
}

static mt_http_server *listen_on(mt_server *server, const mt_http_route *routes, size_t count, mt_error *err)
{
    const mt_options *opt = server->opt;
    mt_http_config config = {
        .host = opt->host ? opt->host : "127.0.0.1",
        .port = (int)opt->port,
        .routes = routes,
        .route_count = count,
        .hooks = {.user = server, .admit = admit, .headers = add_headers, .error_body = error_body},
        .origins = opt->origins.at,
        .origin_count = opt->origins.count,
        .tls_certificate = opt->tls_cert,
        .tls_key = opt->tls_key,
        .proxies = &server->proxies,
        .room = &server->room,
        .limits = mt_http_limits_default()};

    server->room.limit = MT_LIMIT_HTTP_BODIES_BYTES; /* until it is known what there is */
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
    const uint64_t quarter = server->notify.watchdog_ns / 4; /* of the time: one that comes late is no harm */
    const struct timeval watched = {.tv_sec = (time_t)(quarter / 1000000000),
                                    .tv_usec = (suseconds_t)(quarter % 1000000000 / 1000)};

    server->wake = event_new(loop, mt_mailbox_fd(server->mailbox), EV_READ | EV_PERSIST, wake, server);
    server->terminated = evsignal_new(loop, SIGTERM, signalled, server);
    server->interrupted = evsignal_new(loop, SIGINT, signalled, server);
    server->quit = evsignal_new(loop, SIGQUIT, asked_for_state, server);
    server->tick = event_new(loop, -1, EV_PERSIST, tick, server);
    server->second = event_new(loop, -1, EV_PERSIST, look_at_waiters, server);
    server->timeouts_look = event_new(loop, -1, 0, look_at_time, server);
    if (watched.tv_sec || watched.tv_usec) {
        server->watchdog = event_new(loop, -1, EV_PERSIST, pat, server);
        if (!server->watchdog || event_add(server->watchdog, &watched))
            return false;
    }
    return server->wake && server->terminated && server->interrupted && server->tick && server->second &&
           server->timeouts_look && server->quit && !event_add(server->quit, NULL) && hear_of_reload(server, loop) &&
           !event_add(server->wake, NULL) && !event_add(server->terminated, NULL) &&
           !event_add(server->interrupted, NULL) && !event_add(server->tick, &often) &&
           !event_add(server->second, &second);
}

static void free_event(struct event *event)
{
    if (event)
        event_free(event);
}

static void report(const mt_server *server)
{
    const char *host = server->opt->host ? server->opt->host : "127.0.0.1", *scheme = server->opt->tls_cert ? "s" : "";

    if (mt_http_server_port(server->http))
        mt_log_info("server.listening", "http%s://%s:%d", scheme, host, mt_http_server_port(server->http));
    else
        mt_log_info("server.listening", "%s", host);
}

/* What was kept when there were no keys is the one's that is alone now. */
static void share_store(mt_server *server)
{
    mt_reload_share(server);
    if (server->keys.account_count == 1)
        mt_store_adopt(server->keys.accounts[0]->store);
}

/* What ranks have of the cache lies with each of them, and steps of several models would have to wait for each other's
   opening. */
static bool check_ranks(const mt_server *server, mt_error *err)
{
    if (!mt_ranks_all())
        return true;
    if (server->opt->cache_dir || server->opt->cache_remote)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "several ranks keep nothing but in memory: leave \"%s\" out, or start one process",
                       server->opt->cache_dir ? "--cache-dir" : "--cache-remote");
    return server->fleet.alone ||
           mt_fail(err, MT_E_UNSUPPORTED, "several ranks serve one model: name one, or start one process");
}

static bool begin(mt_server *server, const mt_http_route *routes, size_t count, mt_error *err)
{
    const mt_store_limits limits = {.entries = server->opt->store_entries, .bytes = server->opt->store_bytes};

    const mt_fleet_params fleet = {
        .opt = server->opt, .resume = resume, .named = named, .begun = begun, .loaded = loaded, .ctx = server};

    if (!mt_fleet_open(&server->fleet, &fleet, err) || !check_ranks(server, err) ||
        !mt_keys_read(&server->keys, &server->opt->api_keys, server->opt->keys, err) ||
        !mt_guard_init(&server->guard, server->opt, server->keys.count > 0, err))
        return false;
    for (size_t i = 0; i < server->opt->trusted_proxies.count; i++)
        if (!mt_http_proxies_add(&server->proxies, server->opt->trusted_proxies.at[i], err))
            return false;
    server->store = mt_store_open(server->opt->store, limits, err);
    if (!server->store)
        return false;
    share_store(server);
    server->http = listen_on(server, routes, count, err);
    if (!server->http)
        return false;
    server->mailbox = mt_mailbox_new();
    if (!server->mailbox || !add_events(server))
        return mt_fail(err, MT_E_IO, "the event loop cannot be set up; are there file descriptors left?");
    report(server);
    server->loaded_letter.open = open_loaded;
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

/* From here on a signal does what it does by default. One that was caught as the loop ended is seen now. */
static void end_signals(mt_server *server)
{
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (server->http)
        event_base_loop(mt_http_server_loop(server->http), EVLOOP_NONBLOCK);
    free_event(server->terminated);
    free_event(server->interrupted);
}

/* See above for the order. A model that is still being loaded, or a text that is being read, is waited for until the
   deadline, and who does not want to wait has a second signal. */
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
    mt_fleet_stop(&server->fleet);
    mt_pulls_stop(server);
    for (size_t i = 0; i < MT_LANE_COUNT; i++) /* the first first: it hands calls over to later ones */
        mt_workers_stop(server->lanes[i]);
    mt_fleet_end(&server->fleet);
    mt_mailbox_free(server->mailbox);
    mt_http_server_free(server->http);
    mt_fleet_close(&server->fleet);
    mt_keys_free(&server->keys);
    mt_store_close(server->store);
    mt_cards_free(&server->cards);
    mt_deadline_meet(&server->deadline);
}

/* Before there are threads. */
static void open_darkroom(const mt_options *opt)
{
    if (opt->sandbox == MT_SANDBOX_OFF)
        return;
    if (!mt_darkroom_open())
        mt_log_warn("server.sandbox",
                    "pictures are decoded by the server itself: the system gives no processes for it");
    else if (!mt_darkroom_is_filtered())
        mt_log_info("server.sandbox",
                    "pictures are decoded in processes with limits on memory and time, but the kernel "
                    "does not filter what they may do (seccomp)");
}

bool mt_serve(const mt_options *opt, mt_error *err)
{
    mt_server server = {.opt = opt, .created = (int64_t)time(NULL)};
    size_t count;
    mt_http_route *routes = mt_server_routes(&server, &count);
    bool ok;

    open_darkroom(opt);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow (ulimit -f) is an error of that write alone */
    mt_alloc_reserve();       /* for the server alone: what a picture may take has limits of its own */
    mt_json_body_setup();
    mt_cards_init(&server.cards);
    mt_notify_open(&server.notify, getenv);
    mt_progress_watch(mt_notify_progress, &server.notify);
    ok = begin(&server, routes, count, err);
    if (ok)
        mt_http_server_run(server.http);
    end(&server);
    mt_darkroom_close();
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
