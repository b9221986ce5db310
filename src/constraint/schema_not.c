/* The opposite of a schema, as a schema: values that violate one of its keywords. Each keyword's opposite is something
   that can be enforced (a shorter string, a missing property, another type); keywords without one are left out, which
   makes the opposite narrower, never wrong. Nested schemas stay behind a "not" until needed, and all that is made from
   a schema is made once, so that recursion ends. */
#include "base/alloc.h"
#include "base/compiler.h"
#include "constraint/limits.h"
#include "constraint/schema_inside.h"

enum { KEPT_NOT = 1, KEPT_WRAPPED, KEPT_PARTLY };

static size_t made_slot(const json_t *from, int kind)
{
    return (((uint64_t)(uintptr_t)from + (uint64_t)kind) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % MT_SCHEMA_SLOTS;
}

const json_t *mt_schema_kept(const mt_schema_reader *r, const json_t *from, int kind)
{
    for (uint32_t i = r->made_slots[made_slot(from, kind)]; i; i = r->made[i - 1].same)
        if (r->made[i - 1].from == from && r->made[i - 1].kind == kind)
            return r->made[i - 1].schema;
    return NULL;
}

json_t *mt_schema_keep(mt_schema_reader *r, const json_t *from, int kind, json_t *made)
{
    uint32_t *slot = &r->made_slots[made_slot(from, kind)];

    r->made = mt_grow(r->made, &r->made_cap, r->made_count + 1, sizeof(*r->made));
    r->made[r->made_count] = (mt_schema_made){.from = from, .kind = kind, .schema = made, .same = *slot};
    *slot = (uint32_t)++r->made_count;
    return made;
}

json_t *mt_schema_new(const char *type)
{
    json_t *made = json_object();

    json_object_set_new(made, MT_SCHEMA_MADE, json_true());
    if (type)
        json_object_set_new(made, "type", json_string(type));
    return made;
}

const json_t *mt_schema_wrap_not(mt_schema_reader *r, const json_t *schema)
{
    const json_t *there = mt_schema_kept(r, schema, KEPT_WRAPPED);
    json_t *made;

    if (there)
        return there;
    made = mt_schema_new(NULL);
    json_object_set(made, "not", (json_t *)schema);
    return mt_schema_keep(r, schema, KEPT_WRAPPED, made);
}

/* A schema that is being inverted. */
typedef struct inverter {
    mt_schema_reader *r;
    const json_t *schema;
    const char *path;
    json_t *list; /* ways to violate it */
    bool partly;  /* some ways to violate it are not in the list */
    bool ok;
} inverter;

/* A value of that type with one keyword. Owns value. */
static json_t *add(inverter *v, const char *type, const char *keyword, json_t *value)
{
    json_t *made = mt_schema_new(type);

    if (keyword)
        json_object_set_new(made, keyword, value);
    json_array_append_new(v->list, made);
    return made;
}

/* {"not": schema}; borrows schema. */
static json_t *opposite(inverter *v, const json_t *schema)
{
    return json_incref((json_t *)mt_schema_wrap_not(v->r, schema));
}

static void invert_type(inverter *v, const json_t *value)
{
    static const char *const names[] = {"null", "boolean", "string", "array", "object"};
    const mt_schema_part part = {.schema = v->schema, .path = v->path};
    unsigned types, one = 0;
    json_t *others = json_array();

    (void)value;
    v->ok = mt_schema_own_types(v->r, &part, &types);
    for (size_t i = 0; i < MT_COUNT(names); i++)
        if (mt_schema_type_name(names[i], &one) && !(types & one))
            json_array_append_new(others, json_string(names[i]));
    if (!(types & (MT_TYPE_INTEGER | MT_TYPE_NUMBER)))
        json_array_append_new(others, json_string("number"));
    else if (!(types & MT_TYPE_NUMBER))
        json_array_append_new(others, json_string("motet:fraction"));
    if (json_array_size(others))
        add(v, NULL, "type", others);
    else
        json_decref(others);
}

static void invert_values(inverter *v, const json_t *value)
{
    json_t *leaf = json_object();

    json_object_set(leaf, json_object_get(v->schema, "const") == value ? "const" : "enum", (json_t *)value);
    add(v, NULL, "not", leaf);
}

static void invert_pattern(inverter *v, const json_t *value)
{
    add(v, "string", "not", json_pack("{s:O}", "pattern", value));
}

static void invert_bound(inverter *v, const json_t *value, const char *exclusive, const char *with, const char *without)
{
    if (!json_is_number(value))
        return;
    add(v, "number", json_is_true(json_object_get(v->schema, exclusive)) ? with : without,
        json_incref((json_t *)value));
}

static void invert_minimum(inverter *v, const json_t *value)
{
    invert_bound(v, value, "exclusiveMinimum", "maximum", "exclusiveMaximum");
}

static void invert_maximum(inverter *v, const json_t *value)
{
    invert_bound(v, value, "exclusiveMaximum", "minimum", "exclusiveMinimum");
}

static void invert_above(inverter *v, const json_t *value)
{
    invert_bound(v, value, "", "maximum", "maximum");
}

static void invert_below(inverter *v, const json_t *value)
{
    invert_bound(v, value, "", "minimum", "minimum");
}

/* The opposite of "at least n" is "at most n - 1", and the other way round. */
static void invert_count(inverter *v, const char *keyword, const json_t *value, const char *type, const char *other)
{
    const mt_schema_part part = {.schema = v->schema, .path = v->path};
    uint32_t count = 0;

    (void)value;
    v->ok = mt_schema_count(v->r, &part, keyword, &count);
    if (keyword[1] == 'i' && count > 0)
        add(v, type, other, json_integer((json_int_t)count - 1));
    if (keyword[1] == 'a')
        add(v, type, other, json_integer((json_int_t)count + 1));
}

static void invert_min_length(inverter *v, const json_t *value)
{
    invert_count(v, "minLength", value, "string", "maxLength");
}

static void invert_max_length(inverter *v, const json_t *value)
{
    invert_count(v, "maxLength", value, "string", "minLength");
}

static void invert_min_items(inverter *v, const json_t *value)
{
    invert_count(v, "minItems", value, "array", "maxItems");
}

static void invert_max_items(inverter *v, const json_t *value)
{
    invert_count(v, "maxItems", value, "array", "minItems");
}

static void invert_min_properties(inverter *v, const json_t *value)
{
    invert_count(v, "minProperties", value, "object", "maxProperties");
}

static void invert_max_properties(inverter *v, const json_t *value)
{
    invert_count(v, "maxProperties", value, "object", "minProperties");
}

/* An object with a property that does not satisfy its schema. */
static json_t *add_property(inverter *v, const char *key, json_t *schema)
{
    json_t *made = add(v, "object", "required", json_pack("[s]", key)), *properties = json_object();

    json_object_set_new(properties, key, schema);
    json_object_set_new(made, "properties", properties);
    return made;
}

static void invert_properties(inverter *v, const json_t *value)
{
    const char *key;
    json_t *schema;

    json_object_foreach((json_t *)value, key, schema)
        if (!json_is_true(schema) && !(json_is_object(schema) && json_object_size(schema) == 0))
            add_property(v, key, json_is_false(schema) ? json_true() : opposite(v, schema));
}

/* An object without that property; name NULL: nothing is excluded. */
static json_t *without(const char *name)
{
    json_t *made = mt_schema_new("object"), *properties = json_object();

    json_object_set_new(properties, name, json_false());
    json_object_set_new(made, "properties", properties);
    return made;
}

static void invert_required(inverter *v, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        if (json_is_string(json_array_get(value, i)))
            json_array_append_new(v->list, without(json_string_value(json_array_get(value, i))));
}

static void invert_additional(inverter *v, const json_t *value)
{
    json_t *names = json_object_get(v->schema, "properties"), *outside;

    if (json_is_true(value) || (json_is_object(value) && json_object_size(value) == 0))
        return;
    v->partly = true; /* undeclared properties are not considered */
    if (json_object_size(json_object_get(v->schema, "patternProperties")))
        return;
    outside = json_object();
    json_object_set_new(outside, "names", names ? json_incref(names) : json_object());
    json_object_set_new(outside, "schema", json_is_false(value) ? json_true() : opposite(v, value));
    add(v, "object", MT_SCHEMA_OUTSIDE, outside);
}

static void invert_prefix(inverter *v, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *items = json_array(), *made;

        for (size_t k = 0; k < i; k++)
            json_array_append_new(items, json_true());
        json_array_append_new(items, opposite(v, json_array_get(list, i)));
        made = add(v, "array", "prefixItems", items);
        json_object_set_new(made, "minItems", json_integer((json_int_t)i + 1));
    }
}

