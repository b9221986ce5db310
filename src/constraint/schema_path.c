/* Messages about schemas that cannot be enforced, paths within schemas, and regular expressions, which are read
   once. */
#include <string.h>

#include "base/compiler.h"
#include "constraint/limits.h"
#include "constraint/schema_inside.h"

bool mt_schema_fail(mt_schema_reader *r, const char *path, const char *keyword, const char *what)
{
    return mt_fail(r->err, MT_E_INVALID, "\"%s\" at \"%.300s\" of the schema %s", keyword, path, what);
}

bool mt_schema_loosen(mt_schema_reader *r, const char *path, const char *keyword, const char *what)
{
    if (r->strict)
        return mt_schema_fail(r, path, keyword, what);
    mt_grammar_leave_out(r->j->g, keyword);
    return true;
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

const mt_regex *mt_schema_regex(mt_schema_reader *r, const char *path, const char *keyword, const char *text,
                                size_t len)
{
    mt_schema_regex_known *known = &r->regexes[((uintptr_t)text >> 3) % MT_COUNT(r->regexes)];
    mt_error err = {0};
    const mt_regex *regex;

    if (known->text == text && known->regex)
        return known->regex;
    if (++r->patterns > MT_LIMIT_SCHEMA_PATTERNS) {
        mt_schema_fail(r, path, keyword, "is one of too many patterns: use fewer");
        return NULL;
    }
    regex = mt_regex_read(r->arena, text, len, true, &err);
    *known = (mt_schema_regex_known){.text = text, .regex = regex};
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

bool mt_schema_add_below(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path,
                         size_t parent)
{
    if (json_is_true(schema) || known(place, schema))
        return true;
    if (json_is_false(schema)) {
        place->never = true;
        return true;
    }
    if (!json_is_object(schema))
        return mt_fail(r->err, MT_E_INVALID, "the schema has at \"%.300s\" neither an object nor true or false", path);
    if (place->count == MT_LIMIT_SCHEMA_PARTS) {
        r->crowded = true;
        return mt_schema_fail(r, path, "allOf", "applies too many schemas to one place: use fewer");
    }
    place->part[place->count] = (mt_schema_part){.schema = schema, .path = path, .parent = (uint16_t)parent};
    place->count++;
    return true;
}
