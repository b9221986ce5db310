/* Whether two schemas exclude each other, so that no value satisfies both. Only simple cases are recognised. */
#include <string.h>

#include "base/compiler.h"
#include "constraint/limits.h"
#include "constraint/schema_inside.h"

enum {
    DEPTH = 4,
    LOOK = 1 << 14, /* steps between two checks of patience */
    GLANCE = 32,    /* steps that looking at the types of a schema counts as */
    TAGS = 16       /* properties that are tried to tell the alternatives of a oneOf apart */
};

/* Follows a schema that is only a $ref, a few times. */
const json_t *mt_schema_resolve(mt_schema_reader *r, const json_t *schema)
{
    mt_error *err = r->err, ignored;

    if (!json_object_get(schema, "$ref")) /* as most: an error of a kilobyte need not be cleared for them */
        return schema;
    mt_error_clear(&ignored);
    r->err = &ignored;
    for (int steps = 0; steps < 8 && json_object_get(schema, "$ref"); steps++) {
        const json_t *target = mt_schema_target(r, json_object_get(schema, "$ref"), "");

        if (!target)
            break;
        schema = target;
    }
    r->err = err;
    return schema;
}

/* Only types that are given: a schema whose keywords suggest a type still allows others. */
static unsigned types_of(mt_schema_reader *r, const json_t *schema)
{
    const mt_schema_part place = {.schema = schema, .path = ""};
    mt_error *err = r->err, ignored;
    unsigned types = MT_TYPE_ANY;

    if (!json_object_get(schema, "type"))
        return MT_TYPE_ANY;
    mt_error_clear(&ignored);
    r->err = &ignored;
    if (!mt_schema_own_types(r, &place, &types))
        types = MT_TYPE_ANY;
    r->err = err;
    return types;
}

/* The values that a schema lists; NULL where it lists none. *single: one value, not a list. */
static const json_t *values_of(const json_t *schema, bool *single)
{
    const json_t *constant = json_object_get(schema, "const");

    *single = constant != NULL;
    return constant ? constant : json_object_get(schema, "enum");
}

/* Counts work, as there may be many pairs of large schemas. Beyond a limit, or when patience is over, makes the grammar
   full: further results are meaningless, and returned at once. */
static bool tired(mt_schema_reader *r, size_t steps)
{
    mt_grammar *g = r->j->g;
    const size_t before = r->apart_steps;

    r->apart_steps += steps;
    if (r->apart_steps > MT_LIMIT_SCHEMA_APART || (before / LOOK != r->apart_steps / LOOK && mt_grammar_stopped(g)))
        mt_grammar_fill(g, "steps in telling its schemas apart", MT_LIMIT_SCHEMA_APART);
    return mt_grammar_full(g);
}

static bool values_apart(mt_schema_reader *r, const json_t *a, const json_t *b)
{
    bool one, other;
    const json_t *x = values_of(a, &one), *y = values_of(b, &other);
    mt_value_set *set;
    bool apart = true;

    if (!x || !y)
        return false;
    if (tired(r, 4 * (json_array_size(x) + json_array_size(y))))
        return true;
    if (one && other)
        return !mt_value_equal(x, y);
    set = mt_value_set_new(one ? y : x); /* a list; the other may be a single value */
    for (size_t i = 0; apart && i < (one || other ? 1 : json_array_size(y)); i++)
        apart = !mt_value_set_has(set, one ? x : other ? y : json_array_get(y, i));
    mt_value_set_free(set);
    return apart;
}

/* Whether a schema requires a property. */
static bool requires(mt_schema_reader *r, const json_t *schema, const char *key)
{
    const json_t *list = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(list) && !tired(r, 1); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name && strcmp(name, key) == 0)
            return true;
    }
    return false;
}

/* Whether a requires a property that b does not declare, and b allows no others. */
static bool closed_to(mt_schema_reader *r, const json_t *a, const json_t *b)
{
    const json_t *list = json_object_get(a, "required");

    if (!json_is_false(json_object_get(b, "additionalProperties")) || json_object_get(b, "patternProperties"))
        return false;
    for (size_t i = 0; i < json_array_size(list) && !tired(r, 1); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name && !json_object_get(json_object_get(b, "properties"), name))
            return true;
    }
    return false;
}

