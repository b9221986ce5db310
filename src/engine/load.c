/* Puts on the device what the engine needs there: weights, working memory, pages. Done when the engine starts, and
   again after the device has failed. */
#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"
#include "engine/inside.h"
#include "engine/limits.h"

/* patches of a picture that a request may ask for, even where the checkpoint's own limit is lower */
#define TOWER_PATCHES 16384
/* how many times faster than mt_cost_init's guess, which is for a CPU, a GPU is taken to be until steps were
   measured */
#define GPU_FASTER 100
#define TOWER_SHARE 16 /* the tower's working memory is at most one part of so many of all */

/* Makes the model's tower, with room for the largest picture that needs no more than its share of the memory. */
static bool make_tower(mt_engine *e, const mt_opened *o, mt_error *err)
{
    const mt_vision_spec *spec = o->spec.vision;
    if (e->params.tower)
        e->tower = *e->params.tower;
    if (e->params.tower || !spec || !o->processor)
        return true;
    const uint64_t each = 8 * (uint64_t)spec->hidden; /* bytes that one patch needs: residual stream, key and value */
    const uint64_t most = mt_engine_memory(&e->params, e->dev) / TOWER_SHARE / each;
    const size_t given = mt_processor_patches(o->processor), patches = given > TOWER_PATCHES ? given : TOWER_PATCHES;
    const mt_vision_params params = {.patches = patches < most ? patches : (size_t)most, .rows = e->params.rows};
    e->vision = mt_vision_new(e->dev, spec, o->weights.vision, &params, err);
    if (!e->vision)
        return false;
    e->tower = mt_vision_tower(e->vision);
    return true;
}

/* Makes the model, sized for the largest step; it guesses ahead only as the parameters allow. */
static bool make_model(mt_engine *e, mt_opened *o, mt_error *err)
{
    e->memos = e->params.sequences < MT_LIMIT_MEMOS ? e->params.sequences : MT_LIMIT_MEMOS;
    if (e->params.speculate == MT_SPECULATE_OFF)
        e->memos = 0;
    if (e->params.speculate != MT_SPECULATE_MTP) {
        o->spec.mtp = false;
        o->spec.drafter = NULL;
    }
    const mt_model_params model = {.rows = e->params.rows,
                                   .logits = mt_step_most_wanted(e->params.sequences),
                                   .places = e->params.sequences,
                                   .memos = e->memos};
    e->model = mt_model_new(e->dev, e->spec, &o->weights, &model, err);
    return e->model != NULL;
}

/* Bytes of the model's weights that this rank has. */
static uint64_t model_bytes(const mt_opened *o)
{
    uint64_t all = o->checkpoint ? mt_checkpoint_bytes(o->checkpoint) + o->weights.cost.copied_bytes : 0;
    if (o->draft)
        all += mt_checkpoint_bytes(o->draft) + o->draft_cost.copied_bytes;
    return all > o->elsewhere ? all - o->elsewhere : 0;
}

/* Bytes of all weights: the model's and the encoders'. */
static uint64_t weights_of(const mt_engine *e)
{
    uint64_t bytes = model_bytes(e->opened);
    for (size_t i = 0; i < e->text_queue_count; i++)
        bytes += mt_encoder_weights(e->text_queues[i].encoder);
    return bytes;
}

/* Loads the encoders, the tower, and last the model, which plans the device's working memory for all of them. */
static bool load(mt_engine *e, mt_opened *o, mt_error *err)
{
    const uint64_t weights = model_bytes(o);
    const double faster = mt_device_apart(e->dev) ? GPU_FASTER : 1;
    mt_cost_init(&e->past.cost, (double)weights / faster, (double)weights / faster, mt_device_few(e->dev));
    if (!mt_texts_load(e, err) || !make_tower(e, o, err) ||
        !(o->checkpoint ? make_model(e, o, err) : mt_device_plan(e->dev, e->params.rows, err)))
        return false;
    mt_job_init(&e->job, e->tower.cursor, mt_engine_encoded);
    if (!mt_engine_reserve(e, weights_of(e), err))
        return false;
    const size_t listed = e->places.all + e->job_count;
    mt_step_init(&e->step, e->set, e->params.rows, e->params.sequences, listed, e->spec->vocab);
    mt_step_init_next(&e->next, &e->step, e->params.rows, e->params.sequences, listed);
    const mt_tiers tiers = {.host_store = e->host_store, .disk = e->params.disk, .remote = e->params.remote};
    const bool any = tiers.host_store || tiers.disk || tiers.remote;
    if (any && mt_device_ranks(e->dev)) /* a rank's page is only a part of a page */
        return mt_fail(err, MT_E_UNSUPPORTED, "several ranks keep nothing in a tier; start one process for that");
    if (any && e->model && !(e->keep = mt_keep_new(e, &tiers, e->params.identity, mt_engine_poke, err)))
        return false;
    if (e->params.events && e->model) {
        static const uint8_t none[32];
        mt_tree_tell(e->tree, e->keep ? mt_keep_root(e->keep) : none, mt_kv_events_tell, e->params.events);
        mt_kv_events_clear(e->params.events); /* listeners forget what an earlier process told them */
    }
    if (e->params.canary && e->model)
        mt_engine_canary(e);
    if (mt_device_apart(e->dev)) {
        e->stats.device_bytes = mt_device_bytes(e->dev);
        e->stats.device_memory = mt_device_memory(e->dev);
    }
    mt_device_wait(e->dev);
    return mt_device_well(e->dev, err);
}

bool mt_engine_load(mt_engine *e, mt_error *err)
{
    mt_progress progress;
    e->set = mt_set_new(e->dev);
    mt_progress_begin(&progress, "weights.loading", "loading weights", weights_of(e));
    mt_device_watch(e->dev, &progress);
    const bool ok = load(e, e->opened, err);
    mt_device_watch(e->dev, NULL);
    mt_progress_end();
    return ok;
}

void mt_engine_unload(mt_engine *e)
{
    mt_keep_free(e->keep);
    mt_host_store_free(e->host_store);
    mt_set_free(e->set);
    mt_texts_unload(e);
    mt_model_free(e->model);
    mt_vision_free(e->vision);
    if (e->tree)
        mt_kv_events_clear(e->params.events);
    mt_tree_free(e->tree);
    mt_feature_cache_free(e->feature_cache);
    mt_step_free(&e->step);
    mt_step_free(&e->next);
    e->keep = NULL;
    e->host_store = NULL;
    e->set = NULL;
    e->model = NULL;
    e->vision = NULL;
    e->tower = (mt_tower){0};
    e->tree = NULL;
    e->feature_cache = NULL;
    e->features = (mt_features){0};
    e->pictures = (mt_shown){0};
    e->step = e->next = (mt_step){0};
    e->ahead = false;
}

void mt_engine_renew(mt_engine *e)
{
    mt_error why = {0};
    mt_engine_unload(e);
    mt_log_warn("device.renewed", "the device is reopened");
    if (mt_device_renew(e->dev, &why) && mt_engine_load(e, &why)) {
        mt_error_clear(&e->lost);
        mt_log_info("device.renewed", "the device is well again: %s", mt_device_name(e->dev));
    } else {
        mt_engine_unload(e);
        mt_fail(&e->lost, MT_E_IO, "the device could not be reopened: %s", why.text);
        mt_log_error("device.lost", "%s", e->lost.text);
    }
    e->renewed = mt_clock_ns();
}
