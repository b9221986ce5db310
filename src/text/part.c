/* See part.h. */
#include "text/part.h"

#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"

enum { MOST_SHOWN = 80 };

static bool fail_size(mt_error *err)
{
    return mt_fail(err, MT_E_TOO_LARGE, "its settings are larger than any tokenizer's; download the file again");
}

static char *keep(mt_arena *arena, const char *s, size_t len)
{
    char *copy = mt_arena_alloc(arena, len + 1);

    return copy && len > 0 ? memcpy(copy, s, len) : copy;
}

static mt_tok_node *read_value(mt_json_reader *json, mt_json_event event, mt_arena *arena, mt_error *err);

/* Reads the values of a container up to its end. */
static bool read_members(mt_tok_node *container, mt_json_reader *json, mt_arena *arena, mt_error *err)
{
    mt_tok_node **tail = &container->child;

    for (;;) {
        mt_json_event event = mt_json_next(json);
        const char *key = NULL;

        if (event == MT_JSON_OBJECT_END || event == MT_JSON_ARRAY_END)
            return true;
        if (event == MT_JSON_KEY) {
            key = keep(arena, json->str, json->len);
            if (!key)
                return fail_size(err);
            event = mt_json_next(json);
        }
        *tail = read_value(json, event, arena, err);
        if (!*tail)
            return false;
        (*tail)->key = key;
        tail = &(*tail)->next;
    }
}

/* Recursive; the reader fails at MT_LIMIT_JSON_DEPTH. */
static mt_tok_node *read_value(mt_json_reader *json, mt_json_event event, mt_arena *arena, mt_error *err)
{
    mt_tok_node *node;

    if (event == MT_JSON_ERROR || event == MT_JSON_END) {
        mt_fail(err, MT_E_INVALID, "%s; download the file again", json->error.text);
        return NULL;
    }
    node = mt_arena_alloc(arena, sizeof(*node));
    if (!node) {
        fail_size(err);
        return NULL;
    }
    node->kind = event;
    if (event == MT_JSON_STRING) {
        node->str = keep(arena, json->str, json->len);
        node->len = json->len;
        if (!node->str) {
            fail_size(err);
            return NULL;
        }
    } else if (event == MT_JSON_NUMBER) {
        node->integer = json->integer;
        node->is_int = json->is_int;
    } else if ((event == MT_JSON_OBJECT_BEGIN || event == MT_JSON_ARRAY_BEGIN) &&
               !read_members(node, json, arena, err)) {
        return NULL;
    }
    return node;
}

bool mt_tok_key_is(const mt_json_reader *json, const char *key)
{
    return json->len == strlen(key) && memcmp(json->str, key, json->len) == 0;
}

bool mt_tok_node_read(const mt_tok_node **node, mt_json_reader *json, mt_arena *arena, mt_error *err)
{
    *node = read_value(json, mt_json_next(json), arena, err);
    return *node != NULL;
}

const mt_tok_node *mt_tok_node_get(const mt_tok_node *object, const char *key)
{
    const mt_tok_node *found = NULL;

    if (object->kind != MT_JSON_OBJECT_BEGIN)
        return NULL;
    for (const mt_tok_node *n = object->child; n; n = n->next)
        if (strcmp(n->key, key) == 0)
            found = n;
    return found && found->kind != MT_JSON_NULL ? found : NULL;
}

bool mt_tok_parts_read(const mt_tok_node *node, const char *section, const char *list_key, mt_tok_adder *add, void *to,
                       mt_error *err)
{
    const mt_tok_node *type = mt_tok_node_get(node, "type"), *list;
    mt_tok_part part = {.node = node, .section = section, .err = err};

    if (!type || type->kind != MT_JSON_STRING)
        return mt_fail(err, MT_E_INVALID,
                       "its \"%s\" has a part without a \"type\"; save it with a newer tokenizers library", section);
    part.type = type->str;
    if (!mt_tok_part_is(&part, "Sequence"))
        return add(to, &part);
    list = mt_tok_part_array(&part, list_key);
    for (const mt_tok_node *n = list ? list->child : NULL; n; n = n->next)
        if (!mt_tok_parts_read(n, section, list_key, add, to, err))
            return false;
    return list != NULL;
}

bool mt_tok_part_is(const mt_tok_part *part, const char *type)
{
    return strcmp(part->type, type) == 0;
}

