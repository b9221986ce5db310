/* Arguments that a format writes one by one: their names, and their values with the types of the tool's schema, sent as
   JSON. */
#include <string.h>

#include "base/compiler.h"
#include "base/json_escape.h"
#include "base/json_tree.h"
#include "chat/limits.h"
#include "chat/parse_core.h"
#include "constraint/schema.h"

/* JSON types as bits: the types that a schema allows, or the type of a value. */
enum { T_STRING = 1, T_NUMBER = 2, T_BOOLEAN = 4, T_NULL = 8, T_OBJECT = 16, T_ARRAY = 32, T_ANY = 63 };

static unsigned type_named(const char *name)
{
    static const struct {
        const char *name;
        unsigned type;
    } types[] = {{"string", T_STRING}, {"number", T_NUMBER}, {"integer", T_NUMBER}, {"boolean", T_BOOLEAN},
                 {"null", T_NULL},     {"object", T_OBJECT}, {"array", T_ARRAY}};

    for (size_t i = 0; name && i < MT_COUNT(types); i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    return T_ANY;
}

static unsigned type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING: return T_STRING;
    case JSON_INTEGER:
    case JSON_REAL: return T_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE: return T_BOOLEAN;
    case JSON_NULL: return T_NULL;
    case JSON_OBJECT: return T_OBJECT;
    default: return T_ARRAY;
    }
}

/* The union of the types that `of` tells of the items of a list; any where it has none. */
static unsigned types_in(const json_t *list, const json_t *root, unsigned (*of)(const json_t *item, const json_t *root))
{
    unsigned types = 0;
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
        types |= of(item, root);
    return types ? types : T_ANY;
}

static unsigned types_named(const json_t *name, MT_UNUSED const json_t *root)
{
    return type_named(json_string_value(name));
}

static unsigned types_valued(const json_t *value, MT_UNUSED const json_t *root)
{
    return type_of(value);
}

const json_t *mt_parse_resolve(const json_t *schema, const json_t *root)
{
    enum { MOST = 8 }; /* references to references; some schemas refer to themselves */

    for (int steps = 0; steps < MOST; steps++) {
        const char *ref = json_string_value(json_object_get(schema, "$ref"));
        const json_t *target = ref && strncmp(ref, "#/", 2) == 0 ? mt_schema_pointer(root, ref + 1) : NULL;

        if (!target)
            break;
        schema = target;
    }
    return schema;
}

/* By "type", "enum" and "const". */
static unsigned types_plain(const json_t *schema, const json_t *root)
{
    const json_t *own = mt_parse_resolve(schema, root), *type = json_object_get(own, "type");
    const json_t *constant = json_object_get(own, "const");
    unsigned types = json_is_array(type) ? types_in(type, root, types_named) : types_named(type, root);

    types &= types_in(json_object_get(own, "enum"), root, types_valued);
    types &= constant ? type_of(constant) : T_ANY;
    return types ? types : T_ANY;
}

static unsigned types_of(const json_t *schema, const json_t *root)
{
    const json_t *own = mt_parse_resolve(schema, root), *any = json_object_get(own, "anyOf");

    any = any ? any : json_object_get(own, "oneOf");
    return json_is_array(any) ? types_in(any, root, types_plain) : types_plain(own, root);
}

bool mt_parse_no_string(const json_t *schema, const json_t *root)
{
    return !(types_of(schema, root) & T_STRING);
}

static unsigned types_of_key(const mt_parser *p)
{
    return types_of(json_object_get(json_object_get(p->schema, "properties"), p->key.text), p->schema);
}

void mt_parse_key(mt_parser *p)
{
    mt_buf text = {.limit = MT_LIMIT_PARSE_HELD};

    mt_buf_puts(&text, p->listed ? ", " : "{");
    mt_buf_json_string(&text, p->key.text, p->key.len);
    mt_buf_puts(&text, ": ");
    mt_parse_call_arguments(p, text.data, text.len);
    mt_buf_free(&text);
    p->listed = true;
}

static void stream_begin(mt_parser *p)
{
    mt_parse_key(p);
    mt_parse_call_arguments(p, "\"", 1);
    p->streaming = true;
}

static void stream_byte(mt_parser *p, char b)
{
    char escaped[MT_JSON_ESCAPE_MAX];
    size_t taken;

    if ((unsigned char)b >= 0x80)
        mt_parse_call_arguments(p, &b, 1);
    else
        mt_parse_call_arguments(p, escaped, mt_json_escape(&b, 1, escaped, &taken));
}

/* A value that must be a string is sent as it comes; any other once it is complete. */
void mt_parse_value_begin(mt_parser *p, bool string)
{
    mt_parse_held_clear(p);
    p->gap_len = 0;
    p->streaming = p->started = p->line = false;
    if (string || types_of_key(p) == T_STRING)
        stream_begin(p);
}

