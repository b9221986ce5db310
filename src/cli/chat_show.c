/* Functions that motet chat and motet run share: building a message with pictures, and printing an answer. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/file.h"
#include "cli/chat.h"
#include "cli/cli.h"

#define DIM "\033[2m"
#define PLAIN "\033[0m"
#define BODY_REST (1u << 20) /* bytes of a request besides its media */
#define FILE_BYTES (MT_LIMIT_BODY_BYTES / 4 * 3 - BODY_REST)

/* The media type has no subtype: servers look at the bytes to find the format. */
static char *data_url(const char *kind, const mt_buf *bytes)
{
    const size_t head = strlen("data:/*;base64,") + strlen(kind), room = head + 4 * (bytes->len / 3 + 1) + 1;
    char *url = mt_alloc(room);

    snprintf(url, room, "data:%s/*;base64,", kind);
    EVP_EncodeBlock((unsigned char *)url + head, (const unsigned char *)bytes->data, (int)bytes->len);
    return url;
}

/* The part of a message for a document: a URL that the server fetches, or a data URL with its bytes; and its name. */
static json_t *file_part(json_t *url, const char *name)
{
    const char *slash = strrchr(name, '/');
    json_t *called = json_string(slash ? slash + 1 : name);

    if (mt_is_url(json_string_value(url)))
        return json_pack("{s:s, s:o, s:o*}", "type", "input_file", "file_url", url, "filename", called);
    return json_pack("{s:s, s:{s:o, s:o*}}", "type", "file", "file", "file_data", url, "filename", called);
}

/* name: path or URL of the file; "-": standard input. A data URL is no name: it holds all of the file. */
static bool add_url(json_t *parts, const char *kind, const char *url, const char *name, mt_error *err)
{
    json_t *words = json_string(url);
    char type[32];

    if (!words)
        return mt_fail(err, MT_E_INVALID, "the URL is not text in UTF-8; check it");
    if (strcmp(kind, "file") == 0) {
        json_array_append_new(parts, file_part(words, strcmp(name, "-") == 0               ? "standard input"
                                                      : strncasecmp(name, "data:", 5) == 0 ? "document"
                                                                                           : name));
        return true;
    }
    snprintf(type, sizeof(type), "%s_url", kind);
    json_array_append_new(parts, json_pack("{s:s, s:{s:o}}", "type", type, type, "url", words));
    return true;
}

static bool read_input(mt_buf *bytes, mt_error *err)
{
    char chunk[1 << 16];
    size_t len;

    while ((len = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
        if (!mt_buf_add(bytes, chunk, len))
            return mt_fail(err, MT_E_TOO_LARGE, "standard input has more than %u bytes: send a smaller one",
                           FILE_BYTES);
    return !ferror(stdin) || mt_fail(err, MT_E_IO, "standard input cannot be read: %s", strerror(errno));
}

bool mt_chat_add_media(json_t *parts, const char *kind, const char *what, mt_error *err)
{
    mt_buf bytes;
    char *url;
    bool ok;

    if (mt_is_url(what) || strncasecmp(what, "data:", 5) == 0) /* the server fetches or decodes it */
        return add_url(parts, kind, what, what, err);
    if (strncasecmp(what, "file://", 7) == 0)
        what += 7;
    mt_buf_init(&bytes, FILE_BYTES);
    ok = strcmp(what, "-") == 0 ? read_input(&bytes, err) : mt_file_read(&bytes, what, err);
    if (ok && bytes.len == 0)
        ok = mt_fail(err, MT_E_INVALID, "\"%s\" is empty", what);
    if (ok) {
        url = data_url(kind, &bytes);
        ok = add_url(parts, kind, url, what, err);
        mt_free(url);
    }
    mt_buf_free(&bytes);
    return ok;
}

json_t *mt_chat_settings(const mt_options *opt)
{
    json_t *all = json_object();

    if (!isnan(opt->temperature))
        json_object_set_new(all, "temperature", json_real(opt->temperature));
    if (opt->seed >= 0)
        json_object_set_new(all, "seed", json_integer(opt->seed));
    if (opt->think != MT_THINK_AUTO)
        json_object_set_new(all, "chat_template_kwargs",
                            json_pack("{s:b}", "enable_thinking", opt->think == MT_THINK_ON));
    return all;
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
    const size_t columns = a->colours ? mt_chat_columns() : 0;

    if (a->colours && reasoning != a->shows_reasoning)
        fputs(reasoning ? DIM : PLAIN, stdout);
    if (!reasoning && a->shows_reasoning) {
        fputs("\n\n", stdout);
        a->wrap = (mt_chat_wrap){0};
    }
    a->shows_reasoning = reasoning;
    if (columns)
        mt_chat_wrap_put(&a->wrap, columns, text, stdout);
    else
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
