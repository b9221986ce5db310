/* Finds the safetensors files of a folder (shards.h). */
#include "weights/shards.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"

#define SINGLE "model.safetensors"
#define SUFFIX ".safetensors"

static bool exists(const char *dir, const char *name)
{
    char path[MT_LIMIT_PATH];
    return mt_shards_path(path, dir, name, NULL) && !mt_file_absent(path);
}

static bool ends_with(const char *s, const char *suffix)
{
    size_t len = strlen(s), end = strlen(suffix);
    return len >= end && strcmp(s + len - end, suffix) == 0;
}

static int by_string(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the files of a folder that end with suffix. */
static bool list_folder(mt_shards *out, const char *dir, const char *suffix, mt_arena *arena, mt_error *err)
{
    DIR *d = opendir(dir);
    if (!d)
        return mt_fail(err, MT_E_IO, "cannot list the folder \"%s\"", dir);
    const char *names[MT_LIMIT_SHARDS];
    size_t count = 0;
    bool ok = true;
    for (const struct dirent *e; ok && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || !ends_with(e->d_name, suffix))
            continue;
        if (count == MT_LIMIT_SHARDS)
            ok = mt_fail(err, MT_E_TOO_LARGE, "\"%s\" holds more than %d files *%s", dir, MT_LIMIT_SHARDS, suffix);
        else
            names[count++] = mt_arena_strdup(arena, e->d_name);
    }
    closedir(d);
    if (!ok || count == 0)
        return ok;
    qsort(names, count, sizeof(*names), by_string);
    out->names = mt_arena_alloc(arena, count * sizeof(*names));
    memcpy(out->names, names, count * sizeof(*names));
    out->count = count;
    return true;
}

/* Parses "model-00002-of-00004.safetensors": length of the part before the numbers, and the total. */
static bool numbered(const char *name, size_t *stem, unsigned *total)
{
    static const char pattern[] = "-00001-of-00001" SUFFIX;
    char again[sizeof(pattern)];
    unsigned number = 0;
    size_t len = strlen(name);
    if (len < sizeof(pattern))
        return false;
    *stem = len - (sizeof(pattern) - 1);
    if (sscanf(name + *stem, "-%5u-of-%5u", &number, total) != 2 || number > 99999 || *total > 99999)
        return false;
    snprintf(again, sizeof(again), "-%05u-of-%05u" SUFFIX, number % 100000, *total % 100000);
    return strcmp(again, name + *stem) == 0;
}

/* Numbered names tell how many there should be: adds all of them, so that missing ones are reported. */
static bool expect_siblings(mt_shards *s, mt_arena *arena, mt_error *err)
{
    const char *names[MT_LIMIT_SHARDS], *last = NULL;
    size_t count = 0, last_stem = 0, stem = 0;
    for (size_t i = 0; i < s->count; i++) {
        unsigned total = 1;
        bool many = numbered(s->names[i], &stem, &total);
        if (many && last && stem == last_stem && memcmp(last, s->names[i], stem) == 0)
            continue;
        if (total > MT_LIMIT_SHARDS - count)
            return mt_fail(err, MT_E_TOO_LARGE, "\"%s\" counts %u shards; at most %d are read", s->names[i], total,
                           MT_LIMIT_SHARDS);
        for (unsigned n = 1; many && n <= total; n++)
            names[count++] = mt_arena_printf(arena, "%.*s-%05u-of-%05u" SUFFIX, (int)stem, s->names[i], n, total);
        if (many) {
            last = s->names[i];
            last_stem = stem;
        } else {
            names[count++] = s->names[i];
        }
    }
    s->names = mt_arena_alloc(arena, count * sizeof(*names));
    memcpy(s->names, names, count * sizeof(*names));
    s->count = count;
    return true;
}

/* Sets the error for a folder without safetensors, with advice by what it contains. */
static bool fail_empty(const char *dir, mt_error *err)
{
    static const char *const others[] = {".gguf", ".bin", ".pt", ".pth", ".npz", ".safetensors.index.json"};
    mt_arena *arena = mt_arena_new(0);
    mt_shards found = {0};
    for (size_t i = 0; i < MT_COUNT(others) && found.count == 0; i++) {
        if (!list_folder(&found, dir, others[i], arena, NULL))
            break;
    }
    if (found.count > 0)
        mt_fail(
            err, MT_E_INVALID,
            "\"%s\" holds \"%.200s\" but no *.safetensors, the only kind of weights motet reads beside GGUF; give a "
            "folder with a safetensors version of the model, or a GGUF file",
            dir, found.names[0]);
    else
        mt_fail(
            err, MT_E_NOT_FOUND,
            "\"%s\" is not a complete checkpoint: it has config.json but no *.safetensors; download the weights too",
            dir);
    mt_arena_free(arena);
    return false;
}

/* Fails with a sentence that names the missing files. */
static bool check_present(const mt_shards *s, const char *dir, mt_error *err)
{
    mt_buf list;
    mt_buf_init(&list, 512);
    size_t missing = 0, shown = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (exists(dir, s->names[i]))
            continue;
        missing++;
        if (shown + 1 == missing && mt_buf_printf(&list, "%s\"%s\"", shown ? ", " : "", s->names[i]))
            shown++;
    }
    char more[40] = "";
    if (missing > shown)
        snprintf(more, sizeof(more), " and %zu more", missing - shown);
    if (missing > 0)
        mt_fail(err, MT_E_NOT_FOUND, "\"%.300s\" lacks %zu of its %zu shards: %s%s; download them too", dir, missing,
                s->count, list.data ? list.data : "", more);
    mt_buf_free(&list);
    return missing == 0;
}

static bool names_single(const mt_shards *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->names[i], SINGLE) == 0)
            return true;
    }
    return false;
}

/* Adds the file of a drafting head that is published separately. */
static void add_side_file(mt_shards *s, const char *dir, mt_arena *arena)
{
    static const char *const sides[] = {"model-mtp" SUFFIX, "mtp" SUFFIX, "mtp/weights" SUFFIX};
    for (size_t k = 0; k < MT_COUNT(sides) && s->count < MT_LIMIT_SHARDS; k++) {
        bool listed = false;
        for (size_t i = 0; i < s->count; i++)
            listed |= strcmp(s->names[i], sides[k]) == 0;
        if (listed || !exists(dir, sides[k]))
            continue;
        const char **names = mt_arena_alloc(arena, (s->count + 1) * sizeof(*names));
        memcpy(names, s->names, s->count * sizeof(*names));
        names[s->count++] = sides[k];
        s->names = names;
        return;
    }
}

static bool find(mt_shards *out, const char *dir, mt_arena *arena, mt_error *err)
{
    *out = (mt_shards){0};
    bool single = exists(dir, SINGLE);
    if (exists(dir, MT_SHARD_INDEX)) {
        if (!mt_shard_index_load(out, dir, arena, err))
            return false;
        /* Conversions to one file leave the index of the original behind. */
        if (!single || names_single(out))
            return check_present(out, dir, err);
    }
    if (single) {
        static const char *only = SINGLE;
        *out = (mt_shards){.names = mt_arena_alloc(arena, sizeof(only)), .count = 1};
        out->names[0] = only;
        return true;
    }
    if (!list_folder(out, dir, SUFFIX, arena, err))
        return false;
    if (out->count == 0)
        return fail_empty(dir, err);
    return expect_siblings(out, arena, err) && check_present(out, dir, err);
}

bool mt_shards_find(mt_shards *out, const char *dir, mt_arena *arena, mt_error *err)
{
    if (!find(out, dir, arena, err))
        return false;
    add_side_file(out, dir, arena);
    return true;
}
