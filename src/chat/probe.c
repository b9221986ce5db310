/* See probe.h. */
#include "chat/probe.h"

#include <string.h>

#include "base/alloc.h"

/* Bounds of a rendering: steps, bytes */
enum { PROBE_STEPS = 1000000, PROBE_MEMORY = 64 << 20, PROBE_OUTPUT = 1 << 20 };

char *mt_probe_render(const mt_probe *p, json_t *messages, bool generation_prompt, size_t *loops_end)
{
    const mt_template_options options = {
        .steps = PROBE_STEPS, .memory = PROBE_MEMORY, .output = PROBE_OUTPUT, .watch = "messages", .stop = p->stop};
    json_t *context = json_pack("{s:o, s:O?, s:n, s:b}", "messages", messages, "tools", p->tools, "documents",
                                "add_generation_prompt", generation_prompt);
    mt_rendering r;
    mt_error err;
    char *text = NULL;

    if (!context || *p->beyond) {
        json_decref(context);
        return NULL;
    }
    json_object_update_missing(context, (json_t *)(uintptr_t)p->tokens);
    if (mt_template_render_json(p->tpl, context, &options, &r, &err)) {
        text = mt_strdup(r.text.data ? r.text.data : "");
        for (size_t i = 0; loops_end && i < r.mark_count; i++)
            *loops_end = r.marks[i].bytes.end > *loops_end ? r.marks[i].bytes.end : *loops_end;
    } else {
        *p->beyond = err.code == MT_E_TOO_LARGE;
    }
    mt_rendering_free(&r);
    json_decref(context);
    return text;
}

json_t *mt_probe_message(const char *role, const char *content)
{
    return json_pack("{s:s, s:s}", "role", role, "content", content);
}

size_t mt_probe_count_of(const char *text, const char *word)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

bool mt_probe_has(const char *text, const char *word)
{
    return text && strstr(text, word);
}

bool mt_probe_in_order(const char *text, const char *const *words, size_t count)
{
    const char *at = text;

    for (size_t i = 0; text && i < count; i++) {
        at = strstr(at, words[i]);
        if (!at || mt_probe_count_of(text, words[i]) != 1)
            return false;
        at += strlen(words[i]);
    }
    return text != NULL;
}

/* An id as clients make them, or as Mistral's templates want it. */
static const char *call_id(const mt_probe *p)
{
    return p->profile->short_ids ? "call7prob" : "call_probe7";
}

json_t *mt_probe_call_message(const mt_probe *p)
{
    json_t *arguments = p->profile->arguments_as_text ? json_string("{\"" MT_PROBE_GAMMA "\": \"" MT_PROBE_DELTA "\"}")
                                                      : json_pack("{s:s}", MT_PROBE_GAMMA, MT_PROBE_DELTA);

    return json_pack("{s:s, s:s?, s:[{s:s, s:s, s:{s:s, s:o}}]}", "role", "assistant", "content",
                     p->profile->call_without_content ? NULL : "", "tool_calls", "id", call_id(p), "type", "function",
                     "function", "name", MT_PROBE_FUNCTION, "arguments", arguments);
}

json_t *mt_probe_result_message(const mt_probe *p, json_t *content)
{
    return json_pack("{s:s, s:o, s:s, s:s}", "role", "tool", "content", content, "tool_call_id", call_id(p), "name",
                     MT_PROBE_FUNCTION);
}

json_t *mt_probe_call(const mt_probe *p, json_t *call)
{
    return json_pack("[o, o, o]", mt_probe_message("user", MT_PROBE_EPSILON), call ? call : mt_probe_call_message(p),
                     mt_probe_result_message(p, json_string(MT_PROBE_BETA)));
}

bool mt_probe_shows(const mt_probe *p, json_t *messages, const char *const *words, size_t count)
{
    char *text = mt_probe_render(p, messages, true, NULL);
    bool shown = mt_probe_in_order(text, words, count);

    mt_free(text);
    return shown;
}
