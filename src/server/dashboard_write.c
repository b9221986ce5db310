/* Events of the dashboard as JSON. An account sees requests and errors of its own, as in /v1/status; one that sees
   everybody's is told whose they are. Figures of the machine are for all, as in /metrics. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "server/inside.h"

typedef unsigned long long number;

static const char *const kinds[MT_NOTE_KINDS] = {
    [MT_NOTE_PREPARED] = "prepared", [MT_NOTE_SEATED] = "seated",     [MT_NOTE_ASIDE] = "aside",
    [MT_NOTE_CACHED] = "cached",     [MT_NOTE_PICTURES] = "pictures", [MT_NOTE_PROMPT] = "prompt",
    [MT_NOTE_ANSWER] = "answer",
};

static void add_text(mt_buf *out, const char *name, const char *text)
{
    mt_buf_printf(out, "\"%s\":", name);
    mt_buf_json_string(out, text, strlen(text));
}

/* The models whose voices are told by number, and the encoders beside the only one. */
static void add_models(mt_fleet *fleet, mt_buf *out)
{
    mt_buf_puts(out, ",\"models\":[");
    for (size_t i = 0; i < fleet->count; i++) {
        mt_buf_puts(out, i ? "," : "");
        mt_buf_json_string(out, fleet->members[i]->name, strlen(fleet->members[i]->name));
    }
    mt_buf_puts(out, "],\"encoders\":[");
    for (size_t i = 0, count = 0; fleet->alone && i < fleet->members[0]->served.target_count; i++)
        if (fleet->members[0]->open && fleet->members[0]->served.targets[i].number) {
            const char *name = fleet->members[0]->served.targets[i].name;

            mt_buf_puts(out, count++ ? "," : "");
            mt_buf_json_string(out, name, strlen(name));
        }
    mt_buf_puts(out, "]");
}

/* What all that are open have together. */
static void sum_up(mt_fleet *fleet, mt_stats *all, size_t *context)
{
    *all = (mt_stats){.bytes_memory = fleet->memory, .bytes_requests = fleet->alone ? 0 : fleet->requests};
    for (size_t i = 0; i < fleet->count; i++) {
        mt_stats s;

        if (!fleet->members[i]->open)
            continue;
        mt_engine_stats(fleet->members[i]->served.engine, &s);
        *context = fleet->members[i]->served.context > *context ? fleet->members[i]->served.context : *context;
        all->bytes_weights += s.bytes_weights;
        all->bytes_cache += s.bytes_cache;
        all->bytes_working += s.bytes_working;
        all->bytes_constraints += s.bytes_constraints;
        all->bytes_pictures += s.bytes_pictures;
        all->bytes_requests += s.bytes_requests;
        all->states_total += s.states_total;
        all->media_total += s.media_total;
        for (size_t g = 0; g < MT_KV_GROUPS; g++)
            all->pages_total[g] += s.pages_total[g];
    }
    if (!fleet->alone)
        all->bytes_working += fleet->for_all - fleet->requests;
}

/* Of several, those that are open. */
static void add_name(const mt_fleet *fleet, mt_buf *out)
{
    mt_buf names;

    if (fleet->alone) {
        add_text(out, "model", fleet->members[0]->name);
        return;
    }
    mt_buf_init(&names, MT_LIMIT_PATH);
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->members[i]->open)
            mt_buf_printf(&names, "%s%s", names.len ? ", " : "", fleet->members[i]->name);
    add_text(out, "model", names.len ? names.data : "no model is loaded");
    mt_buf_free(&names);
}

static void add_memory(const mt_stats *s, mt_buf *out)
{
    size_t pages = 0;

    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        pages += s->pages_total[g];
    mt_buf_printf(out,
                  ",\"memory\":{\"budget\":%" PRIu64 ",\"weights\":%" PRIu64 ",\"cache\":%" PRIu64
                  ",\"working\":%" PRIu64 ",\"constraints\":%" PRIu64 ",\"pictures\":%" PRIu64 ",\"requests\":%" PRIu64
                  "},\"pages\":%zu,\"states\":%zu,\"features\":%zu",
                  s->bytes_memory, s->bytes_weights, s->bytes_cache, s->bytes_working, s->bytes_constraints,
                  s->bytes_pictures, s->bytes_requests, pages, s->states_total, s->media_total);
}

/* Milliseconds since 1970 at time 0 of the recorder. */
static double origin(const mt_voices *voices)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6 - (double)mt_voices_time(voices, mt_clock_ns()) / 1e3;
}

