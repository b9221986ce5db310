/* Builds chats: see chat.h. Lists grow by doubling, so that adding is linear in all. */
#include <stdint.h>
#include <string.h>

#include "chat/chat.h"
#include "chat/limits.h"

mt_chat_text mt_chat_text_of(const json_t *string)
{
    return (mt_chat_text){.data = json_string_value(string), .len = json_string_length(string)};
}

bool mt_chat_text_equal(mt_chat_text a, mt_chat_text b)
{
    return a.data && b.data && a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

void mt_chat_begin(mt_chat *chat, mt_arena *arena, const char *field)
{
    *chat = (mt_chat){.arena = arena, .field = field};
}

/* The list with space for one more element. Its capacity is the next power of two of count, so it is full where count
   is 0 or a power of two. NULL: no memory. */
static void *grow(mt_chat *chat, void *list, size_t count, size_t size)
{
    void *longer;

    if (count & (count - 1))
        return list;
    longer = mt_arena_alloc(chat->arena, (count ? 2 * count : 1) * size);
    if (longer && count)
        memcpy(longer, list, count * size);
    chat->starved = chat->starved || !longer;
    return longer;
}

static void add_part(mt_chat *chat, mt_chat_message *to, mt_chat_part part)
{
    mt_chat_part *parts = grow(chat, to->parts, to->part_count, sizeof(*parts));

    if (!parts)
        return;
    part.index = to->sent++;
    to->parts = parts;
    to->parts[to->part_count++] = part;
}

void mt_chat_add_text(mt_chat *chat, mt_chat_message *to, mt_chat_text text)
{
    add_part(chat, to, (mt_chat_part){.type = MT_CHAT_TEXT, .text = text});
}

void mt_chat_add_medium(mt_chat *chat, mt_chat_message *to, mt_chat_part_type type, const json_t *source,
                        const char *place)
{
    chat->starved = chat->starved || !place;
    add_part(chat, to, (mt_chat_part){.type = type, .source = source, .place = place ? place : ""});
}

static void append(mt_chat_text *to, char *data, mt_chat_text more)
{
    memcpy(data + to->len, more.data, more.len);
    *to = (mt_chat_text){.data = data, .len = to->len + more.len};
}

void mt_chat_add_reasoning(mt_chat *chat, mt_chat_message *to, mt_chat_text text)
{
    static const mt_chat_text blank = {.data = "\n\n", .len = 2};
    const size_t len = to->reasoning.len + blank.len + text.len;
    char *data = (char *)(uintptr_t)to->reasoning.data; /* writable where reasoning_room is not 0 */

    to->sent++;
    if (text.len == 0)
        return;
    if (to->reasoning.len == 0) {
        to->reasoning = text;
        return;
    }
    if (len > to->reasoning_room) {
        data = mt_arena_alloc(chat->arena, 2 * len);
        chat->starved = chat->starved || !data;
        if (!data)
            return;
        memcpy(data, to->reasoning.data, to->reasoning.len);
        to->reasoning_room = 2 * len;
    }
    append(&to->reasoning, data, blank);
    append(&to->reasoning, data, text);
}

void mt_chat_add_call(mt_chat *chat, mt_chat_message *to, mt_chat_call call)
{
    mt_chat_call *calls = grow(chat, to->calls, to->call_count, sizeof(*calls));

    if (!calls)
        return;
    to->calls = calls;
    to->calls[to->call_count++] = call;
}

void mt_chat_put(mt_chat *chat, const mt_chat_message *message)
{
    mt_chat_message *messages = grow(chat, chat->messages, chat->count, sizeof(*messages));

    if (!messages)
        return;
    chat->messages = messages;
    messages[chat->count++] = *message;
}

bool mt_chat_end(const mt_chat *chat, mt_error *err)
{
    if (chat->starved)
        mt_fail(err, MT_E_TOO_LARGE,
                "the messages need more memory than a request may have; send fewer or shorter ones");
    else if (chat->count == 0)
        mt_fail(err, MT_E_INVALID, "%s is empty; send at least one message", chat->field);
    else if (chat->count > MT_LIMIT_MESSAGES)
        mt_fail(err, MT_E_TOO_LARGE, "%zu messages; send at most %d", chat->count, MT_LIMIT_MESSAGES);
    else
        return true;
    return mt_fail_about(err, chat->field);
}

static bool has_part(const mt_chat *chat, bool images)
{
    for (size_t i = 0; i < chat->count; i++)
        for (size_t k = 0; k < chat->messages[i].part_count; k++) {
            const mt_chat_part_type type = chat->messages[i].parts[k].type;

            if (type == MT_CHAT_VIDEO || (images && type == MT_CHAT_IMAGE))
                return true;
        }
    return false;
}

bool mt_chat_has_media(const mt_chat *chat)
{
    return has_part(chat, true);
}

bool mt_chat_has_video(const mt_chat *chat)
{
    return has_part(chat, false);
}

const char *mt_chat_role_name(mt_chat_role role)
{
    static const char *const names[MT_CHAT_ROLES] = {[MT_CHAT_SYSTEM] = "system",
                                                     [MT_CHAT_USER] = "user",
                                                     [MT_CHAT_ASSISTANT] = "assistant",
                                                     [MT_CHAT_TOOL] = "tool"};

    return names[role];
}
