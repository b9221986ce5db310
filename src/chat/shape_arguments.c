/* The grammar of a call's arguments, from the tool's JSON schema: see shape_inside.h. */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "chat/shape_inside.h"
#include "constraint/lark.h"
#include "constraint/limits.h"
#include "constraint/regex.h"
#include "constraint/schema.h"

/* A value as JSON. root: what references in the schema refer to; object: only an object. Where the schema cannot be
   followed at all, any value will do, unless strict. */
static bool json_value(mt_shape_writer *w, const json_t *schema, const json_t *root, bool object, bool strict,
                       mt_expr *out)
{
    mt_error ignored = {0};

    if (mt_schema_expr(&w->arguments, schema, root, object, strict, out, strict ? w->err : &ignored))
        return true;
    *out = object ? mt_json_object(&w->arguments) : mt_json_value(&w->arguments);
    return !strict;
}

/* A tool without a schema has no arguments. */
bool mt_shape_object(mt_shape_writer *w, const json_t *schema, bool strict, mt_expr *out)
{
    if (schema)
        return json_value(w, schema, schema, true, strict, out);
    *out = mt_grammar_text(w->g, "{}");
    return true;
}

/* A string of the schema's "enum" or "const". doubt: the value may also be of another type, so only strings count that
   a reader of the call cannot take for a number, a boolean or null. */
static mt_expr listed_text(mt_shape_writer *w, const json_t *schema, const json_t *root, bool doubt, size_t *count)
{
    const json_t *list = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const");
    const size_t listed = constant ? 1 : json_array_size(list);
    mt_expr *parts = mt_alloc_array(listed + 1, sizeof(*parts)), any;

    *count = 0;
    for (size_t i = 0; i < listed; i++) {
        const json_t *one = constant ? constant : json_array_get(list, i);

        if (json_is_string(one) &&
            (!doubt || mt_parse_reads_string(json_string_value(one), json_string_length(one), schema, root)))
            parts[(*count)++] = mt_grammar_literal(w->g, json_string_value(one), json_string_length(one));
    }
    any = mt_grammar_any(w->g, parts, *count);
    mt_free(parts);
    return any;
}

/* A value without quotes, up to its closing tag: one of the schema's strings, or any text where it lists none. */
static mt_expr text_value(mt_shape_writer *w, const json_t *schema, const json_t *root, const char *close)
{
    size_t count;
    const mt_expr any = listed_text(w, schema, root, false, &count);

    return count ? mt_grammar_seq(w->g, any, mt_grammar_text(w->g, close)) : mt_grammar_until(w->g, &close, 1);
}

static bool has_any(const json_t *schema, const char *const *keywords)
{
    for (; *keywords; keywords++)
        if (json_object_get(schema, *keywords))
            return true;
    return false;
}

/* Keywords that say more of a string than that it is one. */
static const char *const narrowing[] = {"pattern", "format", "minLength", "maxLength", "not",  "if", "allOf",
                                        "anyOf",   "oneOf",  "enum",      "const",     "$ref", NULL};

/* Whether a schema allows every string. */
static bool any_string(const json_t *schema, const json_t *root)
{
    static const char *const others[] = {"pattern", "format", "minLength", "maxLength", "not",  "if",
                                         "allOf",   "oneOf",  "enum",      "const",     "$ref", NULL};
    const json_t *any = json_object_get(schema, "anyOf");

    if (!any)
        return !has_any(schema, narrowing) && !mt_parse_no_string(schema, root);
    for (size_t i = 0; !has_any(schema, others) && i < json_array_size(any); i++) {
        const json_t *one = mt_parse_resolve(json_array_get(any, i), root);

        if (!has_any(one, narrowing) && !mt_parse_no_string(one, root))
            return true;
    }
    return false;
}

/* Appends a regular expression that matches the text. */
static void add_escaped(mt_buf *out, const char *text)
{
    for (; *text; text++) {
        mt_buf_puts(out, strchr("\\^$.|?*+()[]{}/", *text) ? "\\" : "");
        mt_buf_add(out, text, 1);
    }
}

