/* config.json as a tree of mt_config, one for each object, made when the text is parsed: so objects can be handed out
   from a const root and live as long as it does.

   Numbers are decoded as doubles: some files have integers that no int64_t holds (tokenizer lengths of 1e30), and every
   integer that a config needs is exact in a double. */
#include "weights/config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "weights/limits.h"

#define EXACT_INT 9007199254740992.0 /* 2^53 */

typedef struct child {
    const char *key;
    mt_config *config;
} child;

struct mt_config {
    const json_t *object;
    const mt_config *parent; /* NULL for the root */
    const char *key;         /* the parent's key for it */
    child *children;         /* its values that are objects, sorted by key */
    size_t count;
    json_t *root;    /* owned by the root */
    mt_arena *arena; /* owned by the root: holds all but the root itself */
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const child *)a)->key, ((const child *)b)->key);
}

static bool check_depth(const json_t *value, unsigned depth, mt_error *err)
{
    if (!json_is_object(value) && !json_is_array(value))
        return true;
    if (depth > MT_LIMIT_JSON_DEPTH)
        return mt_fail(err, MT_E_INVALID, "more than %d objects or arrays inside one another", MT_LIMIT_JSON_DEPTH);
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!check_depth(json_array_get(value, i), depth + 1, err))
            return false;
    }
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)value, key, item) { /* the macro needs a non-const pointer */
        if (!check_depth(item, depth + 1, err))
            return false;
    }
    return true;
}

/* Objects within arrays get no mt_config: no getter reaches them. */
static void wrap(mt_config *c, mt_arena *arena)
{
    json_t *object = (json_t *)(uintptr_t)c->object;
    const char *key;
    json_t *value;
    size_t objects = 0;
    json_object_foreach(object, key, value)
        objects += json_is_object(value) ? 1 : 0;
    if (objects == 0)
        return;
    c->children = mt_arena_alloc(arena, objects * sizeof(*c->children));
    json_object_foreach(object, key, value) {
        if (!json_is_object(value))
            continue;
        mt_config *sub = mt_arena_alloc(arena, sizeof(*sub));
        *sub = (mt_config){.object = value, .parent = c, .key = key};
        c->children[c->count++] = (child){.key = key, .config = sub};
        wrap(sub, arena);
    }
    qsort(c->children, c->count, sizeof(*c->children), by_key);
}

/* Whether parsing stopped at NaN, which Python writes and jansson refuses. */
static bool at_no_number(const char *text, size_t len, int position)
{
    size_t end = position > 0 ? (size_t)position : 0, begin = end > 9 ? end - 9 : 0;
    end = end + 9 < len ? end + 9 : len;
    return begin < end && memmem(text + begin, end - begin, "NaN", 3);
}

/* The text with a number larger than any setting in the place of Infinity, which Python writes as a bound that there is
   not (time_step_limit); NULL: it has none. */
static char *without_infinity(const char *text, size_t len)
{
    static const char word[] = "Infinity", number[] = "1e308   ";
    char *out = NULL;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && len - i >= sizeof(word) - 1 && memcmp(text + i, word, sizeof(word) - 1) == 0) {
            if (!out)
                out = memcpy(mt_alloc(len), text, len);
            memcpy(out + i, number, sizeof(number) - 1);
        }
    }
    return out;
}

static json_t *load(const char *text, size_t len, mt_error *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, len, JSON_DECODE_INT_AS_REAL, &why);
    char *finite = root ? NULL : without_infinity(text, len);
    if (finite)
        root = json_loadb(finite, len, JSON_DECODE_INT_AS_REAL, &why);
    mt_free(finite);
    if (root)
        return root;
    if (at_no_number(text, len, why.position))
        mt_fail(err, MT_E_INVALID, "line %d holds NaN, which JSON does not have; write null or a number there",
                why.line);
    else
        mt_fail(err, MT_E_INVALID, "line %d is not valid JSON: %s", why.line, why.text);
    return NULL;
}

mt_config *mt_config_parse(const char *text, size_t len, mt_error *err)
{
    if (len > MT_LIMIT_CONFIG_BYTES) {
        mt_fail(err, MT_E_TOO_LARGE, "the text has %zu bytes; at most %u are read", len, MT_LIMIT_CONFIG_BYTES);
        return NULL;
    }
    json_t *root = load(text, len, err);
    if (!root)
        return NULL;
    mt_config *c = mt_alloc(sizeof(*c));
    c->root = root;
    c->object = root;
    c->arena = mt_arena_new(0);
    bool ok = json_is_object(root) || mt_fail(err, MT_E_INVALID, "the text is JSON but no object");
    if (!ok || !check_depth(root, 1, err)) {
        mt_config_free(c);
        return NULL;
    }
    wrap(c, c->arena);
    return c;
}

mt_config *mt_config_read(const char *path, mt_error *err)
{
    mt_buf text;
    mt_buf_init(&text, MT_LIMIT_CONFIG_BYTES);
    mt_config *c = NULL;
    if (mt_file_read(&text, path, err)) {
        c = mt_config_parse(text.data ? text.data : "", text.len, err);
        if (!c)
            mt_fail_within(err, "\"%s\"", path);
    }
    mt_buf_free(&text);
    return c;
}

