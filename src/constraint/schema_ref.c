/* Finds the targets of references within the same schema: by JSON pointer, "$anchor" or "$id". */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/words.h"
#include "constraint/limits.h"
#include "constraint/schema_inside.h"

enum { DEPTH = 64, LOOK = 4096 }; /* LOOK: values looked at between two checks of patience */

/* The next part of a JSON pointer, with ~0, ~1 and %XX decoded. */
static bool next_key(const char **at, char *key, size_t size)
{
    size_t len = 0;

    for (; **at && **at != '/'; (*at)++) {
        char c = **at;

        if (c == '%' && strspn(*at + 1, "0123456789abcdefABCDEF") >= 2) {
            const char digits[3] = {(*at)[1], (*at)[2], '\0'};

            c = (char)strtol(digits, NULL, 16);
            *at += 2;
        } else if (c == '~' && ((*at)[1] == '0' || (*at)[1] == '1')) {
            c = (*at)[1] == '0' ? '~' : '/';
            (*at)++;
        }
        if (len + 1 == size)
            return false;
        key[len++] = c;
    }
    key[len] = '\0';
    return true;
}

const json_t *mt_schema_pointer(const json_t *root, const char *pointer)
{
    const json_t *target = root;
    const char *at = pointer;
    char key[MT_LIMIT_SCHEMA_PATH];

    while (target && *at == '/') {
        at++;
        if (!next_key(&at, key, sizeof(key)))
            target = NULL;
        else if (json_is_array(target))
            target = json_array_get(target, (size_t)strtoul(key, NULL, 10));
        else
            target = json_object_get(target, key);
    }
    return target;
}

/* A search for a schema with this keyword and value. */
typedef struct search {
    const char *keyword, *value;
    const json_t *found;
    size_t count;
    mt_schema_reader *r;
} search;

/* Whether a keyword holds values, in which objects that look like schemas are none. */
static bool holds_values(const char *key)
{
    static const char *const keys[] = {"enum", "const", "default", "examples", "example", NULL};

    return mt_words_have(keys, key);
}

/* Whether the address is the name, or ends with it. */
static bool ends_with(const char *address, const char *name)
{
    const size_t len = strlen(address), end = strlen(name);

    return len >= end && strcmp(address + len - end, name) == 0 && (len == end || address[len - end - 1] == '/');
}

/* Whether the values looked at in all searches are too many, or patience is over, which makes the grammar full. */
static bool tired(mt_schema_reader *r)
{
    if (++r->sought % LOOK == 0 && mt_grammar_stopped(r->j->g))
        mt_grammar_fill(r->j->g, "values to look for references in", r->sought);
    return r->sought > MT_LIMIT_SCHEMA_SOUGHT || mt_grammar_full(r->j->g);
}

static void look_for(search *s, const json_t *at, size_t depth)
{
    const char *own = json_string_value(json_object_get(at, s->keyword)), *key;
    json_t *value;
    size_t i;

    if (own && ends_with(own, s->value)) {
        s->found = at;
        s->count++;
    }
    if (depth == DEPTH || tired(s->r))
        return;
    json_array_foreach((json_t *)at, i, value)
        look_for(s, value, depth + 1);
    json_object_foreach((json_t *)at, key, value)
        if (!holds_values(key))
            look_for(s, value, depth + 1);
}

/* The only schema that has the keyword with this value; NULL: none or several. */
static const json_t *find(mt_schema_reader *r, const char *keyword, const char *value)
{
    search s = {.keyword = keyword, .value = value, .r = r};

    look_for(&s, r->root, 0);
    return s.count == 1 && r->sought <= MT_LIMIT_SCHEMA_SOUGHT ? s.found : NULL;
}

static const json_t *find_resource(mt_schema_reader *r, const char *name, size_t len)
{
    char base[MT_LIMIT_SCHEMA_PATH];
    const json_t *found;

    if (len == 0)
        return r->root;
    if (len >= sizeof(base))
        return NULL;
    memcpy(base, name, len);
    base[len] = '\0';
    found = find(r, "$id", base);
    return found ? found : find(r, "id", base);
}

static const json_t *find_anchor(mt_schema_reader *r, const char *hash)
{
    const json_t *found = find(r, "$anchor", hash + 1);

    if (!found)
        found = find(r, "$dynamicAnchor", hash + 1);
    if (!found)
        found = find(r, "$id", hash);
    return found ? found : find(r, "id", hash);
}

/* hash: where the fragment begins; NULL: there is none. */
static const json_t *find_target(mt_schema_reader *r, const char *text, const char *hash)
{
    const json_t *target = find_resource(r, text, hash ? (size_t)(hash - text) : strlen(text));

    if (target && hash && hash[1] == '/')
        return mt_schema_pointer(target, hash + 1);
    return target && hash && hash[1] ? find_anchor(r, hash) : target;
}

/* The whole schema is searched for an "$anchor" or "$id", so what was found is kept. */
const json_t *mt_schema_target(mt_schema_reader *r, const json_t *ref, const char *path)
{
    const char *text = json_string_value(ref), *hash = text ? strchr(text, '#') : NULL;
    mt_schema_target_known *known = &r->targets[((uintptr_t)ref >> 4) % MT_COUNT(r->targets)];
    const json_t *target;

    if (!text) {
        mt_schema_fail(r, path, "$ref", "is not a string: refer to a place of the same schema");
        return NULL;
    }
    if (known->ref == ref)
        target = known->target;
    else {
        target = find_target(r, text, hash);
        if (text[0] != '#' || text[1] != '/')
            *known = (mt_schema_target_known){.ref = ref, .target = target};
    }
    if (!target)
        mt_schema_fail(r, path, "$ref",
                       r->sought > MT_LIMIT_SCHEMA_SOUGHT
                           ? "is one of too many by \"$anchor\" or \"$id\" in a schema this large: refer by \"#/\""
                           : "refers to a place that the schema does not have");
    return target;
}
