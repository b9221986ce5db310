/* Finds models by name (find.h). */
#include "hub/find.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "hub/known.h"
#include "hub/limits.h"
#include "hub/stores.h"
#include "weights/gguf_place.h"

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* Whether it is a model's path rather than its name: a folder, a GGUF file, a manifest. */
static bool is_path(const char *model)
{
    struct stat st;

    return stat(model, &st) == 0 && (S_ISDIR(st.st_mode) || mt_gguf_named(model) || mt_gguf_is_manifest(model));
}

bool mt_hub_holds_model(const char *folder)
{
    static const char *const files[] = {"config.json", "tokenizer.json"};
    char path[MT_LIMIT_PATH];
    struct stat st;

    for (size_t i = 0; i < MT_COUNT(files); i++)
        if (mt_hub_join(path, folder, files[i]) && stat(path, &st) == 0)
            return true;
    return mt_gguf_in(folder);
}

/* The commit that a branch or tag meant when it was last downloaded. */
static bool read_commit(const char *model, const char *ref, char commit[MT_LIMIT_HUB_NAME])
{
    char path[MT_LIMIT_PATH];
    mt_hub_name name;
    FILE *file;

    if (snprintf(path, sizeof(path), "%s/refs/%s", model, ref) >= (int)sizeof(path))
        return false;
    file = fopen(path, "r");
    if (!file)
        return false;
    const size_t len = fread(commit, 1, MT_LIMIT_HUB_NAME - 1, file);
    fclose(file);
    commit[len] = '\0';
    commit[strcspn(commit, " \r\n")] = '\0';
    return mt_hub_name_read(&name, commit) && !name.owned && !*name.revision &&
           !*name.tag; /* a plain name, which leads to no other folder */
}

static bool snapshot(const char *model, const char *commit, char out[MT_LIMIT_PATH])
{
    return snprintf(out, MT_LIMIT_PATH, "%s/snapshots/%s", model, commit) < MT_LIMIT_PATH && mt_hub_holds_model(out);
}

/* Without a branch, as after a download by commit: the newest snapshot that contains a model. */
static bool newest_snapshot(const char *model, char out[MT_LIMIT_PATH])
{
    char path[MT_LIMIT_PATH], folder[MT_LIMIT_PATH];
    struct dirent *entry;
    time_t newest = 0;
    bool found = false;
    DIR *all;

    if (snprintf(folder, sizeof(folder), "%s/snapshots", model) >= (int)sizeof(folder))
        return false;
    all = opendir(folder);
    while (all && (entry = readdir(all))) {
        struct stat st;

        if (entry->d_name[0] == '.' || !snapshot(model, entry->d_name, path) || stat(path, &st) != 0)
            continue;
        if (!found || st.st_mtime > newest) {
            newest = st.st_mtime;
            memcpy(out, path, MT_LIMIT_PATH);
        }
        found = true;
    }
    if (all)
        closedir(all);
    return found;
}

bool mt_hub_current(char out[MT_LIMIT_PATH], const char *model)
{
    char commit[MT_LIMIT_HUB_NAME];

    return (read_commit(model, "main", commit) && snapshot(model, commit, out)) || newest_snapshot(model, out);
}

static bool find_in_cache(const mt_hub_name *name, const char *cache, char out[MT_LIMIT_PATH])
{
    char model[MT_LIMIT_PATH], commit[MT_LIMIT_HUB_NAME];

    if (!mt_hub_folder(model, cache, name->id))
        return false;
    if (!*name->revision)
        return mt_hub_current(out, model);
    return (read_commit(model, name->revision, commit) && snapshot(model, commit, out)) ||
           snapshot(model, name->revision, out);
}

char *mt_hub_find_cached(const mt_hub_name *name, const char *cache)
{
    char found[MT_LIMIT_PATH];

    return find_in_cache(name, cache, found) ? mt_strdup(found) : NULL;
}

/* A model's folder, or its GGUF file, by its name without the tag. */
static bool find_entry(const char *id, const char *models_dir, char out[MT_LIMIT_PATH])
{
    if (mt_hub_join(out, models_dir, id) && mt_hub_holds_model(out))
        return true;
    return snprintf(out, MT_LIMIT_PATH, "%s/%s.gguf", models_dir, id) < MT_LIMIT_PATH && exists(out);
}

