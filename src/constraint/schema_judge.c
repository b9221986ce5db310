/* Checks whether a value satisfies a schema, for listed values. The answer may be unknown: expressions for formats do
   not match all valid texts, and expressions may be too large. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json_tree.h"
#include "base/utf8.h"
#include "constraint/limits.h"
#include "constraint/schema_inside.h"

#define NO MT_JUDGED_NO
#define YES MT_JUDGED_YES
#define UNKNOWN MT_JUDGED_UNKNOWN

enum { DEPTH = 64 };

/* A check under way, with its depth of recursion. */
typedef struct judge {
    mt_schema_reader *r;
    size_t depth;
} judge;

static mt_judged judge_value(judge *j, const json_t *schema, const json_t *value);

static mt_judged both(mt_judged a, mt_judged b)
{
    return a == NO || b == NO ? NO : a == UNKNOWN || b == UNKNOWN ? UNKNOWN : YES;
}

static mt_judged not(mt_judged a)
{
    return a == UNKNOWN ? UNKNOWN : a == YES ? NO : YES;
}

static mt_judged is(bool true_or_not)
{
    return true_or_not ? YES : NO;
}

/* Counts what comparing a value may take: a step for each value within it and for each 64 bytes of text. False beyond
   the limit. */
static bool toil(mt_schema_reader *r, const json_t *value)
{
    const char *key;
    json_t *item;

    r->judged += 1 + json_string_length(value) / 64;
    for (size_t i = 0; i < json_array_size(value) && r->judged <= MT_LIMIT_SCHEMA_JUDGED; i++)
        toil(r, json_array_get(value, i));
    json_object_foreach((json_t *)value, key, item)
        if (r->judged <= MT_LIMIT_SCHEMA_JUDGED)
            toil(r, item);
    return r->judged <= MT_LIMIT_SCHEMA_JUDGED;
}

static mt_judged judge_types(mt_schema_reader *r, const json_t *schema, const json_t *value)
{
    const json_t *type = json_object_get(schema, "type");
    unsigned own = 0, one;

    switch (json_typeof(value)) {
    case JSON_NULL: own = MT_TYPE_NULL; break;
    case JSON_TRUE:
    case JSON_FALSE: own = MT_TYPE_BOOLEAN; break;
    case JSON_INTEGER: own = MT_TYPE_INTEGER; break;
    case JSON_REAL:
        own = json_real_value(value) == floor(json_real_value(value)) ? MT_TYPE_INTEGER : MT_TYPE_NUMBER;
        break;
    case JSON_STRING: own = MT_TYPE_STRING; break;
    case JSON_ARRAY: own = MT_TYPE_ARRAY; break;
    case JSON_OBJECT: own = MT_TYPE_OBJECT; break;
    }
    if (!type || (own == MT_TYPE_NULL && json_is_true(json_object_get(schema, "nullable"))))
        return YES;
    r->judged += json_array_size(type);
    for (size_t i = 0; i < json_array_size(type); i++)
        if (mt_schema_type_name(json_string_value(json_array_get(type, i)), &one) && (one & own))
            return YES;
    return is(mt_schema_type_name(json_string_value(type), &one) && (one & own));
}

/* Looks values up in long lists by a hash set; the last few sets are kept. Making one counts as a step for each of its
   values, so that alternating between more lists than are kept reaches the limit on work. */
static bool listed(mt_schema_reader *r, const json_t *list, const json_t *value)
{
    mt_schema_set_known *known = r->sets;

    while (known < r->sets + MT_COUNT(r->sets) && known->list != list)
        known++;
    if (known == r->sets + MT_COUNT(r->sets)) {
        known = &r->sets[r->sets_made++ % MT_COUNT(r->sets)];
        mt_value_set_free(known->set);
        *known = (mt_schema_set_known){.list = list, .set = mt_value_set_new(list)};
        r->judged += json_array_size(list);
    }
    return mt_value_set_has(known->set, value);
}

