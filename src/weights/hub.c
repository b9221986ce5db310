#include "weights/hub.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"

#define PATH_BYTES 4096
#define COMMIT_BYTES 64

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A folder that somebody began to download has neither of these. */
static bool holds_model(const char *folder)
{
    static const char *const files[] = {"config.json", "tokenizer.json"};
    char path[PATH_BYTES];
    struct stat st;

    for (size_t i = 0; i < MT_COUNT(files); i++)
        if (snprintf(path, sizeof(path), "%s/%s", folder, files[i]) < (int)sizeof(path) && stat(path, &st) == 0)
            return true;
    return false;
}

/* "owner/name": letters, digits, dots, dashes and underscores on both sides of one slash. */
static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const size_t owner = strspn(text, letters);

    if (owner == 0 || text[0] == '.' || text[owner] != '/')
        return false;
    const char *name = text + owner + 1;
    const size_t len = strspn(name, letters);
    return len > 0 && name[0] != '.' && name[len] == '\0';
}

static bool cache_folder(char path[PATH_BYTES], char *(*env)(const char *name))
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};

    for (size_t i = 0; i < MT_COUNT(places); i++) {
        const char *value = env(places[i].variable);

        if (value && *value)
            return snprintf(path, PATH_BYTES, "%s%s", value, places[i].below) < PATH_BYTES;
    }
    return false;
}

/* What refs/main says is the one that was downloaded last by its branch. */
static bool read_commit(const char *model, char commit[COMMIT_BYTES])
{
    char path[PATH_BYTES];
    FILE *file;

    if (snprintf(path, sizeof(path), "%s/refs/main", model) >= (int)sizeof(path))
        return false;
    file = fopen(path, "r");
    if (!file)
        return false;
    const size_t len = fread(commit, 1, COMMIT_BYTES - 1, file);
    fclose(file);
    commit[len] = '\0';
    commit[strcspn(commit, " \r\n")] = '\0';
    return commit[0] && commit[0] != '.' && !strchr(commit, '/');
}

static bool snapshot(const char *model, const char *commit, char out[PATH_BYTES])
{
    return snprintf(out, PATH_BYTES, "%s/snapshots/%s", model, commit) < PATH_BYTES && holds_model(out);
}

/* Without a branch, as after a download by commit: the newest of all that hold a model. */
static bool newest_snapshot(const char *model, char out[PATH_BYTES])
{
    char path[PATH_BYTES], folder[PATH_BYTES];
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
            memcpy(out, path, PATH_BYTES);
        }
        found = true;
    }
    if (all)
        closedir(all);
    return found;
}

static bool find_in_cache(const char *name, const char *cache, char out[PATH_BYTES])
{
    const size_t owner = strcspn(name, "/");
    char model[PATH_BYTES], commit[COMMIT_BYTES];

    if (snprintf(model, sizeof(model), "%s/models--%.*s--%s", cache, (int)owner, name, name + owner + 1) >=
        (int)sizeof(model))
        return false;
    return (read_commit(model, commit) && snapshot(model, commit, out)) || newest_snapshot(model, out);
}

static bool find_below(const char *name, const char *models_dir, char out[PATH_BYTES])
{
    return (snprintf(out, PATH_BYTES, "%s/%s", models_dir, name) < PATH_BYTES && holds_model(out)) ||
           (snprintf(out, PATH_BYTES, "%s/%s", models_dir, strchr(name, '/') + 1) < PATH_BYTES && holds_model(out));
}

char *mt_hub_find(const char *model, const char *models_dir, char *(*env)(const char *name), mt_error *err)
{
    char cache[PATH_BYTES] = "", found[PATH_BYTES];

    if (is_folder(model) || !is_name(model))
        return mt_strdup(model);
    if (models_dir && find_below(model, models_dir, found))
        return mt_strdup(found);
    if (cache_folder(cache, env) && find_in_cache(model, cache, found))
        return mt_strdup(found);
    mt_fail(err, MT_E_NOT_FOUND,
            "\"%s\" is neither a folder here nor a model in \"%s\"%s%s%s; download it with: hf download %s", model,
            models_dir ? models_dir : cache, models_dir ? " or \"" : "", models_dir ? cache : "",
            models_dir ? "\"" : "", model);
    return NULL;
}
