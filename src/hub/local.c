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
#include "hub/find.h"
#include "models/bert.h"
#include "models/spec.h"
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
        ok = mt_bert_spec_read(&bert, config, err);
        model->can = !ok ? 0 : bert.scores ? MT_LOCAL_SCORE : MT_LOCAL_EMBED;
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

/* Adds a model's folder to the list. */
static bool add(survey *s, const char *name, const char *folder, const char *revision)
{
    mt_local *list = s->list;
    mt_error why = {0};
    size_t files = 0;

    if (list->count == MT_LIMIT_LOCAL_MODELS)
        return mt_fail(s->err, MT_E_TOO_LARGE, "\"%s\" holds more than %d models: remove some of them", s->place,
                       MT_LIMIT_LOCAL_MODELS);
    list->at = mt_grow(list->at, &s->cap, list->count + 1, sizeof(*list->at));
    mt_local_model *model = &list->at[list->count++];
    *model = (mt_local_model){.name = mt_arena_strdup(list->arena, name),
                              .folder = mt_arena_strdup(list->arena, folder),
                              .place = s->place,
                              .revision = mt_arena_strdup(list->arena, revision),
                              .family = "",
                              .problem = "",
                              .cached = s->cached};
    measure(model, folder, 0, &files);
    if (!look_inside(model, list->arena, &why))
        model->problem = mt_arena_strdup(list->arena, why.text);
    return true;
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
            !mt_hub_name_read(&name, id) || *name.revision || !mt_hub_join(path, folder, entry))
            continue;
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

/* Of equal names, the one that mt_hub_find finds comes first. */
static int by_name(const void *a, const void *b)
{
    const mt_local_model *x = a, *y = b;
    const int order = strcmp(x->name, y->name);

    return order ? order : (int)x->cached - (int)y->cached;
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
