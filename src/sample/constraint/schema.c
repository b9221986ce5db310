/* Schemas that apply to the same place (a schema, what it refers to, allOf, the properties of several) are gathered
   into a list. Alternatives multiply such lists out, one at a time. A list that has none left says what its values
   look like. Each different list is one rule, found again by its members, so that recursion ends; rules wait in a
   queue, so that nothing here recurses however deep a schema is. */
#include "sample/constraint/schema.h"

#include <string.h>

#include "base/alloc.h"
#include "sample/constraint/regex.h"
#include "sample/constraint/schema_inside.h"

bool mt_schema_fail(mt_schema_reader *r, const char *path, const char *keyword, const char *what)
{
    return mt_fail(r->err, MT_E_INVALID, "\"%s\" at \"%.300s\" of the schema %s", keyword, path, what);
}

const char *mt_schema_path(mt_schema_reader *r, const char *path, const char *keyword, const char *key)
{
    if (strlen(path) > MT_LIMIT_SCHEMA_PATH)
        return path;
    return key ? mt_arena_printf(r->arena, "%s/%s/%.100s", path, keyword, key)
               : mt_arena_printf(r->arena, "%s/%s", path, keyword);
}

const char *mt_schema_path_index(mt_schema_reader *r, const char *path, const char *keyword, size_t index)
{
    if (strlen(path) > MT_LIMIT_SCHEMA_PATH)
        return path;
    return mt_arena_printf(r->arena, "%s/%s/%zu", path, keyword, index);
}

/* The next part of a JSON pointer, with ~0, ~1 and %XX undone. */
static bool next_key(const char **at, char *key, size_t size)
{
    size_t len = 0;

    for (; **at && **at != '/'; (*at)++) {
        char c = **at;

        if (c == '~' && ((*at)[1] == '0' || (*at)[1] == '1')) {
            c = (*at)[1] == '0' ? '~' : '/';
            (*at)++;
        } else if (c == '%' && strspn(*at + 1, "0123456789abcdefABCDEF") >= 2) {
            const char digits[3] = {(*at)[1], (*at)[2], '\0'};

            c = (char)strtol(digits, NULL, 16);
            *at += 2;
        }
        if (len + 1 == size)
            return false;
        key[len++] = c;
    }
    key[len] = '\0';
    return true;
}

const json_t *mt_schema_target(mt_schema_reader *r, const json_t *ref, const char *path)
{
    const char *at = json_string_value(ref);
    const json_t *target = r->root;
    char key[MT_LIMIT_SCHEMA_PATH];

    if (!at || *at++ != '#' || (*at && *at != '/')) {
        mt_schema_fail(r, path, "$ref", "does not begin with \"#/\": refer to a place of the same schema");
        return NULL;
    }
    while (target && *at == '/') {
        at++;
        if (!next_key(&at, key, sizeof(key)))
            target = NULL;
        else if (json_is_array(target))
            target = json_array_get(target, (size_t)strtoul(key, NULL, 10));
        else
            target = json_object_get(target, key);
    }
    if (!target)
        mt_schema_fail(r, path, "$ref", "refers to a place that the schema does not have");
    return target;
}

const struct mt_regex *mt_schema_regex(mt_schema_reader *r, const char *path, const char *keyword, const char *text,
                                       size_t len)
{
    mt_error err = {0};
    const mt_regex *regex;

    if (++r->patterns > MT_LIMIT_SCHEMA_PATTERNS) {
        mt_schema_fail(r, path, keyword, "is one of too many patterns: use fewer");
        return NULL;
    }
    regex = mt_regex_read(r->arena, text, len, true, &err);
    if (!regex)
        mt_fail(r->err, MT_E_INVALID, "\"%s\" at \"%.300s\" of the schema: %.500s", keyword, path, err.text);
    return regex;
}

static bool known(const mt_schema_place *place, const json_t *schema)
{
    for (size_t i = 0; i < place->count; i++)
        if (place->part[i].schema == schema)
            return true;
    return false;
}