static mt_judged judge_listed(mt_schema_reader *r, const json_t *schema, const json_t *value)
{
    const json_t *list = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const");
    bool found;

    if ((list || constant) && !toil(r, value))
        return UNKNOWN;
    found = !list || (json_array_size(list) > 16 && listed(r, list, value));
    for (size_t i = 0; json_array_size(list) <= 16 && i < json_array_size(list) && !found; i++)
        found = mt_value_equal(json_array_get(list, i), value);
    return is(found && (!constant || mt_value_equal(constant, value)));
}

static mt_judged judge_number(const json_t *schema, const json_t *value)
{
    static const char *const names[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
    const json_t *divisor = json_object_get(schema, "multipleOf"), *format = json_object_get(schema, "format");
    const char *low, *high;
    mt_decimal own, other;

    if (!mt_schema_decimal(value, &own))
        return UNKNOWN;
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        const json_t *bound = json_object_get(schema, names[i]);
        bool exclusive = i >= 2;
        int order;

        if (!json_is_number(bound))
            continue;
        if (!mt_schema_decimal(bound, &other))
            return UNKNOWN;
        exclusive |= json_is_true(json_object_get(schema, names[i % 2 + 2]));
        order = mt_decimal_compare(&own, &other) * (i % 2 ? -1 : 1);
        if (order < 0 || (order == 0 && exclusive))
            return NO;
    }
    if (divisor)
        return json_is_integer(divisor) && json_is_integer(value) && json_integer_value(divisor) > 0
                   ? is(json_integer_value(value) % json_integer_value(divisor) == 0)
                   : UNKNOWN;
    return json_is_string(format) && mt_schema_number_format(json_string_value(format), &low, &high) ? UNKNOWN : YES;
}

/* The last few expressions are kept: they are needed again for the next value. */
static const mt_regex *read_regex(mt_schema_reader *r, const char *text)
{
    mt_schema_regex_known *known = &r->regexes[((uintptr_t)text >> 3) % MT_COUNT(r->regexes)];
    mt_error ignored = {0};

    if (known->text != text) {
        known->text = text;
        known->regex = mt_regex_read(r->arena, text, strlen(text), true, &ignored);
    }
    return known->regex;
}

static mt_judged judge_regex(judge *j, const char *text, const json_t *value)
{
    const mt_regex *regex = read_regex(j->r, text);
    bool fits;

    if (!regex || !mt_regex_matches(j->r->j->g, regex, json_string_value(value), json_string_length(value), &fits))
        return UNKNOWN;
    return is(fits);
}

static mt_judged judge_count(const json_t *schema, const char *least, const char *most, size_t count)
{
    const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);

    return is(!(json_is_number(low) && (double)count < json_number_value(low)) &&
              !(json_is_number(high) && (double)count > json_number_value(high)));
}

static mt_judged judge_string(judge *j, const json_t *schema, const json_t *value)
{
    const json_t *pattern = json_object_get(schema, "pattern"), *format = json_object_get(schema, "format");
    const char *text = json_string_value(value), *regex, *short_texts;
    size_t length = 0;
    uint32_t most;
    mt_judged all;

    for (const char *at = text; at < text + json_string_length(value); at += mt_utf8_size(*at))
        length++;
    all = judge_count(schema, "minLength", "maxLength", length);
    if (json_is_string(pattern) && all != NO)
        all = both(all, judge_regex(j, json_string_value(pattern), value));
    regex = json_is_string(format) ? mt_schema_format(json_string_value(format), &short_texts, &most) : NULL;
    if (regex && all != NO && judge_regex(j, regex, value) != YES)
        all = UNKNOWN; /* a format has more texts than its expression matches */
    return all;
}

static mt_judged judge_unique(mt_schema_reader *r, const json_t *value)
{
    mt_value_set *set;
    bool unique = true;

    if (!toil(r, value))
        return UNKNOWN;
    set = mt_value_set_empty(json_array_size(value));
    for (size_t i = 0; i < json_array_size(value) && unique; i++)
        unique = mt_value_set_add(set, json_array_get(value, i));
    mt_value_set_free(set);
    return is(unique);
}

