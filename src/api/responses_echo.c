/* The fields of a request that its response repeats: as they were sent, or with their defaults. */
#include <stdio.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/responses.h"

/* The type that a value must have. ANY: the reader of the field checks it. */
typedef enum wanted { ANY, BOOLEAN, INTEGER, STRING, OBJECT } wanted;

static const struct {
    const char *name, *absent; /* absent: the value where the field is missing, as JSON; NULL: it is left out */
    wanted kind;
} fields[] = {
    {"background", "false", BOOLEAN},
    {"instructions", "null", ANY},
    {"max_output_tokens", "null", ANY},
    {"max_tool_calls", "null", INTEGER},
    {"metadata", "{}", OBJECT},
    {"frequency_penalty", "0", ANY},
    {"parallel_tool_calls", "true", ANY},
    {"presence_penalty", "0", ANY},
    {"previous_response_id", "null", ANY},
    {"prompt_cache_key", "null", STRING},
    {"reasoning", "{}", ANY},
    {"safety_identifier", "null", STRING},
    {"store", "true", ANY},
    {"temperature", "null", ANY},
    {"text", "{}", ANY},
    {"tool_choice", "\"auto\"", ANY},
    {"tools", "[]", ANY},
    {"top_logprobs", "0", INTEGER},
    {"top_p", "null", ANY},
    {"truncation", "\"disabled\"", STRING},
    {"user", NULL, ANY},
};

static bool fits(const json_t *value, wanted kind)
{
    switch (kind) {
    case ANY: return true;
    case BOOLEAN: return json_is_boolean(value);
    case INTEGER: return json_is_integer(value);
    case STRING: return json_is_string(value);
    case OBJECT: return json_is_object(value);
    }
    return false;
}

static bool check(const json_t *value, const char *name, wanted kind, mt_failure *why)
{
    static const char *const words[] = {
        [BOOLEAN] = "true or false", [INTEGER] = "an integer", [STRING] = "a string", [OBJECT] = "an object"};

    return fits(value, kind) || mt_failure_type(why, name, value, words[kind]);
}

/* A copy in which missing members are null, as clients expect. */
static json_t *complete(const json_t *object, const char *const *members, size_t count)
{
    json_t *made = json_copy((json_t *)(uintptr_t)object);

    for (size_t i = 0; i < count; i++)
        if (!json_object_get(made, members[i]))
            json_object_set_new(made, members[i], json_null());
    return made;
}

static json_t *complete_tool(const json_t *tool)
{
    static const char *const members[] = {"description", "parameters", "strict"};

    return complete(tool, members, MT_COUNT(members));
}

static json_t *complete_reasoning(const json_t *reasoning)
{
    static const char *const members[] = {"effort", "summary"};

    return complete(reasoning, members, MT_COUNT(members));
}

static json_t *complete_tools(const json_t *tools)
{
    json_t *made = json_array();

    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const bool function = strcmp(mt_body_text(tool, "type"), "function") == 0;

        json_array_append_new(made, function ? complete_tool(tool) : mt_body_share(tool));
    }
    return made;
}

bool mt_responses_echo(const json_t *body, json_t *extra, mt_failure *why)
{
    const char *truncation = json_string_value(mt_body_get(body, "truncation"));
    json_t *all = json_object();

    json_object_set_new(extra, "echo", all);
    for (size_t i = 0; i < MT_COUNT(fields); i++) {
        const json_t *value = mt_body_get(body, fields[i].name);

        if (value && !check(value, fields[i].name, fields[i].kind, why))
            return false;
        if (value || fields[i].absent)
            json_object_set_new(all, fields[i].name,
                                value ? mt_body_share(value) : json_loads(fields[i].absent, JSON_DECODE_ANY, NULL));
    }
    if (truncation && strcmp(truncation, "auto") != 0 && strcmp(truncation, "disabled") != 0)
        return mt_failure_set(why, 400, "invalid_value", "truncation",
                              "\"truncation\" is neither auto nor disabled: send one of these");
    json_object_set_new(all, "service_tier", json_string("default")); /* the only one */
    json_object_set_new(all, "tools", complete_tools(json_object_get(all, "tools")));
    if (json_is_object(json_object_get(all, "reasoning")))
        json_object_set_new(all, "reasoning", complete_reasoning(json_object_get(all, "reasoning")));
    if (json_is_object(json_object_get(all, "text")) && !mt_body_get(json_object_get(all, "text"), "format")) {
        json_t *text = json_copy(json_object_get(all, "text"));

        json_object_set_new(text, "format", json_pack("{s:s}", "type", "text"));
        json_object_set_new(all, "text", text);
    }
    return true;
}

/* A float as JSON with 6 digits: 0.7 would become 0.699999988 as a double. */
static json_t *number(float value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.6g", (double)value);
    return json_loads(text, JSON_DECODE_ANY, NULL);
}

void mt_responses_echo_settings(const mt_ask *ask)
{
    const struct {
        const char *name;
        float value;
    } settings[] = {{"temperature", ask->sampling.temperature},
                    {"top_p", ask->sampling.top_p},
                    {"presence_penalty", ask->sampling.presence_penalty},
                    {"frequency_penalty", ask->sampling.frequency_penalty}};
    json_t *all = json_object_get(ask->extra, "echo");

    for (size_t i = 0; i < MT_COUNT(settings); i++)
        json_object_set_new(all, settings[i].name, number(settings[i].value));
}
