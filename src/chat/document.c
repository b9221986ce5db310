/* See document.h. */
#include "chat/document.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json_tree.h"

/* The member of an object, where it is a string that is not empty. */
static const json_t *text_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_string_length(value) > 0 ? value : NULL;
}

/* Makes a data URL of bare base64. */
static bool add_base64(mt_chat_document *out, mt_arena *arena, const mt_chat_part *part, const json_t *data,
                       mt_error *err)
{
    static const char scheme[] = "data:", made[] = "data:;base64,", mark[] = ";base64,";
    const char *text = mt_json_word(data);
    const size_t len = json_string_length(data) + sizeof(made);
    char *url;

    if (!text)
        return mt_fail(err, MT_E_INVALID, "the data of %s has a NUL character in it: leave it out", part->place);
    if (strncasecmp(text, scheme, sizeof(scheme) - 1) == 0) {
        out->url = mt_chat_text_of(data);
        return strstr(text, mark) || mt_fail(err, MT_E_INVALID,
                                             "the data URL of %s is not base64: send data:text/plain;base64, and then "
                                             "the data",
                                             part->place);
    }
    url = mt_arena_alloc(arena, len);
    if (!url)
        return mt_fail(err, MT_E_TOO_LARGE, "%s needs more memory than a request may have; send less", part->place);
    out->url = (mt_chat_text){.data = url, .len = (size_t)snprintf(url, len, "%s%s", made, text)};
    return true;
}

/* The first of some members that is there; NULL: none is. */
static const json_t *find(const json_t *inner, const json_t *part, const char *const *keys)
{
    const json_t *value = NULL;

    for (; !value && *keys; keys++) {
        value = text_of(inner, *keys);
        value = value ? value : text_of(part, *keys);
    }
    return value;
}

bool mt_chat_document_read(mt_chat_document *out, mt_arena *arena, const mt_chat_part *part, mt_error *err)
{
    static const char *const names[] = {"filename", "title", NULL}, *const ids[] = {"file_id", NULL};
    static const char *const urls[] = {"file_url", "url", NULL}, *const datas[] = {"file_data", "data", NULL};
    const json_t *file = json_object_get(part->source, "file"), *source = json_object_get(part->source, "source");
    const json_t *inner = json_is_object(file) ? file : source, *all = part->source;
    const json_t *id = find(inner, all, ids), *url = find(inner, all, urls), *data = find(inner, all, datas);

    *out = (mt_chat_document){.id = mt_chat_text_of(id), .name = mt_chat_text_of(find(inner, all, names))};
    if ((id != NULL) + (url != NULL) + (data != NULL) != 1)
        return mt_fail(err, MT_E_INVALID, "%s is a file that names %s: send its id, its URL or its data, as a string",
                       part->place, id || url || data ? "more than one place where it is" : "no place where it is");
    if (data)
        return add_base64(out, arena, part, data, err);
    if (url)
        out->url = mt_chat_text_of(url);
    return true;
}

bool mt_chat_document_is_picture(const char *url)
{
    static const char *const endings[] = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp"};
    static const char data[] = "data:", image[] = "data:image/";
    const size_t len = strcspn(url, "?#");

    if (strncasecmp(url, data, sizeof(data) - 1) == 0)
        return strncasecmp(url, image, sizeof(image) - 1) == 0;
    for (size_t i = 0; i < MT_COUNT(endings); i++)
        if (len > strlen(endings[i]) &&
            strncasecmp(url + len - strlen(endings[i]), endings[i], strlen(endings[i])) == 0)
            return true;
    return false;
}

void mt_chat_add_document(mt_chat *chat, mt_chat_message *to, const json_t *source, const char *place)
{
    const size_t before = to->part_count;

    chat->starved = chat->starved || !place;
    mt_chat_add_text(chat, to, (mt_chat_text){.data = "", .len = 0});
    if (to->part_count == before)
        return;
    to->parts[before].source = source;
    to->parts[before].place = place ? place : "";
}

bool mt_chat_has_documents(const mt_chat *chat)
{
    for (size_t i = 0; i < chat->count; i++)
        for (size_t k = 0; k < chat->messages[i].part_count; k++)
            if (chat->messages[i].parts[k].type == MT_CHAT_TEXT && chat->messages[i].parts[k].source)
                return true;
    return false;
}
