/* Reads GGUF files (gguf.h).

   A mt_gguf owns the mappings of its files, the tables of keys and the one table of tensors, merged from all files.
   Nothing of it changes after opening, so any thread may read it, and callers that open the same files share
   one (gguf_shared.c).

   Invariants once a file was opened:
   1. every tensor's bytes are inside its file, behind the header, and no two tensors of a file share a byte;
   2. rows are whole blocks, and bytes == blocks * bytes of a block;
   3. names of keys and of tensors are unique and sorted. */
#include "weights/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "weights/gguf_internal.h"
#include "weights/limits.h"

#define DOWNLOAD "download the file again"
#define NUMBERS "-00001-of-00001" MT_GGUF_SUFFIX /* how the name of one of several files ends */

static bool read_shape(mt_gguf_cursor *c, mt_tensor_info *t, uint64_t *elements)
{
    *elements = 1;
    if (!mt_gguf_u32(c, &t->dims))
        return false;
    if (t->dims > MT_LIMIT_TENSOR_DIMS)
        return mt_fail(c->err, MT_E_INVALID, "the header gives tensor \"%s\" %u dimensions; at most %d are allowed",
                       t->name, t->dims, MT_LIMIT_TENSOR_DIMS);
    for (unsigned d = t->dims; d-- > 0;) {
        if (!mt_gguf_u64(c, &t->shape[d]))
            return false;
        if (t->shape[d] == 0 || t->shape[d] > INT64_MAX / *elements)
            return mt_fail(c->err, MT_E_INVALID, "the header gives tensor \"%s\" a dimension of %llu; " DOWNLOAD,
                           t->name, (unsigned long long)t->shape[d]);
        *elements *= t->shape[d];
    }
    return true;
}

static mt_dtype dtype_of(uint32_t type)
{
    const char *name = mt_gguf_type_name(type);
    if (mt_gguf_block_elements(type) > 1)
        return MT_DTYPE_BLOCKS;
    if (strcmp(name, "F32") == 0)
        return MT_DTYPE_F32;
    if (strcmp(name, "F16") == 0)
        return MT_DTYPE_F16;
    return strcmp(name, "BF16") == 0 ? MT_DTYPE_BF16 : MT_DTYPE_OTHER;
}

/* Sets dtype and bytes of a tensor by its type. */
static bool read_type(mt_gguf_cursor *c, mt_tensor_info *t, uint64_t elements)
{
    if (!mt_gguf_u32(c, &t->ggml_type))
        return false;
    const uint64_t block = mt_gguf_block_elements(t->ggml_type), bytes = mt_gguf_block_bytes(t->ggml_type);
    const uint64_t row = t->dims > 0 ? t->shape[t->dims - 1] : 1;
    t->dtype_name = mt_gguf_type_name(t->ggml_type);
    t->dtype = dtype_of(t->ggml_type);
    if (block == 0)
        return mt_fail(c->err, MT_E_UNSUPPORTED,
                       "the header gives tensor \"%s\" the type %u, which motet does not know; " DOWNLOAD
                       " or another quantisation",
                       t->name, t->ggml_type);
    if (row % block != 0)
        return mt_fail(c->err, MT_E_INVALID,
                       "the header lies: tensor \"%s\" has rows of %llu elements, which blocks of %s (%llu elements) "
                       "do not fill; " DOWNLOAD,
                       t->name, (unsigned long long)row, t->dtype_name, (unsigned long long)block);
    if (elements / block > INT64_MAX / bytes)
        return mt_fail(c->err, MT_E_INVALID, "the header gives tensor \"%s\" %llu elements; " DOWNLOAD, t->name,
                       (unsigned long long)elements);
    t->bytes = elements / block * bytes;
    return true;
}