static bool add_one(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path)
{
    if (json_is_true(schema) || known(place, schema))
        return true;
    if (json_is_false(schema)) {
        place->never = true;
        return true;
    }
    if (!json_is_object(schema))
        return mt_fail(r->err, MT_E_INVALID, "the schema has at \"%.300s\" neither an object nor true or false", path);
    if (place->count == MT_LIMIT_SCHEMA_PARTS)
        return mt_schema_fail(r, path, "allOf", "applies too many schemas to one place: use fewer");
    place->part[place->count++] = (mt_schema_part){.schema = schema, .path = path};
    return mt_schema_check_keywords(r, schema, path);
}

/* What was added may refer to more, which is added behind it. */
bool mt_schema_add(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path)
{
    size_t i = place->count;

    if (!add_one(r, place, schema, path))
        return false;
    for (; i < place->count; i++) {
        const mt_schema_part part = place->part[i];
        const json_t *ref = json_object_get(part.schema, "$ref"), *all = json_object_get(part.schema, "allOf");
        const json_t *target = ref ? mt_schema_target(r, ref, part.path) : NULL;

        if (ref && (!target || !add_one(r, place, target, json_string_value(ref))))
            return false;
        if (all && !json_is_array(all))
            return mt_schema_fail(r, part.path, "allOf", "is not a list: give a list of schemas");
        for (size_t k = 0; k < json_array_size(all); k++)
            if (!add_one(r, place, json_array_get(all, k), mt_schema_path_index(r, part.path, "allOf", k)))
                return false;
    }
    return true;
}

static bool same_place(const mt_schema_place *a, const mt_schema_place *b)
{
    if (a->count != b->count || a->never != b->never)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->part[i].schema != b->part[i].schema || a->part[i].split != b->part[i].split ||
            a->part[i].split_one != b->part[i].split_one)
            return false;
    return true;
}

bool mt_schema_call(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out)
{
    mt_schema_todo *made;

    if (place->never) {
        *out = mt_grammar_never(r->j->g);
        return true;
    }
    if (place->count == 0) {
        *out = mt_json_value(r->j);
        return true;
    }
    for (size_t i = 0; i < r->todo_count; i++)
        if (same_place(&r->todo[i]->place, place)) {
            *out = mt_grammar_call(r->j->g, r->todo[i]->rule);
            return true;
        }
    if (r->todo_count == MT_LIMIT_SCHEMA_RULES)
        return mt_fail(r->err, MT_E_INVALID, "the schema has more than %d different places; make it smaller",
                       MT_LIMIT_SCHEMA_RULES);
    if (r->todo_count == r->todo_cap) {
        const size_t cap = r->todo_cap ? 2 * r->todo_cap : 64;

        r->todo = mt_realloc(r->todo, r->todo_cap * sizeof(*r->todo), cap * sizeof(*r->todo));
        r->todo_cap = cap;
    }
    made = mt_arena_alloc(r->arena, sizeof(*made));
    made->place = *place;
    made->rule = mt_grammar_rule(r->j->g);
    r->todo[r->todo_count++] = made;
    *out = mt_grammar_call(r->j->g, made->rule);
    return true;
}

static bool check_one_of(mt_schema_reader *r, const mt_schema_part *part, const json_t *list)
{
    if (json_array_size(list) > MT_LIMIT_SCHEMA_RULES)
        return mt_schema_fail(r, part->path, "oneOf", "has too many alternatives: use fewer, or \"enum\"");
    for (size_t a = 0; a < json_array_size(list) && !mt_grammar_stopped(r->j->g); a++)
        for (size_t b = a + 1; b < json_array_size(list); b++)
            if (!mt_schema_apart(r, json_array_get(list, a), json_array_get(list, b)))
                return mt_schema_fail(r, part->path, "oneOf",
                                      "has alternatives that a value may satisfy together: use \"anyOf\", or give each "
                                      "another type or a required property with another constant");
    return true;
}

