/* Finds the GGUF files of a model (gguf_place.h). */
#include "weights/gguf_place.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/json_tree.h"
#include "base/limits.h"
#include "base/memory.h"
#include "weights/gguf_choice.h"
#include "weights/limits.h"

#define MANIFESTS "/manifests/"
#define KIND "application/vnd.ollama.image."

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), tail = strlen(end);

    return len >= tail && strcmp(text + len - tail, end) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mt_gguf_file *)a)->name, ((const mt_gguf_file *)b)->name);
}

/* Whether a folder is called like a quantisation, as large repositories have them. */
static bool is_labelled(const char *name)
{
    char file[MT_LIMIT_PATH], label[MT_GGUF_LABEL];

    snprintf(file, sizeof(file), "%.*s.gguf", MT_GGUF_LABEL, name);
    mt_gguf_label(file, label);
    return *label && strcasecmp(label, name) == 0;
}

/* Adds an entry of the folder at path; below: what stands before its name in the list, "" or "Q8_0/". */
static void add_entry(mt_gguf_folder *f, const char *path, const char *below, const char *entry)
{
    char at[MT_LIMIT_PATH];
    struct stat st;

    f->safetensors |= ends_with(entry, ".safetensors");
    if (!mt_gguf_named(entry) || snprintf(at, sizeof(at), "%s/%s%s", path, below, entry) >= (int)sizeof(at) ||
        stat(at, &st) != 0 || !S_ISREG(st.st_mode) || f->count == MT_LIMIT_LOCAL_FILES)
        return;
    f->files = mt_grow(f->files, &f->cap, f->count + 1, sizeof(*f->files));
    f->files[f->count++] = (mt_gguf_file){mt_arena_printf(f->arena, "%s%s", below, entry), (uint64_t)st.st_size};
}

/* Adds the files of a quantisation's own folder. */
static void add_below(mt_gguf_folder *f, const char *path, const char *name)
{
    char below[MT_LIMIT_PATH], at[MT_LIMIT_PATH];
    const struct dirent *entry;

    snprintf(below, sizeof(below), "%.*s/", MT_GGUF_LABEL, name);
    DIR *all = snprintf(at, sizeof(at), "%s/%s", path, name) < (int)sizeof(at) ? opendir(at) : NULL;
    while (all && (entry = readdir(all)))
        if (entry->d_name[0] != '.')
            add_entry(f, path, below, entry->d_name);
    if (all)
        closedir(all);
}

void mt_gguf_folder_read(mt_gguf_folder *f, const char *path)
{
    DIR *all = opendir(path);
    const struct dirent *entry;

    *f = (mt_gguf_folder){.arena = mt_arena_new(0)};
    while (all && (entry = readdir(all))) {
        if (entry->d_name[0] == '.')
            continue;
        if (is_labelled(entry->d_name))
            add_below(f, path, entry->d_name);
        else
            add_entry(f, path, "", entry->d_name);
    }
    if (all)
        closedir(all);
    if (f->count)
        qsort(f->files, f->count, sizeof(*f->files), by_name);
}

void mt_gguf_folder_free(mt_gguf_folder *f)
{
    mt_free(f->files);
    mt_arena_free(f->arena);
}

static bool join(char out[MT_LIMIT_PATH], const char *dir, const char *name, mt_error *err)
{
    return snprintf(out, MT_LIMIT_PATH, "%s/%s", dir, name) < MT_LIMIT_PATH ||
           mt_fail(err, MT_E_TOO_LARGE, "the path of \"%.100s\" is too long: move it up", name);
}

static bool add_projector(mt_gguf_place *out, const mt_gguf_folder *f, const char *dir, mt_error *err)
{
    const size_t at = mt_gguf_choose_projector(f->files, f->count, out->model);

    return at == f->count || join(out->projector, dir, f->files[at].name, err);
}

