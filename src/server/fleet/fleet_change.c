/* Models that come and go by request: those that are being fetched, and those that are being deleted. Part of the
   fleet. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "hub/find.h"
#include "server/fleet/fleet_inside.h"

#define RETRY_SECONDS 5 /* what clients that ask for a model on its way are told to wait */

/* ---- fetching ---- */

void mt_fleet_fetch_begin(mt_fleet *f, mt_fleet_fetch *p)
{
    pthread_mutex_lock(&f->lock);
    p->next = f->fetches;
    f->fetches = p;
    pthread_mutex_unlock(&f->lock);
}

void mt_fleet_fetch_told(mt_fleet *f, mt_fleet_fetch *p, uint64_t done, uint64_t total)
{
    pthread_mutex_lock(&f->lock);
    p->done = done;
    p->total = total;
    pthread_mutex_unlock(&f->lock);
}

void mt_fleet_fetch_end(mt_fleet *f, mt_fleet_fetch *p)
{
    mt_fleet_fetch **at = &f->fetches;

    pthread_mutex_lock(&f->lock);
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    f->scanned = 0; /* what has come is found by the next call that asks for it */
    pthread_mutex_unlock(&f->lock);
}

bool mt_fleet_fetched(const mt_fleet *f, const char *name, mt_failure *why)
{
    for (const mt_fleet_fetch *p = f->fetches; name && p; p = p->next) {
        const size_t len = strcspn(p->name, "@"); /* without the revision, it may be what the name will mean */

        if (!mt_served_called(name, p->name) && (strncmp(name, p->name, len) != 0 || strcspn(name, "@:") != len))
            continue;
        mt_failure_set(why, 503, "loading", "model",
                       "the model \"%.100s\" is being fetched, %.0f %% are here: try again later", name,
                       p->total ? 100.0 * (double)p->done / (double)p->total : 0.0);
        why->retry_after = RETRY_SECONDS;
        return true;
    }
    return false;
}

/* ---- deleting ---- */

void mt_member_set_gone(mt_member *m)
{
    m->gone = true;
    m->expired = m->state == MT_MEMBER_LOADING || m->state == MT_MEMBER_READY;
    m->fleet->changes++;
}

/* Whether a deletion takes files that belong to no member alone: an encoder beside a single model, the draft model, the
   chat template. */
static bool takes_other(const mt_fleet *f, bool (*affects)(void *ctx, const char *path), void *ctx)
{
    const mt_options *opt = f->params.opt;
    bool found = opt->chat_template && affects(ctx, opt->chat_template);

    for (size_t i = 0; i <= opt->embedding_models.count && !found; i++) {
        const char *given = i < opt->embedding_models.count ? opt->embedding_models.at[i] : opt->draft;
        char *dir = given ? mt_hub_find(given, opt->models_dir, getenv, NULL) : NULL;

        found = dir && affects(ctx, dir);
        mt_free(dir);
    }
    return found;
}

/* Whether a member's files may not be deleted now. */
static bool is_needed(const mt_member *m)
{
    return !m->found || m->references > 0 || m->first || m->state == MT_MEMBER_LOADING;
}

bool mt_fleet_remove_begin(mt_fleet *f, bool (*affects)(void *ctx, const char *path), void *ctx)
{
    mt_member **all;
    size_t count, taken = 0;
    bool ok;

    pthread_mutex_lock(&f->lock);
    f->removing++; /* so that no member is added from here on */
    f->removals++;
    count = f->count;
    all = mt_alloc_array(count + 1, sizeof(mt_member *));
    for (size_t i = 0; i < count; i++)
        all[i] = f->members[i];
    pthread_mutex_unlock(&f->lock);
    ok = !takes_other(f, affects, ctx);
    for (size_t i = 0; i < count; i++) /* name and folder of a member never change */
        if (affects(ctx, all[i]->dir))
            all[taken++] = all[i];
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < taken; i++)
        ok = ok && !is_needed(all[i]);
    for (size_t i = 0; ok && i < taken; i++)
        mt_member_set_gone(all[i]);
    f->removing -= !ok;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    mt_free(all);
    return ok;
}

void mt_fleet_remove_end(mt_fleet *f)
{
    pthread_mutex_lock(&f->lock);
    f->removing--;
    f->scanned = 0; /* what could not be deleted is found again */
    pthread_mutex_unlock(&f->lock);
}
