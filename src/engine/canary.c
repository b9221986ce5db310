/* The canary, for debugging: all numbers of free pages and states are NaN. A kernel that reads a free page gets results
   that are not finite; a write to one is found when the page is taken again. It costs time, and touches all memory of
   the cache. */
#include "base/log.h"
#include "engine/inside.h"

static void watch(void *ctx, size_t pool, uint32_t page, bool freed)
{
    mt_engine *e = ctx;
    if (freed) {
        mt_model_poison(e->model, pool, page);
        return;
    }
    if (mt_model_poisoned(e->model, pool, page))
        return;
    e->stats.canary_faults++;
    mt_log_error("cache.canary", "%s %u was written while it was free", pool == MT_KV_GROUPS ? "state" : "page", page);
}

void mt_engine_canary(mt_engine *e)
{
    for (size_t g = 0; g < e->spec->group_count; g++)
        for (size_t i = 0; i < mt_tree_total(e->tree, g); i++)
            mt_model_poison(e->model, g, (uint32_t)i);
    for (size_t i = 0; i < mt_tree_anchors(e->tree)->slots.total; i++)
        mt_model_poison(e->model, MT_KV_GROUPS, (uint32_t)i);
    mt_tree_watch(e->tree, watch, e);
}
