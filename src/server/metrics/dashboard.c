/* A client that looks at the dashboard is a viewer: it reads a stream of events, four times a second. The first event
   is a snapshot of the present; each later one is a delta, which tells what has happened since, or a piece of history,
   which goes back from the snapshot until all that is recorded was told.

   Invariants:
   1. Nothing is queued for a viewer but what the http server holds of its stream. Instead a viewer has marks: up to
      where it was told, forward from its snapshot and back into the past. A viewer that reads too slowly is skipped
      until it has caught up, and goes on from its marks; where the recorder (engine/voices.h) has dropped meanwhile
      what the viewer should have been told, the viewer gets a new snapshot.
   2. A timer event writes a bounded number of records for each viewer, of which there are at most
      MT_LIMIT_DASHBOARDS.
   3. A viewer is freed when the http server lets go of it: writing may find that its client has left, and free it. So
      loops over the list read `next` before they write. */
#include "server/metrics/dashboard.h"

#include <stdio.h>

#include <event2/event.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "server/inside.h"
#include "server/limits.h"

#define TICK_US 250000 /* between two events */
#define HOUR_US 3600000000u
#define NOTES 2048             /* most notes in an event */
#define VOICES 256             /* most voices in an event that have ended */
#define SECONDS 300            /* most seconds of the pulse in an event */
#define LIVE 1024              /* most voices in an event that have not ended; others are told when they change */
#define EVENT_BYTES (4u << 20) /* more than an event of that many records has */

struct mt_viewer {
    mt_server *server;
    mt_viewer *next;
    mt_http_handle handle;
    const mt_account *account; /* NULL: the server needs no keys */
    mt_voices_mark told;       /* what the recorder has behind this mark is still to be told */
    mt_voices_mark past;       /* and so is what it has before this mark, as history */
    uint64_t seconds_told;     /* the same two marks in the pulse, in seconds since its start */
    uint64_t seconds_past;
    uint64_t faults;  /* number of the next error to tell */
    uint64_t changes; /* mt_fleet.changes at the snapshot: another number wants a new snapshot */
    bool fresh;       /* needs a snapshot */
    bool behind;      /* there is more history to tell */
    bool paused;      /* reads too slowly */
};

/* How many of the voices that have not ended an event tells. */
static size_t told_at_once(size_t live)
{
    return live < LIVE ? live : LIVE;
}

/* ---- viewers ---- */

/* Allocates the buffers for what is read of the recorder at a time; they exist while there is a viewer. */
static void make_page(mt_server *server)
{
    mt_voices_page *page = &server->dashboard.page;

    page->live = mt_alloc_array(told_at_once(mt_voices_live(server->fleet.voices)), sizeof(mt_voice));
    page->ended = mt_alloc_array(VOICES, sizeof(mt_voice));
    page->notes = mt_alloc_array(NOTES, sizeof(mt_note));
}

static void free_page(mt_voices_page *page)
{
    mt_free(page->live);
    mt_free(page->ended);
    mt_free(page->notes);
    *page = (mt_voices_page){0};
}

/* Called by the http server, too, when the client has left. */
static void unlink_viewer(void *user)
{
    mt_viewer *viewer = user;
    mt_dashboard *d = &viewer->server->dashboard;
    mt_viewer **at = &d->viewers;

    while (*at != viewer)
        at = &(*at)->next;
    *at = viewer->next;
    mt_free(viewer);
    if (--d->count > 0)
        return;
    free_page(&d->page);
    if (d->tick)
        event_del(d->tick);
}

/* Called by the http server when the client reads too slowly, and when it has caught up. */
static void paused(void *user, bool is_paused)
{
    mt_viewer *viewer = user;

    viewer->paused = is_paused;
}

static const mt_http_follower follower = {.gone = unlink_viewer, .paused = paused};

/* ---- events ---- */

/* Says how much is to be read into the page at most. */
static void size_page(mt_server *server, bool live)
{
    mt_voices_page *page = &server->dashboard.page;

    page->live_count = live ? told_at_once(mt_voices_live(server->fleet.voices)) : 0;
    page->ended_count = VOICES;
    page->notes_count = NOTES;
}

/* Whether the viewer must not see figures that tell something of other accounts. */
static bool apart(const mt_viewer *viewer)
{
    return viewer->server->isolate && mt_account_scope(viewer->account);
}