/* Whether a requires a property that b forbids. */
static bool forbidden(mt_schema_reader *r, const json_t *a, const json_t *b)
{
    const json_t *list = json_object_get(a, "required"), *others = json_object_get(b, "properties");

    for (size_t i = 0; others && i < json_array_size(list) && !tired(r, 1); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name && json_is_false(json_object_get(others, name)))
            return true;
    }
    return false;
}

static bool apart(mt_schema_reader *r, const json_t *a, const json_t *b, unsigned types, size_t depth);

/* Only a property that both require can tell objects apart by its values. */
static bool objects_apart(mt_schema_reader *r, const json_t *a, const json_t *b, size_t depth)
{
    const json_t *list = json_object_get(a, "required");
    const json_t *mine = json_object_get(a, "properties"), *others = json_object_get(b, "properties");

    for (size_t i = 0; mine && others && i < json_array_size(list) && !tired(r, 1); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        const json_t *own = name ? json_object_get(mine, name) : NULL;
        const json_t *other = own ? json_object_get(others, name) : NULL;

        if (other && apart(r, own, other, MT_TYPE_ANY, depth + 1) && requires(r, b, name))
            return true;
    }
    return forbidden(r, a, b) || forbidden(r, b, a) || closed_to(r, a, b) || closed_to(r, b, a);
}

/* Whether a's lower limit is above b's upper limit. */
static bool crossed(const json_t *a, const char *least, const json_t *b, const char *most)
{
    const json_t *low = json_object_get(a, least), *high = json_object_get(b, most);

    return json_is_number(low) && json_is_number(high) && json_number_value(low) > json_number_value(high);
}