static mt_judged judge_array(judge *j, const json_t *schema, const json_t *value)
{
    const json_t *items = json_object_get(schema, "items"), *contains = json_object_get(schema, "contains");
    const json_t *prefix = json_is_array(items) ? items : json_object_get(schema, "prefixItems");
    const json_t *rest = json_is_array(items) ? json_object_get(schema, "additionalItems") : items;
    mt_judged all = judge_count(schema, "minItems", "maxItems", json_array_size(value));

    for (size_t i = 0; i < json_array_size(value) && all != NO; i++) {
        const json_t *own = i < json_array_size(prefix) ? json_array_get(prefix, i) : rest;

        if (own)
            all = both(all, judge_value(j, own, json_array_get(value, i)));
    }
    if (all != NO && json_is_true(json_object_get(schema, "uniqueItems")))
        all = both(all, judge_unique(j->r, value));
    return contains || json_object_get(schema, "unevaluatedItems") ? both(all, UNKNOWN) : all;
}

static mt_judged judge_member(judge *j, const json_t *schema, const char *key, const json_t *value)
{
    const json_t *own = json_object_get(json_object_get(schema, "properties"), key);
    const json_t *others = json_object_get(schema, "additionalProperties");
    json_t *patterns = json_object_get(schema, "patternProperties"), *rule, *name = json_string(key);
    mt_judged all = own ? judge_value(j, own, value) : YES, fits;
    const char *pattern;
    bool matched = own != NULL;

    json_object_foreach(patterns, pattern, rule) {
        fits = judge_regex(j, pattern, name);
        matched |= fits != NO;
        if (fits != NO)
            all = both(all, fits == YES ? judge_value(j, rule, value) : UNKNOWN);
    }
    if (!matched && others)
        all = both(all, judge_value(j, others, value));
    if (json_object_get(schema, "propertyNames"))
        all = both(all, judge_value(j, json_object_get(schema, "propertyNames"), name));
    json_decref(name);
    return all;
}

static mt_judged judge_dependencies(judge *j, const json_t *list, const json_t *value)
{
    mt_judged all = YES;
    const char *key;
    json_t *wanted;

    json_object_foreach((json_t *)list, key, wanted) {
        if (!json_object_get(value, key))
            continue;
        if (!json_is_array(wanted))
            all = both(all, judge_value(j, wanted, value));
        j->r->judged += json_array_size(wanted);
        for (size_t i = 0; i < json_array_size(wanted); i++)
            if (!json_object_get(value, json_string_value(json_array_get(wanted, i))))
                return NO;
    }
    return all;
}

/* Whether the object has a property with none of the names that satisfies the schema. */
static mt_judged judge_outside(judge *j, const json_t *outside, const json_t *value)
{
    const char *key;
    json_t *own;
    mt_judged none = YES;

    json_object_foreach((json_t *)value, key, own)
        if (!json_object_get(json_object_get(outside, "names"), key))
            none = both(none, not(judge_value(j, json_object_get(outside, "schema"), own)));
    return not(none);
}

static mt_judged judge_object(judge *j, const json_t *schema, const json_t *value)
{
    const json_t *required = json_object_get(schema, "required"), *outside = json_object_get(schema, MT_SCHEMA_OUTSIDE);
    mt_judged all = judge_count(schema, "minProperties", "maxProperties", json_object_size(value));
    const char *key;
    json_t *own;

    j->r->judged += json_array_size(required);
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(value, json_string_value(json_array_get(required, i))))
            return NO;
    json_object_foreach((json_t *)value, key, own)
        all = both(all, judge_member(j, schema, key, own));
    all = both(all, judge_dependencies(j, json_object_get(schema, "dependentRequired"), value));
    all = both(all, judge_dependencies(j, json_object_get(schema, "dependentSchemas"), value));
    all = both(all, judge_dependencies(j, json_object_get(schema, "dependencies"), value));
    if (outside)
        all = both(all, judge_outside(j, outside, value));
    return json_object_get(schema, "unevaluatedProperties") ? both(all, UNKNOWN) : all;
}

