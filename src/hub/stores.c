/* Models that other programs keep (stores.h). */
#include "hub/stores.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/limits.h"
#include "hub/limits.h"

#define LIBRARY "library" /* the owner of models that have none in their names */
#define SERVICE "/usr/share/ollama/.ollama/models"

/* Hosts whose models go by "owner/name" alone. */
static const char *const hosts[] = {"registry.ollama.ai", "hf.co", "huggingface.co"};

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool below_home(char path[MT_LIMIT_PATH], const char *name, mt_hub_env *env)
{
    const char *home = env("HOME");

    return home && *home && mt_hub_join(path, home, name) && is_folder(path);
}

bool mt_store_lmstudio(char path[MT_LIMIT_PATH], mt_hub_env *env)
{
    return below_home(path, ".lmstudio/models", env) || below_home(path, ".cache/lm-studio/models", env);
}

bool mt_store_ollama(char path[MT_LIMIT_PATH], mt_hub_env *env)
{
    const char *own = env("OLLAMA_MODELS");

    if (own && *own)
        return snprintf(path, MT_LIMIT_PATH, "%s", own) < MT_LIMIT_PATH && is_folder(path);
    if (below_home(path, ".ollama/models", env))
        return true;
    snprintf(path, MT_LIMIT_PATH, "%s", SERVICE);
    return env("HOME") && is_folder(path);
}

bool mt_store_manifest(char path[MT_LIMIT_PATH], const char *store, const mt_hub_name *name)
{
    struct stat st;

    if (*name->revision)
        return false;
    for (size_t i = 0; i < MT_COUNT(hosts); i++)
        if (snprintf(path, MT_LIMIT_PATH, "%s/manifests/%s/%s%s/%s", store, hosts[i], name->owned ? "" : LIBRARY "/",
                     name->id, *name->tag ? name->tag : "latest") < MT_LIMIT_PATH &&
            stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return true;
    return false;
}

/* A walk through a store: the folders from a host to a tag. */
typedef struct walk {
    mt_store_each *each;
    void *arg;
    const char *parts[4];
} walk;

/* Calls each for a manifest, unless the model has no valid name. */
static bool tell(const walk *w, const char *manifest)
{
    char text[4 * MT_LIMIT_HUB_NAME];
    const bool owned = strcmp(w->parts[1], LIBRARY) != 0;
    mt_hub_name name;

    const bool tagged = strcmp(w->parts[3], "latest") != 0;
    snprintf(text, sizeof(text), "%s%s%s%s%s", owned ? w->parts[1] : "", owned ? "/" : "", w->parts[2],
             tagged ? ":" : "", tagged ? w->parts[3] : "");
    return !mt_hub_name_read(&name, text) || w->each(w->arg, text, manifest);
}

static bool visit(walk *w, const char *folder, size_t depth)
{
    DIR *all = opendir(folder);
    const struct dirent *entry;
    bool ok = true;

    while (all && ok && (entry = readdir(all))) {
        char path[MT_LIMIT_PATH];

        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= MT_LIMIT_HUB_NAME ||
            !mt_hub_join(path, folder, entry->d_name))
            continue;
        w->parts[depth] = entry->d_name;
        if (depth == 3)
            ok = is_folder(path) || tell(w, path);
        else if (is_folder(path))
            ok = visit(w, path, depth + 1);
    }
    if (all)
        closedir(all);
    return ok;
}

bool mt_store_list(const char *store, mt_store_each *each, void *arg)
{
    for (size_t i = 0; i < MT_COUNT(hosts); i++) {
        walk w = {.each = each, .arg = arg, .parts = {hosts[i]}};
        char path[MT_LIMIT_PATH];

        if (snprintf(path, sizeof(path), "%s/manifests/%s", store, hosts[i]) < (int)sizeof(path) && !visit(&w, path, 1))
            return false;
    }
    return true;
}
