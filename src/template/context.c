#include "template/context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree.h"

/* The way from the root to the value at hand, innermost last. Only what some path of `trusted` still matches is looked
   at, which is little. */
typedef struct place {
    const struct place *parent;
    const char *key; /* NULL: an index */
} place;

typedef struct reader {
    mt_tpl_run *run;
    const mt_template_options *options;
    const mt_trusted_part **firsts; /* the first part of each string that has some, by string */
    size_t first_count;
} reader;

static bool read_value(reader *r, const json_t *json, const place *at, mt_tpl_value *out);

/* Whether the path's first len bytes lead to this place; compared from the last part to the first. */
static bool leads_to(const char *path, size_t len, const place *at)
{
    for (; at->parent; at = at->parent) {
        size_t begin = len;

        while (begin > 0 && path[begin - 1] != '.')
            begin--;
        if (len == 0)
            return false;
        if (!(len - begin == 1 && path[begin] == '*') &&
            !(at->key && strlen(at->key) == len - begin && memcmp(at->key, path + begin, len - begin) == 0))
            return false;
        len = begin ? begin - 1 : 0;
    }
    return len == 0;
}

static bool is_trusted(const reader *r, const place *at)
{
    const mt_template_options *options = r->options;

    for (size_t i = 0; i < options->trusted_count; i++)
        if (leads_to(options->trusted[i], strlen(options->trusted[i]), at))
            return true;
    return false;
}

/* A string of which the caller trusts parts; first is the first of them. */
static bool read_parts(reader *r, const json_t *json, const mt_trusted_part *first, mt_tpl_value *out)
{
    const mt_trusted_part *end = r->options->trusted_parts + r->options->trusted_part_count;
    const char *text = json_string_value(json);
    mt_tpl_build b;
    size_t at = 0;

    mt_tpl_build_init(&b, r->run);
    for (; first < end && first->string == json; first++) {
        mt_tpl_build_add(&b, text + at, first->bytes.begin - at, true);
        mt_tpl_build_add(&b, text + first->bytes.begin, first->bytes.end - first->bytes.begin, false);
        at = first->bytes.end;
    }
    mt_tpl_build_add(&b, text + at, json_string_length(json) - at, true);
    return mt_tpl_set_str(out, mt_tpl_build_end(&b));
}

static int by_string(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)(*(const mt_trusted_part *const *)a)->string;
    uintptr_t y = (uintptr_t)(*(const mt_trusted_part *const *)b)->string;

    return x < y ? -1 : x > y;
}

/* Makes strings that have trusted parts quick to find. */
static bool index_parts(reader *r)
{
    const mt_template_options *options = r->options;

    if (options->trusted_part_count == 0)
        return true;
    r->firsts = mt_tpl_alloc_array(r->run, options->trusted_part_count, sizeof(*r->firsts));
    if (!r->firsts)
        return false;
    for (size_t i = 0; i < options->trusted_part_count; i++)
        if (i == 0 || options->trusted_parts[i].string != options->trusted_parts[i - 1].string)
            r->firsts[r->first_count++] = &options->trusted_parts[i];
    qsort(r->firsts, r->first_count, sizeof(*r->firsts), by_string);
    return true;
}

static bool read_string(reader *r, const json_t *json, const place *at, mt_tpl_value *out)
{
    const mt_trusted_part wanted = {.string = json}, *key = &wanted;
    const mt_trusted_part **found =
        r->first_count ? bsearch(&key, r->firsts, r->first_count, sizeof(*r->firsts), by_string) : NULL;

    if (found)
        return read_parts(r, json, *found, out);
    return mt_tpl_set_str(
        out, mt_tpl_str_new(r->run, json_string_value(json), json_string_length(json), !is_trusted(r, at)));
}

static bool read_array(reader *r, const json_t *json, const place *at, mt_tpl_value *out)
{
    place inside = {.parent = at};
    mt_tpl_items items = {0};
    mt_tpl_value v;

    for (size_t i = 0; i < json_array_size(json); i++)
        if (!read_value(r, json_array_get(json, i), &inside, &v) || !mt_tpl_items_add(r->run, &items, v))
            return false;
    return mt_tpl_items_end(r->run, &items, MT_TPL_LIST, out);
}

static bool read_object(reader *r, const json_t *json, const place *at, mt_tpl_value *out)
{
    mt_tpl_dict *dict = mt_tpl_dict_new(r->run, json_object_size(json));
    json_t *object = (json_t *)(uintptr_t)json, *item; /* the macro wants it writable */
    const char *name;

    if (!dict)
        return false;
    json_object_foreach(object, name, item)
    {
        place inside = {.parent = at, .key = name};
        mt_tpl_value key, value;

        /* The names of the context itself are the caller's. */
        if (!mt_tpl_set_str(&key, mt_tpl_str_new(r->run, name, strlen(name), at->parent != NULL)) ||
            !read_value(r, item, &inside, &value) || !mt_tpl_dict_set(r->run, dict, key, value))
            return false;
    }
    *out = (mt_tpl_value){.kind = MT_TPL_DICT, .as.dict = dict};
    return true;
}

/* An integer of more than 64 bits, or a number that no double holds. */
static bool read_wide(reader *r, const char *text, mt_tpl_value *out)
{
    if (!mt_json_wide_is_int(text)) {
        *out = mt_tpl_float(*text == '-' ? -INFINITY : INFINITY);
        return true;
    }
    *out = (mt_tpl_value){.kind = MT_TPL_BIG, .as.str = mt_tpl_str_new(r->run, text, strlen(text), false)};
    return out->as.str != NULL;
}

static bool read_any(reader *r, const json_t *json, const place *at, mt_tpl_value *out)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT: return read_object(r, json, at, out);
    case JSON_ARRAY: return read_array(r, json, at, out);
    case JSON_STRING: return read_string(r, json, at, out);
    case JSON_INTEGER: *out = mt_tpl_int(json_integer_value(json)); break;
    case JSON_REAL:
        if (mt_json_wide(json))
            return read_wide(r, mt_json_wide(json), out);
        *out = mt_tpl_float(json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE: *out = mt_tpl_bool(json_is_true(json)); break;
    case JSON_NULL: *out = mt_tpl_none(); break;
    }
    return true;
}

static bool read_value(reader *r, const json_t *json, const place *at, mt_tpl_value *out)
{
    bool ok = mt_tpl_enter(r->run);

    if (ok) {
        ok = read_any(r, json, at, out);
        mt_tpl_leave(r->run);
    }
    return ok;
}

bool mt_tpl_from_json(mt_tpl_run *run, const json_t *json, const mt_template_options *options, mt_tpl_value *out)
{
    reader r = {.run = run, .options = options};
    const place root = {.parent = NULL};

    return index_parts(&r) && read_value(&r, json, &root, out);
}
