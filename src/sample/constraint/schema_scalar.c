/* Numbers, strings, and values that are listed. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/json_tree.h"
#include "sample/constraint/regex.h"
#include "sample/constraint/schema_inside.h"
#include "sample/constraint/value_set.h"

enum { PATTERNS = 8 };

#define LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
#define HEX4 "[0-9a-fA-F]{1,4}"
#define BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define DATE                                                                                              \
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|" \
    "02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
#define TIME "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define DAYS "(?:[0-9]{1,4}Y(?:[0-9]{1,4}M(?:[0-9]{1,4}D)?)?|[0-9]{1,4}M(?:[0-9]{1,4}D)?|[0-9]{1,4}D)"
#define HOURS "T(?:[0-9]{1,4}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,4}M(?:[0-9]{1,4}S)?|[0-9]{1,4}S)"
#define PATH "[A-Za-z0-9._~!$&'()*+,;=:@-]"

static const struct {
    const char *name, *regex;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration", "^P(?:[0-9]{1,4}W|" DAYS "(?:" HOURS ")?|" HOURS ")$"},
    {"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"},
    {"email", "^[A-Za-z0-9][A-Za-z0-9_+-]{0,31}(?:\\.[A-Za-z0-9_+-]{1,32}){0,3}@(?:" LABEL "\\.){1,4}[A-Za-z]{2,24}$"},
    {"hostname", "^" LABEL "(?:\\." LABEL "){0,5}$"},
    {"ipv4", "^" BYTE "(?:\\." BYTE "){3}$"},
    {"ipv6", "^(?:(?:" HEX4 ":){7}" HEX4 "|(?:" HEX4 ":){1,7}:|:(?::" HEX4 "){1,7}|(?:" HEX4 ":){1,6}:" HEX4 ")$"},
    {"uri", "^https?://" LABEL "(?:\\." LABEL "){0,5}(?::[1-9][0-9]{0,3})?(?:/" PATH "*)*(?:\\?" PATH "*)?$"},
};

/* Narrows the range by one keyword. */
static bool narrow(mt_schema_reader *r, const mt_schema_part *part, const char *keyword, bool fractions, int64_t *low,
                   int64_t *high, bool *above, bool *below)
{
    const json_t *value = json_object_get(part->schema, keyword);
    const bool upper = strstr(keyword, "ax") != NULL;
    bool exclusive = keyword[0] == 'e';
    double bound;
    int64_t whole;

    if (!value)
        return true;
    if (json_is_boolean(value) && exclusive) /* draft 4: says how minimum and maximum are meant */
        return json_is_false(value) || mt_schema_fail(r, part->path, keyword, "is true: give the number instead");
    if (!json_is_number(value))
        return mt_schema_fail(r, part->path, keyword, "is not a number: give one");
    bound = json_number_value(value);
    if (bound != floor(bound)) {
        if (fractions)
            return mt_schema_fail(r, part->path, keyword,
                                  "is not a whole number, which is supported for integers only: round it");
        bound = upper ? floor(bound) : ceil(bound);
        exclusive = false;
    }
    if (!(fabs(bound) < (double)MT_JSON_INTEGER_MAX))
        whole = bound < 0 ? -MT_JSON_INTEGER_MAX : MT_JSON_INTEGER_MAX;
    else
        whole = json_is_integer(value) ? json_integer_value(value) : (int64_t)bound;
    if (exclusive && !fractions) {
        whole += upper ? -1 : 1;
        exclusive = false;
    }
    if (upper && (whole < *high || (whole == *high && exclusive))) {
        *high = whole;
        *below = exclusive;
    }
    if (!upper && (whole > *low || (whole == *low && exclusive))) {
        *low = whole;
        *above = exclusive;
    }
    return true;
}

