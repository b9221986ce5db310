/* Reads Gemini's "tools" and "toolConfig". */
#include <stdint.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/gemini.h"
#include "api/openai_tools.h"
#include "base/json_tree.h"

#define CHOICE "toolConfig.functionCallingConfig"

/* The schema of one of two members: the first is written as Google's, the second is a JSON schema. NULL: neither is
   given. The ask owns it. */
static const json_t *schema_of(mt_ask *ask, const json_t *function, const char *google, const char *plain)
{
    const json_t *schema = mt_body_get(function, google);

    return schema ? mt_ask_own(ask, mt_gemini_schema(schema)) : mt_body_get(function, plain);
}

static bool add_function(mt_ask *ask, json_t *list, const json_t *function, mt_failure *why)
{
    static const char *const known[] = {"name",     "description",        "parameters", "parametersJsonSchema",
                                        "response", "responseJsonSchema", NULL};
    const json_t *schema = schema_of(ask, function, "parameters", "parametersJsonSchema"),
                 *response = schema_of(ask, function, "response", "responseJsonSchema");
    json_t *tool;

    if (json_string_length(json_object_get(function, "name")) == 0)
        return mt_failure_value(why, "tools", "have a function without a name: send one that is not empty");
    if (mt_body_get(function, "parameters") && mt_body_get(function, "parametersJsonSchema"))
        return mt_failure_value(why, "tools",
                                "have a function with \"parameters\" and \"parametersJsonSchema\": send one of them");
    if (schema && !json_is_object(schema))
        return mt_failure_value(why, "tools", "have a function whose parameters are %s: send a schema",
                                mt_json_kind(schema));
    tool = mt_body_tool(function, schema);
    if (response)
        json_object_set_new(json_object_get(tool, "function"), "response", mt_body_share(response));
    json_array_append_new(list, tool);
    mt_fields_note(ask, "tools[].functionDeclarations[].", function, NULL, 0, (const char *const *const[3]){known});
    return true;
}

/* Tools that Google's servers run are ignored, with a note: "googleSearch": {} asks for one, although it is empty. */
static void note_others(mt_ask *ask, const json_t *tool)
{
    char noted[sizeof(ask->ignored)];
    json_t *value;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)tool, name, value)
        if (strcmp(name, "functionDeclarations") != 0 && !json_is_null(value) && !json_is_false(value)) {
            snprintf(noted, sizeof(noted), "tools[].%.80s", name);
            mt_ask_ignore(ask, noted);
        }
}

static bool add_tool(mt_ask *ask, json_t *list, const json_t *tool, mt_failure *why)
{
    const json_t *functions = mt_body_get(tool, "functionDeclarations");

    if (!json_is_object(tool))
        return mt_failure_value(why, "tools", "have %s in the list: send objects", mt_json_kind(tool));
    if (functions && !json_is_array(functions))
        return mt_failure_type(why, "tools[].functionDeclarations", functions, "a list of functions");
    for (size_t i = 0; i < json_array_size(functions); i++)
        if (!add_function(ask, list, json_array_get(functions, i), why))
            return false;
    note_others(ask, tool);
    return true;
}

/* The functions that may be called: those of the list; in the mode VALIDATED without one, all: where calls are
   restricted to names, their arguments follow the schemas. */
static bool add_allowed(mt_ask *ask, const json_t *names, bool validated)
{
    bool ok = true;

    for (size_t i = 0; i < json_array_size(names); i++)
        ok = mt_tool_choice_add(ask, mt_chat_text_of(json_array_get(names, i))) && ok;
    for (size_t i = 0; validated && !names && i < json_array_size(ask->chat.tools); i++) {
        const json_t *function = json_object_get(json_array_get(ask->chat.tools, i), "function");

        ok = mt_tool_choice_add(ask, mt_chat_text_of(json_object_get(function, "name"))) && ok;
    }
    return ok;
}

static bool read_choice(mt_ask *ask, const json_t *choice, mt_failure *why)
{
    static const struct {
        const char *mode, *word;
    } modes[] = {{"", "auto"},     {"MODE_UNSPECIFIED", "auto"}, {"AUTO", "auto"},
                 {"NONE", "none"}, {"ANY", "required"},          {"VALIDATED", "auto"}};
    const json_t *given = mt_body_get(choice, "mode");
    const char *mode = given && !mt_json_word(given) ? "?" : mt_body_text(choice, "mode");
    const json_t *names = mt_body_get(choice, "allowedFunctionNames");
    const bool validated = strcmp(mode, "VALIDATED") == 0 && ask->chat.tools;
    size_t i = 0;

    while (i < MT_COUNT(modes) && strcmp(mode, modes[i].mode) != 0)
        i++;
    if (i == MT_COUNT(modes))
        return mt_failure_value(why, CHOICE ".mode", "is none of AUTO, ANY, NONE and VALIDATED: send one");
    if (names && (!json_is_array(names) || strcmp(modes[i].word, "none") == 0))
        return mt_failure_value(why, CHOICE ".allowedFunctionNames",
                                "is no list of names, or the mode is NONE: send a list with another mode");
    if (!validated && json_array_size(names) == 0)
        return mt_tool_choice_word(ask, modes[i].word);
    return mt_tool_choice_mode(ask, CHOICE ".allowedFunctionNames", modes[i].word, add_allowed(ask, names, validated),
                               why);
}

static bool read_config(mt_ask *ask, const json_t *config, mt_failure *why)
{
    static const char *const known[] = {"functionCallingConfig", NULL}, *const inside[] = {
                                                                            "mode", "allowedFunctionNames", NULL};
    const json_t *choice = mt_body_get(config, "functionCallingConfig");

    if (!config)
        return true;
    if (!json_is_object(config) || (choice && !json_is_object(choice)))
        return mt_failure_type(why, json_is_object(config) ? CHOICE : "toolConfig",
                               json_is_object(config) ? choice : config, "an object");
    mt_fields_note(ask, "toolConfig.", config, NULL, 0, (const char *const *const[3]){known});
    mt_fields_note(ask, CHOICE ".", choice, NULL, 0, (const char *const *const[3]){inside});
    return !choice || read_choice(ask, choice, why);
}

bool mt_gemini_tools(mt_ask *ask, const json_t *body, mt_failure *why)
{
    const json_t *tools = mt_body_get(body, "tools");
    json_t *list = json_array();

    mt_ask_own(ask, list);
    if (tools && !json_is_array(tools))
        return mt_failure_type(why, "tools", tools, "a list");
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!add_tool(ask, list, json_array_get(tools, i), why))
            return false;
    ask->chat.tools = json_array_size(list) ? list : NULL;
    return read_config(ask, mt_body_get(body, "toolConfig"), why);
}
