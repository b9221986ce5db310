/* The command motet bench DIR: opens the checkpoint (or makes one in memory with random weights, where --shape names a
   shape), measures the speed of the machine, then runs the parts of the measurement. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/bench.h"
#include "device/limits.h"
#include "sample/limits.h"
#include "synth/synth.h"

static const char *const parts[] = {"steps", "depths", "operations", "tower", "first", "company"};

static bool check_parts(const char *only, mt_error *err)
{
    for (const char *p = only ? only : ""; *p; p += strcspn(p, ","), p += *p == ',') {
        bool known = false;
        for (size_t i = 0; i < MT_COUNT(parts); i++)
            known |= strcspn(p, ",") == strlen(parts[i]) && strncmp(p, parts[i], strlen(parts[i])) == 0;
        if (!known)
            return mt_fail(
                err, MT_E_INVALID,
                "\"--only\" has \"%.24s\"; the parts are steps, depths, operations, tower, first and company", p);
    }
    return true;
}

static bool read_options(mt_model_bench *b, mt_error *err)
{
    const mt_options *o = b->opt;
    b->tokens = (size_t)o->bench_tokens;
    return check_parts(o->bench_only, err) &&
           mt_bench_list_read(&b->prompts, "prompt", o->bench_prompt, "512", 1, MT_LIMIT_CONTEXT, err) &&
           mt_bench_list_read(&b->batches, "batch", o->bench_batch, "1", 1, MT_LIMIT_BATCH_ROWS, err) &&
           mt_bench_list_read(&b->depth_batches, "batch", o->bench_batch, "1,8", 1, MT_LIMIT_BATCH_ROWS, err) &&
           mt_bench_list_read(&b->depths, "depth", o->bench_depth, "512,2048,8192", 1, MT_LIMIT_CONTEXT, err) &&
           mt_bench_list_read(&b->sides, "picture", o->bench_picture, "224,448,896", 16, 16384, err);
}

static bool fail_shape(const char *name, mt_error *err)
{
    char list[512] = "";
    for (size_t i = 0, len = 0; mt_synth_model_at(i) && len < sizeof(list); i++)
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", mt_synth_model_at(i)->name);
    return mt_fail(err, MT_E_NOT_FOUND, "\"%.40s\" is no shape; there are %s", name, list);
}

static bool open_shape(mt_model_bench *b, const mt_device_params *params, const mt_open_wish *wish, mt_error *err)
{
    const mt_options *opt = b->opt;
    const mt_synth_model *known = mt_synth_model_named(opt->bench_shape);
    mt_synth_drawn drawn;
    if (!known)
        return fail_shape(opt->bench_shape, err);
    mt_synth_model model = *known;
    const mt_synth_layout layout = {.bits = opt->bench_bits == MT_BENCH_BITS_4   ? 4
                                            : opt->bench_bits == MT_BENCH_BITS_8 ? 8
                                                                                 : 0,
                                    .group = 64,
                                    .fp8 = opt->bench_bits == MT_BENCH_BITS_FP8};
    if (opt->bench_layers)
        model.layers = (size_t)opt->bench_layers;
    if (!mt_synth_draw(&drawn, &model, &layout, opt->bench_seed ? (uint64_t)opt->bench_seed : 1, err))
        return false;
    const bool ok = mt_opened_open(&b->o, drawn.dir, params, wish, err);
    mt_synth_vanish(&drawn);
    return ok;
}

static bool open_model(mt_model_bench *b, mt_error *err)
{
    const mt_device_params params = mt_options_device(b->opt);
    const mt_open_wish wish = {.family = b->opt->family, .text_only = b->opt->text_only};
    if (b->opt->bench_shape)
        return open_shape(b, &params, &wish, err);
    return mt_opened_open(&b->o, b->opt->dir, &params, &wish, err);
}

static void introduce(mt_model_bench *b)
{
    mt_report *r = b->report;
    const mt_peaks *p = &b->peaks;
    char model[256], peaks[256];
    static const char *const names[] = {"4 bits", "8 bits", "bf16", "FP8"}; /* in the order of mt_bench_bits */
    const double bytes = (double)mt_checkpoint_bytes(b->o.checkpoint);
    if (b->opt->bench_shape)
        snprintf(model, sizeof(model), "random weights of %s in %s, %.2f GB", b->opt->bench_shape,
                 names[b->opt->bench_bits], bytes * 1e-9);
    else
        snprintf(model, sizeof(model), "%s, %s, %.2f GB", b->opt->dir, b->o.spec.family, bytes * 1e-9);
    snprintf(peaks, sizeof(peaks), "memory %.1f GB/s, int8 %.0f GOP/s, bf16 %.0f GFLOP/s, fp32 %.0f GFLOP/s",
             p->bandwidth * 1e-9, p->int8 * 1e-9, p->bf16 * 1e-9, p->fp32 * 1e-9);
    snprintf(r->title, sizeof(r->title), "motet bench: %s", b->opt->bench_shape ? b->opt->bench_shape : b->opt->dir);
    json_object_set_new(r->facts, "model", json_string(model));
    json_object_set_new(r->facts, "machine", json_string(mt_device_name(b->o.dev)));
    json_object_set_new(r->facts, "precision",
                        json_string(b->opt->precision == MT_PRECISION_FAST ? "fast" : "reference"));
    json_object_set_new(r->facts, "arithmetic",
                        json_string(b->opt->arithmetic == MT_NUMERICS_SM90               ? "sm90"
                                    : mt_device_numerics(b->o.dev) == MT_NUMERICS_NATIVE ? "native"
                                                                                         : "portable"));
    json_object_set_new(r->facts, "peaks", json_string(peaks));
    json_object_set_new(r->facts, "bandwidth", json_real(p->bandwidth));
    json_object_set_new(r->facts, "int8", json_real(p->int8));
    json_object_set_new(r->facts, "bf16", json_real(p->bf16));
    json_object_set_new(r->facts, "fp32", json_real(p->fp32));
    mt_report_say(
        r, "model    %s\nmachine  %s\npeaks    %s (measured %s; bytes and operations below are set against them)",
        model, mt_device_name(b->o.dev), peaks,
        mt_device_apart(b->o.dev) ? "on the card, memory by a copy" : "with these threads");
}

bool mt_bench_model(const mt_options *opt, mt_report *report, mt_error *err)
{
    mt_model_bench b = {.opt = opt, .report = report};
    if (!read_options(&b, err) || !open_model(&b, err))
        return false;
    mt_log_passing("bench.peaks", "measuring the machine");
    b.peaks = mt_device_peaks(b.o.dev);
    b.rows = opt->batch_tokens ? (size_t)opt->batch_tokens : mt_device_rows(b.o.dev);
    introduce(&b);
    const bool steps = mt_bench_wants(&b, "steps") || mt_bench_wants(&b, "depths") || mt_bench_wants(&b, "operations");
    const bool engine = mt_bench_wants(&b, "first") || mt_bench_wants(&b, "company");
    bool ok = !steps || mt_bench_steps(&b, err);
    if (ok && b.o.spec.vision && mt_bench_wants(&b, "tower"))
        ok = mt_bench_tower(&b, err);
    if (ok && engine)
        ok = mt_bench_engine(&b, err);
    ok = ok && mt_device_well(b.o.dev, err); /* else nothing above is true */
    mt_opened_close(&b.o);
    return ok;
}
