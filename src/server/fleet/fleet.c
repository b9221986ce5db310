/* Owns the models that the server knows. A thread of its own, the keeper, loads and unloads them one after the other,
   so that no other thread waits for it: a call whose model is not loaded waits in the member's list, on no thread, and
   is resumed later.

   Invariants:
   1. The lock protects all members. It is not held while a model is loaded or unloaded, nor while calls are resumed.
   2. A call counts in its model's references from the moment it gets the model until the call is freed. A model with
      references is never unloaded. Calls that waited for a load get their references in the same critical section in
      which the model becomes ready, so that it cannot be unloaded before.
   3. Only the keeper changes a member's state and `served`. To read a member's engine, hold the lock and check `open`,
      or have a reference.
   4. Memory: what is no model's (for_all) and the grants of all models that are not unloaded are within `memory`. A
      model is loaded when the least it needs is free, and is granted a part of the rest besides (fleet_room.c).
   5. Where memory does not suffice for a model that calls wait for, others are unloaded: those no call uses first,
      least recently used first. One in use finishes its calls first: it yields, which means that new calls wait as if
      it were unloaded. A model yields only after it was loaded for as long as loading it took, so that at least half of
      the time is used for answers, whatever clients ask for. The model is loaded next whose
      client has had the least time of loading lately; of equals, the one whose first call has waited longest.
   6. Members are freed only at the end, and their names never change: answers point to them.

   One engine for all models was rejected: one thread and one prefix tree would have to know of all models,
   while all they need to share is whose step is next (engine/rota.c). */
#include "server/fleet/fleet.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "ranks/ranks.h"
#include "server/fleet/fleet_inside.h"
#include "server/limits.h"

#define SECOND_NS UINT64_C(1000000000)
#define TRIES 4         /* attempts to load a model, each with the memory that the last one found to be needed */
#define RETRY_SECONDS 5 /* what clients that are refused are told to wait */
#define LONG_MS 60000   /* the keeper's longest sleep */

bool mt_fleet_full(mt_fleet *f, const mt_client *client, mt_error *err)
{
    bool full = false;

    if (!f->alone) /* which model is asked for stands in the body */
        return false;
    pthread_mutex_lock(&f->lock);
    if (f->members[0]->open && f->members[0]->served.opened.checkpoint)
        full = mt_places_full(mt_engine_places(f->members[0]->served.engine, 0), client, err);
    pthread_mutex_unlock(&f->lock);
    return full;
}

bool mt_fleet_lost(mt_fleet *f)
{
    bool lost = false;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->count && !lost; i++) {
        mt_stats stats;

        if (!f->members[i]->open)
            continue;
        mt_engine_stats(f->members[i]->served.engine, &stats);
        lost = stats.device_lost;
    }
    pthread_mutex_unlock(&f->lock);
    return lost;
}

/* ---- calls that wait: with the lock held, unless said otherwise ---- */

static void add_waiter(mt_member *m, mt_waiter *w, const mt_client *client)
{
    *w = (mt_waiter){.member = m, .client = *client, .since = mt_clock_ns(), .waits = true};
    *m->last = w;
    m->last = &w->next;
    m->waiting++;
    m->fleet->waiting++;
}

/* A client has had so many seconds of loading a model. */
static void charge(mt_fleet *f, const mt_client *client, double seconds)
{
    const uint64_t now = mt_clock_ns();

    mt_client_record_charge(mt_clients_enter(&f->loading, client, 0, now), seconds, now);
}

/* *at is removed from the member's list. One that leaves while its model is loaded has had its part of that time. */
static void remove_waiter(mt_member *m, mt_waiter **at)
{
    mt_waiter *w = *at;

    if (m->state == MT_MEMBER_LOADING)
        charge(m->fleet, &w->client, (double)(mt_clock_ns() - m->since) * 1e-9 / (double)m->waiting);
    *at = w->next;
    if (!*at)
        m->last = at;
    w->next = NULL;
    w->waits = false;
    m->waiting--;
    m->fleet->waiting--;
    mt_places_give(&m->fleet->places, &w->client, 1);
    m->expired &= m->first || m->state != MT_MEMBER_UNLOADED; /* else there is nothing to unload any more */
}

