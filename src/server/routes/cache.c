/* What the cache holds and has saved, as JSON, and how it is emptied: /v1/cache/stats and /v1/cache/reset. The numbers
   are those of /metrics. */
#include "base/json_write.h"
#include "base/log.h"
#include "server/inside.h"

/* The tiers of one model's engine: the device's memory, features of pictures, and the host's memory. */
static void add_model(mt_buf *out, const mt_member *m, const mt_stats *s)
{
    const double rate = s->prompt_tokens ? (double)s->cached_tokens / (double)s->prompt_tokens : 0;

    mt_json_write(out,
                  "{'model':%s,'loaded':%hhd,'prompt_tokens':%llu,'cached_tokens':%llu,'hit_rate':%.4f,"
                  "'lookups':%llu,'bytes':%llu,'page_tokens':%d,"
                  "'pages':{'total':%zu,'held':%zu,'known':%zu,'evicted':%llu}",
                  m->name, m->open, (unsigned long long)s->prompt_tokens, (unsigned long long)s->cached_tokens, rate,
                  (unsigned long long)s->lookups, (unsigned long long)s->bytes_cache, MT_PAGE_TOKENS, s->pages_total[0],
                  s->pages_held[0], s->pages_known, (unsigned long long)s->evictions);
    mt_json_write(out, "'states':{'total':%zu,'held':%zu,'known':%zu,'evicted':%llu}", s->states_total, s->states_held,
                  s->states_known, (unsigned long long)s->state_evictions);
    mt_json_write(out, "'media':{'known':%zu,'bytes':%zu,'limit_bytes':%zu,'hits':%llu,'misses':%llu,'evicted':%llu}",
                  s->media_known, s->media_bytes, s->media_total, (unsigned long long)s->media_hits,
                  (unsigned long long)s->media_misses, (unsigned long long)s->media_evictions);
    mt_json_write(out, "'host':{'records':%llu,'bytes':%llu,'limit_bytes':%llu,'read':%llu,'evicted':%llu}}",
                  (unsigned long long)s->host_store.records, (unsigned long long)s->host_store.bytes,
                  (unsigned long long)s->host_store.limit, (unsigned long long)s->host_store.read,
                  (unsigned long long)s->host_store.evicted);
}

/* The tiers that all models share; null: there is none. */
static void add_tiers(mt_buf *out, const mt_server_disk *tiers)
{
    if (tiers->disk) {
        const mt_disk_stats s = mt_disk_look(tiers->disk);

        mt_json_write(out, "'disk':{'records':%llu,'bytes':%llu,'limit_bytes':%llu,'read':%llu,'written':%llu}",
                      (unsigned long long)s.records, (unsigned long long)s.bytes, (unsigned long long)s.limit,
                      (unsigned long long)s.read, (unsigned long long)s.written);
    } else
        mt_json_write(out, "'disk':null");
    if (tiers->remote) {
        const mt_remote_store_stats s = mt_remote_store_look(tiers->remote);

        mt_json_write(out, "'remote':{'up':%hhd,'queued_bytes':%llu,'read':%llu,'written':%llu}", s.up,
                      (unsigned long long)s.queued, (unsigned long long)s.read, (unsigned long long)s.written);
    } else
        mt_json_write(out, "'remote':null");
}

bool mt_cache_tell(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    const bool running = server->warm.member != NULL;
    mt_fleet *fleet = &server->fleet;
    mt_member_past all;

    (void)request;
    (void)why;
    mt_json_write(out, "{'object':'cache.stats','enabled':true,'models':[");
    pthread_mutex_lock(&fleet->lock);
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->members[i]->loads > 0 && !fleet->members[i]->gone) {
            mt_member_count(fleet->members[i], &all);
            add_model(out, fleet->members[i], &all.stats);
        }
    pthread_mutex_unlock(&fleet->lock);
    mt_json_write(out, "]");
    add_tiers(out, &fleet->disk);
    mt_json_write(out, "'warm':{'prompts':%zu,'running':%hhd}}", server->warm.list.count, running);
    return true;
}

bool mt_cache_may(const mt_server *server, const mt_account *account, mt_failure *why)
{
    return mt_models_may(server, account, NULL) ||
           mt_failure_set(why, 403, "forbidden", NULL, "this key may not empty the cache: use one that is an admin's");
}

/* Preparation thread, since removing files waits for the disk. What is in memory goes first, so that nothing that was
   there is stored behind the files' back. */
static bool answer_cache_reset(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_server *server = call->server;
    mt_fleet *fleet = &server->fleet;
    const bool warms = server->warm.list.count > 0;

    (void)body;
    (void)why;
    pthread_mutex_lock(&fleet->lock);
    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->members[i]->open)
            mt_engine_reset(fleet->members[i]->served.engine);
        fleet->members[i]->warmed = 0; /* the io thread has its prompts computed again within a second */
    }
    pthread_mutex_unlock(&fleet->lock);
    if (fleet->disk.disk)
        mt_disk_clear(fleet->disk.disk);
    mt_log_info("cache.reset", "%s has emptied the cache", call->account ? call->account->name : "a client");
    mt_json_write(out, "{'object':'cache.reset','enabled':true,'status':'cleared','tiers':['memory','host'");
    if (fleet->disk.disk)
        mt_json_write(out, "'disk'");
    mt_json_write(out, "],'rewarm_scheduled':%hhd}", warms);
    return true;
}

const mt_task mt_task_cache_reset = {.run = answer_cache_reset, .no_model = true, .no_body = true};
