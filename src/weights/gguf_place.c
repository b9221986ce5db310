/* Finds the GGUF files of a model (gguf_place.h). */
#include "weights/gguf_place.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/json_tree.h"
#include "weights/gguf_choice.h"

#define MANIFESTS "/manifests/"
#define KIND "application/vnd.ollama.image."

/* The GGUF files of a folder. */
typedef struct folder {
    mt_gguf_file *files;
    size_t count, cap;
    bool safetensors; /* it has weights of that kind, too */
    mt_arena *arena;
} folder;

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), tail = strlen(end);

    return len >= tail && strcmp(text + len - tail, end) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mt_gguf_file *)a)->name, ((const mt_gguf_file *)b)->name);
}

static void read_folder(folder *f, const char *path)
{
    DIR *all = opendir(path);
    const struct dirent *entry;

    *f = (folder){.arena = mt_arena_new(0)};
    while (all && (entry = readdir(all)) && f->count < MT_LIMIT_LOCAL_FILES) {
        char at[MT_LIMIT_PATH];
        struct stat st;

        f->safetensors |= ends_with(entry->d_name, ".safetensors");
        if (entry->d_name[0] == '.' || !mt_gguf_named(entry->d_name) ||
            snprintf(at, sizeof(at), "%s/%s", path, entry->d_name) >= (int)sizeof(at) || stat(at, &st) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        f->files = mt_grow(f->files, &f->cap, f->count + 1, sizeof(*f->files));
        f->files[f->count++] = (mt_gguf_file){mt_arena_strdup(f->arena, entry->d_name), (uint64_t)st.st_size};
    }
    if (all)
        closedir(all);
    if (f->count)
        qsort(f->files, f->count, sizeof(*f->files), by_name);
}

static void free_folder(folder *f)
{
    mt_free(f->files);
    mt_arena_free(f->arena);
}

static bool join(char out[MT_LIMIT_PATH], const char *dir, const char *name, mt_error *err)
{
    return snprintf(out, MT_LIMIT_PATH, "%s/%s", dir, name) < MT_LIMIT_PATH ||
           mt_fail(err, MT_E_TOO_LARGE, "the path of \"%.100s\" is too long: move it up", name);
}

static bool add_projector(mt_gguf_place *out, const folder *f, const char *dir, mt_error *err)
{
    const size_t at = mt_gguf_choose_projector(f->files, f->count);

    return at == f->count || join(out->projector, dir, f->files[at].name, err);
}

static bool locate_file(mt_gguf_place *out, const char *path, mt_error *err)
{
    const char *slash = strrchr(path, '/');
    char dir[MT_LIMIT_PATH];
    folder f;

    if (snprintf(out->model, sizeof(out->model), "%s", path) >= (int)sizeof(out->model))
        return mt_fail(err, MT_E_TOO_LARGE, "the path of the GGUF file is too long: move it up");
    snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    read_folder(&f, *dir ? dir : "/");
    const bool ok = add_projector(out, &f, *dir ? dir : "/", err);
    free_folder(&f);
    return ok;
}

/* The memory that motet serve would take: three quarters of the machine's. */
static uint64_t allowed_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4 * 3;
}

static bool locate_folder(mt_gguf_place *out, const char *path, const char *tag, mt_error *err)
{
    size_t chosen = 0;
    folder f;
    bool ok;

    read_folder(&f, path);
    if (f.count == 0 || f.safetensors) {
        free_folder(&f);
        return false;
    }
    ok = mt_gguf_choose(f.files, f.count, tag, allowed_memory(), &chosen, err) &&
         join(out->model, path, f.files[chosen].name, err) && add_projector(out, &f, path, err);
    free_folder(&f);
    return ok;
}

static const char *find_root_end(const char *path)
{
    const char *end = NULL;

    for (const char *at = path; (at = strstr(at, MANIFESTS)); at++)
        end = at;
    return end;
}

bool mt_gguf_is_manifest(const char *path)
{
    const char *end = find_root_end(path);
    size_t slashes = 0;

    for (const char *c = end ? end + strlen(MANIFESTS) : ""; *c; c++)
        slashes += *c == '/';
    return end && slashes == 3;
}

/* Writes the path of the blob "sha256:..." of the store. */
static bool blob_path(char out[MT_LIMIT_PATH], const char *manifest, const char *digest, mt_error *err)
{
    const char *end = find_root_end(manifest);
    size_t digits = 0;

    if (!digest || strncmp(digest, "sha256:", 7) != 0)
        return mt_fail(err, MT_E_INVALID, "a layer of the manifest has no digest: pull the model again with Ollama");
    while (mt_hex_digit(digest[7 + digits]) >= 0)
        digits++;
    if (digits != 64 || digest[7 + digits])
        return mt_fail(err, MT_E_INVALID, "a layer of the manifest has no digest: pull the model again with Ollama");
    return snprintf(out, MT_LIMIT_PATH, "%.*s/blobs/sha256-%s", (int)(end - manifest), manifest, digest + 7) <
               MT_LIMIT_PATH ||
           mt_fail(err, MT_E_TOO_LARGE, "the path of Ollama's store is too long: move it up");
}

static bool read_layers(mt_gguf_place *out, const char *path, const json_t *root, mt_error *err)
{
    const json_t *layers = json_object_get(root, "layers");

    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        const char *kind = json_string_value(json_object_get(layer, "mediaType"));
        const char *digest = json_string_value(json_object_get(layer, "digest"));

        if (!kind || strncmp(kind, KIND, strlen(KIND)) != 0)
            continue;
        if (strcmp(kind + strlen(KIND), "model") == 0 && !blob_path(out->model, path, digest, err))
            return false;
        if (strcmp(kind + strlen(KIND), "projector") == 0 && !blob_path(out->projector, path, digest, err))
            return false;
    }
    return out->model[0] ||
           mt_fail(err, MT_E_UNSUPPORTED, "the manifest has no layer with a GGUF model: take another model");
}

static bool locate_manifest(mt_gguf_place *out, const char *path, mt_error *err)
{
    mt_buf text;
    json_t *root = NULL;

    mt_buf_init(&text, MT_LIMIT_CONFIG_BYTES);
    if (mt_file_read(&text, path, err))
        root = mt_json_tree_read(text.data ? text.data : "", text.len, err);
    const bool ok = root && read_layers(out, path, root, err);
    json_decref(root);
    mt_buf_free(&text);
    return ok;
}

bool mt_gguf_locate(mt_gguf_place *out, const char *path, const char *tag, mt_error *err)
{
    struct stat st;

    *out = (mt_gguf_place){{0}, {0}};
    if (stat(path, &st) != 0)
        return false;
    if (S_ISDIR(st.st_mode))
        return locate_folder(out, path, tag, err);
    if (mt_gguf_is_manifest(path))
        return locate_manifest(out, path, err);
    return mt_gguf_named(path) && locate_file(out, path, err);
}
