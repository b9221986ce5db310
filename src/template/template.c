/* See template.h. */
#include "template/template.h"

#include <string.h>

#include "base/alloc.h"
#include "template/context.h"
#include "template/eval.h"
#include "template/lexer.h"
#include "template/limits.h"
#include "template/parser.h"
#include "template/scope.h"
#include "template/watch.h"
#include "weights/limits.h"

/* Bytes of memory; compiling needs a few dozen for each byte of text. */
#define COMPILE_MEMORY (512u << 20)

struct mt_template {
    mt_arena *arena;
    mt_tpl_nodes body;
    mt_tpl_scope scope; /* of the top level */
    mt_tpl_scope reads; /* names that are looked up in the context */
    mt_tpl_blocks blocks;
    uint32_t slots; /* variables of the top level */
};

static uint64_t or_limit(uint64_t given, uint64_t limit)
{
    return given ? given : limit;
}

mt_template *mt_template_compile(const char *text, size_t len, mt_error *err)
{
    mt_tpl_run run = {.err = err, .steps = MT_LIMIT_TEMPLATE_STEPS, .longest = MT_LIMIT_TEMPLATE_BYTES};
    mt_tpl_token *tokens;
    mt_template *tpl;

    if (len > MT_LIMIT_TEMPLATE_BYTES) {
        mt_fail(err, MT_E_TOO_LARGE, "a template of %zu bytes; at most %u are read", len, MT_LIMIT_TEMPLATE_BYTES);
        return NULL;
    }
    tpl = mt_alloc(sizeof(*tpl));
    tpl->arena = run.arena = mt_arena_new(COMPILE_MEMORY);
    if (mt_tpl_lex(&run, text, len, &tokens) && mt_tpl_parse(&run, tokens, &tpl->body) &&
        mt_tpl_scope_resolve(&run, &tpl->body, &tpl->scope, &tpl->slots, &tpl->reads, &tpl->blocks))
        return tpl;
    mt_tpl_locate(&run, (mt_tpl_place){1, 1});
    mt_template_free(tpl);
    return NULL;
}

void mt_template_free(mt_template *tpl)
{
    if (!tpl)
        return;
    mt_arena_free(tpl->arena);
    mt_free(tpl);
}

bool mt_template_reads(const mt_template *tpl, const char *name)
{
    for (size_t i = 0; i < tpl->reads.count; i++)
        if (mt_tpl_str_is(tpl->reads.at[i].name, name))
            return true;
    return false;
}

/* Copies the rendered text to out; adjacent spans become one. */
static bool deliver(const mt_tpl_build *from, const mt_tpl_watch *watch, mt_rendering *out)
{
    size_t count = 0;

    mt_buf_init(&out->text, from->len);
    if (!mt_buf_add(&out->text, from->data, from->len))
        return false;
    if (from->span_count)
        out->untrusted = mt_alloc_array(from->span_count, sizeof(*out->untrusted));
    for (size_t i = 0; i < from->span_count; i++) {
        if (count && out->untrusted[count - 1].end == from->spans[i].begin)
            out->untrusted[count - 1].end = from->spans[i].end;
        else
            out->untrusted[count++] = from->spans[i];
    }
    out->untrusted_count = count;
    if (watch->count) {
        out->marks = mt_alloc_array(watch->count, sizeof(*out->marks));
        memcpy(out->marks, watch->marks, watch->count * sizeof(*out->marks));
        out->mark_count = watch->count;
    }
    return true;
}

static bool render(mt_tpl_run *run, const mt_template *tpl, mt_template_fill *fill, const void *ctx,
                   const mt_template_options *options, mt_rendering *out)
{
    mt_tpl_dict *variables = mt_tpl_dict_new(run, 0);
    mt_tpl_build text = {.run = run};
    mt_tpl_watch watch = {.out = &text};

    if (!variables || !fill(ctx, run, variables))
        return false;
    run->context = variables;
    run->blocks = &tpl->blocks;
    run->root = mt_tpl_activate(run, NULL, tpl->slots);
    if (!run->root || !mt_tpl_enter_scope(run, run->root, &tpl->scope))
        return false;
    if (options->watch) {
        const mt_tpl_str name = {.data = options->watch, .len = strlen(options->watch), .chars = MT_TPL_UNCOUNTED};

        mt_tpl_watch_list(mt_tpl_dict_name(run, run->context, &name));
        run->watch = &watch;
    }
    return mt_tpl_exec(run, run->root, &tpl->body, &text) != MT_TPL_STOP && deliver(&text, &watch, out);
}

bool mt_template_render(const mt_template *tpl, mt_template_fill *fill, const void *ctx,
                        const mt_template_options *options, mt_rendering *out, mt_error *err)
{
    static const mt_template_options defaults = {.now = NULL};
    mt_tpl_run run = {.err = err};
    bool ok;

    options = options ? options : &defaults;
    *out = (mt_rendering){.raised = false};
    run.arena = mt_arena_new((size_t)or_limit(options->memory, MT_LIMIT_TEMPLATE_MEMORY));
    run.steps = or_limit(options->steps, MT_LIMIT_TEMPLATE_STEPS);
    run.stop = options->stop;
    run.longest = (size_t)or_limit(options->output, MT_LIMIT_TEMPLATE_OUTPUT);
    run.now = options->now;
    /* Affects no order that shows: dicts keep the order of insertion */
    run.seed = (uint64_t)(uintptr_t)run.arena;
    ok = render(&run, tpl, fill, ctx, options, out);
    out->raised = run.raised;
    mt_arena_free(run.arena);
    return ok;
}

static bool fill_json(const void *ctx, mt_tpl_run *run, mt_tpl_dict *variables)
{
    if (!json_is_object((const json_t *)ctx))
        return mt_tpl_fail(run, "the context is not an object");
    return mt_tpl_set_members(run, variables, ctx, false);
}

bool mt_template_render_json(const mt_template *tpl, const json_t *context, const mt_template_options *options,
                             mt_rendering *out, mt_error *err)
{
    return mt_template_render(tpl, fill_json, context, options, out, err);
}

void mt_rendering_free(mt_rendering *out)
{
    mt_buf_free(&out->text);
    mt_free(out->untrusted);
    mt_free(out->marks);
    *out = (mt_rendering){.raised = false};
}