static void invert_items(inverter *v, const json_t *value)
{
    const size_t prefix = json_array_size(json_object_get(v->schema, "prefixItems"));

    if (json_is_array(value))
        invert_prefix(v, value);
    else if (json_is_false(value))
        add(v, "array", "minItems", json_integer((json_int_t)prefix + 1));
    else if (prefix)
        v->partly = true;
    else if (json_is_object(value))
        add(v, "array", "contains", opposite(v, value));
}

static void invert_contains(inverter *v, const json_t *value)
{
    const json_t *least = json_object_get(v->schema, "minContains");

    if (least || json_object_get(v->schema, "maxContains"))
        v->partly = true;
    if (!least || json_integer_value(least) == 1)
        add(v, "array", "items", opposite(v, value));
}

/* All schemas of a list together, or where inverted all their opposites. */
static json_t *all_of(inverter *v, const json_t *list, bool inverted)
{
    json_t *all = json_array();

    for (size_t i = 0; i < json_array_size(list); i++)
        json_array_append_new(all,
                              inverted ? opposite(v, json_array_get(list, i)) : json_incref(json_array_get(list, i)));
    return all;
}

static void invert_any(inverter *v, const json_t *value)
{
    add(v, NULL, "allOf", all_of(v, value, true));
}

static void invert_all(inverter *v, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        json_array_append_new(v->list, opposite(v, json_array_get(value, i)));
}

