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

static void add_models(const mt_served *served, mt_buf *out)
{
    mt_buf_puts(out, ",\"encoders\":[");
    for (size_t i = 0, count = 0; i < served->target_count; i++)
        if (served->targets[i].number) {
            mt_buf_puts(out, count++ ? "," : "");
            mt_buf_json_string(out, served->targets[i].name, strlen(served->targets[i].name));
        }
    mt_buf_puts(out, "]");
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
    mt_stats stats;

    add_text(out, "model", server->served.name);
    mt_buf_printf(out, ",\"everybody\":%s", mt_account_scope(account) ? "false" : "true");
    mt_engine_stats(server->served.engine, &stats);
    add_models(&server->served, out);
    mt_buf_printf(out, ",\"origin\":%.3f,\"seats\":%lld,\"context\":%zu",
                  origin(mt_engine_voices(server->served.engine)), (long long)server->opt->max_sequences,
                  server->served.context);
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
    mt_buf_printf(out,
                  ",\"choice\":%u,\"encoder\":%u,\"received\":%llu,\"entered\":%llu,\"seated\":%llu,\"first\":%llu,"
                  "\"waited\":%llu,\"prompt\":%u,\"cached\":%u,\"tokens\":%u,\"pictures\":%u,\"guessed\":%u,"
                  "\"taken\":%u,\"aside\":%u,\"constrained\":%s",
                  v->choice, v->encoder, (number)v->received, (number)v->entered, (number)v->seated, (number)v->first,
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
        mt_buf_printf(out, "{\"at\":%llu,\"status\":%d,",
                      (number)mt_voices_time(mt_engine_voices(server->served.engine), f->at), f->status);
        add_text(out, "id", f->id);
        mt_buf_puts(out, ",");
        add_text(out, "text", f->text);
        mt_buf_puts(out, "}");
    }
    mt_buf_puts(out, written ? "]" : "");
}
