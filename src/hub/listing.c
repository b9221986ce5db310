/* Reads the list of a model's files (remote.h), and selects those that motet reads. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "base/json_tree.h"
#include "hub/limits.h"
#include "hub/remote.h"
#include "weights/gguf_choice.h"

#define SUFFIX ".safetensors"

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), tail = strlen(end);

    return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* Configs, tokenizers, templates and the index of the weights. In subfolders: templates, sentence-transformers' pooling
   (1_Pooling/config.json) and dense layers (2_Dense), a drafting head, and GGUF files, which large repositories have by
   quantisation. */
static bool is_wanted(const char *name)
{
    const char *slash = strchr(name, '/');

    if (name[0] == '.')
        return false;
    if (!slash)
        return ends_with(name, ".json") || ends_with(name, ".jinja") || ends_with(name, SUFFIX) ||
               mt_gguf_named(name) || strcmp(name, "merges.txt") == 0 || strcmp(name, "vocab.txt") == 0;
    if (strchr(slash + 1, '/'))
        return false;
    return mt_gguf_named(name) || (strncmp(name, "additional_chat_templates/", 26) == 0 && ends_with(name, ".jinja")) ||
           (name[0] >= '0' && name[0] <= '9' &&
            (strcmp(slash, "/config.json") == 0 || ends_with(name, "_Dense/model" SUFFIX))) ||
           strcmp(name, "mtp/weights" SUFFIX) == 0;
}

static bool is_other(const char *name)
{
    static const char *const kinds[] = {".bin", ".pt", ".pth", ".npz"};

    for (size_t i = 0; i < MT_COUNT(kinds); i++)
        if (ends_with(name, kinds[i]) && !strchr(name, '/'))
            return true;
    return false;
}

/* Parts separated by slashes, none empty or "..": git has no other names, so a hub that lists one is not honest. */
static bool is_path(const char *name, size_t len)
{
    if (len == 0 || memchr(name, '\0', len))
        return false;
    for (const char *part = name;; part += strcspn(part, "/") + 1) {
        const size_t size = strcspn(part, "/");

        if (size == 0 || (size == 1 && part[0] == '.') || (size == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        if (!part[size])
            return true;
    }
}

/* Without characters that a terminal or another system interprets. */
static bool is_plain(const char *name)
{
    const size_t len = strlen(name);

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f || name[i] == '\\')
            return false;
    return len < MT_LIMIT_HUB_NAME;
}

bool mt_remote_is_digest(const char *text)
{
    size_t digits = 0;

    while (mt_hex_digit(text[digits]) >= 0)
        digits++;
    return (digits == 40 || digits == 64) && text[digits] == '\0';
}

/* A file in LFS has a SHA-256, another one git's blob hash. Hubs that give neither are asked for each file. */
static bool read_digest(mt_remote_file *file, const json_t *entry, mt_arena *arena, mt_error *err)
{
    const json_t *lfs = json_object_get(entry, "lfs");
    const char *digest =
        json_string_value(json_is_object(lfs) ? json_object_get(lfs, "sha256") : json_object_get(entry, "blobId"));
    const json_t *size = json_object_get(json_is_object(lfs) ? lfs : entry, "size");

    if (!digest || !json_is_integer(size))
        return true;
    if (!mt_remote_is_digest(digest) || (json_is_object(lfs) && strlen(digest) != 64))
        return mt_fail(err, MT_E_INVALID, "the hub's list gives \"%s\" a digest that is none: try again later",
                       file->name);
    if (json_integer_value(size) < 0 || json_integer_value(size) > MT_LIMIT_PULL_FILE_BYTES)
        return mt_fail(err, MT_E_TOO_LARGE, "the hub's list gives \"%s\" %lld bytes: no file has so many", file->name,
                       (long long)json_integer_value(size));
    char *kept = mt_arena_strdup(arena, digest);
    for (char *c = kept; *c; c++)
        *c = *c >= 'A' && *c <= 'F' ? (char)(*c - 'A' + 'a') : *c;
    file->digest = kept;
    file->size = (uint64_t)json_integer_value(size);
    return true;
}

static bool fail_name(const char *name, mt_error *err)
{
    return mt_fail(err, MT_E_INVALID,
                   "the hub's list has a file \"%.200s\", whose name could lead out of its folder: nothing is "
                   "downloaded",
                   name);
}

static bool read_entry(mt_listing *list, const json_t *entry, size_t *cap, mt_error *err)
{
    const json_t *text = json_object_get(entry, "rfilename");
    const char *name = json_string_value(text);
    mt_remote_file *file;

    if (!name)
        return mt_fail(err, MT_E_INVALID,
                       "the hub's list has a file without a name: check that HF_ENDPOINT is a hub's");
    if (!is_path(name, json_string_length(text)))
        return fail_name(name, err);
    if (!is_wanted(name)) {
        if (is_other(name) && is_plain(name) && !list->other)
            list->other = mt_arena_strdup(list->arena, name);
        return true;
    }
    if (!is_plain(name))
        return fail_name(name, err);
    if (list->count == MT_LIMIT_PULL_FILES)
        return mt_fail(err, MT_E_TOO_LARGE, "the hub's list has more than %d files: this is no model that motet knows",
                       MT_LIMIT_PULL_FILES);
    list->files = mt_grow(list->files, cap, list->count + 1, sizeof(*list->files));
    file = &list->files[list->count++];
    *file = (mt_remote_file){.name = mt_arena_strdup(list->arena, name),
                             .weights = ends_with(name, SUFFIX) || mt_gguf_named(name)};
    return read_digest(file, entry, list->arena, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mt_remote_file *)a)->name, ((const mt_remote_file *)b)->name);
}

static bool check_names(const mt_listing *list, mt_error *err)
{
    for (size_t i = 1; i < list->count; i++)
        if (strcmp(list->files[i - 1].name, list->files[i].name) == 0)
            return mt_fail(err, MT_E_INVALID, "the hub's list has \"%s\" twice: try again later", list->files[i].name);
    return true;
}

static bool read_list(mt_listing *list, const json_t *root, mt_error *err)
{
    const char *commit = json_string_value(json_object_get(root, "sha"));
    const json_t *files = json_object_get(root, "siblings");
    size_t cap = 0;

    if (!commit || !mt_hub_is_commit(commit) || !json_is_array(files))
        return mt_fail(err, MT_E_INVALID,
                       "the hub's answer is no list of a model's files: check that HF_ENDPOINT is a hub's");
    memcpy(list->commit, commit, sizeof(list->commit));
    for (size_t i = 0; i < json_array_size(files); i++)
        if (!read_entry(list, json_array_get(files, i), &cap, err))
            return false;
    if (list->count)
        qsort(list->files, list->count, sizeof(*list->files), by_name);
    return check_names(list, err);
}

bool mt_listing_read(mt_listing *list, const char *text, size_t len, mt_error *err)
{
    json_t *root = mt_json_tree_read(text, len, err);
    bool ok;

    *list = (mt_listing){.arena = mt_arena_new(0)};
    if (!root)
        return mt_fail_within(err, "the hub's answer is not JSON, check that HF_ENDPOINT is a hub's");
    ok = read_list(list, root, err);
    json_decref(root);
    return ok;
}

void mt_listing_free(mt_listing *list)
{
    mt_free(list->files);
    mt_arena_free(list->arena);
    *list = (mt_listing){0};
}