static void invert_one(inverter *v, const json_t *value)
{
    mt_schema_union u = {.list = value};
    size_t pairs = 0;

    add(v, NULL, "allOf", all_of(v, value, true));
    mt_schema_union_read(v->r, v->schema, &u);
    for (size_t a = 0; a < json_array_size(value) && !mt_grammar_full(v->r->j->g) && !v->partly; a++)
        for (size_t b = a + 1; b < json_array_size(value) && !v->partly; b++) {
            if (mt_schema_union_apart(v->r, &u, a, b))
                continue;
            v->partly = ++pairs > MT_LIMIT_SCHEMA_COMBINED; /* further pairs are too many places */
            add(v, NULL, "allOf", json_pack("[OO]", json_array_get(value, a), json_array_get(value, b)));
        }
}

static void invert_not(inverter *v, const json_t *value)
{
    json_array_append(v->list, (json_t *)value);
}

static void invert_if(inverter *v, const json_t *value)
{
    const json_t *then = json_object_get(v->schema, "then"), *otherwise = json_object_get(v->schema, "else");

    if (then)
        add(v, NULL, "allOf", json_pack("[Oo]", value, opposite(v, then)));
    if (otherwise)
        add(v, NULL, "allOf", json_pack("[oo]", opposite(v, value), opposite(v, otherwise)));
}

/* A property is present, and what it requires is not satisfied. */
static void invert_dependencies(inverter *v, const json_t *value)
{
    const char *key;
    json_t *wanted;

    json_object_foreach((json_t *)value, key, wanted) {
        for (size_t i = 0; i < json_array_size(wanted); i++) {
            json_t *made = without(json_string_value(json_array_get(wanted, i)));

            json_object_set_new(made, "required", json_pack("[s]", key));
            json_array_append_new(v->list, made);
        }
        if (!json_is_array(wanted)) {
            json_t *made = add(v, "object", "required", json_pack("[s]", key));

            json_object_set_new(made, "allOf", json_pack("[o]", opposite(v, wanted)));
        }
    }
}

