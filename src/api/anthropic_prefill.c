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

/* The text at the end of a message; data is NULL where there is nothing, or something else, which is told. */
static mt_chat_text last_text(const mt_chat_message *message, bool *other)
{
    const mt_chat_part *part = message->part_count ? &message->parts[message->part_count - 1] : NULL;

    *other = message->sent && !(part && part->type == MT_CHAT_TEXT && part->index + 1 == message->sent);
    return part && !*other ? part->text : (mt_chat_text){.data = NULL};
}

bool mt_anthropic_prefill(mt_ask *ask, bool formatted, mt_failure *why)
{
    const json_t *sent = json_object_get(ask->body, "messages");
    mt_chat *chat = &ask->chat;
    const mt_chat_message *message;
    mt_chat_text text;
    bool other;

    if (chat->count == 0 ||
        strcmp(mt_body_text(json_array_get(sent, json_array_size(sent) - 1), "role"), "assistant") != 0)
        return true;
    message = &chat->messages[chat->count - 1];
    if (message->call_count)
        return bad(why, "the last one calls tools: send what they answered behind it");
    text = last_text(message, &other);
    if (other)
        return bad(why, "the last one ends with thinking or a picture: send text behind it, or leave it out");
    if (text.len == 0) { /* the answer begins with nothing */
        chat->count--;
        return true;
    }
    if (isspace((unsigned char)text.data[text.len - 1]))
        return bad(why, "the last one ends with white space, which no answer goes on from: trim it");
    if (formatted)
        return bad(why, "the answer cannot both go on with the last one and have a format: leave one of them out");
    chat->continues = true;
    return true;
}
