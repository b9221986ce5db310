/* Reads a safetensors header (safetensors.h).

   A file owns its mapping (where it was opened by path), its table of tensors and their names. Nothing changes after
   opening, so any thread may read it.

   Invariants once parse has succeeded:
   1. every tensor's bytes are inside the file, behind the header, and no two tensors share a byte;
   2. bytes == elements * size of an element, for every known dtype (others are MT_DTYPE_OTHER);
   3. names are unique and sorted, at most MT_LIMIT_TENSOR_NAME bytes, without control characters.

   Gaps between tensors and bytes behind the last one are allowed: they do no harm, and writers that align leave them.
   The reference implementation refuses them. */
#include "weights/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "weights/limits.h"

#define DOWNLOAD "download the file again"

struct mt_safetensors {
    mt_file map; /* empty when the memory is borrowed */
    mt_arena *strings;
    mt_tensor_info *tensors;
    size_t count, cap;
};

typedef struct dtype_row {
    const char *name;
    mt_dtype dtype;
    unsigned bits; /* of an element */
} dtype_row;

static const dtype_row dtypes[] = {
    {"F32", MT_DTYPE_F32, 32},          {"F16", MT_DTYPE_F16, 16},        {"BF16", MT_DTYPE_BF16, 16},
    {"F8_E4M3", MT_DTYPE_F8_E4M3, 8},   {"U8", MT_DTYPE_U8, 8},           {"U32", MT_DTYPE_U32, 32},
    {"F64", MT_DTYPE_OTHER, 64},        {"I64", MT_DTYPE_OTHER, 64},      {"I32", MT_DTYPE_I32, 32},
    {"I16", MT_DTYPE_OTHER, 16},        {"I8", MT_DTYPE_I8, 8},           {"U64", MT_DTYPE_OTHER, 64},
    {"U16", MT_DTYPE_OTHER, 16},        {"BOOL", MT_DTYPE_OTHER, 8},      {"C64", MT_DTYPE_OTHER, 64},
    {"F8_E5M2", MT_DTYPE_OTHER, 8},     {"F8_E8M0", MT_DTYPE_F8_E8M0, 8}, {"F8_E4M3FNUZ", MT_DTYPE_OTHER, 8},
    {"F8_E5M2FNUZ", MT_DTYPE_OTHER, 8}, {"F6_E2M3", MT_DTYPE_OTHER, 6},   {"F6_E3M2", MT_DTYPE_OTHER, 6},
    {"F4", MT_DTYPE_OTHER, 4},
};

typedef struct header {
    mt_safetensors *file;
    mt_json_reader json;
    const uint8_t *data; /* the bytes behind the header */
    uint64_t data_size;
    mt_error *err;
} header;

/* An entry of the header, before it was checked. */
typedef struct entry {
    mt_tensor_info t;
    unsigned bits; /* of an element; 0: unknown dtype */
    uint64_t begin, end;
    bool has_dtype, has_shape, has_offsets;
} entry;

static bool fail_json(header *h)
{
    return mt_fail(h->err, MT_E_INVALID, "its header is malformed (%s); " DOWNLOAD, h->json.error.text);
}

/* Fails since the present value has the wrong type, or the JSON is broken. */
static bool fail_value(header *h, mt_json_event event, const entry *e, const char *field, const char *wanted)
{
    if (event == MT_JSON_ERROR)
        return fail_json(h);
    return mt_fail(h->err, MT_E_INVALID, "the header gives tensor \"%s\" a wrong \"%s\": it must be %s; " DOWNLOAD,
                   e->t.name, field, wanted);
}

static const char *keep_string(header *h)
{
    char *copy = mt_arena_alloc(h->file->strings, h->json.len + 1);
    if (copy)
        memcpy(copy, h->json.str, h->json.len);
    return copy;
}

static bool has_control(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return true;
    }
    return false;
}

static bool read_name(header *h, entry *e)
{
    size_t len = h->json.len;
    if (len == 0 || len > MT_LIMIT_TENSOR_NAME)
        return mt_fail(h->err, MT_E_INVALID, "the header has a tensor name of %zu bytes; 1 to %d are allowed", len,
                       MT_LIMIT_TENSOR_NAME);
    if (has_control(h->json.str, len))
        return mt_fail(h->err, MT_E_INVALID, "the header has a tensor name with control characters; " DOWNLOAD);
    e->t.name = keep_string(h);
    return true;
}