/* How many schemas of a list give YES, and how many UNKNOWN. */
static void count(judge *j, const json_t *list, const json_t *value, size_t *yes, size_t *unknown)
{
    *yes = *unknown = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const mt_judged one = judge_value(j, json_array_get(list, i), value);

        *yes += one == YES;
        *unknown += one == UNKNOWN;
    }
}

static mt_judged judge_choices(judge *j, const json_t *schema, const json_t *value)
{
    const json_t *any = json_object_get(schema, "anyOf"), *one = json_object_get(schema, "oneOf");
    const json_t *condition = json_object_get(schema, "if"), *branch;
    mt_judged all = YES;
    size_t yes, unknown;

    if (any) {
        count(j, any, value, &yes, &unknown);
        all = both(all, yes ? YES : unknown ? UNKNOWN : NO);
    }
    if (one && all != NO) {
        count(j, one, value, &yes, &unknown);
        all = both(all, yes > 1 ? NO : unknown ? UNKNOWN : is(yes == 1));
    }
    if (json_object_get(schema, "not") && all != NO)
        all = both(all, not(judge_value(j, json_object_get(schema, "not"), value)));
    if (condition && all != NO) {
        const mt_judged holds = judge_value(j, condition, value);

        branch = json_object_get(schema, holds == YES ? "then" : "else");
        all = both(all, holds == UNKNOWN ? UNKNOWN : branch ? judge_value(j, branch, value) : YES);
    }
    return all;
}

static mt_judged judge_applied(judge *j, const json_t *schema, const json_t *value)
{
    const json_t *list = json_object_get(schema, "allOf"), *ref = json_object_get(schema, "$ref"), *target;
    mt_error *err = j->r->err, ignored = {0};
    mt_judged all = YES;

    if (ref) {
        j->r->judged += json_string_length(ref) / 64;
        j->r->err = &ignored;
        target = mt_schema_target(j->r, ref, "");
        j->r->err = err;
        all = target ? judge_value(j, target, value) : UNKNOWN;
    }
    for (size_t i = 0; i < json_array_size(list) && all != NO; i++)
        all = both(all, judge_value(j, json_array_get(list, i), value));
    if (json_object_get(schema, "$dynamicRef") || json_object_get(schema, "$recursiveRef"))
        all = both(all, UNKNOWN);
    return all == NO ? NO : both(all, judge_choices(j, schema, value));
}

/* Checks a value against all keywords of a schema. */
static mt_judged judge_value(judge *j, const json_t *schema, const json_t *value)
{
    mt_judged all;

    if (json_is_boolean(schema))
        return is(json_is_true(schema));
    j->r->judged += 1 + json_string_length(value) / 64;
    if (j->depth == DEPTH || j->r->judged > MT_LIMIT_SCHEMA_JUDGED || !json_is_object(schema))
        return UNKNOWN;
    j->depth++;
    all = both(judge_types(j->r, schema, value), judge_listed(j->r, schema, value));
    if (all != NO && json_is_number(value))
        all = both(all, judge_number(schema, value));
    if (all != NO && json_is_string(value))
        all = both(all, judge_string(j, schema, value));
    if (all != NO && json_is_array(value))
        all = both(all, judge_array(j, schema, value));
    if (all != NO && json_is_object(value))
        all = both(all, judge_object(j, schema, value));
    if (all != NO)
        all = both(all, judge_applied(j, schema, value));
    j->depth--;
    return all;
}

mt_judged mt_schema_judge(mt_schema_reader *r, const json_t *schema, const json_t *value)
{
    judge j = {.r = r};

    return judge_value(&j, schema, value);
}

bool mt_schema_decimal(const json_t *value, mt_decimal *out)
{
    char text[40];

    if (mt_json_wide(value))
        return mt_decimal_read(mt_json_wide(value), out);
    if (json_is_integer(value)) {
        snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return mt_decimal_read(text, out);
    }
    for (int precision = 15; precision <= 17; precision++) { /* the shortest decimal that is read as the same number */
        snprintf(text, sizeof(text), "%.*g", precision, json_real_value(value));
        if (strtod(text, NULL) == json_real_value(value))
            break;
    }
    return mt_decimal_read(text, out);
}
