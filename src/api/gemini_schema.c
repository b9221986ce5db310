/* Google's JSON as other dialects write it: names of fields in camel case, and JSON schemas. What jansson returns is
   mostly not looked at: the callers notice by mt_json_guard_end where it had no memory. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/gemini.h"
#include "base/json_tree.h"
#include "base/words.h"

enum { NAME = 64 }; /* bytes of a name that may be one of Google's */

/* "inline_data" becomes "inlineData". Returns `out`, or a name that is too long as it is. */
static const char *camel_name(const char *name, char out[NAME])
{
    size_t len = 0;

    if (strlen(name) >= NAME || *name == '_')
        return name;
    for (const char *c = name; *c; c++) {
        const bool joint = *c == '_' && islower((unsigned char)c[1]);

        out[len++] = joint ? (char)toupper((unsigned char)c[1]) : *c;
        c += joint;
    }
    out[len] = '\0';
    return out;
}

json_t *mt_gemini_camel(const json_t *value)
{
    /* What a client names itself, and schemas, which mt_gemini_schema reads */
    static const char *const own[] = {"args",         "labels",   "parameters",         "parametersJsonSchema",
                                      "response",     "metadata", "responseJsonSchema", "responseSchema",
                                      "partMetadata", NULL};
    char name[NAME];
    const char *key;
    json_t *member, *out;

    if (json_is_array(value)) {
        out = json_array();
        for (size_t i = 0; i < json_array_size(value); i++)
            json_array_append_new(out, mt_gemini_camel(json_array_get(value, i)));
        return out;
    }
    if (!json_is_object(value))
        return mt_body_share(value);
    out = json_object();
    json_object_foreach((json_t *)(uintptr_t)value, key, member) { /* not const for jansson; nothing is changed */
        const char *known = camel_name(key, name);                 /* the loop needs key as it is */

        json_object_set_new(out, known, mt_words_have(own, known) ? mt_body_share(member) : mt_gemini_camel(member));
    }
    return out;
}

/* How the value of a keyword is converted. */
typedef enum keyword_kind { SAME, WORD, COUNT, ONE, LIST, MAP, LEFT_OUT } keyword_kind;

static keyword_kind kind_of(const char *keyword)
{
    static const struct {
        const char *keyword;
        keyword_kind kind;
    } keywords[] = {
        {"type", WORD},
        {"maxItems", COUNT}, /* this and the following are strings in Google's JSON, as all integers of 64 bits */
        {"minItems", COUNT},
        {"maxLength", COUNT},
        {"minLength", COUNT},
        {"maxProperties", COUNT},
        {"minProperties", COUNT},
        {"items", ONE},
        {"additionalProperties", ONE},
        {"anyOf", LIST},
        {"oneOf", LIST},
        {"allOf", LIST},
        {"prefixItems", LIST},
        {"properties", MAP},
        {"$defs", MAP},
        {"defs", MAP},
        {"nullable", LEFT_OUT}, /* this and the following: see allow_null and order */
        {"propertyOrdering", LEFT_OUT},
        {"example", LEFT_OUT}, /* says nothing of values */
    };

    for (size_t i = 0; i < MT_COUNT(keywords); i++)
        if (strcmp(keyword, keywords[i].keyword) == 0)
            return keywords[i].kind;
    return SAME;
}

/* "STRING" becomes "string"; NULL: no type is named. */
static json_t *lower_type(const json_t *type)
{
    const char *word = mt_json_word(type);
    char lower[NAME] = "";

    if (!word || strlen(word) >= sizeof(lower))
        return mt_body_share(type);
    for (size_t i = 0; word[i]; i++)
        lower[i] = (char)tolower((unsigned char)word[i]);
    return strcmp(lower, "type_unspecified") == 0 ? NULL : json_string(lower);
}

static json_t *count_of(const json_t *value)
{
    const char *text = mt_json_word(value);
    char *end;
    const long long count = text ? strtoll(text, &end, 10) : 0;

    return text && *text && !*end ? json_integer(count) : mt_body_share(value);
}

static json_t *convert_list(const json_t *list)
{
    json_t *out = json_array();

    for (size_t i = 0; i < json_array_size(list); i++)
        json_array_append_new(out, mt_gemini_schema(json_array_get(list, i)));
    return out;
}

static json_t *convert_map(const json_t *map)
{
    json_t *out = json_object(), *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)map, key, value)
        json_object_set_new(out, key, mt_gemini_schema(value));
    return out;
}

/* The value of a keyword; a value of another type than the keyword has stays for the reader of schemas to refuse. NULL:
   the keyword is left out. */
static json_t *convert(keyword_kind kind, const json_t *value)
{
    switch (kind) {
    case WORD: return lower_type(value);
    case COUNT: return count_of(value);
    case ONE: return mt_gemini_schema(value);
    case LIST: return json_is_array(value) ? convert_list(value) : mt_body_share(value);
    case MAP: return json_is_object(value) ? convert_map(value) : mt_body_share(value);
    case LEFT_OUT: return NULL;
    case SAME: break;
    }
    return mt_body_share(value);
}

/* A list with one more element, in the place of that which the schema shares with the body. */
static void append(json_t *schema, const char *keyword, json_t *element)
{
    json_t *list = json_copy(json_object_get(schema, keyword));

    json_array_append_new(list, element);
    json_object_set_new(schema, keyword, list);
}

/* "nullable": null is allowed beside what the schema says. */
static void allow_null(json_t *schema)
{
    json_t *type = json_object_get(schema, "type");

    if (json_is_string(type))
        json_object_set_new(schema, "type", json_pack("[O, s]", type, "null"));
    if (json_is_array(json_object_get(schema, "enum")))
        append(schema, "enum", json_null());
    if (json_is_array(json_object_get(schema, "anyOf")))
        append(schema, "anyOf", json_pack("{s:s}", "type", "null"));
}

/* "propertyOrdering": answers have properties in the order in which the schema has them. */
static void order(json_t *schema, const json_t *names)
{
    json_t *properties = json_object_get(schema, "properties"), *ordered = json_object();

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = mt_json_word(json_array_get(names, i));

        if (name && json_object_get(properties, name))
            json_object_set(ordered, name, json_object_get(properties, name));
    }
    json_object_update_missing(ordered, properties);
    json_object_set_new(schema, "properties", ordered);
}

/* "enum", "int32" and their kin say no more than the type. */
static bool is_number_format(const char *keyword, const json_t *value)
{
    static const char *const formats[] = {"enum", "float", "double", "int32", "int64", NULL};

    return strcmp(keyword, "format") == 0 && mt_words_have(formats, mt_json_word(value));
}

json_t *mt_gemini_schema(const json_t *schema)
{
    const json_t *names = NULL;
    bool nullable = false;
    char name[NAME];
    const char *key;
    json_t *value, *out;

    if (!json_is_object(schema))
        return mt_body_share(schema);
    out = json_object();
    json_object_foreach((json_t *)(uintptr_t)schema, key, value) {
        const char *keyword = kind_of(camel_name(key, name)) != SAME ? name : key;
        json_t *made = is_number_format(keyword, value) ? NULL : convert(kind_of(keyword), value);

        nullable = nullable || (strcmp(keyword, "nullable") == 0 && json_is_true(value));
        names = strcmp(keyword, "propertyOrdering") == 0 ? value : names;
        if (made)
            json_object_set_new(out, keyword, made);
    }
    if (nullable)
        allow_null(out);
    if (names && json_is_object(json_object_get(out, "properties")))
        order(out, names);
    return out;
}
