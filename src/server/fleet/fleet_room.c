/* Divides --memory. One part is no model's: the process itself before any model is loaded, requests, the dashboard's
   recorder. The rest is for models: each gets a grant, which its engine divides into weights, working memory, cache,
   constraints and pixels (engine/memory.c). The least that a model needs is guessed from its files before it is first
   loaded; afterwards it is known, even where loading failed.

   Where the device has memory of its own, --memory is that, and models get all of it. What is no model's lies in the
   host's memory then, and the rest of the host's is divided among models in proportion to their grants. */
#include "base/alloc.h"
#include "base/compiler.h"
#include "engine/limits.h"
#include "server/fleet/fleet_inside.h"
#include "server/metrics/pulse.h"

#define REQUESTS_SHARE 16 /* requests get one part of so many of the host's memory */

/* How many voices (choices that wait or run) there may be at a time: as many as the engine has places, its encoders
   included; with several models, as many as two engines have. */
static size_t voices_of(const mt_fleet *f)
{
    const mt_options *opt = f->params.opt;
    const size_t encoders = opt->embedding_models.count + (f->alone && f->members[0]->facts.encoder);
    const size_t own = mt_places_all((size_t)(opt->max_sequences + opt->max_queue));

    return f->alone ? own + encoders * mt_places_all((size_t)opt->max_queue + MT_BERT_TEXTS) : 2 * own;
}

/* With several models: sets how much is no model's. A single model's engine decides itself how much is for requests.
   apart: the device has memory of its own. False: *err. */
static bool set_apart(mt_fleet *f, bool apart, mt_error *err)
{
    f->requests = mt_engine_requests(f->host_memory, REQUESTS_SHARE);
    f->apart = mt_resident_bytes(NULL) + f->recorded + f->requests + MT_LIMIT_REQUESTS_ASIDE;
    f->for_all = apart ? 0 : f->apart;
    return f->apart < f->host_memory ||
           mt_fail(err, MT_E_MEMORY, "\"--%s\" is %.0f MiB, and the server itself takes %.0f; raise it",
                   apart ? "host-memory" : "memory", (double)f->host_memory / (1 << 20), (double)f->apart / (1 << 20));
}

/* Opens the device to ask how much memory there is, and closes it again, since a GPU's context takes memory. */
static bool measure(mt_fleet *f, bool *apart, mt_error *err)
{
    const mt_options *opt = f->params.opt;
    const mt_engine_params given = {.memory = (uint64_t)opt->memory, .host_memory = (uint64_t)opt->host_memory};
    mt_device *probe = mt_device_open(&f->device, err);

    if (!probe)
        return false;
    f->memory_given = given.memory;
    f->memory = mt_engine_memory(&given, probe);
    f->host_memory = mt_engine_host_memory(&given, probe);
    *apart = mt_device_apart(probe);
    mt_device_close(probe);
    return true;
}

bool mt_fleet_share_out(mt_fleet *f, mt_error *err)
{
    bool apart;

    f->host = mt_host_open(&f->device.host, err);
    if (!f->host)
        return false;
    f->device.shared = f->host;
    if (!measure(f, &apart, err))
        return false;
    f->recorded = mt_pulse_seconds(f->host_memory) * sizeof(mt_second) + mt_voices_bytes(f->host_memory, voices_of(f)) +
                  mt_server_disk_memory(f->params.opt) + mt_fleet_events_memory(f->params.opt);
    if (!f->alone && !set_apart(f, apart, err))
        return false;
    f->rota = f->alone ? NULL : mt_rota_new();
    f->voices = mt_voices_new(f->host_memory, voices_of(f));
    return true;
}

uint64_t mt_fleet_free(const mt_fleet *f)
{
    uint64_t taken = f->for_all;

    for (size_t i = 0; !f->alone && i < f->count; i++)
        taken += f->members[i]->grant;
    return f->memory > taken ? f->memory - taken : 0;
}

uint64_t mt_fleet_need(const mt_fleet *f, const mt_member *m)
{
    return m->measured ? m->need : MT_MIN(m->need, f->memory - f->for_all);
}

bool mt_fleet_fits(const mt_fleet *f, const mt_member *m, mt_error *err)
{
    const uint64_t models = f->memory - f->for_all, need = m->measured ? m->need : m->facts.bytes;

    return f->alone || need <= models ||
           mt_fail(err, MT_E_MEMORY, "it needs %.1f MiB at least, and \"--memory\" leaves %.1f for models; raise it",
                   (double)need / (1 << 20), (double)models / (1 << 20));
}

/* Beyond what the model needs, the free memory is shared evenly with named models that are not loaded and whose needs
   fit into it. Where no model was named, it is shared with one imagined model of the same need. */
uint64_t mt_fleet_grant(const mt_fleet *f, const mt_member *m)
{
    const uint64_t need = mt_fleet_need(f, m);
    uint64_t rest = mt_fleet_free(f) - need;
    size_t sharers = 1;

    for (size_t i = 0; i < f->count; i++) {
        const mt_member *o = f->members[i];

        if (f->open || o == m || o->state != MT_MEMBER_UNLOADED || o->need > rest)
            continue;
        rest -= o->need;
        sharers++;
    }
    if (f->open && need <= rest) {
        rest -= need;
        sharers++;
    }
    return need + rest / sharers;
}

uint64_t mt_fleet_host_memory(const mt_fleet *f, const mt_member *m)
{
    if (f->alone)
        return (uint64_t)f->params.opt->host_memory;
    return (uint64_t)((double)(f->host_memory - f->apart) * (double)m->grant / (double)f->memory);
}

/* Whether a is unloaded before b: idle ones first, then the least recently used. */
static bool goes_before(const mt_member *a, const mt_member *b)
{
    const bool busy = a->references > 0, other = b->references > 0;

    return busy != other ? other : a->used < b->used;
}

static mt_member *next_to_go(mt_fleet *f)
{
    mt_member *first = NULL;

    for (size_t i = 0; i < f->count; i++) {
        mt_member *m = f->members[i];

        if (m->state == MT_MEMBER_READY && !m->chosen && (!first || goes_before(m, first)))
            first = m;
    }
    return first;
}

mt_member *mt_fleet_make_way(mt_fleet *f, const mt_member *m, uint64_t now, uint64_t *next)
{
    uint64_t bytes = mt_fleet_free(f);
    mt_member *idle = NULL, *go;

    for (size_t i = 0; i < f->count; i++)
        f->members[i]->chosen = false;
    while (bytes < mt_fleet_need(f, m) && (go = next_to_go(f))) {
        go->chosen = true;
        bytes += go->grant;
        go->yields = now >= go->since + go->loading;
        if (!go->yields)
            *next = MT_MIN(*next, go->since + go->loading);
        if (!idle && go->references == 0)
            idle = go;
    }
    return idle;
}
