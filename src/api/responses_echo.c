/* The fields of a request that its response repeats: as they were sent, or with their defaults. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/responses.h"
#include "base/json_tree.h"
#include "base/words.h"

/* The type that a value must have. ANY: the reader of the field checks it. */
typedef enum wanted { ANY, BOOLEAN, INTEGER, STRING, OBJECT } wanted;

/* In the order of the response. The settings of sampling get their values later (mt_responses_echo_settings). */
static const struct {
    const char *name, *absent; /* absent: the value where the field is missing, as JSON; NULL: it is left out */
    wanted kind;
} fields[] = {
    {"background", "false", BOOLEAN},
    {"instructions", "null", STRING},
    {"max_output_tokens", "null", ANY},
    {"max_tool_calls", "null", INTEGER},
    {"metadata", "{}", OBJECT},
    {"frequency_penalty", "0", ANY},
    {"parallel_tool_calls", "true", ANY},
    {"presence_penalty", "0", ANY},
    {"previous_response_id", "null", STRING},
    {"prompt_cache_key", "null", STRING},
    {"reasoning", "{}", OBJECT},
    {"safety_identifier", "null", STRING},
    {"store", "true", BOOLEAN},
    {"temperature", "null", ANY},
    {"text", "{}", OBJECT},
    {"tool_choice", "\"auto\"", ANY},
    {"tools", "[]", ANY},
    {"top_logprobs", "0", INTEGER},
    {"top_p", "null", ANY},
    {"truncation", "\"disabled\"", STRING},
    {"user", NULL, ANY},
};

static bool check(const json_t *value, const char *name, wanted kind, mt_failure *why)
{
    const struct {
        bool fits;
        const char *words;
    } kinds[] = {[ANY] = {true, NULL},
                 [BOOLEAN] = {json_is_boolean(value), "true or false"},
                 [INTEGER] = {json_is_integer(value), "an integer"},
                 [STRING] = {json_is_string(value), "a string"},
                 [OBJECT] = {json_is_object(value), "an object"}};

    return kinds[kind].fits || mt_failure_type(why, name, value, kinds[kind].words);
}

/* A copy in which missing members (a list ended by NULL) are null, as clients expect. */
static json_t *complete(const json_t *object, const char *const *members)
{
    json_t *made = json_copy((json_t *)(uintptr_t)object); /* not const for jansson; it is not changed */

    for (; *members; members++)
        if (!json_object_get(made, *members))
            json_object_set_new(made, *members, json_null());
    return made;
}

static json_t *complete_tools(const json_t *tools)
{
    static const char *const members[] = {"description", "parameters", "strict", NULL};
    json_t *made = json_array();

    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const bool function = strcmp(mt_body_text(tool, "type"), "function") == 0;

        json_array_append_new(made, function ? complete(tool, members) : mt_body_share(tool));
    }
    return made;
}

bool mt_responses_echo(const json_t *body, json_t *extra, mt_failure *why)
{
    static const char *const members[] = {"effort", "summary", NULL}; /* of "reasoning" */
    static const char *const truncations[] = {"auto", "disabled", NULL};
    const json_t *truncation = mt_body_get(body, "truncation");
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
    if (truncation && !mt_words_have(truncations, mt_json_word(truncation)))
        return mt_failure_value(why, "truncation", "is neither auto nor disabled: send one of these");
    json_object_set_new(all, "service_tier", json_string("default")); /* the only one */
    json_object_set_new(all, "tools", complete_tools(json_object_get(all, "tools")));
    json_object_set_new(all, "reasoning", complete(json_object_get(all, "reasoning"), members));
    if (!mt_body_get(json_object_get(all, "text"), "format")) {
        json_t *text = json_copy(json_object_get(all, "text"));

        json_object_set_new(text, "format", json_pack("{s:s}", "type", "text"));
        json_object_set_new(all, "text", text);
    }
    return true;
}

/* A float as JSON with 6 digits: as a double, 0.7 would be written as 0.699999988. */
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
