/* A checkpoint as one sorted table of tensors (checkpoint.h).

   Owns the config, the mapped shards or the GGUF file, and the table. The table is one array, so that a tensor's index
   is its pointer minus the first one's. Nothing changes after opening, so any thread may read. The table copies the
   shards' tables (about a hundred bytes a tensor), because one binary search is faster than one for each shard. */
#include "weights/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/log.h"
#include "weights/folder.h"
#include "weights/gguf_arch.h"
#include "weights/gguf_place.h"
#include "weights/gguf_projector.h"
#include "weights/limits.h"
#include "weights/safetensors.h"
#include "weights/shards.h"

struct mt_checkpoint {
    char *dir;
    bool inspecting, once, exact;
    mt_config *config;
    mt_arena *arena; /* owns shard names and index */
    mt_shards names;
    mt_safetensors **shards;
    size_t opened;
    mt_gguf *gguf, *projector; /* instead of shards; projector NULL: none */
    mt_tensor_info *tensors;
    size_t count;
    uint64_t bytes;
};

/* Whether the path does not exist. A path without permission exists: reading its config.json gives the error. */
static bool is_absent(const char *path, struct stat *st)
{
    return stat(path, st) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* Refuses a path that is no checkpoint folder, with a sentence. */
static bool check_folder(const char *dir, mt_error *err)
{
    struct stat st = {.st_mode = S_IFDIR};
    if (is_absent(dir, &st))
        return mt_fail(
            err, MT_E_NOT_FOUND,
            "\"%s\" does not exist; give the folder that holds config.json and *.safetensors, or a GGUF file", dir);
    if (!S_ISDIR(st.st_mode))
        return mt_fail(
            err, MT_E_INVALID,
            "\"%s\" is not a folder; give the folder that holds config.json and *.safetensors, or a GGUF file", dir);
    char path[MT_LIMIT_PATH];
    if (!mt_shards_path(path, dir, "config.json", err))
        return false;
    if (is_absent(path, &st))
        return mt_fail(err, MT_E_NOT_FOUND,
                       "\"%s\" is not a checkpoint: it has no config.json; give the folder that holds config.json and "
                       "*.safetensors",
                       dir);
    return true;
}

/* Opens all shards, with progress. */
static bool open_shards(mt_checkpoint *c, mt_error *err)
{
    c->shards = mt_alloc(c->names.count * sizeof(*c->shards));
    for (; c->opened < c->names.count; c->opened++) {
        char path[MT_LIMIT_PATH];
        if (!mt_shards_path(path, c->dir, c->names.names[c->opened], err))
            return false;
        c->shards[c->opened] = mt_safetensors_open(path, err);
        if (!c->shards[c->opened])
            return false;
        c->count += mt_safetensors_count(c->shards[c->opened]);
    }
    if (c->count > MT_LIMIT_TENSORS)
        return mt_fail(err, MT_E_TOO_LARGE, "\"%s\" holds %zu tensors; at most %d are read", c->dir, c->count,
                       MT_LIMIT_TENSORS);
    if (c->count == 0)
        return mt_fail(err, MT_E_INVALID, "\"%s\" holds no tensors; download the weights again", c->dir);
    return true;
}

static bool check_index(const mt_checkpoint *c, mt_error *err)
{
    for (size_t i = 0; i < c->names.entry_count; i++) {
        const mt_shard_entry *e = &c->names.entries[i];
        if (!mt_safetensors_find(c->shards[e->shard], e->tensor))
            return mt_fail(
                err, MT_E_INVALID,
                "the index of \"%.200s\" says that tensor \"%s\" is in \"%s\", which does not hold it; download "
                "the index and that file again",
                c->dir, e->tensor, c->names.names[e->shard]);
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mt_tensor_info *)a)->name, ((const mt_tensor_info *)b)->name);
}

/* The shard that holds the second of two tensors with the same name; for the message. */
static const char *holder(const mt_checkpoint *c, const mt_tensor_info *t)
{
    for (size_t i = 0; i < c->opened; i++) {
        const mt_tensor_info *found = mt_safetensors_find(c->shards[i], t->name);
        if (found && found->data == t->data)
            return c->names.names[i];
    }
    return c->dir;
}

/* Sorts the table; two tensors of one name are an error. */
static bool sort(mt_checkpoint *c, mt_error *err)
{
    for (size_t i = 0; i < c->count; i++)
        c->bytes += c->tensors[i].bytes;
    qsort(c->tensors, c->count, sizeof(*c->tensors), by_name);
    for (size_t i = 1; i < c->count; i++) {
        const mt_tensor_info *a = &c->tensors[i - 1], *b = &c->tensors[i];
        if (by_name(a, b) == 0)
            return mt_fail(
                err, MT_E_INVALID,
                "tensor \"%s\" is in both \"%.150s\" and \"%.150s\"; remove the file that does not belong to the "
                "checkpoint",
                a->name, holder(c, a), holder(c, b));
    }
    return true;
}

/* Merges the tables of all shards. */
static bool merge(mt_checkpoint *c, mt_error *err)
{
    c->tensors = mt_alloc(c->count * sizeof(*c->tensors));
    size_t at = 0;
    for (size_t s = 0; s < c->opened; s++)
        for (size_t i = 0; i < mt_safetensors_count(c->shards[s]); i++)
            c->tensors[at++] = *mt_safetensors_at(c->shards[s], i);
    return sort(c, err);
}

