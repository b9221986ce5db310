/* Lists local models (local.h).

   A list owns only its arena; folders are read once, when it is made. What is found is not trusted: names that
   mt_hub_find would not accept are skipped, and so is what is no folder. */
#include "hub/local.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "hub/find.h"
#include "hub/limits.h"
#include "hub/stores.h"
#include "models/bert.h"
#include "models/spec.h"
#include "weights/elsewhere.h"
#include "weights/gguf_arch.h"
#include "weights/gguf_place.h"
#include "weights/limits.h"
#include "weights/shards.h"

#define DEEPEST 8 /* deepest nesting of a model's folders */

/* A list that is being made. */
typedef struct survey {
    mt_local *list;
    size_t cap;
    const char *place;
    bool cached;
    mt_error *err;
} survey;

/* Opens a folder; NULL where there is none, and with *ok false and a sentence where it may not be read. */
static DIR *open_folder(const char *path, bool *ok, mt_error *err)
{
    DIR *all = opendir(path);

    *ok = all || errno == ENOENT || errno == ENOTDIR ||
          mt_fail(err, MT_E_IO, "\"%s\" may not be read (%s): check its permissions", path, strerror(errno));
    return all;
}

/* The next entry that does not begin with a dot. */
static const char *next_entry(DIR *all)
{
    const struct dirent *entry = NULL;

    while (all && (entry = readdir(all)) && entry->d_name[0] == '.')
        continue;
    return entry ? entry->d_name : NULL;
}

/* Adds up the sizes of files and finds the newest. Links to files are followed, links to folders are not. */
static void measure(mt_local_model *model, const char *folder, unsigned depth, size_t *files)
{
    DIR *all = opendir(folder);
    const char *name;

    while ((name = next_entry(all)) && ++*files < MT_LIMIT_LOCAL_FILES) {
        char path[MT_LIMIT_PATH];
        struct stat st;

        if (!mt_hub_join(path, folder, name) || lstat(path, &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode) && depth < DEEPEST)
            measure(model, path, depth + 1, files);
        if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        model->bytes += (uint64_t)st.st_size;
        if (st.st_mtime > model->modified)
            model->modified = st.st_mtime;
    }
    if (all)
        closedir(all);
}

static bool has_file(const char *folder, const char *name)
{
    char path[MT_LIMIT_PATH];
    struct stat st;

    return mt_hub_join(path, folder, name) && stat(path, &st) == 0;
}

/* Reads from the config what the model can do; an unknown family can do nothing. */
static bool read_kind(mt_local_model *model, const mt_config *config, mt_arena *arena, mt_error *err)
{
    mt_arena *passing = mt_arena_new(0);
    mt_bert_spec bert;
    mt_model_spec spec;
    bool ok;

    model->family = mt_arena_strdup(arena, mt_config_string(config, "model_type", ""));
    if (mt_bert_known(config)) {
        ok = mt_bert_spec_read(&bert, config, passing, err);
        model->can = !ok ? 0 : bert.labels == 0 ? MT_LOCAL_EMBED : bert.labels == 1 ? MT_LOCAL_SCORE : MT_LOCAL_LABEL;
    } else {
        ok = mt_model_spec_read(&spec, config, NULL, passing, err);
        model->can = ok ? MT_LOCAL_TEXT : 0;
        if (ok && spec.vision)
            model->can |= MT_LOCAL_VISION;
        if (ok && has_file(model->folder, "modules.json")) /* sentence-transformers' list of what follows the model */
            model->can |= MT_LOCAL_EMBED;
    }
    mt_arena_free(passing);
    return ok;
}

