/* A last message of the assistant's is the beginning of the answer. What Anthropic's API refuses there is refused here:
   whoever sends it would be surprised by what comes of it. */
#include <ctype.h>
#include <string.h>

#include "api/anthropic.h"
#include "api/chat_body.h"

static bool bad(mt_failure *why, const char *sentence)
{
    return mt_failure_set(why, 400, "invalid_value", "messages", "messages: %s", sentence);
}

/* The text at the end of a chat's message; NULL where there is nothing, or something else, which is told. */
static const json_t *last_text(const json_t *message, bool *other)
{
    const json_t *content = json_object_get(message, "content");
    const json_t *part = json_array_get(content, json_array_size(content) - 1);

    *other = part && !json_object_get(part, "text");
    return json_is_string(content) ? content : json_object_get(part, "text");
}

bool mt_anthropic_prefill(const json_t *body, json_t *chat, mt_failure *why)
{
    const json_t *sent = json_object_get(body, "messages");
    json_t *messages = json_object_get(chat, "messages");
    const size_t last = json_array_size(messages) - 1;
    const json_t *message = json_array_get(messages, last), *text;
    bool other;

    if (strcmp(mt_body_text(json_array_get(sent, json_array_size(sent) - 1), "role"), "assistant") != 0)
        return true;
    if (json_object_get(message, "tool_calls"))
        return bad(why, "the last one calls tools: send what they answered behind it");
    text = last_text(message, &other);
    if (other)
        return bad(why, "the last one ends with thinking or a picture: send text behind it, or leave it out");
    if (json_string_length(text) == 0) /* the answer begins with nothing */
        return json_array_remove(messages, last) == 0;
    if (isspace((unsigned char)json_string_value(text)[json_string_length(text) - 1]))
        return bad(why, "the last one ends with white space, which no answer goes on from: trim it");
    if (json_object_get(chat, "response_format"))
        return bad(why, "the answer cannot both go on with the last one and have a format: leave one of them out");
    return json_object_set_new(chat, "continue_final_message", json_true()) == 0;
}