void mt_config_free(mt_config *c)
{
    if (!c)
        return;
    json_decref(c->root);
    mt_arena_free(c->arena);
    mt_free(c);
}

static const json_t *get(const mt_config *c, const char *key)
{
    const json_t *value = json_object_get(c->object, key);
    return json_is_null(value) ? NULL : value;
}

const mt_config *mt_config_object(const mt_config *c, const char *key)
{
    child wanted = {.key = key};
    const child *found = c->count ? bsearch(&wanted, c->children, c->count, sizeof(wanted), by_key) : NULL;
    return found ? found->config : NULL;
}

bool mt_config_has(const mt_config *c, const char *key)
{
    return get(c, key) != NULL;
}

bool mt_config_names(const mt_config *c, const char *key)
{
    return json_object_get(c->object, key) != NULL;
}

bool mt_config_empty(const mt_config *c)
{
    return json_object_size(c->object) == 0;
}

const char *mt_config_string(const mt_config *c, const char *key, const char *fallback)
{
    const char *s = json_string_value(get(c, key));
    return s ? s : fallback;
}

bool mt_config_bool(const mt_config *c, const char *key, bool fallback)
{
    const json_t *value = get(c, key);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

/* Writes the value as a message quotes it. */
static void quote(const json_t *value, char *out, size_t size)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_TRUE] = "true", [JSON_FALSE] = "false"};
    if (json_is_string(value))
        snprintf(out, size, "\"%.60s\"", json_string_value(value));
    else if (json_is_number(value))
        snprintf(out, size, "%.16g", json_number_value(value));
    else
        snprintf(out, size, "%s", kinds[json_typeof(value)]);
}

/* Writes "text_config.rope_scaling.factor"; cut off where a malicious file makes it too long. */
static size_t path_of(const mt_config *c, char *out, size_t size)
{
    if (!c->parent)
        return 0;
    size_t len = path_of(c->parent, out, size);
    int more = snprintf(out + len, size - len, "%.60s.", c->key);
    return more < 0 || (size_t)more >= size - len ? size - 1 : len + (size_t)more;
}

/* Writes "an integer from 1 to 64"; huge bounds are left out. */
static void say_range(char *out, size_t size, const char *kind, double min, double max)
{
    if (max > EXACT_INT)
        snprintf(out, size, "%s of at least %.15g", kind, min);
    else
        snprintf(out, size, "%s from %.15g to %.15g", kind, min, max);
}

static bool fail_range(const mt_config *c, const char *key, const json_t *value, const char *kind, double min,
                       double max, mt_error *err)
{
    char path[256] = "", found[80], range[80];
    path_of(c, path, sizeof(path));
    say_range(range, sizeof(range), kind, min, max);
    if (!value)
        return mt_fail(err, MT_E_INVALID, "the config has no \"%s%s\"; it must be %s", path, key, range);
    quote(value, found, sizeof(found));
    return mt_fail(err, MT_E_INVALID, "the config's \"%s%s\" is %s; it must be %s", path, key, found, range);
}

bool mt_config_int(const mt_config *c, const char *key, int64_t fallback, int64_t min, int64_t max, int64_t *out,
                   mt_error *err)
{
    const json_t *value = get(c, key);
    int64_t got = fallback;
    bool ok = true;
    if (value) {
        double number = json_number_value(value);
        ok = json_is_number(value) && number == trunc(number) && fabs(number) <= EXACT_INT;
        got = ok ? (int64_t)number : 0;
    }
    if (!ok || got < min || got > max)
        return fail_range(c, key, value, "an integer", (double)min, (double)max, err);
    *out = got;
    return true;
}

bool mt_config_float(const mt_config *c, const char *key, double fallback, double min, double max, double *out,
                     mt_error *err)
{
    const json_t *value = get(c, key);
    double got = value ? json_number_value(value) : fallback;
    if ((value && !json_is_number(value)) || !(got >= min && got <= max))
        return fail_range(c, key, value, "a number", min, max, err);
    *out = got;
    return true;
}

size_t mt_config_array(const mt_config *c, const char *key)
{
    return json_array_size(get(c, key));
}

const char *mt_config_array_string(const mt_config *c, const char *key, size_t i)
{
    return json_string_value(json_array_get(get(c, key), i));
}

int64_t mt_config_array_int(const mt_config *c, const char *key, size_t i, int64_t fallback)
{
    const json_t *item = json_array_get(get(c, key), i);
    double number = json_number_value(item);
    bool ok = json_is_number(item) && number == trunc(number) && fabs(number) <= EXACT_INT;
    return ok ? (int64_t)number : fallback;
}

double mt_config_array_float(const mt_config *c, const char *key, size_t i, double fallback)
{
    const json_t *item = json_array_get(get(c, key), i);
    return json_is_number(item) ? json_number_value(item) : fallback;
}