static bool read_dtype(header *h, entry *e)
{
    mt_json_event event = mt_json_next(&h->json);
    const size_t longest = 32;
    if (event != MT_JSON_STRING || h->json.len > longest || has_control(h->json.str, h->json.len))
        return fail_value(h, event, e, "dtype", "a short string");
    e->t.dtype = MT_DTYPE_OTHER;
    e->has_dtype = true;
    for (size_t i = 0; i < MT_COUNT(dtypes); i++) {
        const dtype_row *row = &dtypes[i];
        if (strlen(row->name) == h->json.len && memcmp(row->name, h->json.str, h->json.len) == 0) {
            e->t.dtype = row->dtype;
            e->t.dtype_name = row->name;
            e->bits = row->bits;
            return true;
        }
    }
    e->t.dtype_name = keep_string(h);
    return true;
}

static bool read_shape(header *h, entry *e)
{
    mt_json_event event = mt_json_next(&h->json);
    if (event != MT_JSON_ARRAY_BEGIN)
        return fail_value(h, event, e, "shape", "an array");
    while ((event = mt_json_next(&h->json)) != MT_JSON_ARRAY_END) {
        if (event != MT_JSON_NUMBER || !h->json.is_int || h->json.integer < 0)
            return fail_value(h, event, e, "shape", "an array of integers that are not negative");
        if (e->t.dims == MT_LIMIT_TENSOR_DIMS)
            return mt_fail(h->err, MT_E_INVALID, "tensor \"%s\" has more than %d dimensions", e->t.name,
                           MT_LIMIT_TENSOR_DIMS);
        e->t.shape[e->t.dims++] = (uint64_t)h->json.integer;
    }
    e->has_shape = true;
    return true;
}

static bool read_offsets(header *h, entry *e)
{
    static const char wanted[] = "an array of two integers, the first not above the second";
    mt_json_event event = mt_json_next(&h->json);
    if (event != MT_JSON_ARRAY_BEGIN)
        return fail_value(h, event, e, "data_offsets", wanted);
    uint64_t *values[] = {&e->begin, &e->end};
    for (size_t i = 0; i < MT_COUNT(values); i++) {
        event = mt_json_next(&h->json);
        if (event != MT_JSON_NUMBER || !h->json.is_int || h->json.integer < 0)
            return fail_value(h, event, e, "data_offsets", wanted);
        *values[i] = (uint64_t)h->json.integer;
    }
    event = mt_json_next(&h->json);
    if (event != MT_JSON_ARRAY_END || e->begin > e->end)
        return fail_value(h, event, e, "data_offsets", wanted);
    e->has_offsets = true;
    return true;
}

static bool is_key(const header *h, const char *key)
{
    return strlen(key) == h->json.len && memcmp(key, h->json.str, h->json.len) == 0;
}

static bool read_field(header *h, entry *e)
{
    static const struct {
        const char *key;
        bool (*read)(header *, entry *);
        size_t seen;
    } fields[] = {
        {"dtype", read_dtype, offsetof(entry, has_dtype)},
        {"shape", read_shape, offsetof(entry, has_shape)},
        {"data_offsets", read_offsets, offsetof(entry, has_offsets)},
    };
    for (size_t i = 0; i < MT_COUNT(fields); i++) {
        if (!is_key(h, fields[i].key))
            continue;
        if (*((const bool *)((const char *)e + fields[i].seen)))
            return mt_fail(h->err, MT_E_INVALID, "the header gives tensor \"%s\" two \"%s\"; " DOWNLOAD, e->t.name,
                           fields[i].key);
        return fields[i].read(h, e);
    }
    return mt_json_skip(&h->json) || fail_json(h);
}

/* Bytes of the tensor: elements times bits of one; false where it overflows or is not a whole number. */
static bool shape_bytes(const entry *e, uint64_t *bytes)
{
    uint64_t elements = 1;
    for (unsigned i = 0; i < e->t.dims; i++) {
        uint64_t d = e->t.shape[i];
        if (d != 0 && elements > UINT64_MAX / d)
            return false;
        elements *= d;
    }
    if (elements > UINT64_MAX / 64 || (elements * e->bits) % 8 != 0)
        return false;
    *bytes = elements * e->bits / 8;
    return true;
}

