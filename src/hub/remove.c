/* Removes models (remove.h). Everything is opened from its folder down and never through a link, so that nothing
   outside is removed, whatever is there or put there meanwhile. */
#include "hub/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"
#include "hub/find.h"
#include "hub/known.h"
#include "hub/limits.h"
#include "hub/stores.h"
#include "hub/upload.h"
#include "weights/gguf_choice.h"

#define DEEPEST 16 /* deepest nesting of folders */

/* A removal under way. */
typedef struct removal {
    uint64_t freed;
    mt_error *err;
} removal;

static bool fail_system(const removal *r, const char *name)
{
    return mt_fail(r->err, MT_E_IO, "\"%s\" cannot be removed (%s): check who owns it and its permissions", name,
                   strerror(errno));
}

/* Opens a folder within another, not through a link. NULL where there is none; *fd is closed with it. */
static DIR *open_at(int folder, const char *name)
{
    const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *all = fd >= 0 ? fdopendir(fd) : NULL;

    if (fd >= 0 && !all)
        close(fd);
    return all;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool remove_file(removal *r, int folder, const char *name, const struct stat *st)
{
    if (unlinkat(folder, name, 0) != 0 && errno != ENOENT)
        return fail_system(r, name);
    if (S_ISREG(st->st_mode) && st->st_nlink == 1)
        r->freed += (uint64_t)st->st_size;
    return true;
}

/* Removes a file, a link, or a folder with its content. A missing one counts as removed. */
static bool remove_tree(removal *r, int folder, const char *name, unsigned depth)
{
    const struct dirent *entry;
    struct stat st;
    bool ok = true;
    DIR *all;

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || fail_system(r, name);
    if (!S_ISDIR(st.st_mode))
        return remove_file(r, folder, name, &st);
    if (depth == DEEPEST)
        return mt_fail(r->err, MT_E_TOO_LARGE, "\"%s\" lies more than %d folders deep: remove it by hand", name,
                       DEEPEST);
    all = open_at(folder, name);
    if (!all)
        return fail_system(r, name);
    while (ok && (entry = readdir(all)))
        ok = is_dots(entry->d_name) || remove_tree(r, dirfd(all), entry->d_name, depth + 1);
    closedir(all);
    return ok && (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT || fail_system(r, name));
}

/* The same for a path, of which the last part is removed. */
static bool remove_path(removal *r, const char *path)
{
    char folder[MT_LIMIT_PATH];
    const char *slash = strrchr(path, '/');
    bool ok;
    int fd;

    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || fail_system(r, folder);
    ok = remove_tree(r, fd, slash + 1, 0);
    close(fd);
    return ok;
}

/* Whether a process downloads the model: the hub's tools and motet hold a lock for each file meanwhile. */
static bool is_locked(const char *locks)
{
    DIR *all = open_at(AT_FDCWD, locks);
    const struct dirent *entry;
    bool locked = false;

    while (all && !locked && (entry = readdir(all))) {
        const int fd = openat(dirfd(all), entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

        locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (fd >= 0)
            close(fd);
    }
    if (all)
        closedir(all);
    return locked;
}

/* Names of blobs that links in snapshots lead to. */
typedef struct blobs {
    mt_arena *arena;
    const char **names;
    size_t count, cap;
} blobs;

/* Notes the blobs that a snapshot's links lead to. */
static void note_links(blobs *b, int folder, const char *name, unsigned depth)
{
    DIR *all = depth < DEEPEST ? open_at(folder, name) : NULL;
    const struct dirent *entry;

    while (all && (entry = readdir(all))) {
        char target[MT_LIMIT_PATH];
        const ssize_t len = readlinkat(dirfd(all), entry->d_name, target, sizeof(target) - 1);

        if (len < 0) {
            if (!is_dots(entry->d_name))
                note_links(b, dirfd(all), entry->d_name, depth + 1);
            continue;
        }
        target[len] = '\0';
        b->names = mt_grow(b->names, &b->cap, b->count + 1, sizeof(*b->names));
        b->names[b->count++] = mt_arena_strdup(b->arena, strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
    }
    if (all)
        closedir(all);
}

static int by_string(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Removes the blobs that no snapshot uses. */
static bool remove_unreferred(removal *r, int model, const blobs *b)
{
    DIR *all = open_at(model, "blobs");
    const struct dirent *entry;
    bool ok = true;

    while (ok && all && (entry = readdir(all))) {
        const char *name = entry->d_name;

        if (!is_dots(name) && !(b->count && bsearch(&name, b->names, b->count, sizeof(*b->names), by_string)))
            ok = remove_tree(r, dirfd(all), name, 0);
    }
    if (all)
        closedir(all);
    return ok;
}

/* Removes branches and tags that mean the commit. */
static bool remove_refs(removal *r, int folder, const char *name, const char *commit, unsigned depth)
{
    DIR *all = depth < DEEPEST ? open_at(folder, name) : NULL;
    const struct dirent *entry;
    bool ok = true;

    while (ok && all && (entry = readdir(all))) {
        char text[MT_LIMIT_HUB_NAME];
        int fd;
        ssize_t len;

        if (is_dots(entry->d_name))
            continue;
        fd = openat(dirfd(all), entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
        if (fd >= 0)
            close(fd);
        if (len < 0) {
            ok = remove_refs(r, dirfd(all), entry->d_name, commit, depth + 1);
            continue;
        }
        text[len] = '\0';
        text[strcspn(text, " \r\n")] = '\0';
        if (strcmp(text, commit) == 0)
            ok = remove_tree(r, dirfd(all), entry->d_name, 0);
    }
    if (all)
        closedir(all);
    return ok;
}

/* Removes the blobs that no snapshot uses any more. */
static bool sweep(removal *r, int model)
{
    blobs left = {.arena = mt_arena_new(0)};
    bool ok;

    note_links(&left, model, "snapshots", 0);
    if (left.count)
        qsort(left.names, left.count, sizeof(*left.names), by_string);
    ok = remove_unreferred(r, model, &left);
    mt_free(left.names);
    mt_arena_free(left.arena);
    return ok;
}

/* Removes one snapshot. */
static bool remove_snapshot(removal *r, int model, const char *commit)
{
    DIR *snapshots = open_at(model, "snapshots");
    bool ok = snapshots && remove_refs(r, model, "refs", commit, 0) && remove_tree(r, dirfd(snapshots), commit, 0) &&
              sweep(r, model);

    if (snapshots)
        closedir(snapshots);
    return ok;
}

static bool is_safetensors(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && strcmp(dot, ".safetensors") == 0;
}

/* Removes the GGUF files of a quantisation from a folder and those within it. *found: there were some; *rest: there are
   other models. */
static bool remove_tagged(removal *r, int folder, const char *name, const char *tag, bool *found, bool *rest,
                          unsigned depth)
{
    DIR *all = depth < DEEPEST ? open_at(folder, name) : NULL;
    const struct dirent *entry;
    bool ok = true;

    while (ok && all && (entry = readdir(all))) {
        const bool tagged = mt_gguf_named(entry->d_name) && mt_gguf_has_label(entry->d_name, tag) &&
                            !mt_gguf_is_projector(entry->d_name);

        if (is_dots(entry->d_name))
            continue;
        *found |= tagged;
        *rest |= !tagged && (mt_gguf_is_first(entry->d_name) || is_safetensors(entry->d_name));
        ok = tagged ? remove_tree(r, dirfd(all), entry->d_name, 0)
                    : remove_tagged(r, dirfd(all), entry->d_name, tag, found, rest, depth + 1);
    }
    if (all)
        closedir(all);
    return ok;
}

/* Removes one quantisation of a model: of all revisions, where it is in the cache. */
static bool remove_quantisation(removal *r, const mt_hub_name *name, const char *model, bool cached, bool *rest)
{
    const int fd = open(model, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool ok, found = false;

    if (fd < 0)
        return fail_system(r, model);
    ok = remove_tagged(r, fd, cached ? "snapshots" : ".", name->tag, &found, rest, 0) &&
         (found || mt_fail(r->err, MT_E_NOT_FOUND, "\"%s\" has no quantisation \"%s\" here: see motet list", name->id,
                           name->tag)) &&
         (!cached || sweep(r, fd));
    close(fd);
    return ok;
}

static bool has_snapshots(int model)
{
    DIR *all = open_at(model, "snapshots");
    const struct dirent *entry;
    bool some = false;

    while (all && !some && (entry = readdir(all)))
        some = !is_dots(entry->d_name);
    if (all)
        closedir(all);
    return some;
}

static bool remove_revision(removal *r, const char *model, const char *folder, bool *rest)
{
    const int fd = open(model, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool ok;

    if (fd < 0)
        return fail_system(r, model);
    ok = remove_snapshot(r, fd, strrchr(folder, '/') + 1);
    *rest = has_snapshots(fd);
    close(fd);
    return ok;
}

/* model: its folder in the cache. */
static bool remove_cached(removal *r, const mt_hub_name *name, const char *model, mt_hub_env *env)
{
    char cache[MT_LIMIT_PATH], id[MT_LIMIT_PATH], locks[MT_LIMIT_PATH];
    bool rest = false, ok = true;

    if (!mt_hub_cache(cache, env) || !mt_hub_folder(id, "", name->id) ||
        snprintf(locks, sizeof(locks), "%s/.locks%s", cache, id) >= (int)sizeof(locks))
        return mt_fail(r->err, MT_E_TOO_LARGE, "the path of \"%s\" is too long: remove it by hand", name->id);
    if (is_locked(locks))
        return mt_fail(r->err, MT_E_BUSY, "\"%s\" is being downloaded: end that first", name->id);
    if (*name->tag) {
        ok = remove_quantisation(r, name, model, true, &rest);
    } else if (*name->revision) {
        char *folder = mt_hub_find_cached(name, cache);

        if (!folder)
            return mt_fail(r->err, MT_E_NOT_FOUND, "\"%s\" has no revision \"%s\" here: see motet list", name->id,
                           name->revision);
        ok = remove_revision(r, model, folder, &rest);
        mt_free(folder);
    }
    return ok && (rest || (remove_path(r, model) && remove_path(r, locks)));
}

static bool fail_absent(const mt_hub_name *name, const char *cache, mt_hub_env *env, mt_error *err)
{
    char store[MT_LIMIT_PATH], path[MT_LIMIT_PATH];

    if (mt_store_lmstudio(store, env) && mt_hub_find_below(name, store, path))
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "\"%s\" belongs to LM Studio, whose files motet only reads: remove it there", name->id);
    if (mt_store_ollama(store, env) && mt_store_manifest(path, store, name))
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "\"%s\" belongs to Ollama, whose files motet only reads: ollama rm %s%s%s", name->id, name->id,
                       *name->tag ? ":" : "", name->tag);
    return mt_fail(err, MT_E_NOT_FOUND, "\"%s\" is not a model in \"%s\": see motet list", name->id, cache);
}

/* Where a model is: below models_dir, or its folder in the cache. False: *err. */
static bool locate(char path[MT_LIMIT_PATH], bool *cached, const mt_hub_name *name, const char *models_dir,
                   mt_hub_env *env, mt_error *err)
{
    char cache[MT_LIMIT_PATH] = "";
    struct stat st;

    *cached = false;
    if (models_dir && !*name->revision && mt_hub_find_below(name, models_dir, path))
        return true;
    *cached = true;
    return (mt_hub_cache(cache, env) && mt_hub_folder(path, cache, name->id) && lstat(path, &st) == 0) ||
           fail_absent(name, cache, env, err);
}

/* The same by the name as given, which may be short (hub/known.h). */
static bool find_removable(char path[MT_LIMIT_PATH], bool *cached, mt_hub_name *name, const char *given,
                           const char *models_dir, mt_hub_env *env, mt_error *err)
{
    if (!mt_hub_name_read(name, given))
        return mt_fail(err, MT_E_INVALID, "\"%.200s\" is no model's name: see motet list", given);
    if (locate(path, cached, name, models_dir, env, err))
        return true;
    return mt_hub_known(given) && mt_hub_name_read_known(name, given) &&
           locate(path, cached, name, models_dir, env, err);
}

bool mt_local_removable(const char *name, const char *models_dir, mt_hub_env *env, mt_hub_name *found, mt_error *err)
{
    char path[MT_LIMIT_PATH];
    bool cached;

    return find_removable(path, &cached, found, name, models_dir, env, err);
}

bool mt_remove_path(const char *path, mt_error *err)
{
    return remove_path(&(removal){.err = err}, path);
}

/* Whether a path without links is a folder's or lies in it. Folders are compared by device and inode: the same one may
   have several paths, where it is mounted twice or letters have no case. */
static bool is_within(const char *path, const char *folder)
{
    char part[PATH_MAX];
    struct stat top, st;

    if (stat(folder, &top) != 0)
        return false;
    snprintf(part, sizeof(part), "%s", path);
    while (*part) {
        if (stat(part, &st) == 0 && st.st_dev == top.st_dev && st.st_ino == top.st_ino)
            return true;
        *strrchr(part, '/') = '\0';
    }
    return false;
}

/* Whether an entry of a folder leads into another one. */
static bool links_into(const char *folder, const char *other)
{
    DIR *all = opendir(folder);
    const struct dirent *entry;
    bool found = false;

    while (all && !found && (entry = readdir(all))) {
        char path[MT_LIMIT_PATH], real[PATH_MAX];

        found = !is_dots(entry->d_name) && mt_hub_join(path, folder, entry->d_name) && realpath(path, real) &&
                is_within(real, other);
    }
    if (all)
        closedir(all);
    return found;
}

/* Whether a path is that of a GGUF file in the folder that is of another quantisation than the tag's, and so stays. */
static bool is_of_other_tag(const char *path, const char *folder, const char *tag)
{
    char parent[MT_LIMIT_PATH], real[PATH_MAX];
    const char *name = strrchr(path, '/');

    if (!*tag || !name || !mt_gguf_named(name + 1) || mt_gguf_has_label(name + 1, tag))
        return false;
    return snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path) < (int)sizeof(parent) &&
           realpath(parent, real) && is_within(real, folder);
}

bool mt_local_affects(const char *name, const char *models_dir, mt_hub_env *env, const char *path)
{
    char removed[MT_LIMIT_PATH], cache[MT_LIMIT_PATH], used[PATH_MAX];
    mt_hub_name read;
    bool cached;

    if (!find_removable(removed, &cached, &read, name, models_dir, env, NULL) || !realpath(path, used))
        return false;
    if (cached && *read.revision && is_within(used, removed)) { /* other revisions keep the files that they use */
        char *folder = mt_hub_cache(cache, env) ? mt_hub_find_cached(&read, cache) : NULL;
        const bool found = folder && is_within(used, folder);

        mt_free(folder);
        return found;
    }
    return !is_of_other_tag(path, removed, read.tag) && (is_within(used, removed) || links_into(used, removed));
}

bool mt_local_remove(const char *name, const char *models_dir, mt_hub_env *env, uint64_t *freed, mt_error *err)
{
    char path[MT_LIMIT_PATH];
    removal r = {.err = err};
    mt_hub_name read;
    bool ok, cached, rest = false;

    *freed = 0;
    ok = find_removable(path, &cached, &read, name, models_dir, env, err);
    if (ok && cached)
        ok = remove_cached(&r, &read, path, env);
    else if (ok && *read.tag)
        ok = remove_quantisation(&r, &read, path, false, &rest) && (rest || remove_path(&r, path));
    else if (ok)
        ok = remove_path(&r, path);
    *freed = r.freed;
    if (ok && cached && mt_hub_cache(path, env))
        mt_upload_sweep(path); /* the model may have been made of uploaded files */
    return ok;
}