/* A place with alternatives is one of the places that have each of them in addition. */
static bool split(mt_schema_reader *r, const mt_schema_place *place, size_t at, const char *keyword, mt_expr *out)
{
    const json_t *list = json_object_get(place->part[at].schema, keyword);
    const size_t count = json_array_size(list);
    const bool one = strcmp(keyword, "oneOf") == 0;
    mt_expr *parts;
    bool ok = true;

    if (!json_is_array(list) || count == 0)
        return mt_schema_fail(r, place->part[at].path, keyword, "is not a list of schemas: give one");
    if (one && !check_one_of(r, &place->part[at], list))
        return false;
    parts = mt_alloc_array(count, sizeof(*parts));
    for (size_t i = 0; ok && i < count; i++) {
        mt_schema_place other = *place;

        other.part[at].split |= !one;
        other.part[at].split_one |= one;
        ok = mt_schema_add(r, &other, json_array_get(list, i),
                           mt_schema_path_index(r, place->part[at].path, keyword, i)) &&
             mt_schema_call(r, &other, &parts[i]);
    }
    if (ok)
        *out = mt_grammar_any(r->j->g, parts, count);
    mt_free(parts);
    return ok;
}

/* The kinds of values that a place without alternatives allows. */
static bool kinds(mt_schema_reader *r, const mt_schema_place *place, unsigned types, mt_expr *out)
{
    mt_json *j = r->j;
    mt_expr parts[8];
    size_t count = 0;

    if (types & MT_TYPE_OBJECT && !mt_schema_object(r, place, &parts[count++]))
        return false;
    if (types & MT_TYPE_ARRAY && !mt_schema_array(r, place, &parts[count++]))
        return false;
    if (types & MT_TYPE_STRING && !mt_schema_string(r, place, &parts[count++]))
        return false;
    if (types & (MT_TYPE_INTEGER | MT_TYPE_NUMBER) &&
        !mt_schema_numbers(r, place, (types & MT_TYPE_NUMBER) != 0, &parts[count++]))
        return false;
    if (types & MT_TYPE_BOOLEAN)
        parts[count++] = mt_json_boolean(j);
    if (types & MT_TYPE_NULL)
        parts[count++] = mt_json_null(j);
    *out = mt_grammar_any(j->g, parts, count);
    return true;
}

static bool write_place(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out)
{
    unsigned types;
    bool constants;

    for (size_t i = 0; i < place->count; i++) {
        const json_t *schema = place->part[i].schema;

        if (!place->part[i].split && json_object_get(schema, "anyOf"))
            return split(r, place, i, "anyOf", out);
        if (!place->part[i].split_one && json_object_get(schema, "oneOf"))
            return split(r, place, i, "oneOf", out);
    }
    if (!mt_schema_types(r, place, &types) || !mt_schema_constants(r, place, types, &constants, out))
        return false;
    return constants || kinds(r, place, types, out);
}

static bool read_all(mt_schema_reader *r, const json_t *schema, bool object, mt_expr *out)
{
    json_t *only = json_pack("{s:s}", "type", "object");
    mt_schema_place place = {.count = 0};
    mt_expr value;
    bool ok = mt_schema_add(r, &place, schema, "#") && (!object || mt_schema_add(r, &place, only, "#")) &&
              mt_schema_call(r, &place, out);

    for (size_t i = 0; ok && i < r->todo_count && !mt_grammar_full(r->j->g); i++) { /* each may add more */
        ok = write_place(r, &r->todo[i]->place, &value);
        if (ok)
            mt_grammar_define(r->j->g, r->todo[i]->rule, value);
    }
    json_decref(only);
    return ok;
}

bool mt_schema_expr(mt_json *j, const json_t *schema, const json_t *root, bool object, mt_expr *out, mt_error *err)
{
    mt_schema_reader r = {.j = j, .arena = mt_arena_new(0), .root = root, .err = err};
    const bool ok = read_all(&r, schema, object, out);

    mt_free(r.todo);
    mt_arena_free(r.arena);
    return ok;
}