/* The closing tag without white space around it, in the arena. */
static const char *core_of(mt_arena *arena, const char *close)
{
    static const char space[] = " \n";
    const size_t from = strspn(close, space);
    size_t to = strlen(close);

    while (to > from && strchr(space, close[to - 1]))
        to--;
    return mt_arena_printf(arena, "%.*s", (int)(to - from), close + from);
}

/* Reads a regular expression in which '@' stands for the text `close` and '#' for that without white space around it.
   NULL: w->err. */
static const mt_regex *read_around(mt_shape_writer *w, mt_arena *arena, const char *pattern, const char *close)
{
    const char *core = core_of(arena, close);
    mt_buf text = {.limit = MT_LIMIT_GRAMMAR_TEXT};
    const mt_regex *regex;

    for (; *pattern; pattern++)
        if (*pattern == '@')
            add_escaped(&text, close);
        else if (*pattern == '#')
            add_escaped(&text, core);
        else
            mt_buf_add(&text, pattern, 1);
    regex = mt_regex_read(arena, mt_arena_printf(arena, "%s", text.data), text.len, false, w->err);
    mt_buf_free(&text);
    return regex;
}

/* Any text up to the closing tag that is not read as something else, which the expression `other` matches. The parser
   finds the tag whether or not there is white space around it. */
static bool other_text(mt_shape_writer *w, const char *other, const char *close, mt_expr *out)
{
    mt_arena *arena = mt_arena_new(0);
    const char *read_as_other = mt_arena_printf(arena, "%s@", other);
    const mt_regex *all = read_around(w, arena, "[\\s\\S]*@", close),
                   *none[] = {read_around(w, arena, "[\\s\\S]*#[\\s\\S]*#[\\s\\S]*", close),
                              read_around(w, arena, read_as_other, close)};
    const mt_regex_query query = {
        .all = &all, .all_count = 1, .none = none, .none_count = MT_COUNT(none), .most = MT_GRAMMAR_UNLIMITED};
    const bool ok = all && none[0] && none[1] &&
                    (mt_regex_query_expr(&query, w->g, mt_grammar_chars, out) ||
                     mt_fail(w->err, MT_E_INVALID, "the schema takes too many states: simplify it"));

    mt_arena_free(arena);
    return ok;
}

/* Text of a schema that does not allow every string. Strings of Gemma's notation are written as they are, without `<`,
   with which a tag would begin; here they have no quotes either. */
static bool narrow_text(mt_shape_writer *w, const json_t *schema, const json_t *root, const char *other, mt_expr *out)
{
    mt_json raw = {.g = w->g, .notation = MT_NOTATION_GEMMA, .quotes = mt_grammar_empty(w->g)};
    json_t *own = json_pack("{s:[O, {s:s}]}", "allOf", schema, "type", "string");
    bool ok;

    if (other)
        json_array_append_new(json_object_get(own, "allOf"),
                              json_pack("{s:{s:o}}", "not", "pattern", json_sprintf("^(?:%s)$", other)));
    ok = mt_schema_expr(&raw, own, root, false, true, out, w->err);
    json_decref(own);
    return ok;
}

/* Text of a grammar, in which the closing tag does not stand. */
static bool grammar_text(mt_shape_writer *w, const json_t *definition, const char *close, mt_expr *out)
{
    mt_arena *arena = mt_arena_new(0);
    const mt_lark_text how = {.write = mt_grammar_chars, .without = core_of(arena, close)};
    const bool ok =
        mt_lark_expr(w->g, &how, json_string_value(definition), json_string_length(definition), out, w->err);

    mt_arena_free(arena);
    return ok;
}

/* A string that fits a strict schema, and its closing tag. */
static bool strict_text(mt_shape_writer *w, const json_t *schema, const json_t *root, const mt_layout_tags *t,
                        mt_expr *out)
{
    mt_buf other = {.limit = MT_LIMIT_GRAMMAR_TEXT};
    /* Where tags do not say what is a string, text that could be another value is read as that. */
    const bool doubt = strcmp(t->string, t->other) == 0 && mt_parse_others(&other, schema, root);
    const bool listed = json_object_get(schema, "enum") || json_object_get(schema, "const");
    size_t count;
    bool ok = true;

    if (!listed && any_string(schema, root)) {
        if (doubt)
            ok = other_text(w, other.data, t->close, out);
        else
            *out = mt_grammar_until(w->g, &t->close, 1);
    } else {
        if (listed && json_object_size(schema) == (size_t)(json_object_get(schema, "type") ? 2 : 1))
            *out = listed_text(w, schema, root, doubt, &count);
        else
            ok = narrow_text(w, schema, root, doubt ? other.data : NULL, out);
        *out = ok ? mt_grammar_seq(w->g, *out, mt_grammar_text(w->g, t->close)) : 0;
    }
    mt_buf_free(&other);
    return ok;
}

