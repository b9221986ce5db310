/* Renders one line at a time, for the scripts here. A line of standard input is an object: "template" compiles a text,
   which stays until the next one; "context" renders it; "now" is what strftime_now tells. Each line is answered by one
   on standard output: {"text": ..., "untrusted": [[begin, end], ...]} or {"error": ..., "raised": true or false,
   "compile": true or false}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/json_tree.h"
#include "template/template.h"

static void answer(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

static void answer_error(const mt_error *err, bool raised, bool compile)
{
    answer(json_pack("{s:s, s:b, s:b}", "error", err->text, "raised", raised, "compile", compile));
}

static void answer_text(const mt_rendering *r)
{
    json_t *spans = json_array();

    for (size_t i = 0; i < r->untrusted_count; i++)
        json_array_append_new(spans,
                              json_pack("[I, I]", (json_int_t)r->untrusted[i].begin, (json_int_t)r->untrusted[i].end));
    answer(json_pack("{s:o, s:o}", "text", json_stringn(r->text.data ? r->text.data : "", r->text.len), "untrusted",
                     spans));
}

static void render(const mt_template *tpl, const json_t *line)
{
    const char *now_text = json_string_value(json_object_get(line, "now"));
    mt_template_options options = {.now = NULL};
    struct tm now = {0};
    mt_rendering r;
    mt_error err = {0};

    if (now_text && strptime(now_text, "%Y-%m-%dT%H:%M:%S", &now))
        options.now = &now;
    if (mt_template_render_json(tpl, json_object_get(line, "context"), &options, &r, &err))
        answer_text(&r);
    else
        answer_error(&err, r.raised, false);
    mt_rendering_free(&r);
}

int main(void)
{
    mt_template *tpl = NULL;
    char *text = NULL;
    size_t size = 0;
    ssize_t len;

    while ((len = getline(&text, &size, stdin)) > 0) {
        mt_error why;
        json_t *line = mt_json_tree_read(text, (size_t)len, &why);
        const json_t *source = json_object_get(line, "template");
        mt_error err = {0};

        if (!line)
            fprintf(stderr, "%s: %.80s\n", why.text, text);
        if (source) {
            mt_template_free(tpl);
            tpl = mt_template_compile(json_string_value(source), json_string_length(source), &err);
        }
        if (!tpl)
            answer_error(&err, false, true);
        else
            render(tpl, line);
        json_decref(line);
    }
    mt_template_free(tpl);
    free(text);
    return 0;
}