/* Writes the folder above a file or folder. */
static void set_folder(char out[MT_LIMIT_PATH], const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(out, MT_LIMIT_PATH, "%.*s", !slash ? 1 : slash == path ? 1 : (int)(slash - path), slash ? path : ".");
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Finds the projector beside a file, or beside the folder of its quantisation. */
static bool locate_file(mt_gguf_place *out, const char *path, mt_error *err)
{
    char dir[MT_LIMIT_PATH], above[MT_LIMIT_PATH];
    mt_gguf_folder f;

    if (snprintf(out->model, sizeof(out->model), "%s", path) >= (int)sizeof(out->model))
        return mt_fail(err, MT_E_TOO_LARGE, "the path of the GGUF file is too long: move it up");
    set_folder(dir, path);
    if (is_labelled(last_part(dir))) {
        set_folder(above, dir);
        memcpy(dir, above, sizeof(dir));
    }
    mt_gguf_folder_read(&f, dir);
    memcpy(out->searched, dir, sizeof(out->searched));
    const bool ok = add_projector(out, &f, dir, err);
    mt_gguf_folder_free(&f);
    return ok;
}

/* The memory that motet serve would take: three quarters of the machine's. */
static uint64_t allowed_memory(void)
{
    return mt_memory_total() / 4 * 3;
}

static bool locate_folder(mt_gguf_place *out, const char *path, const char *tag, mt_error *err)
{
    size_t chosen = 0;
    mt_gguf_folder f;
    bool ok;

    mt_gguf_folder_read(&f, path);
    if (f.count == 0 || (f.safetensors && !(tag && *tag))) {
        mt_gguf_folder_free(&f);
        return false;
    }
    ok = mt_gguf_choose(f.files, f.count, tag, allowed_memory(), &chosen, err) &&
         join(out->model, path, f.files[chosen].name, err) && add_projector(out, &f, path, err);
    mt_gguf_folder_free(&f);
    return ok;
}

bool mt_gguf_in(const char *folder)
{
    mt_gguf_folder f;
    bool found = false;

    mt_gguf_folder_read(&f, folder);
    for (size_t i = 0; i < f.count && !f.safetensors && !found; i++)
        found = mt_gguf_is_first(f.files[i].name);
    mt_gguf_folder_free(&f);
    return found;
}

/* Takes an integer of so many bytes from the head of a file; 0 beyond its end. */
static uint64_t take(const unsigned char *head, size_t len, size_t *at, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size && *at + size <= len; i++)
        value |= (uint64_t)head[*at + i] << 8 * i;
    *at += size;
    return value;
}

/* The bytes of a value that is no array; 0 for a string or an array. */
static size_t value_size(uint64_t type)
{
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

    return type < MT_COUNT(sizes) ? sizes[type] : 0;
}

bool mt_gguf_architecture(const char *path, char out[MT_GGUF_LABEL])
{
    static const char key[] = "general.architecture";
    enum { HEAD = 4096, STRING = 8 };
    unsigned char head[HEAD];
    FILE *file = fopen(path, "rb");
    const size_t len = file ? fread(head, 1, sizeof(head), file) : 0;
    size_t at = 24; /* behind the magic word, the version and the counts of tensors and keys */

    if (file)
        fclose(file);
    while (len > at && memcmp(head, "GGUF", 4) == 0) {
        const uint64_t name_len = take(head, len, &at, 8);
        const size_t name = at;

        if (name_len > len || at + name_len > len)
            return false;
        at += name_len;
        const uint64_t type = take(head, len, &at, 4);
        const uint64_t size = type == STRING ? take(head, len, &at, 8) : value_size(type);
        if (size == 0 || size > len || at + size > len)
            return false;
        if (type == STRING && name_len == sizeof(key) - 1 && memcmp(head + name, key, sizeof(key) - 1) == 0) {
            if (size >= MT_GGUF_LABEL || memchr(head + at, 0, size))
                return false;
            memcpy(out, head + at, size);
            out[size] = '\0';
            return true;
        }
        at += size;
    }
    return false;
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

/* Options of the command line about projectors; set before there are threads. */
static struct {
    bool none;    /* no model has one */
    dev_t device; /* with number: the file or folder that was given as the model */
    ino_t number;
    char file[MT_LIMIT_PATH]; /* the projector of that model; "": as it lies beside it */
} chosen;

static void choose_projector(mt_gguf_place *out, const struct stat *st)
{
    if (chosen.none)
        out->projector[0] = '\0';
    else if (chosen.file[0] && st->st_dev == chosen.device && st->st_ino == chosen.number)
        memcpy(out->projector, chosen.file, sizeof(out->projector));
}

bool mt_gguf_locate(mt_gguf_place *out, const char *path, const char *tag, mt_error *err)
{
    struct stat st;
    bool found;

    *out = (mt_gguf_place){.model = ""};
    if (stat(path, &st) != 0)
        return false;
    if (S_ISDIR(st.st_mode))
        found = locate_folder(out, path, tag, err);
    else if (mt_gguf_named(path))
        found = locate_file(out, path, err);
    else
        found = mt_gguf_is_manifest(path) && locate_manifest(out, path, err);
    if (found)
        choose_projector(out, &st);
    return found;
}

bool mt_gguf_use_projector(const char *path, const char *file, mt_error *err)
{
    mt_gguf_place place;
    mt_error why = {0};
    struct stat st;

    if (stat(path, &st) != 0 || !mt_gguf_locate(&place, path, NULL, &why))
        return why.code != MT_OK
                   ? mt_fail(err, why.code, "%s", why.text)
                   : mt_fail(err, MT_E_INVALID,
                             "a projector is for a GGUF model, which \"%s\" is not; leave --mmproj out", path);
    if (snprintf(chosen.file, sizeof(chosen.file), "%s", file) >= (int)sizeof(chosen.file))
        return mt_fail(err, MT_E_TOO_LARGE, "the path of the projector is too long: move it up");
    chosen.device = st.st_dev;
    chosen.number = st.st_ino;
    return true;
}

void mt_gguf_use_no_projectors(void)
{
    chosen.none = true;
}