/* Gives a call its reference. */
static void give_reference(mt_member *m, mt_waiter *w)
{
    w->member = m;
    w->has = true;
    m->references++;
    m->used = mt_clock_ns();
}

/* Empties the member's list and returns it. has: each call gets its reference. */
static mt_waiter *remove_all_waiters(mt_member *m, bool has)
{
    mt_waiter *list = NULL, **last = &list;

    while (m->first) {
        mt_waiter *w = m->first;

        remove_waiter(m, &m->first);
        if (has)
            give_reference(m, w);
        *last = w;
        last = &w->next;
    }
    return list;
}

/* Resumes all calls of a list, which may be freed thereby. Without the lock. */
static void resume_all(mt_fleet *f, mt_waiter *list, const mt_failure *why)
{
    for (mt_waiter *next; list; list = next) {
        next = list->next;
        list->next = NULL;
        f->params.resume(f->params.ctx, list, why);
    }
}

/* Releases the lock meanwhile. */
static void resume_all_unlocked(mt_fleet *f, mt_waiter *list, const mt_failure *why)
{
    pthread_mutex_unlock(&f->lock);
    resume_all(f, list, why);
    pthread_mutex_lock(&f->lock);
}

/* Releases the lock. */
static mt_fleet_reply refuse(mt_fleet *f, mt_failure *why, const char *code, const char *text)
{
    pthread_mutex_unlock(&f->lock);
    mt_failure_set(why, 503, code, NULL, "%s", text);
    why->retry_after = RETRY_SECONDS;
    return MT_FLEET_REFUSED;
}

mt_fleet_reply mt_fleet_take(mt_fleet *f, mt_waiter *w, const mt_client *client, const char *name, bool vectors,
                             mt_failure *why)
{
    mt_member *m = mt_fleet_find(f, name, vectors);
    mt_error err;

    if (!m) {
        mt_fleet_unknown(f, name, why);
        return MT_FLEET_REFUSED;
    }
    pthread_mutex_lock(&f->lock);
    if (m->gone) { /* it was deleted since */
        pthread_mutex_unlock(&f->lock);
        mt_fleet_unknown(f, name, why);
        return MT_FLEET_REFUSED;
    }
    if (f->closing)
        return refuse(f, why, "draining", "the server is shutting down: ask another");
    if (m->state == MT_MEMBER_READY && !m->yields) {
        give_reference(m, w);
        pthread_mutex_unlock(&f->lock);
        return MT_FLEET_HAS;
    }
    if (!mt_places_take(&f->places, client, 1, 1, &err))
        return refuse(f, why, "overloaded", "as many requests wait for models to be loaded as may: try again later");
    add_waiter(m, w, client);
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return MT_FLEET_WAITS;
}

bool mt_fleet_hold(mt_member *m, mt_waiter *w)
{
    bool holds;

    pthread_mutex_lock(&m->fleet->lock);
    holds = m->state == MT_MEMBER_READY && !m->yields && !m->gone && !m->fleet->closing;
    if (holds)
        give_reference(m, w);
    pthread_mutex_unlock(&m->fleet->lock);
    return holds;
}

void mt_fleet_give(mt_waiter *w)
{
    mt_member *m = w->member;

    if (!w->has)
        return;
    w->has = false;
    pthread_mutex_lock(&m->fleet->lock);
    m->used = mt_clock_ns();
    if (--m->references == 0 && (m->fleet->waiting > 0 || m->keep_alive >= 0 || m->expired))
        pthread_cond_signal(&m->fleet->changed);
    pthread_mutex_unlock(&m->fleet->lock);
}