/* Checks an entry against the file, and sets where its bytes are. */
static bool check_entry(header *h, entry *e)
{
    if (!e->has_dtype || !e->has_shape || !e->has_offsets)
        return mt_fail(h->err, MT_E_INVALID, "the header gives tensor \"%s\" no \"%s\"; " DOWNLOAD, e->t.name,
                       !e->has_dtype   ? "dtype"
                       : !e->has_shape ? "shape"
                                       : "data_offsets");
    if (e->end > h->data_size)
        return mt_fail(
            h->err, MT_E_INVALID,
            "the file is truncated: tensor \"%s\" ends at byte %llu of the data, but there are only %llu; " DOWNLOAD,
            e->t.name, (unsigned long long)e->end, (unsigned long long)h->data_size);
    uint64_t bytes = 0;
    if (!shape_bytes(e, &bytes) || (e->bits != 0 && bytes != e->end - e->begin))
        return mt_fail(
            h->err, MT_E_INVALID,
            "the header lies: tensor \"%s\" has %llu bytes of data, which is not what its shape and dtype %s "
            "need; " DOWNLOAD,
            e->t.name, (unsigned long long)(e->end - e->begin), e->t.dtype_name);
    e->t.data = h->data + e->begin;
    e->t.bytes = e->end - e->begin;
    return true;
}

static bool append(header *h, const mt_tensor_info *t)
{
    mt_safetensors *f = h->file;
    if (f->count == MT_LIMIT_TENSORS)
        return mt_fail(h->err, MT_E_TOO_LARGE, "the header names more than %d tensors", MT_LIMIT_TENSORS);
    f->tensors = mt_grow(f->tensors, &f->cap, f->count + 1, sizeof(*f->tensors));
    f->tensors[f->count++] = *t;
    return true;
}

static bool read_tensor(header *h)
{
    entry e = {0};
    if (!read_name(h, &e))
        return false;
    mt_json_event event = mt_json_next(&h->json);
    if (event != MT_JSON_OBJECT_BEGIN)
        return fail_value(h, event, &e, "entry", "an object");
    while ((event = mt_json_next(&h->json)) != MT_JSON_OBJECT_END) {
        if (event != MT_JSON_KEY)
            return fail_json(h);
        if (!read_field(h, &e))
            return false;
    }
    return check_entry(h, &e) && append(h, &e.t);
}

/* Checks "__metadata__": an object, whose "format" is a string where it is there. It is not used. */
static bool read_metadata(header *h)
{
    mt_json_event event = mt_json_next(&h->json);
    if (event != MT_JSON_OBJECT_BEGIN) {
        if (event == MT_JSON_ERROR)
            return fail_json(h);
        return mt_fail(h->err, MT_E_INVALID, "the header's \"__metadata__\" is no object; " DOWNLOAD);
    }
    while ((event = mt_json_next(&h->json)) != MT_JSON_OBJECT_END) {
        if (event != MT_JSON_KEY)
            return fail_json(h);
        if (!is_key(h, "format")) {
            if (!mt_json_skip(&h->json))
                return fail_json(h);
            continue;
        }
        event = mt_json_next(&h->json);
        if (event != MT_JSON_STRING)
            return event == MT_JSON_ERROR
                       ? fail_json(h)
                       : mt_fail(h->err, MT_E_INVALID, "the header's format is no string; " DOWNLOAD);
    }
    return true;
}

