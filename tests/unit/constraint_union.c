/* Unions of many objects that a property with a constant tells apart, as schema libraries write them: however many and
   wherever that property stands, they are followed in full. */
#include "constraint/limits.h"
#include "constraint_tests.h"

enum { OBJECTS = 100, PROPERTIES = 40 };

/* How a union is written. */
typedef struct style {
    const char *name;
    const char *keyword;       /* oneOf, anyOf */
    const char *parent_type;   /* of the schema with that keyword; NULL: none */
    size_t objects;            /* how many */
    size_t place;              /* how many properties stand before the constant */
    bool listed;               /* the constant is an enum of one value */
    bool referred;             /* the objects stand in $defs, and so does each constant */
    bool inherited;            /* each object is an allOf of what all have and its own */
    bool required;             /* all properties are required, and texts are listed; else only the constant is */
    bool untyped, own, closed; /* no "type"; other names for each object; no other properties */
} style;

/* "p3", or of an object with names of its own "p3_7". */
static void name_of(const style *s, size_t object, size_t property, char out[32])
{
    if (s->own)
        snprintf(out, 32, "p%zu_%zu", property, object);
    else
        snprintf(out, 32, "p%zu", property);
}

/* "p1" and each fourth property after it are integers, the others strings. */
static json_t *object_of(const style *s, size_t number)
{
    json_t *object = json_object(), *properties = json_object(), *required = json_array();
    char name[32], kind[32];

    snprintf(kind, sizeof(kind), "kind%zu", number);
    for (size_t i = 0; i <= PROPERTIES; i++) {
        if (i == s->place) {
            json_object_set_new(properties, "kind",
                                s->listed     ? json_pack("{s:[s]}", "enum", kind)
                                : s->referred ? json_pack("{s:s+}", "$ref", "#/$defs/the_", kind)
                                              : json_pack("{s:s}", "const", kind));
            json_array_append_new(required, json_string("kind"));
        }
        if (i == PROPERTIES)
            break;
        name_of(s, number, i, name);
        json_object_set_new(properties, name,
                            s->required && i % 4 != 1 ? json_pack("{s:[s, s]}", "enum", "x", "y")
                                                      : json_pack("{s:s}", "type", i % 4 == 1 ? "integer" : "string"));
        if (s->required)
            json_array_append_new(required, json_string(name));
    }
    json_object_set_new(object, "properties", properties);
    json_object_set_new(object, "required", required);
    if (!s->untyped)
        json_object_set_new(object, "type", json_string("object"));
    if (s->closed)
        json_object_set_new(object, "additionalProperties", json_false());
    return s->inherited ? json_pack("{s:[{s:s}, o]}", "allOf", "type", "object", object) : object;
}

static json_t *union_of(const style *s)
{
    json_t *list = json_array(), *defs = json_object(), *schema;

    for (size_t i = 0; i < s->objects; i++) {
        char name[32], path[64];

        snprintf(name, sizeof(name), "kind%zu", i);
        snprintf(path, sizeof(path), "#/$defs/%s", name);
        json_array_append_new(list, s->referred ? json_pack("{s:s}", "$ref", path) : object_of(s, i));
        if (s->referred) {
            json_object_set_new(defs, name, object_of(s, i));
            snprintf(path, sizeof(path), "the_%s", name);
            json_object_set_new(defs, path, json_pack("{s:s, s:s}", "const", name, "type", "string"));
        }
    }
    schema = json_pack("{s:o, s:o}", s->keyword, list, "$defs", defs);
    if (s->parent_type)
        json_object_set_new(schema, "type", json_string(s->parent_type));
    return schema;
}

/* An object of the union, with a constant and the value of the second property that may not be its own. */
static bool fits(mt_constraint *c, const style *s, size_t object, const char *kind, const char *second)
{
    mt_buf text;
    char name[32];
    bool ok;

    mt_buf_init(&text, 1 << 16);
    mt_buf_puts(&text, "{");
    for (size_t i = 0; i <= PROPERTIES; i++) {
        if (i == s->place && kind)
            mt_buf_printf(&text, "%s\"kind\":\"%s\"", text.len > 1 ? "," : "", kind);
        if (i == PROPERTIES || (i != 1 && !s->required))
            continue;
        name_of(s, object, i, name);
        mt_buf_printf(&text, "%s\"%s\":%s", text.len > 1 ? "," : "", name,
                      i == 1       ? second
                      : i % 4 == 1 ? "7"
                                   : "\"x\"");
    }
    mt_buf_puts(&text, "}");
    ok = constraint_fits(c, text.data, text.len);
    mt_buf_free(&text);
    return ok;
}

static void walk(mt_constraint *c)
{
    uint64_t seed = 11;
    mt_buf text;

    mt_buf_init(&text, 1 << 20);
    constraint_walk(c, tokenizer, &seed, 60, &text); /* which checks masks */
    mt_buf_free(&text);
}

