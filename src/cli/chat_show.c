/* What motet chat and motet run have in common: a message with pictures, and an answer as it is shown. */
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/chat.h"

#define DIM "\033[2m"
#define PLAIN "\033[0m"
#define BODY_REST (1u << 20) /* of a request: all but its media */
#define FILE_BYTES (MT_LIMIT_BODY_BYTES / 4 * 3 - BODY_REST)

/* The kind is a form: the server sees by the bytes what it is. */
static char *data_url(const char *kind, const mt_buf *bytes)
{
    const size_t head = strlen("data:/*;base64,") + strlen(kind), room = head + 4 * (bytes->len / 3 + 1) + 1;
    char *url = mt_alloc(room);

    snprintf(url, room, "data:%s/*;base64,", kind);
    EVP_EncodeBlock((unsigned char *)url + head, (const unsigned char *)bytes->data, (int)bytes->len);
    return url;
}

bool mt_chat_add_file(json_t *parts, const char *kind, const char *path, mt_error *err)
{
    char type[32], *url;
    mt_buf bytes;
    bool ok;

    mt_buf_init(&bytes, FILE_BYTES);
    ok = mt_file_read(&bytes, path, err);
    if (ok && bytes.len == 0)
        ok = mt_fail(err, MT_E_INVALID, "\"%s\" is empty", path);
    if (ok) {
        url = data_url(kind, &bytes);
        snprintf(type, sizeof(type), "%s_url", kind);
        json_array_append_new(parts, json_pack("{s:s, s:{s:s}}", "type", type, type, "url", url));
        mt_free(url);
    }
    mt_buf_free(&bytes);
    return ok;
}

json_t *mt_chat_message(const json_t *media, const char *text, mt_error *err)
{
    json_t *words = json_string(text), *parts;

    if (!words) {
        mt_fail(err, MT_E_INVALID, "that is not text in UTF-8; say it in another way");
        return NULL;
    }
    if (json_array_size(media) == 0)
        return json_pack("{s:s, s:o}", "role", "user", "content", words);
    parts = json_copy((json_t *)(uintptr_t)media);
    json_array_append_new(parts, json_pack("{s:s, s:o}", "type", "text", "text", words));
    return json_pack("{s:s, s:o}", "role", "user", "content", parts);
}

void mt_chat_show(mt_chat_answer *a, bool reasoning, const char *text)
{
    if (a->colours && reasoning != a->shows_reasoning)
        fputs(reasoning ? DIM : PLAIN, stdout);
    if (!reasoning && a->shows_reasoning)
        fputs("\n\n", stdout);
    a->shows_reasoning = reasoning;
    fputs(text, stdout);
    fflush(stdout);
}

void mt_chat_show_end(const mt_chat_answer *a)
{
    if (a->colours && a->shows_reasoning)
        fputs(PLAIN, stdout);
    fputs("\n", stdout);
    fflush(stdout);
}