bool mt_schema_numbers(mt_schema_reader *r, const mt_schema_place *place, bool fractions, mt_expr *out)
{
    static const char *const keywords[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
    int64_t low = -MT_JSON_INTEGER_MAX, high = MT_JSON_INTEGER_MAX;
    bool above = false, below = false;

    for (size_t i = 0; i < place->count; i++)
        for (size_t k = 0; k < MT_COUNT(keywords); k++)
            if (!narrow(r, &place->part[i], keywords[k], fractions, &low, &high, &above, &below))
                return false;
    *out = fractions ? mt_json_numbers(r->j, low, above, high, below) : mt_json_integers(r->j, low, high);
    return true;
}

typedef struct strings {
    uint32_t least, most;
    const mt_regex *regex[PATTERNS];
    size_t count;
} strings;

static bool add_regex(mt_schema_reader *r, const mt_schema_part *part, const char *keyword, const char *regex,
                      size_t len, strings *s)
{
    if (s->count == PATTERNS)
        return mt_schema_fail(r, part->path, keyword, "is one of too many patterns for one place");
    s->regex[s->count] = mt_schema_regex(r, part->path, keyword, regex, len);
    return s->regex[s->count++] != NULL;
}

static bool add_format(mt_schema_reader *r, const mt_schema_part *part, strings *s)
{
    const json_t *format = json_object_get(part->schema, "format");

    if (!format)
        return true;
    for (size_t i = 0; json_is_string(format) && i < MT_COUNT(formats); i++)
        if (strcmp(formats[i].name, json_string_value(format)) == 0)
            return add_regex(r, part, "format", formats[i].regex, strlen(formats[i].regex), s);
    return mt_schema_fail(r, part->path, "format", "names a format that is not supported: leave it out");
}

static bool read_string(mt_schema_reader *r, const mt_schema_part *part, strings *s)
{
    const json_t *pattern = json_object_get(part->schema, "pattern");
    uint32_t least = 0, most = MT_GRAMMAR_UNLIMITED;

    if (pattern && !json_is_string(pattern))
        return mt_schema_fail(r, part->path, "pattern", "is not a string: give one");
    if (!mt_schema_count(r, part, "minLength", &least) || !mt_schema_count(r, part, "maxLength", &most) ||
        !add_format(r, part, s))
        return false;
    s->least = least > s->least ? least : s->least;
    s->most = most < s->most ? most : s->most;
    return !pattern || add_regex(r, part, "pattern", json_string_value(pattern), json_string_length(pattern), s);
}

bool mt_schema_string(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out)
{
    mt_grammar *g = r->j->g;
    strings s = {.most = MT_GRAMMAR_UNLIMITED};
    mt_expr inside;

    for (size_t i = 0; i < place->count; i++)
        if (!read_string(r, &place->part[i], &s))
            return false;
    if (s.count == 0) {
        *out = mt_json_string(r->j, s.least, s.most);
        return true;
    }
    if (s.count == 1 && s.least == 0 && s.most == MT_GRAMMAR_UNLIMITED)
        inside = mt_regex_expr(s.regex[0], g, mt_json_chars(r->j));
    else if (!mt_regex_all(s.regex, s.count, s.least, s.most, g, mt_json_chars(r->j), &inside))
        return mt_schema_fail(r, place->part[0].path, "pattern",
                              "is too large together with the bounds on the length, or with another one: simplify it");
    *out = mt_grammar_list(g, (mt_expr[]){mt_json_quote(r->j), inside, mt_json_quote(r->j)}, 3);
    return true;
}

static unsigned type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL: return MT_TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE: return MT_TYPE_BOOLEAN;
    case JSON_INTEGER: return MT_TYPE_INTEGER;
    case JSON_REAL: return json_real_value(value) == floor(json_real_value(value)) ? MT_TYPE_INTEGER : MT_TYPE_NUMBER;
    case JSON_STRING: return MT_TYPE_STRING;
    case JSON_ARRAY: return MT_TYPE_ARRAY;
    case JSON_OBJECT: return MT_TYPE_OBJECT;
    }
    return 0;
}

/* Keywords beside a list of values would each have to be checked against all of them. */
static bool check_beside(mt_schema_reader *r, const mt_schema_part *part)
{
    static const char *const keywords[] = {
        "properties", "required",  "patternProperties", "items",   "prefixItems",      "pattern",         "format",
        "minLength",  "maxLength", "minimum",           "maximum", "exclusiveMinimum", "exclusiveMaximum"};

    for (size_t i = 0; i < MT_COUNT(keywords); i++)
        if (json_object_get(part->schema, keywords[i]))
            return mt_schema_fail(
                r, part->path, keywords[i],
                "stands beside \"enum\" or \"const\", which is not supported: list only what it allows");
    return true;
}

static bool allowed(const mt_schema_place *place, mt_value_set *const *lists, unsigned types, const json_t *value)
{
    if (!(types & type_of(value)))
        return false;
    for (size_t i = 0; i < place->count; i++) {
        const json_t *constant = json_object_get(place->part[i].schema, "const");

        if ((lists[i] && !mt_value_set_has(lists[i], value)) || (constant && !mt_value_equal(constant, value)))
            return false;
    }
    return true;
}

/* What of a list, or of one value, all schemas of the place allow. lists: the others' that it is held against. */
static mt_expr write_constants(mt_schema_reader *r, const mt_schema_place *place, mt_value_set *const *lists,
                               unsigned types, const json_t *list, const json_t *constant)
{
    const size_t given = constant ? 1 : json_array_size(list);
    mt_expr *parts = mt_alloc_array(given + 1, sizeof(*parts)), all;
    size_t count = 0;

    for (size_t i = 0; i < given && !mt_grammar_full(r->j->g); i++) {
        const json_t *value = constant ? constant : json_array_get(list, i);

        if (allowed(place, lists, types, value))
            parts[count++] = mt_json_constant(r->j, value);
    }
    all = mt_grammar_any(r->j->g, parts, count);
    mt_free(parts);
    return all;
}

bool mt_schema_constants(mt_schema_reader *r, const mt_schema_place *place, unsigned types, bool *has, mt_expr *out)
{
    const json_t *list = NULL, *constant = NULL;
    mt_value_set *lists[MT_LIMIT_SCHEMA_PARTS] = {NULL};

    for (size_t i = 0; i < place->count; i++) {
        const json_t *own = json_object_get(place->part[i].schema, "enum");

        if (own && !json_is_array(own))
            return mt_schema_fail(r, place->part[i].path, "enum", "is not a list: give one");
        list = list ? list : own;
        constant = constant ? constant : json_object_get(place->part[i].schema, "const");
    }
    *has = list || constant;
    for (size_t i = 0; *has && i < place->count; i++)
        if (!check_beside(r, &place->part[i]))
            return false;
    if (!*has)
        return true;
    for (size_t i = 0; i < place->count; i++) {
        const json_t *own = json_object_get(place->part[i].schema, "enum");

        if (own && (constant || own != list)) /* the list that is written need not be held against itself */
            lists[i] = mt_value_set_new(own);
    }
    *out = write_constants(r, place, lists, types, list, constant);
    for (size_t i = 0; i < place->count; i++)
        mt_value_set_free(lists[i]);
    return true;
}