/* Reads config.json and file names: what the model is, and whether it is complete. */
static bool look_inside(mt_local_model *model, mt_arena *arena, mt_error *err)
{
    char path[MT_LIMIT_PATH];
    mt_arena *passing;
    mt_config *config;
    mt_shards shards;
    bool ok;

    if (!has_file(model->folder, "config.json") || !mt_hub_join(path, model->folder, "config.json"))
        return mt_fail(err, MT_E_NOT_FOUND, "it has no config.json: download the rest of it");
    config = mt_config_read(path, err);
    if (!config)
        return false;
    passing = mt_arena_new(0);
    model->whole = mt_shards_find(&shards, model->folder, passing, err);
    mt_arena_free(passing);
    ok = read_kind(model, config, arena, model->whole ? err : NULL);
    mt_config_free(config);
    return ok && model->whole;
}

/* A new model at the end of the list; NULL with a sentence where there are too many. */
static mt_local_model *append(survey *s, const char *name, const char *folder, const char *revision)
{
    mt_local *list = s->list;

    if (list->count == MT_LIMIT_LOCAL_MODELS) {
        mt_fail(s->err, MT_E_TOO_LARGE, "\"%s\" holds more than %d models: remove some of them", s->place,
                MT_LIMIT_LOCAL_MODELS);
        return NULL;
    }
    list->at = mt_grow(list->at, &s->cap, list->count + 1, sizeof(*list->at));
    mt_local_model *model = &list->at[list->count++];
    *model = (mt_local_model){.name = mt_arena_strdup(list->arena, name),
                              .folder = mt_arena_strdup(list->arena, folder),
                              .place = s->place,
                              .revision = mt_arena_strdup(list->arena, revision),
                              .family = "",
                              .problem = "",
                              .order = list->count,
                              .cached = s->cached};
    return model;
}

/* Adds a folder with a checkpoint. */
static bool add_checkpoint(survey *s, const char *name, const char *folder, const char *revision)
{
    mt_local_model *model = append(s, name, folder, revision);
    mt_error why = {0};
    size_t files = 0;

    if (!model)
        return false;
    measure(model, folder, 0, &files);
    if (!look_inside(model, s->list->arena, &why))
        model->problem = mt_arena_strdup(s->list->arena, why.text);
    return true;
}

/* Adds the size of a file to a model's; false where there is none. */
static bool measure_file(mt_local_model *model, const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    model->bytes += (uint64_t)st.st_size;
    if (st.st_mtime > model->modified)
        model->modified = st.st_mtime;
    return true;
}

/* Adds a GGUF model by its path: a file or a manifest. Of the file only the first bytes are read. */
static bool add_gguf(survey *s, const char *name, const char *path, const char *revision)
{
    mt_local_model *model = append(s, name, path, revision);
    char family[MT_GGUF_LABEL] = "";
    mt_gguf_place place;
    mt_error why = {0};

    if (!model)
        return false;
    model->whole = mt_gguf_locate(&place, path, NULL, &why);
    for (unsigned shard = 1; model->whole && mt_gguf_shard(place.model, shard); shard++) {
        char part[MT_LIMIT_PATH];

        snprintf(part, sizeof(part), "%s", place.model);
        mt_gguf_set_shard(part, shard);
        if (!measure_file(model, part))
            model->whole = mt_fail(&why, MT_E_NOT_FOUND, "a file of it is missing: download it again");
    }
    if (model->whole && place.projector[0])
        (void)measure_file(model, place.projector);
    if (model->whole && !mt_gguf_architecture(place.model, family))
        model->whole = mt_fail(&why, MT_E_INVALID, "it is no GGUF file that motet reads: download it again");
    model->family = mt_arena_strdup(s->list->arena, family);
    if (model->whole && !mt_gguf_arch_known(family))
        (void)mt_fail_elsewhere("its architecture", family, MT_ELSEWHERE_ADVICE, &why);
    else if (model->whole && mt_gguf_arch_encodes(family))
        model->can = MT_LOCAL_EMBED;
    else if (model->whole)
        model->can = MT_LOCAL_TEXT | (place.projector[0] ? MT_LOCAL_VISION : 0);
    if (why.code != MT_OK)
        model->problem = mt_arena_strdup(s->list->arena, why.text);
    return true;
}

