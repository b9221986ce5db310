/* See chat_body.h. */
#include "api/chat_body.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

const json_t *mt_body_arguments(const json_t *sent)
{
    const json_t *text = json_object_size(sent) == 1 ? json_object_get(sent, MT_CHAT_BROKEN) : NULL;

    return json_is_string(text) ? text : sent;
}

void mt_body_open_calls(mt_ask *ask, mt_body_calls *calls, mt_chat_message *message, size_t at)
{
    for (size_t i = 0; i < message->call_count; i++) {
        mt_chat_call *call = &message->calls[i];
        const char *id = call->id.data ? NULL : mt_arena_printf(ask->arena, "call_%zu_%zu", at, i);

        if (id)
            call->id = (mt_chat_text){.data = id, .len = strlen(id)};
        ask->chat.starved = ask->chat.starved || !call->id.data;
    }
    calls->open = mt_arena_copy(ask->arena, message->calls, message->call_count * sizeof(*calls->open));
    calls->count = calls->open ? message->call_count : 0;
    ask->chat.starved = ask->chat.starved || !calls->open;
}

void mt_body_close_call(mt_body_calls *calls, mt_chat_message *result, mt_chat_text tool)
{
    size_t at = 0;

    if (tool.data)
        result->name = tool;
    while (at < calls->count &&
           (!calls->open[at].name.data || (tool.data && !mt_chat_text_equal(calls->open[at].name, tool))))
        at++;
    if (result->call_id.data || at == calls->count)
        return;
    result->call_id = calls->open[at].id;
    if (!result->name.data)
        result->name = calls->open[at].name;
    calls->open[at].name.data = NULL;
}

const char *const mt_body_part_members[] = {"annotations", /* this and the following do not change what a part says */
                                            "cache_control", "logprobs", "prompt_cache_breakpoint", "signature",
                                            /* what a part says */
                                            "detail", "do_pan_and_scan", "file", "file_data", "file_id", "file_url",
                                            "filename", "fps", "image", "image_url", "max_pixels", "min_pixels",
                                            "num_frames", "refusal", "source", "text", "thinking", "type", "url",
                                            "video", "video_fps", "video_url", NULL};

/* Notes members of a list of parts, and of lists of parts within them. path: of the list. */
static void note_parts(mt_ask *ask, const char *path, const json_t *parts, const char *const *members)
{
    static const char *const inside[] = {"file", "image_url", "image", "video_url", "video", "source"};
    static const char *const inside_members[] = {
        "content",   "data",       "detail",     "do_pan_and_scan", "file_data", "file_id", "filename",   "format",
        "fps",       "max_pixels", "media_type", "min_pixels",      "name",      "type",    "num_frames", "url",
        "video_fps", NULL};
    char prefix[96];

    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);

        snprintf(prefix, sizeof(prefix), "%s[].content", path);
        note_parts(ask, prefix, json_object_get(part, "content"), members);
        snprintf(prefix, sizeof(prefix), "%s[].", path);
        mt_fields_note(ask, prefix, part, NULL, 0, (const char *const *const[3]){members});
        for (size_t k = 0; k < MT_COUNT(inside); k++) {
            snprintf(prefix, sizeof(prefix), "%s[].%s.", path, inside[k]);
            mt_fields_note(ask, prefix, json_object_get(part, inside[k]), NULL, 0,
                           (const char *const *const[3]){inside_members});
        }
    }
}

void mt_body_note(mt_ask *ask, const char *field, const json_t *messages, const char *const *message_members,
                  const char *const *part_members)
{
    static const char *const lists[] = {"content", "output"};
    static const char *const call_members[] = {"arguments", "function", "id", "index", "name", "type", NULL};
    char path[64];

    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);

        snprintf(path, sizeof(path), "%s[].", field);
        mt_fields_note(ask, path, message, NULL, 0, (const char *const *const[3]){message_members});
        for (size_t k = 0; k < MT_COUNT(lists); k++) {
            snprintf(path, sizeof(path), "%s[].%s", field, lists[k]);
            note_parts(ask, path, json_object_get(message, lists[k]), part_members);
        }
        snprintf(path, sizeof(path), "%s[].tool_calls", field);
        note_parts(ask, path, json_object_get(message, "tool_calls"), call_members);
    }
}

bool mt_body_refuse(mt_ask *ask, mt_failure *why)
{
    static const mt_field rows[] = {
        MT_FIELD_REFUSED_ROW("n", 1),
        MT_FIELD_REFUSED_ROW("functions", 0),
        MT_FIELD_REFUSED_ROW("function_call", 0),
        MT_FIELD_REFUSED_ROW("echo", 0),
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