/* Values other than strings are JSON, since the parser reads them as such. */
static bool other_value(mt_shape_writer *w, const json_t *schema, const json_t *root, bool strict,
                        const mt_layout_tags *t, mt_expr *out)
{
    mt_expr inner;

    if (!json_value(w, schema, root, false, strict, &inner))
        return false;
    *out = MT_SHAPE_LIST(w, mt_shape_markup(w, t->other), inner, mt_shape_markup(w, t->close));
    return true;
}

/* A value that may be a string or something else and has to fit its schema. */
static bool strict_value(mt_shape_writer *w, const json_t *schema, const json_t *root, const mt_layout_tags *t,
                         mt_expr *out)
{
    static const char *const all[] = {"object", "array", "number", "boolean", "null"};
    json_t *others = json_pack("{s:[O, {s:[sssss]}]}", "allOf", schema, "type", all[0], all[1], all[2], all[3], all[4]);
    mt_expr text = 0, other = 0;
    const bool ok = strict_text(w, schema, root, t, &text) && other_value(w, others, root, true, t, &other);

    json_decref(others);
    *out = mt_grammar_or(w->g, mt_grammar_seq(w->g, mt_shape_markup(w, t->string), text), other);
    return ok;
}

/* Whether every value fits a schema, however it is read. */
static bool is_anything(const json_t *schema)
{
    static const char *const notes[] = {"title", "description", "default", "examples", "$comment", "deprecated", NULL};
    size_t known = 0;

    for (size_t i = 0; notes[i]; i++)
        known += json_object_get(schema, notes[i]) != NULL;
    return json_is_true(schema) || (json_is_object(schema) && known == json_object_size(schema));
}

/* A value and its closing tag. Strings stand as they are. The tag behind a string is spelled out and never a special
   token, so that the end is found in any text. */
static bool tagged_value(mt_shape_writer *w, const json_t *schema, const json_t *root, bool strict,
                         const mt_layout_tags *t, mt_expr *out)
{
    const json_t *grammar;
    mt_expr text;

    schema = mt_parse_resolve(schema, root);
    grammar = mt_schema_grammar(schema);
    if (mt_parse_no_string(schema, root))
        return other_value(w, schema, root, strict, t, out);
    if (strict && mt_parse_others(NULL, schema, root) && !is_anything(schema))
        return strict_value(w, schema, root, t, out);
    if (strict && (json_object_get(schema, "pattern") || json_object_get(schema, "format") || grammar)) {
        if (!(grammar ? grammar_text(w, grammar, t->close, &text) : narrow_text(w, schema, root, NULL, &text)))
            return false;
        text = mt_grammar_seq(w->g, text, mt_grammar_text(w->g, t->close));
    } else
        text = text_value(w, schema, root, t->close);
    *out = mt_grammar_seq(w->g, mt_shape_markup(w, t->string), text);
    return true;
}

static bool is_required(const json_t *schema, const char *key)
{
    const json_t *list = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i)) && strcmp(json_string_value(json_array_get(list, i)), key) == 0)
            return true;
    return false;
}

/* Where arguments are written one by one, keywords about all of them together cannot be enforced. strict: that is an
   error. */
static bool check_top(mt_shape_writer *w, const json_t *schema, bool strict)
{
    static const char *const keywords[] = {"$ref",  "anyOf",         "oneOf",         "allOf",
                                           "const", "minProperties", "maxProperties", "patternProperties"};

    for (size_t i = 0; strict && i < MT_COUNT(keywords); i++)
        if (json_object_get(schema, keywords[i]))
            return mt_fail(w->err, MT_E_INVALID,
                           "\"%s\" at the top of the schema cannot be enforced in this model's format of calls: leave "
                           "it out",
                           keywords[i]);
    return true;
}