static bool read_entries(header *h)
{
    mt_json_event event = mt_json_next(&h->json);
    if (event != MT_JSON_OBJECT_BEGIN) {
        if (event == MT_JSON_ERROR)
            return fail_json(h);
        return mt_fail(h->err, MT_E_INVALID, "its header is no JSON object; " DOWNLOAD);
    }
    while ((event = mt_json_next(&h->json)) != MT_JSON_OBJECT_END) {
        if (event != MT_JSON_KEY)
            return fail_json(h);
        if (!(is_key(h, "__metadata__") ? read_metadata(h) : read_tensor(h)))
            return false;
    }
    return mt_json_next(&h->json) == MT_JSON_END || fail_json(h);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mt_tensor_info *)a)->name, ((const mt_tensor_info *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const mt_tensor_info *x = *(const mt_tensor_info *const *)a, *y = *(const mt_tensor_info *const *)b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool check_unique(header *h)
{
    const mt_tensor_info *t = h->file->tensors;
    for (size_t i = 1; i < h->file->count; i++) {
        if (strcmp(t[i - 1].name, t[i].name) == 0)
            return mt_fail(h->err, MT_E_INVALID, "the header names tensor \"%s\" twice; " DOWNLOAD, t[i].name);
    }
    return true;
}

/* Refuses also two names for the same bytes: no writer makes them. */
static bool check_apart(header *h)
{
    const mt_tensor_info **order = mt_alloc((h->file->count + 1) * sizeof(*order));
    size_t count = 0;
    for (size_t i = 0; i < h->file->count; i++) {
        if (h->file->tensors[i].bytes > 0)
            order[count++] = &h->file->tensors[i];
    }
    qsort(order, count, sizeof(*order), by_place);
    bool ok = true;
    for (size_t i = 1; i < count && ok; i++) {
        const mt_tensor_info *a = order[i - 1], *b = order[i];
        if (a->data + a->bytes > b->data)
            ok = mt_fail(h->err, MT_E_INVALID, "the header lies: tensors \"%.400s\" and \"%.400s\" overlap; " DOWNLOAD,
                         a->name, b->name);
    }
    mt_free(order);
    return ok;
}

static uint64_t little_endian(const uint8_t *p)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

/* Reads the header's length and checks it against the file. */
static bool header_length(const uint8_t *data, size_t size, uint64_t *length, mt_error *err)
{
    static const char pointer[] = "version https://git-lfs";
    if (size >= sizeof(pointer) && memcmp(data, pointer, sizeof(pointer) - 1) == 0)
        return mt_fail(err, MT_E_INVALID, "the file is a git-lfs pointer, not the weights; run \"git lfs pull\"");
    if (size < 8)
        return mt_fail(err, MT_E_INVALID, "the file is truncated: it has %zu bytes, fewer than a header; " DOWNLOAD,
                       size);
    *length = little_endian(data);
    if (*length > size - 8)
        return mt_fail(
            err, MT_E_INVALID,
            "the file is truncated or no safetensors file: it claims a header of %llu bytes and has %zu; " DOWNLOAD,
            (unsigned long long)*length, size - 8);
    if (*length > MT_LIMIT_HEADER_BYTES)
        return mt_fail(err, MT_E_TOO_LARGE, "its header of %llu bytes is longer than the %u allowed",
                       (unsigned long long)*length, MT_LIMIT_HEADER_BYTES);
    return true;
}

static bool parse(mt_safetensors *file, const uint8_t *data, size_t size, mt_error *err)
{
    uint64_t length = 0;
    if (!header_length(data, size, &length, err))
        return false;
    header h = {.file = file, .data = data + 8 + length, .data_size = size - 8 - length, .err = err};
    mt_json_reader_init(&h.json, (const char *)data + 8, (size_t)length);
    bool ok = read_entries(&h);
    mt_json_reader_free(&h.json);
    if (!ok)
        return false;
    if (file->count > 1)
        qsort(file->tensors, file->count, sizeof(*file->tensors), by_name);
    return check_unique(&h) && check_apart(&h);
}

static mt_safetensors *file_new(void)
{
    mt_safetensors *file = mt_alloc(sizeof(*file));
    file->strings = mt_arena_new(0);
    return file;
}

mt_safetensors *mt_safetensors_parse(const uint8_t *data, size_t size, mt_error *err)
{
    mt_safetensors *file = file_new();
    if (!parse(file, data, size, err)) {
        mt_safetensors_close(file);
        return NULL;
    }
    return file;
}

mt_safetensors *mt_safetensors_open(const char *path, mt_error *err)
{
    mt_safetensors *file = file_new();
    if (!mt_file_map(&file->map, path, err)) {
        mt_safetensors_close(file);
        return NULL;
    }
    if (!parse(file, (const uint8_t *)file->map.data, file->map.size, err)) {
        mt_fail_within(err, "\"%s\"", path);
        mt_safetensors_close(file);
        return NULL;
    }
    return file;
}

void mt_safetensors_close(mt_safetensors *file)
{
    if (!file)
        return;
    mt_file_unmap(&file->map);
    mt_arena_free(file->strings);
    mt_free(file->tensors);
    mt_free(file);
}

size_t mt_safetensors_count(const mt_safetensors *file)
{
    return file->count;
}

const mt_tensor_info *mt_safetensors_at(const mt_safetensors *file, size_t i)
{
    return &file->tensors[i];
}

const mt_tensor_info *mt_safetensors_find(const mt_safetensors *file, const char *name)
{
    mt_tensor_info key = {.name = name};
    return file->count ? bsearch(&key, file->tensors, file->count, sizeof(key), by_name) : NULL;
}