static void invert_ref(inverter *v, const json_t *value)
{
    const json_t *target = mt_schema_target(v->r, value, v->path);

    v->ok = target != NULL;
    if (target)
        json_array_append_new(v->list, opposite(v, target));
}

/* A known keyword that cannot be inverted. */
static void invert_unknown(inverter *v, const json_t *value)
{
    (void)value;
    v->partly = true;
}

static void invert_unique(inverter *v, const json_t *value)
{
    v->partly |= json_is_true(value);
}

static void invert_format(inverter *v, const json_t *value)
{
    const char *name = json_string_value(value), *ignored, *wide = name ? mt_schema_format_wide(name) : NULL;
    uint32_t most;

    if (wide)
        add(v, "string", "not", json_pack("{s:s}", "pattern", wide));
    else
        v->partly |=
            name && (mt_schema_format(name, &ignored, &most) || mt_schema_number_format(name, &ignored, &ignored));
}

/* The function that inverts each keyword. */
static const struct {
    const char *keyword;
    void (*invert)(inverter *v, const json_t *value);
} inverters[] = {
    {"type", invert_type},
    {"enum", invert_values},
    {"const", invert_values},
    {"pattern", invert_pattern},
    {"minimum", invert_minimum},
    {"maximum", invert_maximum},
    {"exclusiveMinimum", invert_above},
    {"exclusiveMaximum", invert_below},
    {"minLength", invert_min_length},
    {"maxLength", invert_max_length},
    {"minItems", invert_min_items},
    {"maxItems", invert_max_items},
    {"minProperties", invert_min_properties},
    {"maxProperties", invert_max_properties},
    {"required", invert_required},
    {"properties", invert_properties},
    {"additionalProperties", invert_additional},
    {"prefixItems", invert_prefix},
    {"items", invert_items},
    {"contains", invert_contains},
    {"anyOf", invert_any},
    {"allOf", invert_all},
    {"oneOf", invert_one},
    {"not", invert_not},
    {"if", invert_if},
    {"dependentRequired", invert_dependencies},
    {"dependentSchemas", invert_dependencies},
    {"dependencies", invert_dependencies},
    {"$ref", invert_ref},
    {"uniqueItems", invert_unique},
    {"format", invert_format},
    {"multipleOf", invert_unknown},
    {"propertyNames", invert_unknown},
    {"patternProperties", invert_unknown},
    {"unevaluatedProperties", invert_unknown},
    {"unevaluatedItems", invert_unknown},
    {"additionalItems", invert_unknown},
    {"$dynamicRef", invert_unknown},
    {"$recursiveRef", invert_unknown},
};

const json_t *mt_schema_make_not(mt_schema_reader *r, const json_t *schema, const char *path, bool *partly)
{
    inverter v = {.r = r, .schema = schema, .path = path, .ok = true};
    const json_t *there = mt_schema_kept(r, schema, KEPT_NOT);
    json_t *made;

    *partly = mt_schema_kept(r, schema, KEPT_PARTLY) != NULL;
    if (there)
        return there;
    if (json_is_boolean(schema))
        return json_is_true(schema) ? json_false() : json_true();
    v.list = json_array();
    for (size_t i = 0; i < MT_COUNT(inverters) && v.ok; i++) {
        const json_t *value = json_object_get(schema, inverters[i].keyword);

        if (value)
            inverters[i].invert(&v, value);
    }
    *partly = v.partly;
    if (v.partly)
        mt_schema_keep(r, schema, KEPT_PARTLY, json_true());
    made = mt_schema_new(NULL);
    json_object_set_new(made, MT_SCHEMA_OPPOSITE, json_true());
    json_object_set_new(made, "anyOf", v.list);
    mt_schema_keep(r, schema, KEPT_NOT, made);
    return v.ok ? made : NULL;
}