void mt_fleet_withdraw(mt_fleet *f, mt_waiter *w, const mt_failure *why)
{
    bool waited;

    pthread_mutex_lock(&f->lock);
    waited = w->waits;
    if (waited) {
        mt_waiter **at = &w->member->first;

        while (*at != w)
            at = &(*at)->next;
        remove_waiter(w->member, at);
        pthread_cond_signal(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    if (waited)
        f->params.resume(f->params.ctx, w, why);
}

void mt_fleet_tick(mt_fleet *f)
{
    const uint64_t now = mt_clock_ns(), most = (uint64_t)f->params.opt->load_seconds * SECOND_NS;
    mt_waiter *list = NULL;
    mt_failure why;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->count; i++) {
        mt_member *m = f->members[i];

        while (m->first && now > m->first->since + most) { /* the oldest stands first */
            mt_waiter *w = m->first;

            remove_waiter(m, &m->first);
            w->next = list;
            list = w;
        }
    }
    if (list)
        pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    mt_failure_set(&why, 503, "loading", NULL, "the model was not loaded within %lld s: try again later",
                   (long long)f->params.opt->load_seconds);
    why.retry_after = RETRY_SECONDS;
    resume_all(f, list, &why);
}

void mt_fleet_keep(mt_member *m, double seconds)
{
    pthread_mutex_lock(&m->fleet->lock);
    m->keep_alive = isnan(seconds) ? m->fleet->keep_alive : seconds; /* checked when a reference is given back */
    pthread_mutex_unlock(&m->fleet->lock);
}

mt_member *mt_fleet_unload(mt_fleet *f, const char *name)
{
    mt_member *m = mt_fleet_find(f, name, false);

    if (!m)
        return NULL;
    pthread_mutex_lock(&f->lock);
    /* Calls may wait for one that is leaving, or whose turn to be loaded has not come */
    m->expired = m->first || m->state == MT_MEMBER_LOADING || m->state == MT_MEMBER_READY;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return m;
}

/* ---- what was counted ---- */

static void count_texts(mt_member *m, mt_member_past *out)
{
    for (size_t i = 0; i < m->served.target_count; i++)
        if (m->served.targets[i].number) {
            const mt_encoder_stats s = mt_engine_encoder_stats(m->served.engine, m->served.targets[i].number);

            out->encoders[i].texts += s.texts;
            out->encoders[i].tokens += s.tokens;
            out->encoders[i].seconds += s.seconds;
            out->encoders[i].waiting = s.waiting;
        }
}

void mt_member_count(mt_member *m, mt_member_past *out)
{
    mt_picture_room *room = &m->served.room;
    mt_constraints_stats c = {0};
    mt_stats now;

    *out = m->past;
    if (!m->open)
        return;
    mt_engine_stats(m->served.engine, &now);
    mt_stats_join(&now, &m->past.stats);
    out->stats = now;
    if (m->served.constraints)
        mt_constraints_stats_read(m->served.constraints, &c);
    c.asked += m->past.constraints.asked;
    c.compiled += m->past.constraints.compiled;
    c.refused += m->past.constraints.refused;
    c.busy += m->past.constraints.busy;
    c.compiling_ns += m->past.constraints.compiling_ns;
    out->constraints = c;
    count_texts(m, out);
    pthread_mutex_lock(&room->lock);
    mt_histogram_join(&out->pictures_seconds, &room->seconds);
    out->pictures += room->pictures;
    pthread_mutex_unlock(&room->lock);
}

/* Adds an engine's counters to `past` before it ends; numbers that describe only the present are not kept. */
static void remember(mt_member *m)
{
    mt_stats past = {0};
    mt_member_past all;

    mt_member_count(m, &all);
    mt_stats_join(&past, &all.stats);
    all.stats = past;
    all.constraints.kept = all.constraints.bytes = 0;
    for (size_t i = 0; i < MT_COUNT(all.encoders); i++)
        all.encoders[i].waiting = 0;
    m->past = all;
}

/* ---- the keeper ---- */

static void set_state(mt_member *m, mt_member_state state)
{
    m->state = state;
    m->since = mt_clock_ns();
    m->fleet->changes++;
}

/* Loads a member. *need: bytes that its engine found it needs at least. Without the lock. */
static bool open_member(mt_fleet *f, mt_member *m, uint64_t *need, mt_error *err)
{
    mt_engine_params engine;
    const mt_served_params params = {.opt = f->params.opt,
                                     .name = m->name,
                                     .dir = m->dir,
                                     .first = !f->open && m->number == 0,
                                     .beside = f->alone,
                                     .device = f->device,
                                     .engine = &engine,
                                     .work = f->work};

    if (f->publisher && !m->events)
        m->events = mt_fleet_events(f, m);
    /* Memory used for reading folders must not count as the model's */
    mt_alloc_trim();
    mt_engine_params_init(&engine);
    engine.memory = f->alone ? f->memory_given : m->grant;
    engine.host_memory = mt_fleet_host_memory(f, m);
    engine.shares = !f->alone;
    engine.held = mt_alloc_held();
    engine.need = need;
    engine.rota = f->rota;
    engine.voices = f->voices;
    engine.model = m->number;
    engine.disk = f->disk.disk;
    engine.events = m->events;
    engine.remote = f->disk.remote;
    engine.requests = !f->alone ? 0 : f->requests ? f->requests : MT_ENGINE_CHOOSE;
    engine.besides = f->alone ? f->recorded : 0;
    return mt_served_open(&m->served, &params, err);
}

static void close_member(mt_member *m)
{
    mt_served_close(&m->served);
    mt_alloc_trim(); /* gives freed memory back to the system, for other models */
}

/* The model is loaded: calls that waited for it get it. */
static void finish_load(mt_fleet *f, mt_member *m, uint64_t began)
{
    mt_waiter *list;

    set_state(m, MT_MEMBER_READY);
    m->open = true;
    m->loads++;
    m->tries = 0;
    m->loading = m->since - began;
    m->used = m->since;
    m->error = (mt_error){.code = MT_OK};
    m->facts.context = m->served.context;
    m->facts.pixels = m->served.opened.processor ? mt_processor_pixels(m->served.opened.processor) : 0;
    list = remove_all_waiters(m, true);
    resume_all_unlocked(f, list, NULL);
}

/* The model cannot be loaded: calls that waited for it get an error. A model that lacks files is not there: it is being
   copied or deleted. */
static void fail_load(mt_fleet *f, mt_member *m, const mt_error *err)
{
    const bool missing = err->code == MT_E_NOT_FOUND;
    mt_error shown = *err;
    mt_failure why;

    m->grant = 0;
    m->tries = 0;
    m->expired = false;
    m->error = *err;
    if (!f->alone)
        mt_log_error("model.failed", "\"%s\" cannot be loaded: %s", m->name, err->text);
    mt_error_hide_paths(&shown, m->name);
    mt_failure_set(&why, missing ? 404 : 500, missing ? "model_not_found" : "load_failed", "model",
                   "the model \"%.100s\" cannot be loaded: %.800s", m->name, shown.text);
    resume_all_unlocked(f, remove_all_waiters(m, false), &why);
}

/* need: as an engine told it; 0: it did not. */
static void set_need(mt_member *m, uint64_t need)
{
    m->need = need ? need : m->need;
    m->measured = m->measured || need;
}

/* Loads a member; releases the lock meanwhile. */
static void load(mt_fleet *f, mt_member *m)
{
    const uint64_t began = mt_clock_ns();
    uint64_t need = 0;
    mt_error err = {.code = MT_OK};
    bool ok;

    m->grant = f->alone ? f->memory : mt_fleet_grant(f, m);
    set_state(m, MT_MEMBER_LOADING);
    if (!f->alone)
        mt_log_info("model.loading", "\"%s\" with %.0f MiB, %zu requests wait", m->name, (double)m->grant / (1 << 20),
                    m->waiting);
    pthread_mutex_unlock(&f->lock);
    ok = open_member(f, m, &need, &err);
    if (!ok)
        close_member(m);
    pthread_mutex_lock(&f->lock);
    for (const mt_waiter *w = m->first; w; w = w->next) /* also where it failed */
        charge(f, &w->client, (double)(mt_clock_ns() - began) * 1e-9 / (double)m->waiting);
    if (ok) {
        set_need(m, need);
        finish_load(f, m, began);
        return;
    }
    set_state(m, MT_MEMBER_UNLOADED);
    set_need(m, need);
    if (need > m->grant && ++m->tries < TRIES) { /* tried again with as much as it needs */
        m->grant = 0;
        return;
    }
    fail_load(f, m, &err);
}

/* Unloads a member that no call uses; releases the lock meanwhile. */
static void unload(mt_fleet *f, mt_member *m)
{
    set_state(m, MT_MEMBER_LEAVING);
    m->expired = false;
    pthread_mutex_unlock(&f->lock);
    mt_engine_halt(m->served.engine); /* so that its counters are final */
    pthread_mutex_lock(&f->lock);
    remember(m);
    m->open = false;
    pthread_mutex_unlock(&f->lock);
    close_member(m);
    mt_log_info("model.unloaded", "\"%s\" gives %.0f MiB back", m->name, (double)m->grant / (1 << 20));
    pthread_mutex_lock(&f->lock);
    m->grant = 0;
    set_state(m, MT_MEMBER_UNLOADED);
}

/* The least debt of the clients that wait for a member. */
static double least_debt(const mt_fleet *f, const mt_member *m, uint64_t now)
{
    double least = INFINITY;

    for (const mt_waiter *w = m->first; w; w = w->next)
        least = fmin(least, mt_clients_debt(&f->loading, &w->client, now));
    return least;
}

/* The unloaded member to load next: clients take turns by the time that loading has taken for them lately; of equals,
   the call that has waited longest decides. NULL: no call waits. */
static mt_member *wanted(const mt_fleet *f)
{
    const uint64_t now = mt_clock_ns();
    mt_member *first = NULL;
    double least = INFINITY;

    for (size_t i = 0; i < f->count; i++) {
        mt_member *m = f->members[i];
        const double debt = m->state == MT_MEMBER_UNLOADED ? least_debt(f, m, now) : INFINITY;

        if (m->first && debt < INFINITY &&
            (!first || debt < least || (debt == least && m->first->since < first->first->since))) {
            first = m;
            least = debt;
        }
    }
    return first;
}

/* A member to be unloaded since it was told to be or was idle for too long. NULL: none; *next: no later than when one
   will be. */
static mt_member *expired(const mt_fleet *f, uint64_t now, uint64_t *next)
{
    for (size_t i = 0; i < f->count; i++) {
        mt_member *m = f->members[i];
        const double left = m->keep_alive - (double)(now - m->used) * 1e-9;

        if (m->state != MT_MEMBER_READY || m->references > 0 || m->first || (m->keep_alive < 0 && !m->expired))
            continue;
        if (m->expired || left <= 0)
            return m;
        *next = MT_MIN(*next, now + (uint64_t)(left * 1e9));
    }
    return NULL;
}

/* Gives a member that does not yield any more to the calls that waited meanwhile. False: there is none. */
static bool hand_over(mt_fleet *f)
{
    for (size_t i = 0; i < f->count; i++) {
        mt_member *m = f->members[i];

        if (m->state == MT_MEMBER_READY && !m->yields && m->first) {
            resume_all_unlocked(f, remove_all_waiters(m, true), NULL);
            return true;
        }
    }
    return false;
}

/* Does one thing that can be done now. False: nothing is to be done before *next, unless something changes. */
static bool act(mt_fleet *f, uint64_t *next)
{
    const uint64_t now = mt_clock_ns();
    mt_member *m = wanted(f), *goes = NULL;
    mt_error err;

    for (size_t i = 0; i < f->count; i++)
        f->members[i]->yields = false;
    if (m && !mt_fleet_fits(f, m, &err))
        fail_load(f, m, &err);
    else if (m && mt_fleet_free(f) >= mt_fleet_need(f, m))
        load(f, m);
    else {
        goes = m ? mt_fleet_make_way(f, m, now, next) : NULL;
        if (!goes && hand_over(f))
            return true;
        goes = goes ? goes : expired(f, now, next);
        if (!goes)
            return mt_fleet_read_one(f);
        unload(f, goes);
    }
    return true;
}

static void wait_until(mt_fleet *f, uint64_t next)
{
    const uint64_t now = mt_clock_ns(), ms = next > now ? (next - now) / 1000000 + 1 : 1;
    const struct timespec until = mt_clock_deadline((int)(ms < LONG_MS ? ms : LONG_MS));

    pthread_cond_timedwait(&f->changed, &f->lock, &until);
}

/* The keeper's thread. */
static void *keep(void *arg)
{
    mt_fleet *f = arg;

    f->params.begun(f->params.ctx);
    pthread_mutex_lock(&f->lock);
    if (f->alone) {
        mt_member *m = f->members[0];

        load(f, m);
        pthread_mutex_unlock(&f->lock);
        f->params.loaded(f->params.ctx, m->open ? NULL : &m->error);
        pthread_mutex_lock(&f->lock);
    }
    while (!f->closing) {
        uint64_t next = UINT64_MAX;

        if (!act(f, &next))
            wait_until(f, next);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- beginning and end ---- */

bool mt_fleet_open(mt_fleet *f, const mt_fleet_params *params, mt_error *err)
{
    *f = (mt_fleet){.params = *params, .device = mt_options_device(params->opt)};
    pthread_mutex_init(&f->lock, NULL);
    mt_clock_cond_init(&f->changed);
    mt_places_init(&f->places, MT_LIMIT_LOADING / 4 * 3); /* a fourth is for other clients */
    mt_clients_init(&f->loading, 0);
    return mt_fleet_name(f, err);
}

/* What several ranks cannot do: each rank has its own part of the cache, which is not kept on disk; and only one model
   can be computed by them. */
static bool check_ranks(const mt_fleet *f, mt_error *err)
{
    const mt_options *opt = f->params.opt;

    if (!mt_ranks_all())
        return true;
    if (opt->cache_dir || opt->cache_remote)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "several ranks keep nothing but in memory: leave \"%s\" out, or start one process",
                       opt->cache_dir ? "--cache-dir" : "--cache-remote");
    return f->alone || mt_fail(err, MT_E_UNSUPPORTED, "several ranks serve one model: name one, or start one process");
}

/* Loads a member and unloads it. */
static bool try_member(mt_fleet *f, mt_member *m, mt_error *err)
{
    uint64_t need = 0;
    bool ok;

    m->grant = f->alone ? f->memory : mt_fleet_grant(f, m);
    ok = open_member(f, m, &need, err);
    if (ok)
        mt_served_stop(&m->served);
    else
        mt_fail_within(err, "\"%s\"", m->name);
    close_member(m);
    return ok;
}

bool mt_fleet_check(const mt_options *opt, mt_error *err)
{
    mt_fleet f;
    bool ok =
        mt_fleet_open(&f, &(mt_fleet_params){.opt = opt}, err) && mt_fleet_share_out(&f, err) && check_ranks(&f, err);

    /* Those that were found on this machine are opened when they are asked for, as in a server. */
    for (size_t i = 0; ok && !f.open && i < f.count; i++)
        ok = try_member(&f, f.members[i], err);
    mt_fleet_close(&f);
    return ok;
}

bool mt_fleet_equip(mt_fleet *f, mt_error *err)
{
    if (!mt_fleet_share_out(f, err) || !mt_fleet_publish(f, err) || !check_ranks(f, err))
        return false;
    mt_server_disk_open(&f->disk, f->params.opt);
    return true;
}

bool mt_fleet_start(mt_fleet *f, mt_error *err)
{
    f->running = pthread_create(&f->thread, NULL, keep, f) == 0;
    return f->running || mt_fail(err, MT_E_IO, "a thread that loads models cannot be started");
}

void mt_fleet_stop(mt_fleet *f)
{
    mt_failure why;

    if (!f->params.opt)
        return;
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (f->running)
        pthread_join(f->thread, NULL);
    f->running = false;
    mt_failure_set(&why, 503, "draining", NULL, "the server is shutting down: ask another");
    for (size_t i = 0; i < f->count; i++) {
        mt_waiter *list;

        pthread_mutex_lock(&f->lock);
        list = remove_all_waiters(f->members[i], false);
        pthread_mutex_unlock(&f->lock);
        resume_all(f, list, &why);
    }
}

void mt_fleet_end(mt_fleet *f)
{
    for (size_t i = 0; i < f->count; i++) {
        f->members[i]->open = false;
        mt_served_stop(&f->members[i]->served);
    }
}

void mt_fleet_close(mt_fleet *f)
{
    if (!f->params.opt)
        return;
    for (size_t i = 0; i < f->count; i++) {
        mt_served_close(&f->members[i]->served);
        mt_kv_events_free(f->members[i]->events);
        mt_free(f->members[i]->name);
        mt_free(f->members[i]->dir);
        mt_free(f->members[i]);
    }
    mt_free(f->members);
    mt_places_free(&f->places);
    mt_clients_free(&f->loading);
    mt_server_disk_close(&f->disk);
    mt_publisher_close(f->publisher);
    mt_rota_free(f->rota);
    mt_voices_free(f->voices);
    mt_host_close(f->host);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    *f = (mt_fleet){0};
}