/* Below a folder of models there are no revisions. */
bool mt_hub_find_below(const mt_hub_name *name, const char *models_dir, char out[MT_LIMIT_PATH])
{
    const char *slash = strchr(name->id, '/');

    return !*name->revision &&
           (find_entry(name->id, models_dir, out) || (slash && find_entry(slash + 1, models_dir, out)));
}

/* Of a folder with GGUF files, the file that the tag chooses; any other folder has no tags. */
static bool choose(const mt_hub_name *name, char path[MT_LIMIT_PATH], mt_error *err)
{
    mt_gguf_place place;
    mt_error why = {0};

    if (mt_gguf_locate(&place, path, name->tag, &why)) {
        memcpy(path, place.model, MT_LIMIT_PATH);
        return true;
    }
    if (why.code != MT_OK && err)
        *err = why;
    return why.code == MT_OK && !*name->tag;
}

/* Looks in every place that models are kept in. */
static bool find_anywhere(const mt_hub_name *name, const char *models_dir, mt_hub_env *env, char out[MT_LIMIT_PATH],
                          mt_error *err)
{
    char store[MT_LIMIT_PATH];

    if (models_dir && mt_hub_find_below(name, models_dir, out) && choose(name, out, err))
        return true;
    if (mt_hub_cache(store, env) && find_in_cache(name, store, out) && choose(name, out, err))
        return true;
    if (mt_store_lmstudio(store, env) && mt_hub_find_below(name, store, out) && choose(name, out, err))
        return true;
    return mt_store_ollama(store, env) && mt_store_manifest(out, store, name);
}

/* A name without an owner that is not here: says which short name it is, or is nearest to. False: it is none. */
static bool fail_short(const char *model, const char *known, mt_error *err)
{
    mt_nearest nearest;

    if (known)
        mt_fail(err, MT_E_NOT_FOUND, "\"%s\" is short for \"%s\", which is not here: download it with motet pull %s",
                model, known, model);
    mt_nearest_init(&nearest, model);
    for (size_t i = 0; !known && i < mt_hub_short_count; i++)
        mt_nearest_offer(&nearest, mt_hub_shorts[i].name);
    if (nearest.best)
        mt_fail(err, MT_E_NOT_FOUND,
                "\"%s\" is neither a folder here nor a model's name: did you mean \"%s\", of motet list --known?",
                model, nearest.best);
    return known || nearest.best;
}

char *mt_hub_find(const char *model, const char *models_dir, mt_hub_env *env, mt_error *err)
{
    char cache[MT_LIMIT_PATH] = "", found[MT_LIMIT_PATH];
    const char *known = mt_hub_known(model);
    mt_error why = {0};
    mt_hub_name name;

    if (is_path(model) || !mt_hub_name_read(&name, model))
        return mt_strdup(model);
    if (find_anywhere(&name, models_dir, env, found, &why))
        return mt_strdup(found);
    if (why.code != MT_OK) {
        mt_fail(err, why.code, "\"%s\": %s", name.id, why.text);
        return NULL;
    }
    if (known && mt_hub_name_read(&name, known) && find_anywhere(&name, models_dir, env, found, &why))
        return mt_strdup(found);
    if (why.code != MT_OK) {
        mt_fail(err, why.code, "\"%s\": %s", name.id, why.text);
        return NULL;
    }
    if ((known || !name.owned) && !exists(model) && fail_short(model, known, err))
        return NULL;
    if (!name.owned && !*name.tag)
        return mt_strdup(model);
    (void)mt_hub_cache(cache, env);
    mt_fail(err, MT_E_NOT_FOUND, "\"%s\" is neither a folder here nor a model in \"%s\"%s%s%s; %s%s", model,
            models_dir ? models_dir : cache, models_dir ? " or \"" : "", models_dir ? cache : "",
            models_dir ? "\"" : "",
            name.owned ? "download it with: motet pull " : "motet list --known has the short names for motet pull",
            name.owned ? model : "");
    return NULL;
}
