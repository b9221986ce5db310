/* SIGQUIT's report of the server's state, and the warnings about slow steps. All is read from copies that engines make
   between steps, so it works while an engine hangs: that one shows by how long its step has run. */
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/log.h"
#include "engine/limits.h"
#include "server/inside.h"
#include "server/limits.h"

typedef unsigned long long number;

/* ---- SIGQUIT ---- */

static void add_call(mt_buf *out, const mt_call *call)
{
    mt_json_write(out, "{'id':%s,'api':%s", call->id, call->dialect ? call->dialect->name : "task");
    if (call->account)
        mt_json_write(out, "'key':%s", call->account->name);
    mt_json_write(out, "'seconds':%.3f,'prepared':%hhd,'begun':%hhd,'background':%hhd,'ending':%hhd,'bytes':%zu}",
                  (double)(mt_clock_ns() - call->received) * 1e-9, mt_call_is_prepared(call),
                  (bool)(call->state == MT_CALL_STREAMING),
                  (bool)(call->state == MT_CALL_ALONE || call->state == MT_CALL_KEPT), mt_call_is_over(call),
                  call->body_charge + call->charged);
}

static void add_step(mt_buf *out, mt_engine *engine)
{
    mt_engine_part *parts = mt_alloc_array(MT_LIMIT_SEQUENCES, sizeof(*parts));
    mt_engine_batch b = {.part = parts};

    mt_engine_look(engine, &b, MT_LIMIT_SEQUENCES);
    if (b.began) {
        mt_json_write(out, "'step':{'seconds':%.3f,'rows':%zu,'jobs':%zu,'parts':[",
                      (double)(mt_clock_ns() - b.began) * 1e-9, b.rows, b.jobs);
        for (size_t i = 0; i < b.parts; i++)
            mt_json_write(out, "{'id':%s,'choice':%u,'rows':%zu,'computed':%zu}", b.part[i].name, b.part[i].choice,
                          b.part[i].rows, b.part[i].computed);
        mt_json_write(out, "]}");
    } else
        mt_json_write(out, "'step':null");
    mt_free(parts);
}

static void add_engine(mt_buf *out, mt_engine *engine)
{
    mt_stats *s = mt_alloc(sizeof(*s));

    mt_engine_stats(engine, s);
    mt_json_write(out,
                  "'running':%zu,'waiting':%zu,'steps':%llu,'slow_steps':%llu,'prompt_tokens':%llu,"
                  "'cached_tokens':%llu,'generated_tokens':%llu,'preemptions':%llu",
                  s->running, s->waiting, (number)s->steps, (number)s->slow_steps, (number)s->prompt_tokens,
                  (number)s->cached_tokens, (number)s->generated_tokens, (number)s->preemptions);
    mt_json_write(out,
                  "'pages':{'total':%zu,'held':%zu,'known':%zu,'evictions':%llu},'states':{'total':%zu,"
                  "'held':%zu,'known':%zu},'features':{'bytes':%zu,'total':%zu}",
                  s->pages_total[0], s->pages_held[0], s->pages_known, (number)s->evictions, s->states_total,
                  s->states_held, s->states_known, s->media_bytes, s->media_total);
    mt_free(s);
    add_step(out, engine);
}

/* The caller has the fleet's lock. */
static void add_models(mt_buf *out, mt_fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        const mt_member *m = fleet->members[i];

        mt_json_write(out, "{'name':%s,'loaded':%hhd,'calls':%zu,'memory':%llu", m->name, m->open, m->references,
                      (number)m->grant);
        if (m->open)
            add_engine(out, m->served.engine);
        mt_json_write(out, "}");
    }
}

static void add_server(mt_buf *out, mt_server *server)
{
    mt_http_stats http;

    mt_http_server_stats(server->http, &http);
    mt_json_write(out,
                  "'ready':%hhd,'draining':%hhd,'connections':%llu,'calls_total':%llu,'request_bytes':%zu,'calls':[",
                  server->ready, (bool)server->signals, (number)http.connections_open, (number)server->calls_total,
                  atomic_load(&server->room.used));
    for (const mt_call *call = server->calls; call; call = call->next)
        add_call(out, call);
    mt_json_write(out, "],'models':[");
    pthread_mutex_lock(&server->fleet.lock);
    add_models(out, &server->fleet);
    pthread_mutex_unlock(&server->fleet.lock);
    mt_json_write(out, "],'status':");
    mt_status_write(server, NULL, out);
}

/* Begins as a line of a JSON log, whatever format the log has. */
static void add_head(mt_buf *out)
{
    char text[MT_CLOCK_TEXT];
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    mt_json_write(out, "{'time':%s,'level':'info','event':'server.state'", mt_clock_text(now, 3, text));
}

void mt_state_dump(mt_server *server)
{
    mt_buf out = {.limit = MT_LIMIT_STATE_BYTES};

    add_head(&out);
    add_server(&out, server);
    mt_buf_puts(&out, "}\n");
    if (!out.full)
        mt_log_write(out.data, out.len);
    else
        mt_log_warn("server.state", "the state has more than %u bytes: look at /v1/status", MT_LIMIT_STATE_BYTES);
    mt_buf_free(&out);
}

/* ---- slow steps ---- */

/* Warns of a step that has run for longer than `slow` seconds, once. The caller has the fleet's lock. */
static void check_step(mt_member *m, double slow, uint64_t now)
{
    mt_engine_part parts[MT_LIMIT_STEP_NAMED];
    mt_engine_batch b = {.part = parts};
    char who[MT_LIMIT_STEP_NAMED * 96];

    mt_engine_look(m->served.engine, &b, MT_LIMIT_STEP_NAMED);
    if (!b.began || b.began == m->slow_step || (double)(now - b.began) * 1e-9 < slow)
        return;
    m->slow_step = b.began;
    mt_engine_batch_name(&b, who, sizeof(who));
    mt_log_warn("engine.slow_step", "a step of \"%s\" has run for %.1f s and goes on: %s", m->name,
                (double)(now - b.began) * 1e-9, who);
}

void mt_state_check_steps(mt_server *server)
{
    const double slow = mt_served_slow_seconds(server->opt);

    if (slow <= 0)
        return;
    pthread_mutex_lock(&server->fleet.lock);
    for (size_t i = 0; i < server->fleet.count; i++)
        if (server->fleet.members[i]->open)
            check_step(server->fleet.members[i], slow, mt_clock_ns());
    pthread_mutex_unlock(&server->fleet.lock);
}