static bool counts_apart(const json_t *a, const json_t *b, unsigned shared)
{
    static const struct {
        unsigned types;
        const char *least, *most;
    } pairs[] = {
        {MT_TYPE_STRING, "minLength", "maxLength"},
        {MT_TYPE_ARRAY, "minItems", "maxItems"},
        {MT_TYPE_OBJECT, "minProperties", "maxProperties"},
        {MT_TYPE_INTEGER | MT_TYPE_NUMBER, "minimum", "maximum"},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
        if (!(shared & ~pairs[i].types) &&
            (crossed(a, pairs[i].least, b, pairs[i].most) || crossed(b, pairs[i].least, a, pairs[i].most)))
            return true;
    return false;
}

/* Whether what a applies besides (allOf, anyOf) excludes b, of values of these types. */
static bool applied_apart(mt_schema_reader *r, const json_t *a, const json_t *b, unsigned types, size_t depth)
{
    const json_t *all = json_object_get(a, "allOf"), *any = json_object_get(a, "anyOf");
    bool every = true;

    for (size_t i = 0; i < json_array_size(all); i++)
        if (apart(r, json_array_get(all, i), b, types, depth + 1))
            return true;
    any = any ? any : json_object_get(a, "oneOf");
    for (size_t i = 0; i < json_array_size(any) && every; i++)
        every = apart(r, json_array_get(any, i), b, types, depth + 1);
    return json_array_size(any) > 0 && every;
}

/* Whether no value of these types satisfies both. */
static bool apart(mt_schema_reader *r, const json_t *a, const json_t *b, unsigned types, size_t depth)
{
    unsigned shared;

    a = mt_schema_resolve(r, a);
    b = mt_schema_resolve(r, b);
    if (json_is_false(a) || json_is_false(b) || tired(r, 1))
        return true;
    if (!json_is_object(a) || !json_is_object(b) || depth > DEPTH || a == b)
        return false;
    shared = types & types_of(r, a) & types_of(r, b);
    if (shared == 0 || values_apart(r, a, b) || counts_apart(a, b, shared))
        return true;
    return (shared == MT_TYPE_OBJECT && objects_apart(r, a, b, depth)) || applied_apart(r, a, b, shared, depth) ||
           applied_apart(r, b, a, shared, depth);
}

bool mt_schema_apart(mt_schema_reader *r, const json_t *a, const json_t *b)
{
    return apart(r, a, b, MT_TYPE_ANY, 0);
}

/* The constraints of one alternative on a property, its own or through allOf. */
typedef struct tagging {
    const json_t *constant; /* its only value; NULL: it may have several */
    bool required;
    unsigned types; /* of the alternative */
} tagging;

/* The only value that a schema allows; NULL: it may allow several. */
static const json_t *constant_of(mt_schema_reader *r, const json_t *schema)
{
    bool single;
    const json_t *values = values_of(mt_schema_resolve(r, schema), &single);

    if (single)
        return values;
    return json_array_size(values) == 1 ? json_array_get(values, 0) : NULL;
}

static void read_tag(mt_schema_reader *r, const json_t *schema, const char *name, size_t depth, tagging *t)
{
    const json_t *all;

    schema = mt_schema_resolve(r, schema);
    all = json_object_get(schema, "allOf");
    if (!t->constant)
        t->constant = constant_of(r, json_object_get(json_object_get(schema, "properties"), name));
    t->required = t->required || requires(r, schema, name);
    t->types &= types_of(r, schema);
    for (size_t i = 0; depth < DEPTH && i < json_array_size(all) && !tired(r, 1); i++)
        read_tag(r, json_array_get(all, i), name, depth + 1, t);
}

/* Finds the tags that a property gives; returns how many are different. */
static size_t read_tags(mt_schema_reader *r, const mt_schema_union *u, const char *name, const json_t **tags)
{
    const size_t count = json_array_size(u->list);
    mt_value_set *seen = mt_value_set_empty(count);
    size_t different = 0;

    for (size_t i = 0; i < count && !tired(r, GLANCE); i++) {
        tagging t = {.types = u->types};

        read_tag(r, json_array_get(u->list, i), name, 0, &t);
        tags[i] = t.required && t.types == MT_TYPE_OBJECT ? t.constant : NULL;
        different += tags[i] && mt_value_set_add(seen, tags[i]);
    }
    mt_value_set_free(seen);
    return different;
}

/* Adds the names of properties with a constant as keys of an object. */
static void name_constants(mt_schema_reader *r, const json_t *schema, size_t depth, json_t *names)
{
    const json_t *all;
    const char *key;
    json_t *value;

    schema = mt_schema_resolve(r, schema);
    all = json_object_get(schema, "allOf");
    json_object_foreach(json_object_get(schema, "properties"), key, value) {
        if (tired(r, 1))
            return;
        if (constant_of(r, value))
            json_object_set_new(names, key, json_null());
    }
    for (size_t i = 0; depth < DEPTH && i < json_array_size(all) && !tired(r, 1); i++)
        name_constants(r, json_array_get(all, i), depth + 1, names);
}

/* Alternatives that can be told apart by a property mostly all have it, so it is looked for in the first that has
   constants. */
void mt_schema_union_read(mt_schema_reader *r, const json_t *schema, mt_schema_union *u)
{
    const size_t count = json_array_size(u->list);
    const json_t **tags = mt_arena_alloc(r->arena, (count + 1) * sizeof(*tags));
    json_t *names = json_object(), *value;
    size_t best = 0, tried = 0;
    const char *key;

    u->types = types_of(r, schema);
    u->tags = mt_arena_alloc(r->arena, (count + 1) * sizeof(*tags));
    for (size_t i = 0; i < count && json_object_size(names) == 0 && !tired(r, 1); i++)
        name_constants(r, json_array_get(u->list, i), 0, names);
    json_object_foreach(names, key, value) {
        const size_t different = best < count && tried++ < TAGS ? read_tags(r, u, key, tags) : 0;

        if (different > best) {
            best = different;
            memcpy(u->tags, tags, count * sizeof(*tags));
        }
    }
    json_decref(names);
}

bool mt_schema_union_apart(mt_schema_reader *r, const mt_schema_union *u, size_t i, size_t k)
{
    if (tired(r, 1) || (u->tags[i] && u->tags[k] && !mt_value_equal(u->tags[i], u->tags[k])))
        return true;
    return apart(r, json_array_get(u->list, i), json_array_get(u->list, k), u->types, 0);
}

static bool listed(const json_t *value, const json_t *schema)
{
    bool single;
    const json_t *values = values_of(schema, &single);

    for (size_t i = 0; values && i < (single ? 1 : json_array_size(values)); i++)
        if (mt_value_equal(single ? values : json_array_get(values, i), value))
            return true;
    return false;
}

/* Whether b lists all values that a lists. */
static bool lists_less(const json_t *a, const json_t *b)
{
    bool single;
    const json_t *values = values_of(a, &single);

    if (!values || (!single && json_array_size(values) > 64))
        return false;
    for (size_t i = 0; i < (single ? 1 : json_array_size(values)); i++)
        if (!listed(single ? values : json_array_get(values, i), b))
            return false;
    return true;
}

/* Whether all values valid under a are valid under b, in the simple case that a has every keyword of b. */
static bool implies(mt_schema_reader *r, const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;

    a = mt_schema_resolve(r, a);
    b = mt_schema_resolve(r, b);
    if (a == b || json_is_true(b))
        return true;
    if (!json_is_object(a) || !json_is_object(b) || ++r->compared > MT_LIMIT_SCHEMA_COMPARED)
        return false;
    json_object_foreach((json_t *)b, key, value) {
        const json_t *own = json_object_get(a, key);

        if (mt_schema_says_nothing(key) || (own && json_equal((json_t *)own, value)))
            continue;
        if (strcmp(key, "type") == 0 && !(types_of(r, a) & ~types_of(r, b)))
            continue;
        if ((strcmp(key, "enum") == 0 || strcmp(key, "const") == 0) && lists_less(a, b))
            continue;
        return false;
    }
    return true;
}

/* Whether nothing is valid under all of these schemas: no type is left, or one is the opposite of what another
   implies. */
static bool none_left(mt_schema_reader *r, const json_t *const *list, size_t count)
{
    unsigned types = MT_TYPE_ANY;

    for (size_t i = 0; i < count; i++) {
        const json_t *opposite = json_object_get(list[i], "not");

        if (json_is_false(list[i]))
            return true;
        if (tired(r, GLANCE))
            return false;
        types &= types_of(r, mt_schema_resolve(r, list[i]));
        for (size_t k = 0; opposite && k < count && !tired(r, GLANCE); k++)
            if (k != i && implies(r, list[k], opposite))
                return true;
    }
    return types == 0;
}

enum { SAME_NAME = 16 };

/* Whether objects must have a property for which no value is valid. */
static bool contradicts(mt_schema_reader *r, const json_t *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *required = json_object_get(list[i], "required");

        for (size_t k = 0; k < json_array_size(required); k++) {
            const char *name = json_string_value(json_array_get(required, k));
            const json_t *found[SAME_NAME];
            size_t named = 0;

            if (tired(r, count))
                return false;
            for (size_t p = 0; name && p < count && named < SAME_NAME; p++)
                if ((found[named] = json_object_get(json_object_get(list[p], "properties"), name)))
                    named++;
            if (named > 0 && none_left(r, found, named))
                return true;
        }
    }
    return false;
}

static bool only_objects(mt_schema_reader *r, const json_t *const *list, size_t count)
{
    unsigned types = MT_TYPE_ANY, implied = 0;

    for (size_t i = 0; i < count; i++) {
        types &= types_of(r, list[i]);
        implied |= json_object_get(list[i], "properties") || json_object_get(list[i], "required");
    }
    return types == MT_TYPE_OBJECT || (types == MT_TYPE_ANY && implied);
}

bool mt_schema_dead(mt_schema_reader *r, const mt_schema_place *place)
{
    const json_t *list[MT_LIMIT_SCHEMA_PARTS];

    if (place->never)
        return true;
    for (size_t i = 0; i < place->count; i++)
        list[i] = place->part[i].schema;
    return none_left(r, list, place->count) ||
           (only_objects(r, list, place->count) && contradicts(r, list, place->count));
}

bool mt_schema_clash(mt_schema_reader *r, const json_t *a, const json_t *b)
{
    const json_t *list[2] = {a, b};

    return none_left(r, list, 2) || (only_objects(r, list, 2) && contradicts(r, list, 2));
}