/* Reads an entry of the table. offset: where its bytes begin, counted from the end of the padded header. */
static bool read_tensor(mt_gguf_cursor *c, mt_tensor_info *t, uint64_t *offset)
{
    mt_gguf_text name;
    uint64_t elements = 0;
    if (!mt_gguf_read_name(c, "tensor", &name))
        return false;
    t->name = mt_arena_copy(c->arena, name.at, name.len);
    return read_shape(c, t, &elements) && read_type(c, t, elements) && mt_gguf_u64(c, offset);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mt_tensor_info *)a)->name, ((const mt_tensor_info *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const mt_tensor_info *x = a, *y = b;
    return (x->data > y->data) - (x->data < y->data);
}

/* Refuses tensors that share bytes; sorts them by place. */
static bool check_apart(mt_tensor_info *t, size_t count, mt_error *err)
{
    if (count > 1)
        qsort(t, count, sizeof(*t), by_place);
    for (size_t i = 1; i < count; i++) {
        if (t[i - 1].data + t[i - 1].bytes > t[i].data)
            return mt_fail(err, MT_E_INVALID, "the header lies: tensors \"%.400s\" and \"%.400s\" overlap; " DOWNLOAD,
                           t[i - 1].name, t[i].name);
    }
    return true;
}

/* Gives a tensor its place among the `size` bytes at data. */
static bool place(mt_tensor_info *t, uint64_t offset, uint64_t alignment, const uint8_t *data, uint64_t size,
                  mt_error *err)
{
    if (offset % alignment != 0)
        return mt_fail(err, MT_E_INVALID,
                       "the header lies: tensor \"%s\" begins at byte %llu, which is not aligned to %llu; " DOWNLOAD,
                       t->name, (unsigned long long)offset, (unsigned long long)alignment);
    if (offset > size || t->bytes > size - offset)
        return mt_fail(err, MT_E_INVALID,
                       "the file is truncated: tensor \"%s\" needs %llu bytes from byte %llu of the data on, which has "
                       "%llu; " DOWNLOAD,
                       t->name, (unsigned long long)t->bytes, (unsigned long long)offset, (unsigned long long)size);
    t->data = data + offset;
    return true;
}

/* The value of general.alignment. */
static bool find_alignment(const mt_gguf_keys *keys, uint64_t *out, mt_error *err)
{
    const mt_gguf one = {.keys = *keys};
    int64_t value = 32;
    if (mt_gguf_has(&one, "general.alignment") && !mt_gguf_int(&one, "general.alignment", &value))
        value = 0;
    if (value <= 0 || value > MT_LIMIT_GGUF_ALIGNMENT || (value & (value - 1)) != 0)
        return mt_fail(err, MT_E_INVALID,
                       "the header's \"general.alignment\" is %lld; it must be a power of two up to %u; " DOWNLOAD,
                       (long long)value, MT_LIMIT_GGUF_ALIGNMENT);
    *out = (uint64_t)value;
    return true;
}

static bool read_tensors(mt_gguf *g, mt_gguf_cursor *c, uint64_t count, const mt_gguf_keys *keys, const uint8_t *begin)
{
    if (count > MT_LIMIT_TENSORS - g->count)
        return mt_fail(c->err, MT_E_TOO_LARGE, "the header counts %llu tensors; at most %d are read",
                       (unsigned long long)count, MT_LIMIT_TENSORS);
    const size_t first = g->count, all = first + (size_t)count;
    uint64_t *offsets = mt_alloc_array((size_t)count + 1, sizeof(*offsets)), alignment = 0;
    g->tensors = mt_grow(g->tensors, &g->cap, all + 1, sizeof(*g->tensors));
    bool ok = find_alignment(keys, &alignment, c->err);
    for (; ok && g->count < all; g->count++) {
        g->tensors[g->count] = (mt_tensor_info){0};
        ok = read_tensor(c, &g->tensors[g->count], &offsets[g->count - first]);
    }
    if (ok) {
        const uint64_t used = (uint64_t)(c->at - begin), padded = (used + alignment - 1) / alignment * alignment;
        const uint64_t whole = (uint64_t)(c->end - begin), size = whole > padded ? whole - padded : 0;
        for (size_t i = first; ok && i < all; i++)
            ok = place(&g->tensors[i], offsets[i - first], alignment, begin + whole - size, size, c->err);
    }
    mt_free(offsets);
    return ok && check_apart(g->tensors + first, (size_t)count, c->err);
}

/* Whether the file begins with a word of GGML, the format before GGUF. */
static bool is_ggml(const uint8_t *magic)
{
    static const char words[][5] = {"lmgg", "fmgg", "tjgg", "algg"}; /* little-endian "ggml", "ggmf", "ggjt", "ggla" */
    for (size_t i = 0; i < MT_COUNT(words); i++)
        if (memcmp(magic, words[i], 4) == 0)
            return true;
    return false;
}

static bool read_version(mt_gguf_cursor *c)
{
    static const char pointer[] = "version https://git-lfs";
    uint32_t magic = 0, version = 0;
    if ((size_t)(c->end - c->at) >= sizeof(pointer) && memcmp(c->at, pointer, sizeof(pointer) - 1) == 0)
        return mt_fail(c->err, MT_E_INVALID, "the file is a git-lfs pointer, not the weights; run \"git lfs pull\"");
    if (!mt_gguf_u32(c, &magic))
        return false;
    if (is_ggml(c->at - 4))
        return mt_fail(
            c->err, MT_E_UNSUPPORTED,
            "the file is of GGML, the format before GGUF, which motet does not read; take a GGUF file of the "
            "same model");
    if (memcmp(c->at - 4, "GGUF", 4) != 0)
        return mt_fail(c->err, MT_E_INVALID, "the file is no GGUF file: it does not begin with \"GGUF\"; " DOWNLOAD);
    if (!mt_gguf_u32(c, &version))
        return false;
    if (version != 0 && (version & 0xffff) == 0)
        return mt_fail(c->err, MT_E_UNSUPPORTED,
                       "the file is big-endian, which motet does not read; download one for little-endian machines");
    if (version != 2 && version != 3)
        return mt_fail(c->err, MT_E_UNSUPPORTED,
                       "the file has version %u of GGUF; motet reads 2 and 3: download a newer file", version);
    return true;
}

/* Reads one file; its keys become those of g where it is the first. */
static bool read_file(mt_gguf *g, const uint8_t *data, size_t size, mt_gguf_keys *keys, mt_error *err)
{
    mt_gguf_cursor c = {.at = data, .end = data + size, .arena = g->arena, .err = err};
    uint64_t tensors = 0, count = 0;
    if (!read_version(&c) || !mt_gguf_u64(&c, &tensors) || !mt_gguf_u64(&c, &count) ||
        !mt_gguf_read_keys(&c, count, keys))
        return false;
    if (g->files++ == 0)
        g->keys = *keys;
    return read_tensors(g, &c, tensors, keys, data);
}

/* Sorts the tensors of all files by name; two of one name are an error. */
static bool merge(mt_gguf *g, mt_error *err)
{
    if (g->count > 1)
        qsort(g->tensors, g->count, sizeof(*g->tensors), by_name);
    for (size_t i = 1; i < g->count; i++) {
        if (by_name(&g->tensors[i - 1], &g->tensors[i]) == 0)
            return mt_fail(err, MT_E_INVALID, "the header names tensor \"%s\" twice; " DOWNLOAD, g->tensors[i].name);
    }
    return true;
}

static mt_gguf *gguf_new(void)
{
    mt_gguf *g = mt_alloc(sizeof(*g));
    g->arena = mt_arena_new(0);
    return g;
}

mt_gguf *mt_gguf_parse(const uint8_t *data, size_t size, mt_error *err)
{
    mt_gguf *g = gguf_new();
    mt_gguf_keys keys = {0};
    if (!read_file(g, data, size, &keys, err) || !merge(g, err)) {
        mt_gguf_close(g);
        return NULL;
    }
    return g;
}

/* How many files the name of one counts, "model-00002-of-00004.gguf"; 1 where it counts none. stem: length of what
   stands before the numbers. */
static unsigned count_files(const char *path, size_t *stem)
{
    char again[sizeof(NUMBERS)];
    unsigned number = 0, total = 0;
    const size_t len = strlen(path);
    *stem = len;
    if (len < sizeof(NUMBERS))
        return 1;
    const char *end = path + len - (sizeof(NUMBERS) - 1);
    if (sscanf(end, "-%5u-of-%5u", &number, &total) != 2 || number == 0 || number > total || total > 99999)
        return 1;
    snprintf(again, sizeof(again), "-%05u-of-%05u" MT_GGUF_SUFFIX, number % 100000, total % 100000);
    if (strcmp(again, end) != 0)
        return 1;
    *stem = (size_t)(end - path);
    return total;
}

/* Whether a file of several says of itself what its name says. */
static bool check_split(const mt_gguf_keys *keys, unsigned number, unsigned total, mt_error *err)
{
    const mt_gguf one = {.keys = *keys};
    int64_t count = total, at = number;
    const bool counted = mt_gguf_int(&one, "split.count", &count);
    if (counted && count > 1 && total == 1)
        return mt_fail(err, MT_E_INVALID,
                       "the file is one of %lld, but its name does not say which; give it the name that ends with "
                       "\"-00001-of-%05lld.gguf\" again",
                       (long long)count, (long long)count);
    if (mt_gguf_int(&one, "split.no", &at) && total > 1)
        at++;
    if (total > 1 && (count != total || at != number))
        return mt_fail(err, MT_E_INVALID, "the file says that it is number %lld of %lld, its name %u of %u; " DOWNLOAD,
                       (long long)at, (long long)count, number, total);
    return true;
}

static bool open_file(mt_gguf *g, const char *path, unsigned number, unsigned total, mt_error *err)
{
    mt_file *map = &g->maps[number - 1];
    mt_gguf_keys keys = {0};
    (void)mt_gguf_stamp_take(&g->stamps[number - 1], path); /* where it fails, mapping says why */
    if (!mt_file_map(map, path, err))
        return false;
    const char *data = map->data ? map->data : ""; /* of an empty file */
    return (read_file(g, (const uint8_t *)data, map->size, &keys, err) && check_split(&keys, number, total, err)) ||
           mt_fail_within(err, "\"%s\"", path);
}

static bool open_all(mt_gguf *g, const char *path, mt_error *err)
{
    size_t stem = 0;
    const unsigned total = count_files(path, &stem);
    if (total > MT_LIMIT_SHARDS)
        return mt_fail(err, MT_E_TOO_LARGE, "\"%s\" counts %u shards; at most %d are read", path, total,
                       MT_LIMIT_SHARDS);
    g->maps = mt_alloc_array(total, sizeof(*g->maps));
    g->stamps = mt_alloc_array(total, sizeof(*g->stamps));
    g->mapped = total;
    if (total == 1)
        return open_file(g, path, 1, 1, err);
    bool ok = true;
    for (unsigned n = 1; ok && n <= total; n++) {
        char name[MT_LIMIT_PATH];
        const int len = snprintf(name, sizeof(name), "%.*s-%05u-of-%05u" MT_GGUF_SUFFIX, (int)stem, path, n, total);
        if (len < 0 || (size_t)len >= sizeof(name))
            return mt_fail(err, MT_E_INVALID, "the path \"%.200s\" is too long", path);
        if (mt_file_absent(name))
            return mt_fail(err, MT_E_NOT_FOUND,
                           "\"%.300s\" is one of %u files, and \"%.300s\" is absent; download it too", path, total,
                           name);
        ok = open_file(g, name, n, total, err);
    }
    return ok;
}

mt_gguf *mt_gguf_open(const char *path, mt_error *err)
{
    mt_gguf *g = mt_gguf_shared_find(path);
    if (g)
        return g;
    g = gguf_new();
    if (!open_all(g, path, err) || (!merge(g, err) && !mt_fail_within(err, "\"%s\"", path))) {
        mt_gguf_close(g);
        return NULL;
    }
    mt_gguf_shared_add(g, path);
    return g;
}

void mt_gguf_close(mt_gguf *g)
{
    if (!g || (g->path && !mt_gguf_shared_drop(g)))
        return;
    for (size_t i = 0; i < g->mapped; i++) {
        mt_file_unmap(&g->maps[i]);
        mt_free(g->stamps[i].path);
    }
    mt_free(g->path);
    mt_free(g->stamps);
    mt_free(g->maps);
    mt_free(g->tensors);
    mt_arena_free(g->arena);
    mt_free(g);
}

size_t mt_gguf_tensors(const mt_gguf *g)
{
    return g->count;
}

const mt_tensor_info *mt_gguf_tensor(const mt_gguf *g, size_t i)
{
    return &g->tensors[i];
}

const mt_tensor_info *mt_gguf_find(const mt_gguf *g, const char *name)
{
    const mt_tensor_info key = {.name = name};
    return g->count ? bsearch(&key, g->tensors, g->count, sizeof(key), by_name) : NULL;
}

size_t mt_gguf_files(const mt_gguf *g)
{
    return g->files;
}
