/* Probes how a template shows tool calls and reasoning: part of profile.c. */

#include "base/alloc.h"
#include "chat/probe.h"

/* Whether a tool renders that lacks a member, or has null for it. holder: "function" or "parameters", which has the
   member; NULL: the tool has all. profile->flat_tools says in which form the tool is given. */
static bool renders_tool(const mt_probe *p, const char *holder, const char *member, bool null)
{
    json_t *parameters = json_pack("{s:s, s:{s:{s:s, s:s}}, s:[s]}", "type", "object", "properties", MT_PROBE_GAMMA,
                                   "type", "string", "description", MT_PROBE_DELTA, "required", MT_PROBE_GAMMA);
    json_t *function = json_pack("{s:s, s:s, s:O}", "name", MT_PROBE_FUNCTION, "description", MT_PROBE_ALPHA,
                                 "parameters", parameters);
    json_t *object = !holder ? NULL : *holder == 'f' ? function : parameters;
    mt_probe with = *p;
    char *text;
    bool rendered;

    json_object_del(object, member ? member : "");
    if (null)
        json_object_set_new(object, member, json_null());
    with.tools = p->profile->flat_tools ? json_pack("[o]", function)
                                        : json_pack("[{s:s, s:o}]", "type", "function", "function", function);
    text = mt_probe_render(&with, json_pack("[o]", mt_probe_message("user", MT_PROBE_BETA)), true, NULL);
    json_decref(with.tools);
    json_decref(parameters);
    rendered = text && (!p->profile->flat_tools || mt_probe_has(text, MT_PROBE_FUNCTION));
    mt_free(text);
    return rendered;
}

static bool needs(const mt_probe *p, const char *holder, const char *member)
{
    return !renders_tool(p, holder, member, false) || !renders_tool(p, holder, member, true);
}

void mt_probe_tools(mt_probe *p)
{
    if (!renders_tool(p, NULL, NULL, false)) {
        p->profile->flat_tools = true;
        if (!renders_tool(p, NULL, NULL, false)) {
            p->profile->flat_tools = false;
            return;
        }
    }
    p->profile->needs_description = needs(p, "function", "description");
    p->profile->needs_parameters = needs(p, "function", "parameters");
    p->profile->needs_properties = needs(p, "parameters", "properties");
}

/* Whether a call is shown well: its name, then its arguments, neither as Python prints a dict nor as JSON within a
   string. */
static bool shows_call(const char *text)
{
    static const char *const words[] = {MT_PROBE_GAMMA, MT_PROBE_DELTA};

    return mt_probe_has(text, MT_PROBE_FUNCTION) && mt_probe_in_order(text, words, 2) &&
           !mt_probe_has(text, "'" MT_PROBE_GAMMA) && !mt_probe_has(text, "\\\"" MT_PROBE_GAMMA);
}

/* Whether arguments that are no object, as of a call that was cut off, are shown as a string. Templates that iterate
   over an object fail here, or show nothing. */
static bool shows_broken(const mt_probe *p)
{
    static const char *const words[] = {MT_PROBE_GAMMA, MT_PROBE_DELTA};
    json_t *call = mt_probe_call_message(p);
    json_t *function = json_object_get(json_array_get(json_object_get(call, "tool_calls"), 0), "function");

    json_object_set_new(function, "arguments", json_string("{\"" MT_PROBE_GAMMA "\": \"" MT_PROBE_DELTA));
    return mt_probe_shows(p, mt_probe_call(p, call), words, 2);
}

/* Tries combinations of settings, the most common first. Where none shows calls, the first that renders is used. */
static void probe_shape(mt_probe *p)
{
    mt_chat_profile *profile = p->profile, rendered = *profile;
    bool any = false;

    for (unsigned i = 0; i < 8; i++) {
        char *text;
        bool shown, failed;

        profile->arguments_as_text = i & 1;
        profile->call_without_content = i & 2;
        profile->short_ids = i & 4;
        text = mt_probe_render(p, mt_probe_call(p, NULL), true, NULL);
        shown = shows_call(text);
        failed = !text;
        mt_free(text);
        if (shown)
            return;
        if (!failed && !any)
            rendered = *profile;
        any = any || !failed;
    }
    *profile = rendered;
}

void mt_probe_calls(mt_probe *p)
{
    probe_shape(p);
    p->profile->broken_as_text = shows_broken(p);
}

/* Whether reasoning under that name is shown in a message with or without a call, since some templates show only
   one. */
static bool reads_reasoning(const mt_probe *p, const char *name, bool with_call)
{
    json_t *said = with_call ? mt_probe_call_message(p) : mt_probe_message("assistant", MT_PROBE_BETA);
    char *text;
    bool read;

    json_object_set_new(said, name, json_string(MT_PROBE_ALPHA));
    said = with_call ? mt_probe_call(p, said) : json_pack("[o, o]", mt_probe_message("user", MT_PROBE_EPSILON), said);
    text = mt_probe_render(p, said, with_call, NULL);
    read = mt_probe_has(text, MT_PROBE_ALPHA);
    mt_free(text);
    return read;
}

/* Whether reasoning is shown that is a part of the content, as in Mistral's templates. */
static bool reads_reasoning_part(const mt_probe *p)
{
    static const char *const words[] = {MT_PROBE_ALPHA, MT_PROBE_BETA};
    json_t *parts = json_pack("[{s:s, s:s}, {s:s, s:s}]", "type", "thinking", "thinking", MT_PROBE_ALPHA, "type",
                              "text", "text", MT_PROBE_BETA);
    char *text = mt_probe_render(p,
                                 json_pack("[o, {s:s, s:o}, o]", mt_probe_message("user", MT_PROBE_EPSILON), "role",
                                           "assistant", "content", parts, mt_probe_message("user", MT_PROBE_GAMMA)),
                                 true, NULL);
    bool read =
        mt_probe_in_order(text, words, 2) && !mt_probe_has(text, "'thinking'") && !mt_probe_has(text, "\"thinking\"");

    mt_free(text);
    return read;
}

/* Whether a message with a call renders; NULL arguments are left out. */
static bool renders_call(const mt_probe *p, const char *reasoning, const char *content)
{
    json_t *said = mt_probe_call_message(p);
    char *text;
    bool taken;

    if (reasoning)
        json_object_set_new(said, p->profile->reasoning, json_string(reasoning));
    if (content)
        json_object_set_new(said, "content", json_string(content));
    text = mt_probe_render(p, mt_probe_call(p, said), true, NULL);
    taken = text != NULL;
    mt_free(text);
    return taken;
}

void mt_probe_reasoning(mt_probe *p)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking"};
    size_t i = 0;

    while (i < MT_COUNT(names) && !reads_reasoning(p, names[i], false) && !reads_reasoning(p, names[i], true))
        i++;
    p->profile->reasoning = names[i < MT_COUNT(names) ? i : 0];
    p->profile->reasoning_as_part = i == MT_COUNT(names) && reads_reasoning_part(p);
    p->profile->reasoning_or_content = renders_call(p, MT_PROBE_ALPHA, NULL) && renders_call(p, NULL, MT_PROBE_GAMMA) &&
                                       !renders_call(p, MT_PROBE_ALPHA, MT_PROBE_GAMMA);
}