static void add_seconds(const mt_viewer *viewer, uint64_t from, uint64_t end, mt_buf *out)
{
    if (from >= end)
        return;
    mt_json_write(out, "'seconds':[");
    for (uint64_t n = from; n < end; n++)
        mt_pulse_write(&viewer->server->dashboard.pulse, n, apart(viewer), out);
    mt_json_write(out, "]");
}

static void begin_event(const mt_viewer *viewer, const char *name, mt_buf *out)
{
    const mt_voices *voices = viewer->server->fleet.voices;

    mt_buf_printf(out, "event: %s\ndata: ", name);
    mt_json_write(out, "{'now':%llu", (unsigned long long)mt_voices_time(voices, mt_clock_ns()));
}

/* Appends a snapshot and sets the marks to the present. */
static void add_snapshot(mt_viewer *viewer, mt_buf *out)
{
    mt_server *server = viewer->server;
    mt_dashboard *d = &server->dashboard;
    mt_voices *voices = server->fleet.voices;

    viewer->fresh = false;
    viewer->behind = true;
    viewer->changes = server->fleet.changes;
    viewer->told = viewer->past = mt_voices_now(voices);
    viewer->told.changed = 0; /* all voices that have not ended, changed or not */
    viewer->seconds_told = viewer->seconds_past = d->pulse.count;
    viewer->faults = 0;
    begin_event(viewer, "snapshot", out);
    mt_dashboard_write_head(server, viewer->account, out);
    size_page(server, true);
    mt_voices_read(voices, &viewer->told, &d->page); /* the mark is new: nothing behind it was dropped */
    mt_dashboard_write_page(server, viewer->account, &d->page, out);
    mt_dashboard_write_faults(server, viewer->account, &viewer->faults, out);
    mt_buf_puts(out, "}\n\n");
}

/* Appends what has happened since the viewer's marks. False: some of it was dropped by the recorder. */
static bool add_delta(mt_viewer *viewer, mt_buf *out)
{
    mt_server *server = viewer->server;
    mt_dashboard *d = &server->dashboard;
    const uint64_t end = MT_MIN(d->pulse.count, viewer->seconds_told + SECONDS);

    size_page(server, true);
    if (!mt_voices_read(server->fleet.voices, &viewer->told, &d->page) ||
        viewer->seconds_told < mt_pulse_first(&d->pulse))
        return false;
    begin_event(viewer, "delta", out);
    mt_json_write(out, "'viewers':%zu", d->count);
    mt_dashboard_write_page(server, viewer->account, &d->page, out);
    add_seconds(viewer, viewer->seconds_told, end, out);
    viewer->seconds_told = end;
    mt_dashboard_write_faults(server, viewer->account, &viewer->faults, out);
    mt_buf_puts(out, "}\n\n");
    return true;
}

/* Whether a page of history is more than an hour old, which the dashboard does not show. */
static bool is_old(const mt_voices_page *page, uint64_t now)
{
    return page->notes_count > 0 && page->notes[0].begin + HOUR_US < now;
}

/* Appends the next piece of history. */
static void add_history(mt_viewer *viewer, mt_buf *out)
{
    mt_server *server = viewer->server;
    mt_dashboard *d = &server->dashboard;
    mt_voices *voices = server->fleet.voices;
    const uint64_t kept = mt_pulse_first(&d->pulse), end = MT_MAX(viewer->seconds_past, kept);
    const uint64_t first = end > kept + SECONDS ? end - SECONDS : kept;

    size_page(server, false);
    viewer->behind = mt_voices_before(voices, &viewer->past, &d->page);
    if (is_old(&d->page, mt_voices_time(voices, mt_clock_ns())))
        viewer->past = (mt_voices_mark){0}; /* nothing older is told */
    viewer->behind = viewer->behind || end > first;
    viewer->seconds_past = first;
    begin_event(viewer, "history", out);
    mt_json_write(out, "'more':%hhd", viewer->behind);
    mt_dashboard_write_page(server, viewer->account, &d->page, out);
    add_seconds(viewer, first, end, out);
    mt_buf_puts(out, "}\n\n");
}

