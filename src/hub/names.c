/* Names of models and the hub's folders (names.h). */
#include "hub/names.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "base/limits.h"
#include "hub/limits.h"

#define PREFIX "models--"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

/* The number of parts between slashes; 0 unless each consists of LETTERS and does not begin with a dot. */
static size_t count_parts(const char *text, size_t len)
{
    size_t parts = 0;

    for (size_t at = 0; at <= len; parts++) {
        size_t part = strspn(text + at, LETTERS);

        part = part < len - at ? part : len - at;
        if (part == 0 || text[at] == '.' || (at + part < len && text[at + part] != '/'))
            return 0;
        at += part + 1;
    }
    return parts;
}

/* Skips the hub's address, which people copy with a name. */
static const char *without_host(const char *text)
{
    static const char *const hosts[] = {"https://huggingface.co/", "huggingface.co/", "https://hf.co/", "hf.co/"};

    for (size_t i = 0; i < MT_COUNT(hosts); i++)
        if (strncmp(text, hosts[i], strlen(hosts[i])) == 0)
            return text + strlen(hosts[i]);
    return text;
}

bool mt_hub_name_read(mt_hub_name *out, const char *text)
{
    text = without_host(text);
    const size_t len = strcspn(text, "@:"), parts = count_parts(text, len);
    const char *revision = text[len] == '@' ? text + len + 1 : "", *rest = text + len + strcspn(text + len, ":");
    const size_t revised = strcspn(revision, ":");
    const char *tag = *rest ? rest + 1 : "";

    *out = (mt_hub_name){.owned = parts == 2};
    if (parts < 1 || parts > 2 || len >= sizeof(out->id) || revised >= sizeof(out->revision) ||
        strlen(tag) >= sizeof(out->tag))
        return false;
    if ((text[len] == '@' && !count_parts(revision, revised)) || (*rest && count_parts(tag, strlen(tag)) != 1))
        return false;
    memcpy(out->id, text, len);
    memcpy(out->revision, revision, revised);
    if (strcmp(tag, "latest") != 0) /* Ollama's word for a model without a tag */
        memcpy(out->tag, tag, strlen(tag));
    return true;
}

bool mt_hub_is_commit(const char *text)
{
    size_t digits = 0;

    while (mt_hex_digit(text[digits]) >= 0)
        digits++;
    return digits == MT_HUB_COMMIT && text[digits] == '\0';
}

/* The value of the first variable that is set, followed by its suffix and name. */
static bool find_place(char path[MT_LIMIT_PATH], const char *const (*places)[2], size_t count, const char *name,
                       mt_hub_env *env)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = env(places[i][0]), *home = env("HOME");
        const bool short_form = value && value[0] == '~' && (value[1] == '/' || value[1] == '\0') && home;

        if (value && *value)
            return snprintf(path, MT_LIMIT_PATH, "%s%s%s%s", short_form ? home : "", value + short_form, places[i][1],
                            name) < MT_LIMIT_PATH;
    }
    return false;
}

bool mt_hub_cache(char path[MT_LIMIT_PATH], mt_hub_env *env)
{
    static const char *const places[][2] = {{"HF_HUB_CACHE", ""},
                                            {"HUGGINGFACE_HUB_CACHE", ""}, /* the older name */
                                            {"HF_HOME", "/hub"},
                                            {"XDG_CACHE_HOME", "/huggingface/hub"},
                                            {"HOME", "/.cache/huggingface/hub"}};

    return find_place(path, places, MT_COUNT(places), "", env);
}

bool mt_hub_home_file(char path[MT_LIMIT_PATH], const char *name, mt_hub_env *env)
{
    static const char *const places[][2] = {
        {"HF_HOME", "/"}, {"XDG_CACHE_HOME", "/huggingface/"}, {"HOME", "/.cache/huggingface/"}};

    return find_place(path, places, MT_COUNT(places), name, env);
}

bool mt_hub_folder(char path[MT_LIMIT_PATH], const char *cache, const char *id)
{
    const size_t owner = strcspn(id, "/");

    if (!id[owner])
        return snprintf(path, MT_LIMIT_PATH, "%s/" PREFIX "%s", cache, id) < MT_LIMIT_PATH;
    return snprintf(path, MT_LIMIT_PATH, "%s/" PREFIX "%.*s--%s", cache, (int)owner, id, id + owner + 1) <
           MT_LIMIT_PATH;
}

bool mt_hub_folder_id(char id[MT_LIMIT_HUB_NAME], const char *folder)
{
    const char *rest = folder + strlen(PREFIX), *between;
    mt_hub_name name;

    if (strncmp(folder, PREFIX, strlen(PREFIX)) != 0)
        return false;
    between = strstr(rest, "--");
    if (snprintf(id, MT_LIMIT_HUB_NAME, "%.*s%s%s", (int)(between ? between - rest : (ptrdiff_t)strlen(rest)), rest,
                 between ? "/" : "", between ? between + 2 : "") >= MT_LIMIT_HUB_NAME)
        return false;
    return mt_hub_name_read(&name, id) && strcmp(name.id, id) == 0 && !(between && strstr(between + 2, "--"));
}

bool mt_hub_join(char path[MT_LIMIT_PATH], const char *folder, const char *name)
{
    return snprintf(path, MT_LIMIT_PATH, "%s/%s", folder, name) < MT_LIMIT_PATH;
}
