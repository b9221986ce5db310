/* Reads the fields that constrain the form of an answer: "response_format" and its kin in other APIs. A request may
   have one of them. */
#include <string.h>

#include "api/fields.h"
#include "base/json_tree.h"

/* Sets the ask's format, after checking the type of its value. */
static bool set_source(mt_ask *ask, const char *name, mt_source_kind kind, const json_t *value, mt_failure *why)
{
    const bool text = kind == MT_SOURCE_REGEX || kind == MT_SOURCE_GBNF;

    if (ask->source.kind != MT_SOURCE_NONE)
        return mt_failure_value(why, name, "and \"%s\" are both given: send one of them", ask->source_field);
    if (text && !json_is_string(value))
        return mt_failure_type(why, name, value, "a string");
    if (kind == MT_SOURCE_CHOICE && !json_is_array(value))
        return mt_failure_type(why, name, value, "a list of strings");
    if (kind == MT_SOURCE_TAGS && !json_is_object(value))
        return mt_failure_type(why, name, value, "an object with \"structures\" and \"triggers\", or a \"format\"");
    if (kind == MT_SOURCE_SCHEMA && !json_is_object(value) && !json_is_boolean(value))
        return mt_failure_type(why, name, value, "a JSON schema");
    ask->source = (mt_source){.kind = kind, .value = value};
    ask->source_field = name;
    return true;
}

/* Schemas and tags may also come as text, which is parsed here and kept by the ask. */
static bool set_parsed(mt_ask *ask, const char *name, mt_source_kind kind, const json_t *value, mt_failure *why)
{
    json_t *parsed;

    if (!json_is_string(value))
        return set_source(ask, name, kind, value, why);
    parsed = mt_json_tree_try(json_string_value(value), json_string_length(value));
    if (!parsed)
        return mt_failure_value(why, name, "is a string that is no JSON: send a JSON %s",
                                kind == MT_SOURCE_SCHEMA ? "schema" : "object");
    json_decref(ask->schema);
    ask->schema = parsed;
    return set_source(ask, name, kind, parsed, why);
}

static bool set_schema(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    return set_parsed(ask, name, MT_SOURCE_SCHEMA, value, why);
}

bool mt_read_format(mt_ask *ask, const char *name, const char *type, const json_t *schema, bool strict, mt_failure *why)
{
    if (!type)
        return mt_failure_field(why, "invalid_type", name, "is not an object with a type: send one");
    if (strcmp(type, "text") == 0)
        return true;
    if (strcmp(type, "json_object") == 0)
        return set_source(ask, name, MT_SOURCE_JSON, NULL, why);
    if (strcmp(type, "json_schema") != 0)
        return mt_failure_unsupported(
            why, name, "of type \"%.40s\" is not supported: send text, json_object or json_schema", type);
    if (!schema)
        return mt_failure_set(
            why, 400, "invalid_value", "response_format.json_schema",
            "\"response_format\" of type json_schema has no schema: send one as \"json_schema.schema\"");
    if (!set_schema(ask, name, schema, why))
        return false;
    ask->source.strict = strict;
    return true;
}

bool mt_read_response_format(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const char *type = mt_json_word(json_object_get(value, "type"));
    const json_t *inner = json_object_get(value, "json_schema"), *schema = json_object_get(value, "schema");

    if (type && strcmp(type, "json_object") == 0 && schema)
        return set_schema(ask, name, schema, why);
    if (type && strcmp(type, "structural_tag") == 0)
        return set_source(ask, name, MT_SOURCE_TAGS, value, why);
    return mt_read_format(ask, name, type, inner ? json_object_get(inner, "schema") : schema,
                          json_is_true(json_object_get(inner ? inner : value, "strict")), why);
}

/* kind: the word that vLLM uses for a kind of format. */
static bool read_kind(mt_ask *ask, const char *name, const char *kind, const json_t *value, mt_failure *why)
{
    if (strcmp(kind, "json") == 0)
        return set_schema(ask, name, value, why);
    if (strcmp(kind, "regex") == 0)
        return set_source(ask, name, MT_SOURCE_REGEX, value, why);
    if (strcmp(kind, "choice") == 0)
        return set_source(ask, name, MT_SOURCE_CHOICE, value, why);
    if (strcmp(kind, "grammar") == 0)
        return set_source(ask, name, MT_SOURCE_GBNF, value, why);
    if (strcmp(kind, "structural_tag") == 0)
        return set_parsed(ask, name, MT_SOURCE_TAGS, value, why);
    if (strcmp(kind, "json_object") == 0)
        return json_is_true(value) ? set_source(ask, name, MT_SOURCE_JSON, NULL, why) : true;
    return mt_failure_unsupported(why, name,
                                  "has \"%.40s\", which is not supported: send json, regex, choice, grammar, "
                                  "structural_tag or json_object",
                                  kind);
}

bool mt_read_guided(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    return read_kind(ask, name, name + strlen("guided_"), value, why);
}

/* llama.cpp's "grammar" and "json_schema", SGLang's "regex" and "ebnf"; an empty text means none. */
bool mt_read_plain_format(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (json_is_string(value) && json_string_length(value) == 0)
        return true;
    return read_kind(ask, name,
                     strcmp(name, "regex") == 0         ? "regex"
                     : strcmp(name, "json_schema") == 0 ? "json"
                                                        : "grammar",
                     value, why);
}

bool mt_read_structured(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const char *kind;
    json_t *own;

    if (!json_is_object(value))
        return mt_failure_type(why, name, value, "an object");
    json_object_foreach((json_t *)value, kind, own)
        if (!json_is_null(own) && !read_kind(ask, name, kind, own, why))
            return false;
    return true;
}
