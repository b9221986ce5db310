/* Writes the dashboard's events as JSON. An account sees its own requests and errors, as in /v1/status; one that may
   see everybody's is told whose they are. Figures of the machine are shown to all, as in /metrics. */
#include <inttypes.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "server/inside.h"

typedef unsigned long long number;

static const char *const kinds[MT_NOTE_KINDS] = {
    [MT_NOTE_PREPARED] = "prepared", [MT_NOTE_SEATED] = "seated",     [MT_NOTE_ASIDE] = "aside",
    [MT_NOTE_CACHED] = "cached",     [MT_NOTE_PICTURES] = "pictures", [MT_NOTE_PROMPT] = "prompt",
    [MT_NOTE_ANSWER] = "answer",
};

/* Names of the models, in the order of their numbers in voices, and of the encoders that a single model has beside
   it. */
static void add_models(mt_fleet *fleet, mt_buf *out)
{
    mt_json_write(out, "'models':[");
    for (size_t i = 0; i < fleet->count; i++)
        mt_json_write(out, "%s", fleet->members[i]->name);
    mt_json_write(out, "],'encoders':[");
    for (size_t i = 0; fleet->alone && i < fleet->members[0]->served.target_count; i++)
        if (fleet->members[0]->open && fleet->members[0]->served.targets[i].number)
            mt_json_write(out, "%s", fleet->members[0]->served.targets[i].name);
    mt_json_write(out, "]");
}

/* Adds up sizes of all loaded models. *context: the longest of theirs. */
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

/* The name of the single model; of several, the names of those that are loaded. */
static void add_name(const mt_fleet *fleet, mt_buf *out)
{
    mt_buf names = {.limit = MT_LIMIT_PATH};

    if (fleet->alone) {
        mt_json_write(out, "'model':%s", fleet->members[0]->name);
        return;
    }
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->members[i]->open)
            mt_buf_printf(&names, "%s%s", names.len ? ", " : "", fleet->members[i]->name);
    mt_json_write(out, "'model':%s", names.len ? names.data : "no model is loaded");
    mt_buf_free(&names);
}

static void add_memory(const mt_stats *s, mt_buf *out)
{
    size_t pages = 0;

    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        pages += s->pages_total[g];
    mt_json_write(out,
                  "'memory':{'budget':%" PRIu64 ",'weights':%" PRIu64 ",'cache':%" PRIu64 ",'working':%" PRIu64
                  ",'constraints':%" PRIu64 ",'pictures':%" PRIu64 ",'requests':%" PRIu64
                  "},'pages':%zu,'states':%zu,'features':%zu",
                  s->bytes_memory, s->bytes_weights, s->bytes_cache, s->bytes_working, s->bytes_constraints,
                  s->bytes_pictures, s->bytes_requests, pages, s->states_total, s->media_total);
}

/* When the recorder's time 0 was, in milliseconds since 1970. */
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

    pthread_mutex_lock(&fleet->lock);
    add_name(fleet, out);
    mt_json_write(out, "'everybody':%hhd", (bool)!mt_account_scope(account));
    add_models(fleet, out);
    sum_up(fleet, &stats, &context);
    pthread_mutex_unlock(&fleet->lock);
    mt_json_write(out, "'origin':%.3f,'seats':%lld,'context':%zu", origin(fleet->voices),
                  (long long)server->opt->max_sequences, context);
    add_memory(&stats, out);
    mt_json_write(out, "'kinds':[");
    for (size_t i = 0; i < MT_COUNT(kinds); i++)
        mt_json_write(out, "%s", kinds[i]);
    mt_json_write(out, "],'columns':");
    mt_pulse_names(out);
}

static void add_note(mt_buf *out, const mt_note *n)
{
    mt_json_write(out, "[%llu,%u,%llu,%u,%u,%u,%u,%u]", (number)n->voice, n->kind, (number)n->begin, n->length,
                  n->count, n->steps, n->guessed, n->taken);
}

/* The name of the account that the client is. */
static void add_key(const mt_server *server, uint64_t client, mt_buf *out)
{
    for (size_t i = 0; i < server->keys.account_count; i++)
        if (server->keys.accounts[i]->client.id == client) {
            mt_json_write(out, "'key':%s", server->keys.accounts[i]->name);
            return;
        }
}

/* everybody: the reader sees the voices of all accounts, each with the name of its account. */
static void add_voice(mt_server *server, bool everybody, const mt_voice *v, mt_buf *out)
{
    mt_json_write(out,
                  "{'number':%llu,'id':%s,'model':%u,'choice':%u,'encoder':%u,'received':%llu,'entered':%llu,"
                  "'seated':%llu,'first':%llu,'waited':%llu,'prompt':%u,'cached':%u,'tokens':%u,'pictures':%u,"
                  "'guessed':%u,'taken':%u,'aside':%u,'constrained':%hhd",
                  (number)v->number, v->name, v->model, v->choice, v->encoder, (number)v->received, (number)v->entered,
                  (number)v->seated, (number)v->first, (number)v->waited, v->prompt, v->cached, v->tokens, v->pictures,
                  v->guessed, v->taken, v->aside, v->constrained);
    if (everybody)
        add_key(server, v->client, out);
    if (v->ended)
        mt_json_write(out, "'ended':%llu,'finish':%s", (number)v->ended, mt_finish_name((mt_finish)v->finish));
    if (v->open.steps > 0) {
        mt_json_write(out, "'open':");
        add_note(out, &v->open);
    }
    mt_json_write(out, "}");
}

/* Lists are opened before their first element, so that empty ones are left out. written: elements so far. */
static void open_list(mt_buf *out, const char *name, size_t written)
{
    if (written == 0)
        mt_json_write(out, "%s:[", name);
}

static void close_list(mt_buf *out, size_t written)
{
    if (written > 0)
        mt_json_write(out, "]");
}

/* only: the account whose voices are told; NULL: all. */
static void add_voices(mt_server *server, const mt_account *only, const char *name, const mt_voice *list, size_t count,
                       mt_buf *out)
{
    size_t written = 0;

    for (size_t i = 0; i < count; i++)
        if (!only || list[i].client == only->client.id) {
            open_list(out, name, written++);
            add_voice(server, !only, &list[i], out);
        }
    close_list(out, written);
}

void mt_dashboard_write_page(mt_server *server, const mt_account *account, const mt_voices_page *page, mt_buf *out)
{
    const mt_account *only = mt_account_scope(account);
    size_t written = 0;

    add_voices(server, only, "live", page->live, page->live_count, out);
    add_voices(server, only, "ended", page->ended, page->ended_count, out);
    for (size_t i = 0; i < page->notes_count; i++)
        if (!only || page->notes[i].client == only->client.id) {
            open_list(out, "notes", written++);
            add_note(out, &page->notes[i]);
        }
    close_list(out, written);
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
        open_list(out, "errors", written++);
        mt_json_write(out, "{'at':%llu,'status':%d,'id':%s,'text':%s}",
                      (number)mt_voices_time(server->fleet.voices, f->at), f->status, f->id, f->text);
    }
    close_list(out, written);
}