/* Adds the tensors of a GGUF file to the table. */
static bool add_gguf(mt_checkpoint *c, const char *path, bool projector, mt_error *err)
{
    mt_tensor_info *tensors;
    size_t count;
    if (projector ? !mt_gguf_projector_names(c->projector, c->arena, &tensors, &count, err)
                  : !mt_gguf_names(c->gguf, c->arena, &tensors, &count, err))
        return mt_fail_within(err, "\"%s\"", path);
    if (count == 0)
        return mt_fail(err, MT_E_INVALID, "\"%s\" holds no tensors; download the file again", path);
    c->tensors = mt_realloc(c->tensors, c->count * sizeof(*c->tensors), (c->count + count) * sizeof(*c->tensors));
    memcpy(c->tensors + c->count, tensors, count * sizeof(*c->tensors));
    c->count += count;
    return true;
}

/* Reads a GGUF file, and its projector where there is one, as the checkpoint that they were made from. Both are opened
   first, so that functions that read their keys meanwhile share them. */
static bool load_gguf(mt_checkpoint *c, const mt_gguf_place *place, mt_error *err)
{
    c->gguf = mt_gguf_open(place->model, err);
    if (!c->gguf)
        return false;
    if (place->projector[0]) {
        c->projector = mt_gguf_open(place->projector, err);
        if (!c->projector)
            return false;
    }
    c->config = mt_folder_config(c->dir, "config.json", err);
    return c->config && add_gguf(c, place->model, false, err) &&
           (!place->projector[0] || add_gguf(c, place->projector, true, err)) && sort(c, err);
}

static bool load(mt_checkpoint *c, mt_error *err)
{
    mt_gguf_place place;
    mt_error why = {0};
    if (mt_gguf_locate(&place, c->dir, NULL, &why))
        return load_gguf(c, &place, err);
    if (why.code != MT_OK) {
        if (err)
            *err = why;
        return false;
    }
    char path[MT_LIMIT_PATH];
    if (!check_folder(c->dir, err) || !mt_shards_path(path, c->dir, "config.json", err))
        return false;
    c->config = mt_config_read(path, err);
    return c->config && mt_shards_find(&c->names, c->dir, c->arena, err) && open_shards(c, err) &&
           check_index(c, err) && merge(c, err);
}

mt_checkpoint *mt_checkpoint_open(const char *dir, mt_error *err)
{
    mt_checkpoint *c = mt_alloc(sizeof(*c));
    c->dir = mt_strdup(dir);
    c->arena = mt_arena_new(0);
    size_t len = strlen(c->dir);
    while (len > 1 && c->dir[len - 1] == '/')
        c->dir[--len] = '\0';
    if (!load(c, err)) {
        mt_checkpoint_close(c);
        return NULL;
    }
    mt_log_debug("weights.mapped", "dir=%s shards=%zu tensors=%zu bytes=%llu", c->dir, mt_checkpoint_shards(c),
                 c->count, (unsigned long long)c->bytes);
    return c;
}

mt_checkpoint *mt_checkpoint_inspect(const char *dir, mt_error *err)
{
    mt_checkpoint *c = mt_checkpoint_open(dir, err);
    if (c)
        c->inspecting = true;
    return c;
}

bool mt_checkpoint_inspecting(const mt_checkpoint *c)
{
    return c->inspecting;
}

void mt_checkpoint_close(mt_checkpoint *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->opened; i++)
        mt_safetensors_close(c->shards[i]);
    mt_gguf_close(c->gguf);
    mt_gguf_close(c->projector);
    mt_free(c->shards);
    mt_free(c->tensors);
    mt_config_free(c->config);
    mt_arena_free(c->arena);
    mt_free(c->dir);
    mt_free(c);
}

const char *mt_checkpoint_dir(const mt_checkpoint *c)
{
    return c->dir;
}

const mt_config *mt_checkpoint_config(const mt_checkpoint *c)
{
    return c->config;
}

const mt_tensor_info *mt_checkpoint_find(const mt_checkpoint *c, const char *name)
{
    mt_tensor_info key = {.name = name};
    return bsearch(&key, c->tensors, c->count, sizeof(key), by_name);
}

size_t mt_checkpoint_lower(const mt_checkpoint *c, const char *name)
{
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(c->tensors[mid].name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

size_t mt_checkpoint_count(const mt_checkpoint *c)
{
    return c->count;
}

const mt_tensor_info *mt_checkpoint_at(const mt_checkpoint *c, size_t i)
{
    return &c->tensors[i];
}

size_t mt_checkpoint_shards(const mt_checkpoint *c)
{
    return c->gguf ? mt_gguf_files(c->gguf) + (c->projector != NULL) : c->opened;
}

void mt_checkpoint_read_once(mt_checkpoint *c)
{
    c->once = true;
}

bool mt_checkpoint_is_read_once(const mt_checkpoint *c)
{
    return c->once;
}

void mt_checkpoint_exact(mt_checkpoint *c)
{
    c->exact = true;
}

bool mt_checkpoint_is_exact(const mt_checkpoint *c)
{
    return c->exact;
}

uint64_t mt_checkpoint_bytes(const mt_checkpoint *c)
{
    return c->bytes;
}