/* Adds each quantisation of a folder with GGUF files: "name:Q4_K_M", or "name" where there is one alone. */
static bool add_quantisations(survey *s, const char *name, const char *folder, const char *revision)
{
    size_t firsts = 0;
    bool ok = true;
    mt_gguf_folder f;

    mt_gguf_folder_read(&f, folder);
    for (size_t i = 0; i < f.count; i++)
        firsts += mt_gguf_is_first(f.files[i].name);
    for (size_t i = 0; ok && i < f.count; i++) {
        char label[MT_GGUF_LABEL], tagged[2 * MT_LIMIT_HUB_NAME], path[MT_LIMIT_PATH];

        if (!mt_gguf_is_first(f.files[i].name) || !mt_hub_join(path, folder, f.files[i].name))
            continue;
        mt_gguf_label(f.files[i].name, label);
        if (firsts > 1 && !*label)
            continue; /* no name means it */
        snprintf(tagged, sizeof(tagged), "%s%s%s", name, firsts > 1 ? ":" : "", firsts > 1 ? label : "");
        ok = add_gguf(s, tagged, path, revision);
    }
    mt_gguf_folder_free(&f);
    return ok;
}

/* Adds what a folder contains. */
static bool add(survey *s, const char *name, const char *folder, const char *revision)
{
    return mt_gguf_in(folder) ? add_quantisations(s, name, folder, revision)
                              : add_checkpoint(s, name, folder, revision);
}

/* Adds a GGUF file that is in a folder of models by itself; it is called by its name without the suffix. Shards have
   to be in a folder of their own. */
static bool add_file(survey *s, const char *folder, const char *owner, const char *file)
{
    char path[MT_LIMIT_PATH], id[MT_LIMIT_PATH];
    mt_hub_name name;
    size_t len;
    const char *stem = mt_gguf_stem(file, &len);

    if (!mt_gguf_is_first(file) || strcmp(stem + len, ".gguf") != 0 || !mt_hub_join(path, folder, file) ||
        snprintf(id, sizeof(id), "%s%s%.*s", owner, *owner ? "/" : "", (int)len, stem) >= MT_LIMIT_HUB_NAME ||
        !mt_hub_name_read(&name, id))
        return true;
    return add_gguf(s, id, path, "");
}

/* Adds models_dir/name and models_dir/owner/name. */
static bool add_folders(survey *s, const char *folder, const char *owner)
{
    bool ok;
    DIR *all = open_folder(folder, &ok, s->err);
    const char *entry;

    while (ok && (entry = next_entry(all))) {
        char path[MT_LIMIT_PATH], id[MT_LIMIT_PATH];
        mt_hub_name name;

        if (snprintf(id, sizeof(id), "%s%s%s", owner, *owner ? "/" : "", entry) >= MT_LIMIT_HUB_NAME ||
            !mt_hub_name_read(&name, id) || *name.revision || *name.tag || !mt_hub_join(path, folder, entry))
            continue;
        if (mt_gguf_named(entry)) {
            ok = add_file(s, folder, owner, entry);
            continue;
        }
        if (mt_hub_holds_model(path))
            ok = add(s, id, path, "");
        else if (!*owner)
            ok = add_folders(s, path, entry);
    }
    if (all)
        closedir(all);
    return ok;
}

/* Adds a download that has begun and has no model yet, so that it can be seen and removed. */
static bool add_begun(survey *s, const char *id, const char *model)
{
    return !has_file(model, "blobs") || add(s, id, model, "");
}

