/* The command motet render: prints the text that a chat template makes of a JSON context. */
#include <stdio.h>
#include <time.h>

#include <jansson.h>

#include "base/file.h"
#include "base/json_tree.h"
#include "cli/cli.h"
#include "template/limits.h"
#include "template/template.h"
#include "weights/limits.h"

/* the template called raise_exception */
enum { EXIT_RAISED = 2 };

static bool parse_now(const char *text, struct tm *now, mt_error *err)
{
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", now);

    if (!end || *end)
        return mt_fail(err, MT_E_INVALID, "\"--now %s\" is no time; write it like 2026-01-02T03:04:05", text);
    now->tm_isdst = -1;
    return true;
}

static mt_template *read_template(const char *path, mt_error *err)
{
    mt_template *tpl = NULL;
    mt_buf text;

    mt_buf_init(&text, MT_LIMIT_TEMPLATE_BYTES);
    if (mt_file_read(&text, path, err)) {
        tpl = mt_template_compile(text.data ? text.data : "", text.len, err);
        if (!tpl)
            mt_fail_within(err, "\"%s\"", path);
    }
    mt_buf_free(&text);
    return tpl;
}

static json_t *read_context(const char *path, mt_error *err)
{
    json_t *context = NULL;
    mt_buf text;

    mt_buf_init(&text, MT_LIMIT_TEMPLATE_OUTPUT);
    if (mt_file_read(&text, path, err)) {
        context = mt_json_tree_read(text.data ? text.data : "", text.len, err);
        if (!context)
            mt_fail_within(err, "\"%s\"", path);
    }
    mt_buf_free(&text);
    return context;
}

static bool render(const mt_template *tpl, const json_t *context, const struct tm *now, bool *raised, mt_error *err)
{
    const mt_template_options options = {.now = now};
    mt_rendering out;
    bool ok = mt_template_render_json(tpl, context, &options, &out, err);

    if (ok && out.text.len)
        fwrite(out.text.data, 1, out.text.len, stdout);
    *raised = out.raised;
    mt_rendering_free(&out);
    return ok;
}

int mt_cmd_render(const mt_options *opt)
{
    struct tm now = {0};
    bool raised = false, ok = !opt->now;
    mt_error err = {0};
    mt_template *tpl = NULL;
    json_t *context = NULL;

    if (opt->now)
        ok = parse_now(opt->now, &now, &err);
    if (ok)
        tpl = read_template(opt->dir, &err);
    if (tpl)
        context = read_context(opt->input, &err);
    ok = context && render(tpl, context, opt->now ? &now : NULL, &raised, &err);
    if (!ok)
        fprintf(stderr, raised ? "%s\n" : "motet: %s\n", err.text);
    json_decref(context);
    mt_template_free(tpl);
    return ok ? 0 : raised ? EXIT_RAISED : 1;
}
