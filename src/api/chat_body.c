/* See chat_body.h. */
#include "api/chat_body.h"

#include <stdint.h>

#include "api/fields.h"
#include "base/json_tree.h"

json_t *mt_body_share(const json_t *value)
{
    return json_incref((json_t *)(uintptr_t)value);
}

const json_t *mt_body_get(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

const char *mt_body_text(const json_t *object, const char *key)
{
    const char *text = mt_json_word(json_object_get(object, key));

    return text ? text : "";
}

void mt_body_copy(json_t *to, const json_t *from, const char *name)
{
    if (mt_body_get(from, name))
        json_object_set_new(to, name, mt_body_share(mt_body_get(from, name)));
}

json_t *mt_body_image_part(const json_t *url)
{
    return json_pack("{s:s, s:{s:O}}", "type", "image_url", "image_url", "url", url);
}

json_t *mt_body_tool(const json_t *tool, const json_t *schema)
{
    json_t *function = json_object();

    mt_body_copy(function, tool, "name");
    mt_body_copy(function, tool, "description");
    if (schema)
        json_object_set_new(function, "parameters", mt_body_share(schema));
    if (json_is_boolean(json_object_get(tool, "strict")))
        json_object_set_new(function, "strict", mt_body_share(json_object_get(tool, "strict")));
    return json_pack("{s:s, s:o}", "type", "function", "function", function);
}

bool mt_body_refuse(mt_ask *ask, mt_failure *why)
{
    static const mt_field rows[] = {
        MT_FIELD_REFUSED_ROW("n", 1),
        MT_FIELD_REFUSED_ROW("functions", 0),
        MT_FIELD_REFUSED_ROW("function_call", 0),
        MT_FIELD_REFUSED_ROW("prompt_logprobs", -1),
        MT_FIELD_REFUSED_ROW("return_token_ids", 0),
    };

    return mt_fields_read_table(ask, &(mt_field_table){rows, MT_COUNT(rows)}, why);
}

bool mt_body_end(mt_ask *ask, mt_failure *why)
{
    mt_error err = {0};

    return (mt_chat_end(&ask->chat, &err) && mt_chat_read_settings(&ask->chat, ask->body, &err)) ||
           mt_failure_from(why, &err, ask->chat.field);
}