static void put(mt_parser *p, char b)
{
    if (!p->streaming && !mt_buf_add(&p->held, &b, 1)) {
        stream_begin(p); /* too long for anything but a string */
        for (size_t i = 0; i < p->held.len; i++)
            stream_byte(p, p->held.data[i]);
    }
    if (p->streaming)
        stream_byte(p, b);
}

/* A line break is put only when another byte follows it: the last is the format's. */
void mt_parse_value_byte(mt_parser *p, char b, bool lines)
{
    bool first = !p->started;

    p->started = true;
    if (lines && first && b == '\n')
        return;
    if (p->line)
        put(p, '\n');
    p->line = lines && b == '\n';
    if (!p->line)
        put(p, b);
}

/* Appends the text unchanged, so that 3.0 stays 3.0, if it is JSON of an allowed type. False: it is not. */
static bool put_json(mt_buf *out, const char *text, size_t len, unsigned types)
{
    json_t *value = mt_json_tree_try(text, len);
    bool fits = value && (type_of(value) & types);

    if (fits)
        mt_buf_add(out, text, len);
    json_decref(value);
    return fits;
}

static bool put_python(mt_buf *out, const char *text, size_t len, unsigned types)
{
    mt_buf json = {.limit = MT_LIMIT_PARSE_HELD};
    bool fits;

    fits = mt_parse_literal(&json, text, len) && put_json(out, json.data, json.len, types);
    mt_buf_free(&json);
    return fits;
}

/* Writes a value as JSON. Text that is JSON of an allowed type but a string is that value, and so is Python's spelling
   of one (True, None) where the schema says anything of types; where it allows no string, JSON of any type will do. All
   else is a string. */
static void put_value(mt_buf *out, const char *text, size_t len, unsigned types)
{
    size_t begin = 0, end = len;

    while (begin < end && mt_parse_space(text[begin]))
        begin++;
    while (end > begin && mt_parse_space(text[end - 1]))
        end--;
    if (put_json(out, text + begin, end - begin, types & ~(unsigned)T_STRING) ||
        (types != T_ANY && put_python(out, text + begin, end - begin, types & ~(unsigned)T_STRING)) ||
        (!(types & T_STRING) && put_json(out, text + begin, end - begin, T_ANY)))
        return;
    mt_buf_json_string(out, text, len);
}

bool mt_parse_reads_string(const char *text, size_t len, const json_t *schema, const json_t *root)
{
    mt_buf out = {.limit = 8 * (size_t)MT_LIMIT_PARSE_HELD};
    bool string;

    put_value(&out, text, len, types_of(schema, root));
    string = out.len > 0 && out.data[0] == '"';
    mt_buf_free(&out);
    return string;
}

bool mt_parse_others(mt_buf *out, const json_t *schema, const json_t *root)
{
    static const struct {
        unsigned type;
        const char *regex;
    } rows[] = {{T_NUMBER, "[-+]?(?:[0-9]+(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|NaN|Infinity)"},
                {T_BOOLEAN, "[tT]rue|[fF]alse"},
                {T_NULL, "null|None"},
                {T_OBJECT, "\\{[\\s\\S]*"},
                {T_ARRAY, "[\\[(][\\s\\S]*"}};
    const unsigned types = types_of(schema, root);

    if (types == T_STRING || !out)
        return types != T_STRING;
    mt_buf_puts(out, "\\s*(?:");
    for (size_t i = 0, count = 0; i < MT_COUNT(rows); i++)
        if (types & rows[i].type)
            mt_buf_printf(out, "%s%s", count++ ? "|" : "", rows[i].regex);
    mt_buf_puts(out, ")\\s*");
    return true;
}

/* Some models quote every value: a string where the schema allows none is parsed again. */
void mt_parse_retype(mt_parser *p, mt_buf *json)
{
    const unsigned types = types_of_key(p);
    json_t *value = NULL;

    if (!(types & T_STRING) && json->len > 0 && json->data[0] == '"')
        value = mt_json_tree_try(json->data, json->len);
    if (value) {
        json->len = 0;
        put_value(json, json_string_value(value), json_string_length(value), types);
    }
    json_decref(value);
}

void mt_parse_value_end(mt_parser *p)
{
    mt_buf out = {.limit = 8 * (size_t)MT_LIMIT_PARSE_HELD}; /* a byte may become six, as \u0000 */

    p->gap_len = 0;
    p->line = false; /* the value's last line break belongs to the format */
    if (p->streaming) {
        mt_parse_call_arguments(p, "\"", 1);
        p->streaming = false;
        return;
    }
    put_value(&out, p->held.len ? p->held.data : "", p->held.len, types_of_key(p));
    mt_parse_key(p);
    mt_parse_call_arguments(p, out.data, out.len);
    mt_buf_free(&out);
}
