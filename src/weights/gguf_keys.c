/* Keys and values of a GGUF file (gguf.h): read once into a table sorted by name, whose values stay in the file. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "weights/gguf_internal.h"
#include "weights/limits.h"

#define DOWNLOAD "download the file again"

/* Bytes of a value by type; 0: no fixed size. */
static const uint8_t sizes[] = {
    [MT_GGUF_U8] = 1,  [MT_GGUF_I8] = 1,     [MT_GGUF_U16] = 2,  [MT_GGUF_I16] = 2, [MT_GGUF_U32] = 4,
    [MT_GGUF_I32] = 4, [MT_GGUF_F32] = 4,    [MT_GGUF_BOOL] = 1, [MT_GGUF_U64] = 8, [MT_GGUF_I64] = 8,
    [MT_GGUF_F64] = 8, [MT_GGUF_STRING] = 0, [MT_GGUF_ARRAY] = 0};

static uint64_t little(const uint8_t *p, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static bool fail_short(mt_gguf_cursor *c)
{
    return mt_fail(c->err, MT_E_INVALID, "the file is truncated: it ends within its header; " DOWNLOAD);
}

/* Moves over `bytes`; NULL with a sentence where the file has fewer. */
static const uint8_t *skip(mt_gguf_cursor *c, uint64_t bytes)
{
    const uint8_t *at = c->at;
    if (bytes > (uint64_t)(c->end - at)) {
        fail_short(c);
        return NULL;
    }
    c->at += bytes;
    return at;
}

bool mt_gguf_u32(mt_gguf_cursor *c, uint32_t *out)
{
    const uint8_t *at = skip(c, sizeof(*out));
    if (at)
        *out = (uint32_t)little(at, sizeof(*out));
    return at != NULL;
}

bool mt_gguf_u64(mt_gguf_cursor *c, uint64_t *out)
{
    const uint8_t *at = skip(c, sizeof(*out));
    if (at)
        *out = little(at, sizeof(*out));
    return at != NULL;
}

/* A string with its length before it. */
static bool read_text(mt_gguf_cursor *c, mt_gguf_text *out)
{
    uint64_t len = 0;
    if (!mt_gguf_u64(c, &len))
        return false;
    const uint8_t *at = skip(c, len);
    if (at)
        *out = (mt_gguf_text){.at = (const char *)at, .len = (size_t)len};
    return at != NULL;
}

bool mt_gguf_read_name(mt_gguf_cursor *c, const char *of, mt_gguf_text *out)
{
    if (!read_text(c, out))
        return false;
    if (out->len == 0 || out->len > MT_LIMIT_TENSOR_NAME)
        return mt_fail(c->err, MT_E_INVALID, "the header has a name of %zu bytes for a %s; 1 to %d are allowed",
                       out->len, of, MT_LIMIT_TENSOR_NAME);
    for (size_t i = 0; i < out->len; i++) {
        if ((unsigned char)out->at[i] < 0x20 || out->at[i] == 0x7f)
            return mt_fail(c->err, MT_E_INVALID, "the header has a name with control characters for a %s; " DOWNLOAD,
                           of);
    }
    return true;
}

static bool fail_type(mt_gguf_cursor *c, const mt_gguf_key *key, uint32_t type)
{
    return mt_fail(c->err, MT_E_INVALID, "the header gives key \"%.*s\" a value of the unknown type %u; " DOWNLOAD,
                   (int)key->name.len, key->name.at, type);
}

/* Notes where each string of an array begins. A string has at least the 8 bytes of its length, so the table is never
   longer than the file. */
static bool read_strings(mt_gguf_cursor *c, mt_gguf_array *a)
{
    if (a->count > (uint64_t)(c->end - c->at) / 8)
        return fail_short(c);
    uint64_t *strings = mt_arena_alloc(c->arena, (a->count + 1) * sizeof(*strings));
    for (size_t i = 0; i < a->count; i++) {
        mt_gguf_text text;
        strings[i] = (uint64_t)(c->at - a->data);
        if (!read_text(c, &text))
            return false;
    }
    a->strings = strings;
    return true;
}

static bool read_array(mt_gguf_cursor *c, mt_gguf_key *key)
{
    uint32_t type = 0;
    uint64_t count = 0;
    if (!mt_gguf_u32(c, &type) || !mt_gguf_u64(c, &count))
        return false;
    if (type == MT_GGUF_ARRAY)
        return mt_fail(c->err, MT_E_UNSUPPORTED,
                       "the header gives key \"%.*s\" an array of arrays, which motet does not read",
                       (int)key->name.len, key->name.at);
    if (type >= MT_COUNT(sizes))
        return fail_type(c, key, type);
    if (count > MT_LIMIT_GGUF_ELEMENTS - c->elements)
        return mt_fail(c->err, MT_E_TOO_LARGE,
                       "the header gives key \"%.*s\" %llu elements; all arrays of a file may have %u together",
                       (int)key->name.len, key->name.at, (unsigned long long)count, MT_LIMIT_GGUF_ELEMENTS);
    c->elements += (size_t)count;
    key->array = (mt_gguf_array){.type = (mt_gguf_type)type, .count = (size_t)count, .data = c->at};
    return type == MT_GGUF_STRING ? read_strings(c, &key->array) : skip(c, count * sizes[type]) != NULL;
}

static bool read_key(mt_gguf_cursor *c, mt_gguf_key *key)
{
    uint32_t type = 0;
    mt_gguf_text text;
    if (!mt_gguf_read_name(c, "key", &key->name) || !mt_gguf_u32(c, &type))
        return false;
    if (type >= MT_COUNT(sizes))
        return fail_type(c, key, type);
    key->type = (mt_gguf_type)type;
    key->data = c->at;
    if (type == MT_GGUF_STRING)
        return read_text(c, &text);
    return type == MT_GGUF_ARRAY ? read_array(c, key) : skip(c, sizes[type]) != NULL;
}

static int compare(mt_gguf_text a, mt_gguf_text b)
{
    int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_name(const void *a, const void *b)
{
    return compare(((const mt_gguf_key *)a)->name, ((const mt_gguf_key *)b)->name);
}

bool mt_gguf_read_keys(mt_gguf_cursor *c, uint64_t count, mt_gguf_keys *out)
{
    if (count > MT_LIMIT_GGUF_KEYS)
        return mt_fail(c->err, MT_E_TOO_LARGE, "the header counts %llu keys; at most %d are read",
                       (unsigned long long)count, MT_LIMIT_GGUF_KEYS);
    out->list = mt_arena_alloc(c->arena, (size_t)(count + 1) * sizeof(*out->list));
    for (; out->count < count; out->count++) {
        if (!read_key(c, &out->list[out->count]))
            return false;
    }
    qsort(out->list, out->count, sizeof(*out->list), by_name);
    for (size_t i = 1; i < out->count; i++) {
        const mt_gguf_text name = out->list[i].name;
        if (compare(out->list[i - 1].name, name) == 0)
            return mt_fail(c->err, MT_E_INVALID, "the header has key \"%.*s\" twice; " DOWNLOAD, (int)name.len,
                           name.at);
    }
    return true;
}

static const mt_gguf_key *find(const mt_gguf *g, const char *key)
{
    const mt_gguf_keys *keys = &g->keys;
    const mt_gguf_key wanted = {.name = {.at = key, .len = strlen(key)}};
    return keys->count ? bsearch(&wanted, keys->list, keys->count, sizeof(wanted), by_name) : NULL;
}

bool mt_gguf_has(const mt_gguf *g, const char *key)
{
    return find(g, key) != NULL;
}

static mt_gguf_text text_at(const uint8_t *data)
{
    return (mt_gguf_text){.at = (const char *)data + 8, .len = (size_t)little(data, 8)};
}

bool mt_gguf_string(const mt_gguf *g, const char *key, mt_gguf_text *out)
{
    const mt_gguf_key *k = find(g, key);
    if (!k || k->type != MT_GGUF_STRING)
        return false;
    *out = text_at(k->data);
    return true;
}

static bool is_signed(mt_gguf_type type)
{
    return type == MT_GGUF_I8 || type == MT_GGUF_I16 || type == MT_GGUF_I32 || type == MT_GGUF_I64;
}

static bool to_int(mt_gguf_type type, const uint8_t *data, int64_t *out)
{
    if (type == MT_GGUF_F32 || type == MT_GGUF_F64 || sizes[type] == 0)
        return false;
    uint64_t value = little(data, sizes[type]);
    const unsigned unused = 64 - 8u * sizes[type];
    if (is_signed(type)) /* the sign moves up, and with the value down again */
        *out = (int64_t)(value << unused) >> unused;
    else if (value > INT64_MAX)
        return false;
    else
        *out = type == MT_GGUF_BOOL ? value != 0 : (int64_t)value;
    return true;
}

static bool to_float(mt_gguf_type type, const uint8_t *data, double *out)
{
    int64_t number = 0;
    float single;
    if (type == MT_GGUF_F32) {
        memcpy(&single, data, sizeof(single));
        *out = (double)single;
    } else if (type == MT_GGUF_F64) {
        memcpy(out, data, sizeof(*out));
    } else if (type != MT_GGUF_BOOL && to_int(type, data, &number)) {
        *out = (double)number;
    } else {
        return false;
    }
    return true;
}

bool mt_gguf_int(const mt_gguf *g, const char *key, int64_t *out)
{
    const mt_gguf_key *k = find(g, key);
    return k && to_int(k->type, k->data, out);
}

bool mt_gguf_float(const mt_gguf *g, const char *key, double *out)
{
    const mt_gguf_key *k = find(g, key);
    return k && to_float(k->type, k->data, out);
}

bool mt_gguf_bool(const mt_gguf *g, const char *key, bool fallback)
{
    int64_t value = 0;
    return mt_gguf_int(g, key, &value) ? value != 0 : fallback;
}

const mt_gguf_array *mt_gguf_array_of(const mt_gguf *g, const char *key)
{
    const mt_gguf_key *k = find(g, key);
    return k && k->type == MT_GGUF_ARRAY ? &k->array : NULL;
}

mt_gguf_type mt_gguf_element(const mt_gguf_array *a)
{
    return a->type;
}

size_t mt_gguf_count(const mt_gguf_array *a)
{
    return a->count;
}

bool mt_gguf_array_string(const mt_gguf_array *a, size_t i, mt_gguf_text *out)
{
    if (i >= a->count || a->type != MT_GGUF_STRING)
        return false;
    *out = text_at(a->data + a->strings[i]);
    return true;
}

bool mt_gguf_array_int(const mt_gguf_array *a, size_t i, int64_t *out)
{
    return i < a->count && to_int(a->type, a->data + i * sizes[a->type], out);
}

bool mt_gguf_array_float(const mt_gguf_array *a, size_t i, double *out)
{
    return i < a->count && to_float(a->type, a->data + i * sizes[a->type], out);
}

bool mt_gguf_text_is(mt_gguf_text text, const char *s)
{
    return text.len == strlen(s) && memcmp(text.at, s, text.len) == 0;
}
