#include "api/chat_body.h"

#include <stdint.h>
#include <string.h>

#include "api/dialect.h"
#include "api/fields.h"

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
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

void mt_body_copy(json_t *to, const json_t *from, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (mt_body_get(from, names[i]))
            json_object_set_new(to, names[i], mt_body_share(mt_body_get(from, names[i])));
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool mt_body_share_others(mt_ask *ask, json_t *chat, const char *const *own, size_t count, mt_failure *why)
{
    static const mt_field rows[] = {
        MT_FIELD_REFUSED_ROW("n", 1),
        MT_FIELD_REFUSED_ROW("functions", 0),
        MT_FIELD_REFUSED_ROW("function_call", 0),
        MT_FIELD_REFUSED_ROW("prompt_logprobs", -1),
        MT_FIELD_REFUSED_ROW("return_token_ids", 0),
    };
    json_t *body = (json_t *)(uintptr_t)ask->body; /* jansson's iterators take what is not const; nothing is changed */

    if (!mt_fields_read_table(ask, &(mt_field_table){rows, MT_COUNT(rows)}, why))
        return false;
    for (void *at = json_object_iter(body); at; at = json_object_iter_next(body, at))
        if (!is_among(json_object_iter_key(at), own, count))
            json_object_set(chat, json_object_iter_key(at), json_object_iter_value(at));
    return true;
}

json_t *mt_body_text_part(const char *text, size_t len)
{
    return json_pack("{s:s, s:o}", "type", "text", "text", json_stringn(text, len));
}

json_t *mt_body_image_part(const json_t *url)
{
    return json_pack("{s:s, s:{s:O}}", "type", "image_url", "image_url", "url", url);
}

json_t *mt_body_call(const json_t *id, const json_t *name, json_t *arguments)
{
    json_t *call = json_pack("{s:s, s:{s:o, s:o}}", "type", "function", "function", "name", mt_body_share(name),
                             "arguments", arguments);

    if (id)
        json_object_set_new(call, "id", mt_body_share(id));
    return call;
}

json_t *mt_body_tool(const json_t *tool, const json_t *schema)
{
    static const char *const names[] = {"name", "description"};
    json_t *function = json_object();

    mt_body_copy(function, tool, names, MT_COUNT(names));
    if (schema)
        json_object_set_new(function, "parameters", mt_body_share(schema));
    if (json_is_boolean(json_object_get(tool, "strict")))
        json_object_set_new(function, "strict", mt_body_share(json_object_get(tool, "strict")));
    return json_pack("{s:s, s:o}", "type", "function", "function", function);
}

json_t *mt_body_named(const json_t *name)
{
    return json_pack("{s:s, s:{s:o}}", "type", "function", "function", "name", mt_body_share(name));
}

json_t *mt_body_message(json_t *messages, const char *role, json_t *content)
{
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", content);

    return json_array_append_new(messages, message) == 0 ? message : NULL;
}

bool mt_body_read(mt_ask *ask, json_t *chat, mt_failure *why)
{
    json_decref(ask->owned);
    ask->owned = chat;
    ask->body = chat;
    return mt_openai_chat.read(ask, why);
}