/* Writes the next event to a viewer, which may be freed thereby. */
static void tell(mt_viewer *viewer)
{
    mt_http_server *http = viewer->server->http;
    mt_buf out = {.limit = EVENT_BYTES};

    if (viewer->paused)
        return;
    if (viewer->fresh || viewer->changes != viewer->server->fleet.changes || !add_delta(viewer, &out))
        add_snapshot(viewer, &out);
    else if (viewer->behind)
        add_history(viewer, &out);
    if (!out.full)
        mt_http_write(http, viewer->handle, out.data, out.len);
    else if (mt_http_abort(http, viewer->handle))
        unlink_viewer(viewer);
    mt_buf_free(&out);
}

/* Timer: four times a second while there is a viewer. */
static void tick(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;

    (void)fd;
    (void)what;
    for (mt_viewer *viewer = server->dashboard.viewers, *next; viewer; viewer = next) {
        next = viewer->next;
        tell(viewer);
    }
}

/* Timer: each second. */
static void beat(evutil_socket_t fd, short what, void *user)
{
    mt_server *server = user;

    (void)fd;
    (void)what;
    mt_pulse_beat(&server->dashboard.pulse, server);
}

/* ---- the route ---- */

static void refuse(mt_server *server, mt_http_handle handle, const char *code, const char *text)
{
    mt_failure why;

    mt_failure_set(&why, 503, code, NULL, "%s", text);
    mt_server_fail(server, handle, NULL, &why);
}

static void add_viewer(mt_server *server, const mt_http_request *request)
{
    static const mt_http_header headers[] = {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}};
    static const mt_http_response response = {
        .status = 200, .type = "text/event-stream", .headers = headers, .header_count = MT_COUNT(headers)};
    static const struct timeval often = {.tv_usec = TICK_US};
    mt_dashboard *d = &server->dashboard;
    mt_viewer *viewer = mt_alloc(sizeof(*viewer));

    *viewer = (mt_viewer){
        .server = server, .next = d->viewers, .handle = request->handle, .account = request->who, .fresh = true};
    d->viewers = viewer;
    if (d->count++ == 0) {
        make_page(server);
        event_add(d->tick, &often);
    }
    if (!mt_http_follow(server->http, request->handle, &follower, viewer))
        unlink_viewer(viewer);
    else if (mt_http_begin(server->http, request->handle, &response))
        tell(viewer);
}

void mt_dashboard_get(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;

    (void)http;
    if (request->method == MT_HTTP_HEAD)
        mt_http_answer(server->http, request->handle, &(mt_http_response){.status = 200, .type = "text/event-stream"},
                       "", 0);
    else if (server->signals > 0)
        refuse(server, request->handle, "draining", "the server is shutting down: ask another");
    else if (!server->ready)
        refuse(server, request->handle, "loading", "the model is being loaded: try again in a moment");
    else if (server->dashboard.count == MT_LIMIT_DASHBOARDS)
        refuse(server, request->handle, "overloaded", "as many look at the dashboard as may: try again later");
    else
        add_viewer(server, request);
    mt_http_request_free(request);
}

/* ---- beginning and end ---- */

bool mt_dashboard_open(mt_server *server)
{
    static const struct timeval second = {.tv_sec = 1};
    mt_dashboard *d = &server->dashboard;
    struct event_base *loop = mt_http_server_loop(server->http);

    mt_pulse_init(&d->pulse, server->fleet.memory);
    d->tick = event_new(loop, -1, EV_PERSIST, tick, server);
    d->beat = event_new(loop, -1, EV_PERSIST, beat, server);
    return d->tick && d->beat && !event_add(d->beat, &second);
}

void mt_dashboard_end(mt_server *server)
{
    for (mt_viewer *viewer = server->dashboard.viewers, *next; viewer; viewer = next) {
        next = viewer->next;
        if (mt_http_end(server->http, viewer->handle))
            unlink_viewer(viewer);
    }
}

void mt_dashboard_close(mt_server *server)
{
    mt_dashboard *d = &server->dashboard;

    if (d->tick)
        event_free(d->tick);
    if (d->beat)
        event_free(d->beat);
    d->tick = d->beat = NULL;
    mt_pulse_free(&d->pulse);
}

void mt_dashboard_fault(mt_server *server, const mt_account *account, const char *id, int status, const char *text)
{
    mt_dashboard *d = &server->dashboard;
    mt_fault *f = &d->faults[d->fault_count++ % MT_DASHBOARD_ERRORS];

    *f = (mt_fault){.at = mt_clock_ns(), .status = status, .account = account};
    snprintf(f->id, sizeof(f->id), "%s", id);
    snprintf(f->text, sizeof(f->text), "%s", text);
}
