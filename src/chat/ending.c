/* See ending.h. */
#include "chat/ending.h"

#include <ctype.h>
#include <string.h>

/* The final space shows whether the template trims texts of messages. */
static const char tag[] = "{the answer goes on here} ";
enum { TAG = sizeof(tag) - 1, TRIMMED = TAG - 1 };

/* Reads a flag that may be missing or null. */
static bool read_flag(const json_t *request, const char *name, bool *value, mt_error *err)
{
    const json_t *given = json_object_get(request, name);

    if (!given || json_is_null(given))
        return true;
    *value = json_is_true(given);
    if (json_is_boolean(given))
        return true;
    mt_fail(err, MT_E_INVALID, "%s is no boolean; send true or false", name);
    return mt_fail_about(err, name);
}

static bool check_last(const mt_chat_message *last, mt_error *err)
{
    if (last->role != MT_CHAT_ASSISTANT && last->role != MT_CHAT_USER)
        return mt_fail(err, MT_E_INVALID,
                       "continue_final_message is true, but the role of the last message is %s; let it be the "
                       "assistant's",
                       mt_chat_role_name(last->role));
    if (last->call_count)
        return mt_fail(err, MT_E_INVALID,
                       "continue_final_message is true, but the last message calls tools; send what they answered, "
                       "and leave it out");
    return true;
}

bool mt_chat_ending_read(mt_chat *chat, const json_t *request, mt_error *err)
{
    bool opens = chat->continues, generation_prompt;

    if (!read_flag(request, "continue_final_message", &opens, err))
        return false;
    generation_prompt = !opens;
    if (!read_flag(request, "add_generation_prompt", &generation_prompt, err))
        return false;
    if (opens && generation_prompt)
        return mt_fail(err, MT_E_INVALID,
                       "continue_final_message and add_generation_prompt are both true; send one of them");
    chat->no_generation_prompt = !generation_prompt;
    chat->continues = opens;
    return !opens || check_last(&chat->messages[chat->count - 1], err);
}

static bool tag_text(mt_chat *chat, mt_chat_text *text, mt_error *err)
{
    char *tagged = mt_arena_alloc(chat->arena, text->len + TAG);

    if (!tagged)
        return mt_fail(err, MT_E_TOO_LARGE, "the last message is too long to go on with; shorten it");
    if (text->len)
        memcpy(tagged, text->data, text->len);
    memcpy(tagged + text->len, tag, TAG);
    *text = (mt_chat_text){.data = tagged, .len = text->len + TAG};
    return true;
}

/* The text that comes last: the reasoning, where there is no other text, else the last text part. */
static mt_chat_text *last_text(mt_chat_message *message)
{
    mt_chat_text *text = NULL;
    bool empty = true;

    for (size_t i = 0; i < message->part_count; i++) {
        const bool is_text = message->parts[i].type == MT_CHAT_TEXT;

        empty = empty && is_text && message->parts[i].text.len == 0;
        if (is_text)
            text = &message->parts[i].text;
    }
    return empty && message->reasoning.len ? &message->reasoning : text;
}

bool mt_chat_ending_mark(mt_chat *chat, mt_error *err)
{
    mt_chat_text *text = last_text(&chat->messages[chat->count - 1]);

    if (!text)
        return mt_fail(err, MT_E_INVALID,
                       "continue_final_message is true, but the last message has no text; send some");
    return tag_text(chat, text, err);
}

/* Where the tag begins; the text's length where it is missing. The last one is meant, since messages may contain the
   same words. */
static size_t find_tag(const mt_buf *text)
{
    for (size_t at = text->len; at >= TRIMMED; at--)
        if (memcmp(text->data + at - TRIMMED, tag, TRIMMED) == 0)
            return at - TRIMMED;
    return text->len;
}

bool mt_chat_ending_cut(mt_rendering *r, mt_error *err)
{
    size_t end = find_tag(&r->text);

    if (end == r->text.len)
        return mt_fail(err, MT_E_INVALID,
                       "the chat template does not show the end of the last message, so that no answer can go on with "
                       "it; leave continue_final_message out");
    /* The template trims: it would trim the text before the tag, too */
    if (end + TRIMMED == r->text.len || r->text.data[end + TRIMMED] != ' ')
        while (end > 0 && isspace((unsigned char)r->text.data[end - 1]))
            end--;
    r->text.len = end;
    r->text.data[end] = '\0';
    while (r->untrusted_count && r->untrusted[r->untrusted_count - 1].begin >= end)
        r->untrusted_count--;
    if (r->untrusted_count && r->untrusted[r->untrusted_count - 1].end > end)
        r->untrusted[r->untrusted_count - 1].end = end;
    return true;
}
