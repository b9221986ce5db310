/* See source.h. */
#include "chat/source.h"

#include <stdio.h>
#include <string.h>

#include "base/json_tree.h"
#include "chat/limits.h"

/* A part that is being read. */
typedef struct reader {
    mt_arena *arena;
    const mt_chat_media *media;
    mt_chat_source *out;
    mt_error *err;
} reader;

static bool fail_memory(const reader *r)
{
    return mt_fail(r->err, MT_E_TOO_LARGE, "%s needs more memory than a request may have; send less", r->media->place);
}

/* A member of an object; NULL: it is missing or null. */
static const json_t *get(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

static bool read_count(int64_t *out, const json_t *object, const char *key, const char *what, mt_error *err)
{
    const json_t *value = get(object, key);

    if (!value)
        return true;
    if (!json_is_integer(value) || json_integer_value(value) < 1)
        return mt_fail(err, MT_E_INVALID, "\"%s\" of %s is no positive integer; send one, or leave it out", key,
                       what) ||
               mt_fail_about(err, key);
    *out = json_integer_value(value);
    return true;
}

static bool read_fps(double *out, const json_t *object, const char *key, const char *what, mt_error *err)
{
    const json_t *value = get(object, key);

    if (!value)
        return true;
    if (!json_is_number(value) || !(json_number_value(value) > 0 && json_number_value(value) <= MT_LIMIT_MEDIA_FPS))
        return mt_fail(err, MT_E_INVALID, "\"%s\" of %s is no number above 0 and up to %d; send one, or leave it out",
                       key, what, MT_LIMIT_MEDIA_FPS) ||
               mt_fail_about(err, key);
    *out = json_number_value(value);
    return true;
}

static bool read_detail(mt_chat_detail *out, const json_t *object, const char *what, mt_error *err)
{
    static const char *const names[] = {"auto", "low", "high", "original"};
    const json_t *value = get(object, "detail");

    if (!value)
        return true;
    for (size_t i = 0; mt_json_word(value) && i < MT_COUNT(names); i++)
        if (strcmp(json_string_value(value), names[i]) == 0) {
            *out = (mt_chat_detail)i;
            return true;
        }
    return mt_fail(err, MT_E_INVALID, "\"detail\" of %s is not known; send auto, low, high or original", what) ||
           mt_fail_about(err, "detail");
}

static bool read_crops(bool *out, const json_t *object, const char *what, mt_error *err)
{
    const json_t *value = get(object, "do_pan_and_scan");

    if (!value)
        return true;
    *out = json_is_true(value);
    return json_is_boolean(value) ||
           mt_fail(err, MT_E_INVALID, "\"do_pan_and_scan\" of %s is neither true nor false; send one of them", what) ||
           mt_fail_about(err, "do_pan_and_scan");
}

bool mt_chat_media_options_read(mt_chat_media_options *options, const json_t *object, const char *what, mt_error *err)
{
    return read_detail(&options->detail, object, what, err) &&
           read_count(&options->min_pixels, object, "min_pixels", what, err) &&
           read_count(&options->max_pixels, object, "max_pixels", what, err) &&
           read_count(&options->num_frames, object, "num_frames", what, err) &&
           read_fps(&options->fps, object, "fps", what, err) &&
           read_fps(&options->fps, object, "video_fps", what, err) && read_crops(&options->crops, object, what, err);
}

static bool add_url(reader *r, const json_t *url)
{
    if (!json_is_string(url) || json_string_length(url) == 0)
        return mt_fail(r->err, MT_E_INVALID,
                       "%s has no URL; send a string that begins with data:, http: or https: as its \"url\"",
                       r->media->place);
    r->out->urls[r->out->count++] = mt_chat_text_of(url);
    return true;
}

/* Makes a data URL of bare base64, as Anthropic's clients send it. */
static bool add_base64(reader *r, const json_t *source)
{
    const json_t *type = json_object_get(source, "media_type"), *data = json_object_get(source, "data");
    const size_t len = json_string_length(data) + json_string_length(type) + sizeof("data:;base64,");
    char *url;

    if (!mt_json_word(type) || !mt_json_word(data))
        return mt_fail(r->err, MT_E_INVALID,
                       "the source of %s has no \"media_type\" or no \"data\"; send both as strings", r->media->place);
    url = mt_arena_alloc(r->arena, len);
    if (!url)
        return fail_memory(r);
    r->out->urls[r->out->count++] = (mt_chat_text){
        .data = url,
        .len = (size_t)snprintf(url, len, "data:%s;base64,%s", json_string_value(type), json_string_value(data))};
    return true;
}

/* Makes a URL of the id of a file. */
static bool add_file(reader *r, const json_t *id)
{
    const size_t len = json_string_length(id) + sizeof(MT_CHAT_FILE_SCHEME);
    char *url = mt_arena_alloc(r->arena, len);

    if (!url)
        return fail_memory(r);
    r->out->urls[r->out->count++] =
        (mt_chat_text){.data = url, .len = (size_t)snprintf(url, len, MT_CHAT_FILE_SCHEME "%s", json_string_value(id))};
    return true;
}

static bool add_source(reader *r, const json_t *source)
{
    const json_t *type = json_object_get(source, "type"), *id = json_object_get(source, "file_id");

    if (mt_json_word(type) && strcmp(mt_json_word(type), "base64") == 0)
        return add_base64(r, source);
    return json_is_string(id) ? add_file(r, id) : add_url(r, json_object_get(source, "url"));
}

static bool allot(reader *r, size_t count)
{
    r->out->urls = mt_arena_alloc(r->arena, count * sizeof(*r->out->urls));
    return r->out->urls || fail_memory(r);
}

/* A frame is a URL, or a part as for a picture. */
static bool add_frames(reader *r, const json_t *list)
{
    const size_t count = json_array_size(list);

    if (count == 0 || count > MT_LIMIT_MEDIA_LIST)
        return mt_fail(r->err, MT_E_INVALID, "%s is a list of %zu frames; send between 1 and %d", r->media->place,
                       count, MT_LIMIT_MEDIA_LIST);
    r->out->frames = true;
    if (!allot(r, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *frame = json_array_get(list, i), *inner = json_object_get(frame, "image_url");

        frame = inner ? inner : frame;
        if (!add_url(r, json_is_object(frame) ? json_object_get(frame, "url") : frame))
            return false;
    }
    return true;
}

/* The URL or data of a part, under any of the names that clients use. */
static const json_t *find_value(const reader *r)
{
    static const char *const image[] = {"image_url", "image", "url", "source"};
    static const char *const video[] = {"video_url", "video", "url", "source"};
    const char *const *names = r->media->type == MT_CHAT_IMAGE ? image : video;

    const json_t *value = NULL;

    for (size_t i = 0; !value && i < MT_COUNT(image); i++)
        value = get(r->media->source, names[i]);
    return value;
}

bool mt_chat_source_read(mt_chat_source *out, mt_arena *arena, const mt_chat_media *media,
                         const mt_chat_media_options *all, mt_error *err)
{
    reader r = {.arena = arena, .media = media, .out = out, .err = err};
    const json_t *value = find_value(&r);

    *out = (mt_chat_source){.options = *all};
    if (!mt_chat_media_options_read(&out->options, media->source, media->place, err) ||
        (json_is_object(value) && !mt_chat_media_options_read(&out->options, value, media->place, err)))
        return false;
    if (json_is_array(value) && media->type == MT_CHAT_VIDEO)
        return add_frames(&r, value);
    if (!allot(&r, 1))
        return false;
    if (!value && json_is_string(get(media->source, "file_id")))
        return add_file(&r, get(media->source, "file_id"));
    return json_is_object(value) ? add_source(&r, value) : add_url(&r, value);
}