static void objects_with_a_constant_of_their_own_are_told_apart(void **state)
{
    static const style styles[] = {
        {.name = "first", .keyword = "oneOf", .objects = OBJECTS},
        {.name = "last", .keyword = "oneOf", .objects = OBJECTS, .place = PROPERTIES},
        {.name = "in the middle, listed", .keyword = "oneOf", .objects = OBJECTS, .place = 20, .listed = true},
        {.name = "in $defs", .keyword = "oneOf", .objects = OBJECTS, .place = 3, .referred = true},
        {.name = "inherited", .keyword = "oneOf", .objects = OBJECTS, .inherited = true},
        {.name = "other names", .keyword = "oneOf", .objects = OBJECTS, .place = PROPERTIES, .own = true},
        {.name = "without types", .keyword = "oneOf", .objects = OBJECTS, .untyped = true},
        {.name = "type at the parent",
         .keyword = "oneOf",
         .objects = OBJECTS,
         .untyped = true,
         .parent_type = "object"},
        {.name = "anyOf", .keyword = "anyOf", .objects = OBJECTS, .place = PROPERTIES},
        /* so many that comparing each pair in full is refused */
        {.name = "all required",
         .keyword = "oneOf",
         .objects = 400,
         .place = PROPERTIES,
         .required = true,
         .closed = true},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(styles); i++) {
        const style *s = &styles[i];
        json_t *schema = union_of(s);
        mt_error err = {0};
        mt_constraint *c = constraint_compile(vocabulary, MT_SOURCE_SCHEMA, schema, &err);

        if (!c)
            fail_msg("%s: %s", s->name, err.text);
        assert_true(fits(c, s, 3, "kind3", "7") && fits(c, s, 99, "kind99", "7"));
        assert_false(fits(c, s, 3, "kind3", "\"x\"") || fits(c, s, 3, "kind", "7") || fits(c, s, 3, NULL, "7"));
        assert_false(s->own && fits(c, s, 4, "kind3", "7"));
        assert_false(constraint_fits(c, "{}", 2) || constraint_fits(c, "5", 1) || constraint_fits(c, "null", 4));
        if (!unit_quick() || i < 2)
            walk(c);
        mt_constraint_release(c);
        json_decref(schema);
    }
}

/* A schema of more places than any combination of schemas may have: each comes from one schema of the client. */
static void many_places_without_combinations_are_allowed(void **state)
{
    enum { MANY = 2 * MT_LIMIT_SCHEMA_COMBINED };
    json_t *list = json_array(), *schema;
    mt_error err = {0};
    mt_constraint *c;
    char name[16];

    (void)state;
    for (size_t i = 0; i < MANY / 32; i++) {
        json_t *properties = json_object();

        for (int k = 0; k < 32; k++) {
            snprintf(name, sizeof(name), "p%d", k);
            json_object_set_new(properties, name, json_pack("{s:s}", "type", "boolean"));
        }
        json_array_append_new(list, json_pack("{s:s, s:o}", "type", "object", "properties", properties));
    }
    schema = json_pack("{s:s, s:o, s:b}", "type", "array", "prefixItems", list, "items", 0);
    c = constraint_compile(vocabulary, MT_SOURCE_SCHEMA, schema, &err);
    if (!c)
        fail_msg("%s", err.text);
    assert_true(constraint_fits(c, "[{\"p1\":true},{\"p31\":false}]", 27));
    assert_false(constraint_fits(c, "[{\"p1\":1}]", 10));
    mt_constraint_release(c);
    json_decref(schema);
}

/* Combinations have a limit of their own. */
static void combinations_are_counted(void **state)
{
    json_t *all = json_array(), *schema;
    mt_error err = {0};

    (void)state;
    for (int i = 0; i < 8; i++) {
        json_t *any = json_array();

        for (int k = 0; k < 4; k++) {
            char name[16];

            snprintf(name, sizeof(name), "p%d_%d", i, k);
            json_array_append_new(any, json_pack("{s:{s:{}}, s:[s]}", "properties", name, "required", name));
        }
        json_array_append_new(all, json_pack("{s:o}", "anyOf", any));
    }
    schema = json_pack("{s:s, s:o}", "type", "object", "allOf", all);
    assert_null(constraint_compile(vocabulary, MT_SOURCE_SCHEMA, schema, &err));
    assert_string_equal(err.text, "the alternatives of the schema multiply to more than 4096 places; make it smaller");
    json_decref(schema);
}

/* The opposite of a oneOf has each pair of alternatives: of thousands that overlap, not all are made. */
static void the_opposite_of_many_alternatives_ends(void **state)
{
    json_t *list = json_array(), *schema;
    mt_error err = {0};
    mt_constraint *c;

    (void)state;
    for (int i = 0; i < 20000; i++)
        json_array_append_new(list, json_pack("{s:i}", "minLength", i));
    schema = json_pack("{s:{s:o}}", "not", "oneOf", list);
    c = constraint_compile(vocabulary, MT_SOURCE_SCHEMA, schema, &err);
    assert_null(c);
    assert_int_equal(err.code, MT_E_INVALID);
    json_decref(schema);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(objects_with_a_constant_of_their_own_are_told_apart, setup, teardown),
    cmocka_unit_test_setup_teardown(many_places_without_combinations_are_allowed, setup, teardown),
    cmocka_unit_test_setup_teardown(combinations_are_counted, setup, teardown),
    cmocka_unit_test_setup_teardown(the_opposite_of_many_alternatives_ends, setup, teardown),
};

UNIT_MAIN(tests)