static bool fail_value(const mt_tok_part *part, const char *key, const char *wanted)
{
    return mt_fail(part->err, MT_E_INVALID, "\"%s\" of the %s \"%.*s\" must be %s; download the file again", key,
                   part->section, MOST_SHOWN, part->type, wanted);
}

bool mt_tok_part_string(const mt_tok_part *part, const char *key, const char **str, size_t *len)
{
    const mt_tok_node *n = mt_tok_node_get(part->node, key);

    if (!n || n->kind != MT_JSON_STRING)
        return fail_value(part, key, "a string");
    *str = n->str;
    *len = n->len;
    return true;
}

bool mt_tok_part_char(const mt_tok_part *part, const char *key, uint32_t *c)
{
    const mt_tok_node *n = mt_tok_node_get(part->node, key);

    if (!n || n->kind != MT_JSON_STRING || n->len == 0 || n->len != mt_utf8_size(n->str[0]))
        return fail_value(part, key, "one character");
    *c = mt_utf8_at(n->str);
    return true;
}

static bool as_bool(const mt_tok_part *part, const char *key, const mt_tok_node *n, bool *value)
{
    if (n->kind != MT_JSON_TRUE && n->kind != MT_JSON_FALSE)
        return fail_value(part, key, "true or false");
    *value = n->kind == MT_JSON_TRUE;
    return true;
}

bool mt_tok_part_bool(const mt_tok_part *part, const char *key, bool *value)
{
    const mt_tok_node *n = mt_tok_node_get(part->node, key);

    return n ? as_bool(part, key, n, value) : fail_value(part, key, "true or false");
}

bool mt_tok_part_bool_or(const mt_tok_part *part, const char *key, bool otherwise, bool *value)
{
    const mt_tok_node *n = mt_tok_node_get(part->node, key);

    *value = otherwise;
    return !n || as_bool(part, key, n, value);
}

bool mt_tok_part_count(const mt_tok_part *part, const char *key, size_t *value)
{
    const mt_tok_node *n = mt_tok_node_get(part->node, key);

    if (!n || n->kind != MT_JSON_NUMBER || !n->is_int || n->integer < 0 || n->integer > INT32_MAX)
        return fail_value(part, key, "a number from 0 up");
    *value = (size_t)n->integer;
    return true;
}

const mt_tok_node *mt_tok_part_array(const mt_tok_part *part, const char *key)
{
    const mt_tok_node *n = mt_tok_node_get(part->node, key);

    if (n && n->kind == MT_JSON_ARRAY_BEGIN)
        return n;
    fail_value(part, key, "a list");
    return NULL;
}

bool mt_tok_part_pattern(const mt_tok_part *part, const char **str, size_t *len, bool *regex)
{
    static const char key[] = "pattern";
    const mt_tok_node *pattern = mt_tok_node_get(part->node, key), *plain, *n;

    plain = pattern ? mt_tok_node_get(pattern, "String") : NULL;
    n = plain || !pattern ? plain : mt_tok_node_get(pattern, "Regex");
    if (!n || n->kind != MT_JSON_STRING)
        return fail_value(part, key, "{\"String\": ...} or {\"Regex\": ...}");
    *str = n->str;
    *len = n->len;
    *regex = !plain;
    return true;
}

bool mt_tok_part_choice(const mt_tok_part *part, const char *key, const char *const *names, int *choice)
{
    const mt_tok_node *n = mt_tok_node_get(part->node, key);

    if (!n || n->kind != MT_JSON_STRING)
        return fail_value(part, key, "a string");
    for (int i = 0; names[i]; i++) {
        if (strcmp(n->str, names[i]) == 0) {
            *choice = i;
            return true;
        }
    }
    return mt_fail(part->err, MT_E_UNSUPPORTED,
                   "\"%s\" of the %s \"%s\" is \"%.*s\", which motet does not know; see docs/tokenizers.md", key,
                   part->section, part->type, MOST_SHOWN, n->str);
}

bool mt_tok_part_unknown(const mt_tok_part *part)
{
    return mt_fail(part->err, MT_E_UNSUPPORTED,
                   "it has a %s of type \"%.*s\", which motet does not know; docs/tokenizers.md lists those it does",
                   part->section, MOST_SHOWN, part->type);
}
