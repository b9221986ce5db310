/* Reads model.safetensors.index.json: which tensor is in which file. It comes with the checkpoint, so it is not
   trusted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/limits.h"
#include "weights/limits.h"
#include "weights/shards.h"

#define SUFFIX ".safetensors"

typedef struct entry {
    char *tensor, *file;
} entry;

typedef struct index_reader {
    mt_json_reader json;
    mt_arena *arena;
    entry *entries; /* from mt_alloc */
    size_t count, cap;
    mt_error *err;
} index_reader;

static bool fail_index(index_reader *r)
{
    if (r->json.error.code != MT_OK)
        return mt_fail(r->err, MT_E_INVALID, "%s; download the file again", r->json.error.text);
    return mt_fail(r->err, MT_E_INVALID,
                   "its \"weight_map\" must give each tensor the name of a file; download it again");
}

static char *keep(index_reader *r)
{
    char *copy = mt_arena_alloc(r->arena, r->json.len + 1);
    memcpy(copy, r->json.str, r->json.len);
    return copy;
}

/* Names become paths, so only a plain file name within the folder is accepted, of at most the 255 bytes that file
   systems take. */
static bool plain_name(const char *s, size_t len)
{
    if (len == 0 || len > 255 || s[0] == '.' || memchr(s, '\0', len) || memchr(s, '/', len) || memchr(s, '\\', len))
        return false;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)s[i] < 0x20)
            return false;
    }
    return len > strlen(SUFFIX) && memcmp(s + len - strlen(SUFFIX), SUFFIX, strlen(SUFFIX)) == 0;
}

static int by_string(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool read_pair(index_reader *r)
{
    if (r->json.len > MT_LIMIT_TENSOR_NAME || memchr(r->json.str, '\0', r->json.len))
        return mt_fail(r->err, MT_E_INVALID, "it has a tensor name that no safetensors file can hold");
    if (r->count == MT_LIMIT_TENSORS)
        return mt_fail(r->err, MT_E_TOO_LARGE, "it names more than %d tensors", MT_LIMIT_TENSORS);
    r->entries = mt_grow(r->entries, &r->cap, r->count + 1, sizeof(*r->entries));
    entry *e = &r->entries[r->count++];
    e->tensor = keep(r);
    if (mt_json_next(&r->json) != MT_JSON_STRING)
        return fail_index(r);
    if (!plain_name(r->json.str, r->json.len))
        return mt_fail(r->err, MT_E_INVALID,
                       "it names \"%.*s\" as a shard; only %s files of the folder itself are read",
                       (int)(r->json.len < 200 ? r->json.len : 200), r->json.str, "*" SUFFIX);
    e->file = keep(r);
    return true;
}

static bool read_map(index_reader *r)
{
    if (mt_json_next(&r->json) != MT_JSON_OBJECT_BEGIN)
        return fail_index(r);
    mt_json_event event;
    while ((event = mt_json_next(&r->json)) == MT_JSON_KEY) {
        if (!read_pair(r))
            return false;
    }
    return event == MT_JSON_OBJECT_END || fail_index(r);
}

static bool read_index(index_reader *r)
{
    if (mt_json_next(&r->json) != MT_JSON_OBJECT_BEGIN)
        return fail_index(r);
    mt_json_event event;
    while ((event = mt_json_next(&r->json)) == MT_JSON_KEY) {
        bool map = r->json.len == strlen("weight_map") && memcmp(r->json.str, "weight_map", r->json.len) == 0;
        if (map && !read_map(r))
            return false;
        if (!map && !mt_json_skip(&r->json))
            return fail_index(r);
    }
    if (event != MT_JSON_OBJECT_END || mt_json_next(&r->json) != MT_JSON_END || r->count == 0)
        return fail_index(r);
    return true;
}

/* Lists each file once, and replaces the entries' names by numbers. */
static bool resolve_index(index_reader *r, mt_shards *out)
{
    const char **names = mt_alloc(r->count * sizeof(*names));
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++)
        names[i] = r->entries[i].file;
    qsort(names, r->count, sizeof(*names), by_string);
    for (size_t i = 0; i < r->count; i++) {
        if (count == 0 || strcmp(names[count - 1], names[i]) != 0)
            names[count++] = names[i];
    }
    bool ok = count <= MT_LIMIT_SHARDS ||
              mt_fail(r->err, MT_E_TOO_LARGE, "it names %zu shards; at most %d are read", count, MT_LIMIT_SHARDS);
    if (ok) {
        out->count = count;
        out->names = mt_arena_alloc(r->arena, count * sizeof(*names));
        memcpy(out->names, names, count * sizeof(*names));
        mt_shard_entry *entries = mt_arena_alloc(r->arena, r->count * sizeof(*entries));
        for (size_t i = 0; i < r->count; i++) {
            const char **found = bsearch(&r->entries[i].file, names, count, sizeof(*names), by_string);
            entries[i] = (mt_shard_entry){.tensor = r->entries[i].tensor, .shard = (size_t)(found - names)};
        }
        out->entries = entries;
        out->entry_count = r->count;
    }
    mt_free(names);
    return ok;
}

bool mt_shard_index_parse(mt_shards *out, const char *text, size_t len, mt_arena *arena, mt_error *err)
{
    if (len > MT_LIMIT_HEADER_BYTES)
        return mt_fail(err, MT_E_TOO_LARGE, "it has %zu bytes; at most %u are read", len, MT_LIMIT_HEADER_BYTES);
    index_reader r = {.arena = arena, .err = err};
    mt_json_reader_init(&r.json, text, len);
    bool ok = read_index(&r) && resolve_index(&r, out);
    mt_json_reader_free(&r.json);
    mt_free(r.entries);
    return ok;
}

bool mt_shard_index_load(mt_shards *out, const char *dir, mt_arena *arena, mt_error *err)
{
    char path[MT_LIMIT_PATH];
    mt_file file = {0};
    if (!mt_shards_path(path, dir, MT_SHARD_INDEX, err) || !mt_file_map(&file, path, err))
        return false;
    bool ok = mt_shard_index_parse(out, file.data, file.size, arena, err);
    mt_file_unmap(&file);
    return ok || mt_fail_within(err, "\"%s\"", path);
}

bool mt_shards_path(char *out, const char *dir, const char *name, mt_error *err)
{
    int len = snprintf(out, MT_LIMIT_PATH, "%s/%s", dir, name);
    if (len < 0 || len >= MT_LIMIT_PATH)
        return mt_fail(err, MT_E_TOO_LARGE, "the path of \"%.200s\" is longer than %d bytes", name, MT_LIMIT_PATH - 1);
    return true;
}