bool mt_shape_tagged(mt_shape_writer *w, const json_t *schema, bool strict, const mt_layout_tags *t, mt_expr *out)
{
    json_t *properties = json_object_get(schema, "properties"), *own;
    mt_expr *parts = mt_alloc_array(json_object_size(properties) + 1, sizeof(*parts)), one;
    const char *key;
    size_t count = 0;
    bool ok = check_top(w, schema, strict);

    json_object_foreach(properties, key, own) {
        ok = ok && tagged_value(w, own, schema, strict, t, &one);
        if (!ok)
            break;
        one = MT_SHAPE_LIST(w, mt_shape_markup(w, t->open), mt_grammar_text(w->g, key), mt_shape_markup(w, t->opened),
                            one);
        parts[count++] = is_required(schema, key) ? one : mt_grammar_maybe(w->g, one);
    }
    *out = mt_grammar_list(w->g, parts, count);
    mt_free(parts);
    return ok;
}

/* Whether a name can stand before "=" in Python, as the parser accepts it. */
static bool is_python_name(const char *name)
{
    size_t len = 0;

    if (!mt_parse_letter(name[0]))
        return false;
    while (mt_parse_name_byte(name[len]) && name[len] != '.' && name[len] != '-')
        len++;
    return name[len] == '\0';
}

/* Adds an argument before those in tail. tail[0]: what may follow where no argument was written yet; tail[1]: where one
   was. Called from the last argument to the first. */
static void prepend(mt_shape_writer *w, mt_expr tail[2], mt_expr one, bool needed)
{
    mt_grammar *g = w->g;
    const mt_rule behind = mt_grammar_rule(g); /* a rule, since it is used twice for each argument before */
    const mt_expr first = mt_grammar_seq(g, one, tail[1]);
    const mt_expr later = mt_grammar_list(g, (mt_expr[]){mt_grammar_text(g, ", "), one, tail[1]}, 3);

    mt_grammar_define(g, behind, needed ? later : mt_grammar_or(g, later, tail[1]));
    tail[0] = needed ? first : mt_grammar_or(g, first, tail[0]);
    tail[1] = mt_grammar_call(g, behind);
}

/* Adds key=value before the arguments in tail, as `prepend` does. An optional key that is no Python name is left out; a
   required one is an error. */
static bool add_keyword(mt_shape_writer *w, const char *key, const json_t *schema, const json_t *root, bool strict,
                        mt_expr tail[2])
{
    const bool needed = is_required(root, key);
    mt_rule rule;
    mt_expr one;

    if (!is_python_name(key))
        return !needed ||
               mt_fail(w->err, MT_E_INVALID,
                       "\"%.100s\" is no name that an argument can have in this model's format of calls: use letters",
                       key);
    if (!json_value(w, schema, root, false, strict, &one))
        return false;
    rule = mt_grammar_rule(w->g); /* a rule, since it is used twice */
    mt_grammar_define(w->g, rule, MT_SHAPE_LIST(w, mt_grammar_text(w->g, key), mt_grammar_text(w->g, "="), one));
    prepend(w, tail, mt_grammar_call(w->g, rule), needed);
    return true;
}

bool mt_shape_keywords(mt_shape_writer *w, const json_t *schema, bool strict, mt_expr *out)
{
    json_t *properties = json_object_get(schema, "properties"), *own;
    const size_t count = json_object_size(properties);
    const char **keys = mt_alloc_array(count + 1, sizeof(*keys)), *key;
    mt_expr tail[2] = {mt_grammar_empty(w->g), mt_grammar_empty(w->g)};
    bool ok = check_top(w, schema, strict);
    size_t i = 0;

    json_object_foreach(properties, key, own)
        keys[i++] = key;
    for (i = count; ok && i-- > 0;)
        ok = add_keyword(w, keys[i], json_object_get(properties, keys[i]), schema, strict, tail);
    mt_free(keys);
    *out = tail[0];
    return ok;
}