void mt_dashboard_write_head(mt_server *server, const mt_account *account, mt_buf *out)
{
    mt_fleet *fleet = &server->fleet;
    size_t context = 0;
    mt_stats stats;

    mt_fleet_lock(fleet);
    add_name(fleet, out);
    mt_buf_printf(out, ",\"everybody\":%s", mt_account_scope(account) ? "false" : "true");
    add_models(fleet, out);
    sum_up(fleet, &stats, &context);
    mt_fleet_unlock(fleet);
    mt_buf_printf(out, ",\"origin\":%.3f,\"seats\":%lld,\"context\":%zu", origin(fleet->voices),
                  (long long)server->opt->max_sequences, context);
    add_memory(&stats, out);
    mt_buf_puts(out, ",\"kinds\":[");
    for (size_t i = 0; i < MT_COUNT(kinds); i++)
        mt_buf_printf(out, "%s\"%s\"", i ? "," : "", kinds[i]);
    mt_buf_puts(out, "],\"columns\":");
    mt_pulse_names(out);
}

static void add_note(mt_buf *out, const mt_note *n)
{
    mt_buf_printf(out, "[%llu,%u,%llu,%u,%u,%u,%u,%u]", (number)n->voice, n->kind, (number)n->begin, n->length,
                  n->count, n->steps, n->guessed, n->taken);
}

static void add_key(const mt_server *server, uint64_t client, mt_buf *out)
{
    for (size_t i = 0; i < server->keys.account_count; i++)
        if (server->keys.accounts[i]->client.id == client) {
            mt_buf_puts(out, ",");
            add_text(out, "key", server->keys.accounts[i]->name);
            return;
        }
}

static void add_voice(mt_server *server, bool everybody, const mt_voice *v, mt_buf *out)
{
    mt_buf_printf(out, "{\"number\":%llu,", (number)v->number);
    add_text(out, "id", v->name);
    mt_buf_printf(
        out,
        ",\"model\":%u,\"choice\":%u,\"encoder\":%u,\"received\":%llu,\"entered\":%llu,\"seated\":%llu,\"first\":%llu,"
        "\"waited\":%llu,\"prompt\":%u,\"cached\":%u,\"tokens\":%u,\"pictures\":%u,\"guessed\":%u,"
        "\"taken\":%u,\"aside\":%u,\"constrained\":%s",
        v->model, v->choice, v->encoder, (number)v->received, (number)v->entered, (number)v->seated, (number)v->first,
        (number)v->waited, v->prompt, v->cached, v->tokens, v->pictures, v->guessed, v->taken, v->aside,
        v->constrained ? "true" : "false");
    if (everybody)
        add_key(server, v->client, out);
    if (v->ended)
        mt_buf_printf(out, ",\"ended\":%llu,\"finish\":\"%s\"", (number)v->ended, mt_finish_name((mt_finish)v->finish));
    if (v->open.steps > 0) {
        mt_buf_puts(out, ",\"open\":");
        add_note(out, &v->open);
    }
    mt_buf_puts(out, "}");
}

static void add_voices(mt_server *server, const mt_account *only, const char *name, const mt_voice *list, size_t count,
                       mt_buf *out)
{
    size_t written = 0;

    for (size_t i = 0; i < count; i++)
        if (!only || list[i].client == only->client.id) {
            if (written == 0)
                mt_buf_printf(out, ",\"%s\":[", name);
            mt_buf_puts(out, written++ ? "," : "");
            add_voice(server, !only, &list[i], out);
        }
    mt_buf_puts(out, written ? "]" : "");
}

void mt_dashboard_write_page(mt_server *server, const mt_account *account, const mt_voices_page *page, mt_buf *out)
{
    const mt_account *only = mt_account_scope(account);
    size_t written = 0;

    add_voices(server, only, "live", page->live, page->live_count, out);
    add_voices(server, only, "ended", page->ended, page->ended_count, out);
    for (size_t i = 0; i < page->notes_count; i++)
        if (!only || page->notes[i].client == only->client.id) {
            mt_buf_puts(out, written++ ? "," : ",\"notes\":[");
            add_note(out, &page->notes[i]);
        }
    mt_buf_puts(out, written ? "]" : "");
}

void mt_dashboard_write_faults(mt_server *server, const mt_account *account, uint64_t *from, mt_buf *out)
{
    const mt_account *only = mt_account_scope(account);
    const mt_dashboard *d = &server->dashboard;
    size_t written = 0;

    if (d->fault_count > MT_DASHBOARD_ERRORS && *from < d->fault_count - MT_DASHBOARD_ERRORS)
        *from = d->fault_count - MT_DASHBOARD_ERRORS;
    for (; *from < d->fault_count; ++*from) {
        const mt_fault *f = &d->faults[*from % MT_DASHBOARD_ERRORS];

        if (only && f->account != only)
            continue;
        mt_buf_puts(out, written++ ? "," : ",\"errors\":[");
        mt_buf_printf(out, "{\"at\":%llu,\"status\":%d,", (number)mt_voices_time(server->fleet.voices, f->at),
                      f->status);
        add_text(out, "id", f->id);
        mt_buf_puts(out, ",");
        add_text(out, "text", f->text);
        mt_buf_puts(out, "}");
    }
    mt_buf_puts(out, written ? "]" : "");
}