/* Adds the snapshots of a model in the cache. */
static bool add_snapshots(survey *s, const char *id, const char *model)
{
    char folder[MT_LIMIT_PATH], current[MT_LIMIT_PATH], path[MT_LIMIT_PATH];
    const char *commit;
    bool ok;
    DIR *all;

    if (!mt_hub_join(folder, model, "snapshots"))
        return true;
    if (!mt_hub_current(current, model))
        return add_begun(s, id, model);
    all = open_folder(folder, &ok, s->err);
    while (ok && (commit = next_entry(all))) {
        char name[MT_LIMIT_PATH];
        mt_hub_name read;

        if (!mt_hub_join(path, folder, commit) || !mt_hub_holds_model(path))
            continue;
        const bool plain = strcmp(path, current) == 0;
        snprintf(name, sizeof(name), "%s%s%s", id, plain ? "" : "@", plain ? "" : commit);
        if (mt_hub_name_read(&read, name))
            ok = add(s, name, path, commit);
    }
    if (all)
        closedir(all);
    return ok;
}

static bool add_cache(survey *s)
{
    bool ok;
    DIR *all = open_folder(s->place, &ok, s->err);
    const char *entry;

    while (ok && (entry = next_entry(all))) {
        char model[MT_LIMIT_PATH], id[MT_LIMIT_HUB_NAME];

        if (mt_hub_folder_id(id, entry) && mt_hub_join(model, s->place, entry))
            ok = add_snapshots(s, id, model);
    }
    if (all)
        closedir(all);
    return ok;
}

static bool add_manifest(void *arg, const char *name, const char *manifest)
{
    return add_gguf(arg, name, manifest, "");
}

/* Of equal names, the one that mt_hub_find finds comes first. */
static int by_name(const void *a, const void *b)
{
    const mt_local_model *x = a, *y = b;
    const int order = strcmp(x->name, y->name);

    return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

static void sort(mt_local *list)
{
    size_t kept = 0;

    if (list->count)
        qsort(list->at, list->count, sizeof(*list->at), by_name);
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || strcmp(list->at[kept - 1].name, list->at[i].name) != 0)
            list->at[kept++] = list->at[i];
    list->count = kept;
}

/* Adds what other programs keep. A store that may not be read hides none of the other models. */
static bool add_stores(survey *s, mt_hub_env *env)
{
    char store[MT_LIMIT_PATH];
    mt_error *err = s->err, why = {0};
    bool ok = true;

    s->err = &why;
    if (mt_store_lmstudio(store, env)) {
        s->place = mt_arena_strdup(s->list->arena, store);
        ok = add_folders(s, s->place, "");
    }
    if (mt_store_ollama(store, env) && (ok || why.code == MT_E_IO)) {
        s->place = mt_arena_strdup(s->list->arena, store);
        ok = mt_store_list(s->place, add_manifest, s);
    }
    s->err = err;
    if (!ok && why.code != MT_E_IO && err)
        *err = why;
    return ok || why.code == MT_E_IO;
}

bool mt_local_list(mt_local *list, const char *models_dir, mt_hub_env *env, mt_error *err)
{
    char cache[MT_LIMIT_PATH];
    survey s = {.list = list, .err = err};

    *list = (mt_local){.arena = mt_arena_new(0)};
    if (models_dir) {
        s.place = mt_arena_strdup(list->arena, models_dir);
        if (!add_folders(&s, s.place, ""))
            return false;
    }
    if (mt_hub_cache(cache, env)) {
        s.place = mt_arena_strdup(list->arena, cache);
        s.cached = true;
        if (!add_cache(&s))
            return false;
    }
    s.cached = true;
    if (!add_stores(&s, env))
        return false;
    sort(list);
    return true;
}

void mt_local_free(mt_local *list)
{
    mt_free(list->at);
    mt_arena_free(list->arena);
    *list = (mt_local){0};
}

const char *mt_local_abilities(unsigned can, char out[64])
{
    static const char *const words[] = {"text", "vision", "embeddings", "scores"};
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < MT_COUNT(words); i++)
        if (can >> i & 1)
            len += (size_t)snprintf(out + len, 64 - len, "%s%s", len ? ", " : "", words[i]);
    return out;
}
