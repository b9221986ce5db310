#include "cli/shown.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* The file as a URL: what may not stand in one is written in hexadecimal. NULL when there is no such file. */
static json_t *url_of(const char *path, mt_error *err)
{
    char whole[PATH_MAX];
    json_t *url;
    mt_buf text;

    if (!realpath(path, whole)) {
        mt_fail(err, MT_E_NOT_FOUND, "\"%s\" cannot be read; give the path of a picture", path);
        return NULL;
    }
    mt_buf_init(&text, 4 * MT_LIMIT_PATH);
    mt_buf_puts(&text, "file://");
    for (const char *p = whole; *p; p++)
        if (isalnum((unsigned char)*p) || strchr("/._-", *p))
            mt_buf_add(&text, p, 1);
        else
            mt_buf_printf(&text, "%%%02X", (unsigned char)*p);
    url = json_string(text.data);
    mt_buf_free(&text);
    return url;
}

static bool add_files(json_t *parts, const mt_option_list *files, const char *type, mt_error *err)
{
    for (size_t i = 0; i < files->count; i++) {
        json_t *url = url_of(files->at[i], err);

        if (!url)
            return false;
        json_array_append_new(parts, json_pack("{s:s, s:o}", "type", type, type, url));
    }
    return true;
}

/* Pictures first, then the words. */
static json_t *body_of(const mt_options *opt, mt_error *err)
{
    json_t *parts = json_array();

    if (!add_files(parts, &opt->images, "image_url", err) || !add_files(parts, &opt->videos, "video_url", err)) {
        json_decref(parts);
        return NULL;
    }
    json_array_append_new(parts, json_pack("{s:s, s:s}", "type", "text", "text", opt->prompt));
    return json_pack("{s:[{s:s, s:o}]}", "messages", "role", "user", "content", parts);
}

bool mt_shown_make(mt_shown *s, const mt_options *opt, const mt_opened *opened, mt_tokenizer *tokenizer, mt_error *err)
{
    json_t *body = body_of(opt, err);
    mt_failure why = {.status = 0};
    size_t count;
    mt_ask ask;
    bool ok;

    *s = (mt_shown){.arena = mt_arena_new(MT_LIMIT_REQUEST_MEMORY)};
    if (!body)
        return false;
    s->served.name = (char *)(uintptr_t)opt->dir;
    s->served.opened = *opened;
    s->served.tokenizer = tokenizer;
    s->served.media = mt_media_limits_default();
    s->served.media.root = "/";
    mt_picture_room_init(&s->served.room, MT_LIMIT_REQUEST_MEMORY);
    s->served.templates = mt_chat_templates_open(opt->dir, NULL, err);
    mt_ask_init(&ask, s->arena, body, &(mt_ask_defaults){0});
    ask.is_chat = true;
    ok = s->served.templates != NULL;
    if (ok && !mt_tokens_make(&s->served, &ask, NULL, &s->prompt, &count, &why))
        ok = mt_fail(err, MT_E_INVALID, "%s", why.text);
    json_decref(body);
    return ok;
}

void mt_shown_free(mt_shown *s)
{
    if (s->prompt)
        mt_pictures_free(&s->prompt->pictures);
    if (s->served.room.limit)
        mt_picture_room_free(&s->served.room);
    mt_chat_templates_free(s->served.templates);
    mt_arena_free(s->arena);
    *s = (mt_shown){0};
}
