/* Opens a checkpoint folder and the device that runs it (opened.h). */
#include "engine/opened.h"

#include <string.h>

#include "base/log.h"
#include "engine/lead.h"
#include "models/cut.h"
#include "ranks/ranks.h"

static void report(const mt_opened *o)
{
    const mt_bind_cost *cost = &o->weights.cost;
    mt_log_info("model.opened", "%s \"%s\" on %s, %.1f MiB mapped", o->spec.family, mt_checkpoint_dir(o->checkpoint),
                mt_device_name(o->dev), (double)mt_checkpoint_bytes(o->checkpoint) / (1 << 20));
    if (cost->copied_bytes >= 1 << 20)
        mt_log_info("weights.repacked", "%.1f MiB in %.2f s", (double)cost->copied_bytes / (1 << 20), cost->seconds);
}

static bool open_model(mt_opened *o, const mt_open_wish *wish, mt_error *err)
{
    const mt_config *config = mt_checkpoint_config(o->checkpoint);
    if (!mt_model_spec_read(&o->spec, config, wish->family, o->arena, err))
        return false;
    if (wish->text_only)
        o->spec.vision = NULL;
    if (!mt_model_bind(&o->weights, &o->spec, o->checkpoint, o->arena, err))
        return false;
    if (!o->spec.vision)
        return true;
    o->processor = mt_processor_read(mt_checkpoint_dir(o->checkpoint), config, &o->spec, o->arena, err);
    return o->processor != NULL;
}

/* The drafter's mapping stays open with the model's; its tensors are bound like the model's. */
static bool open_draft(mt_opened *o, const char *dir, mt_error *err)
{
    if (!dir)
        return true;
    o->draft = mt_checkpoint_open(dir, err);
    if (!o->draft)
        return false;
    if (mt_device_precision(o->dev) == MT_PRECISION_REFERENCE)
        mt_checkpoint_exact(o->draft);
    if (mt_device_apart(o->dev) || mt_device_ranks(o->dev))
        mt_checkpoint_read_once(o->draft);
    if (!mt_drafter_spec_read(&o->drafter, mt_checkpoint_config(o->draft), o->arena, err) ||
        !mt_drafter_join(&o->drafter, &o->spec, err) ||
        !mt_drafter_bind(&o->weights.guess, &o->drafter, o->draft, &o->draft_cost, o->arena, err))
        return false;
    mt_log_info("draft.opened", "%s \"%s\", %.1f MiB mapped", o->drafter.model.family, dir,
                (double)mt_checkpoint_bytes(o->draft) / (1 << 20));
    return true;
}

bool mt_opened_open(mt_opened *o, const char *dir, const mt_device_params *params, const mt_open_wish *wish,
                    mt_error *err)
{
    mt_device_params device = *params;
    memset(o, 0, sizeof(*o));
    o->arena = mt_arena_new(0);
    device.ranks = wish->alone ? NULL : mt_ranks_all();
    o->checkpoint = mt_checkpoint_open(dir, err);
    if (o->checkpoint)
        o->dev = mt_device_open(&device, err);
    if (o->dev && (mt_device_apart(o->dev) || device.ranks)) /* with ranks, each reads its own part ahead */
        mt_checkpoint_read_once(o->checkpoint);
    if (o->dev && mt_device_precision(o->dev) == MT_PRECISION_REFERENCE)
        mt_checkpoint_exact(o->checkpoint);
    if (o->dev)
        o->told = mt_lead_open(o->dev, o->checkpoint, wish);
    const bool ok = o->dev && open_model(o, wish, err) && open_draft(o, wish->draft, err);
    mt_error theirs = {0};
    if (o->told && !mt_lead_agree(o->dev, &theirs) && ok) /* the other ranks answer even where this one failed */
        mt_fail(err, theirs.code, "%s", theirs.text);
    if (ok && theirs.code == MT_OK) {
        if (device.ranks)
            o->elsewhere =
                mt_model_cut(&o->spec, &o->weights, mt_ranks_own(device.ranks), mt_ranks_count(device.ranks), o->arena);
        report(o);
        return true;
    }
    mt_opened_close(o);
    return false;
}

void mt_opened_close(mt_opened *o)
{
    if (o->told)
        mt_lead_close(o->dev);
    mt_device_close(o->dev);
    mt_checkpoint_close(o->checkpoint);
    mt_checkpoint_close(o->draft);
    mt_arena_free(o->arena);
    memset(o, 0, sizeof(*o));
}
