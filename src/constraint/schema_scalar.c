/* Numbers: combines bounds, multiples and formats to one description, which json_number.c translates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/json_tree.h"
#include "constraint/schema_inside.h"

enum { DIGITS = 18, DIVISOR = 2000 };

/* The constraints on numbers of all schemas of a place. */
typedef struct numbers {
    mt_number n;
    bool none; /* no number is valid */
} numbers;

/* Adds a bound, or narrows an existing one. False: there are too many. */
static bool add_bound(numbers *s, mt_number_kind kind, bool exclusive, const mt_decimal *value)
{
    mt_number *n = &s->n;

    for (size_t i = 0; i < n->bound_count; i++) {
        mt_number_bound *b = &n->bounds[i];
        const int order = mt_decimal_compare(value, &b->value);

        if (b->kind != kind)
            continue;
        if (kind == MT_NUMBER_NOT) {
            if (order == 0)
                return true;
            continue;
        }
        if (order == 0)
            b->exclusive |= exclusive;
        else if ((order > 0) == (kind == MT_NUMBER_LEAST)) {
            b->exclusive = exclusive;
            b->value = *value;
        }
        return true;
    }
    if (n->bound_count == MT_NUMBER_BOUNDS - 2 && kind == MT_NUMBER_NOT)
        return false;
    n->bounds[n->bound_count++] = (mt_number_bound){.kind = kind, .exclusive = exclusive};
    n->bounds[n->bound_count - 1].value = *value; /* copied byte by byte, as equal ones are found by their bytes */
    return true;
}

/* A bound with more digits than are ever written: it either excludes nothing or everything. */
static void add_extreme(numbers *s, mt_number_kind kind, double value)
{
    const mt_decimal zero = {0};

    if (fabs(value) > 1)
        s->none |= (value > 0) == (kind == MT_NUMBER_LEAST);
    else
        add_bound(s, kind, (value > 0) == (kind == MT_NUMBER_LEAST), &zero);
}

static bool read_bounds(mt_schema_reader *r, const mt_schema_part *part, numbers *s)
{
    static const char *const keywords[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};

    for (size_t i = 0; i < MT_COUNT(keywords); i++) {
        const json_t *value = json_object_get(part->schema, keywords[i]);
        const mt_number_kind kind = i % 2 ? MT_NUMBER_MOST : MT_NUMBER_LEAST;
        mt_decimal bound;

        if (!value || (i >= 2 && json_is_boolean(value))) /* draft 4: says whether minimum and maximum are exclusive */
            continue;
        if (!json_is_number(value))
            return mt_schema_fail(r, part->path, keywords[i], "is not a number: give one");
        if (mt_schema_decimal(value, &bound))
            add_bound(s, kind, i >= 2 || json_is_true(json_object_get(part->schema, keywords[i % 2 + 2])), &bound);
        else
            add_extreme(s, kind, json_number_value(value));
    }
    return true;
}

static bool read_format(const mt_schema_part *part, numbers *s)
{
    const char *format = json_string_value(json_object_get(part->schema, "format")), *low, *high;
    mt_decimal bound;

    if (!format || !mt_schema_number_format(format, &low, &high))
        return true;
    s->n.fractions = false;
    return mt_decimal_read(low, &bound) && add_bound(s, MT_NUMBER_LEAST, false, &bound) &&
           mt_decimal_read(high, &bound) && add_bound(s, MT_NUMBER_MOST, false, &bound);
}

static bool read_excluded(mt_schema_reader *r, const mt_schema_part *part, numbers *s)
{
    bool single = false;
    const json_t *values = mt_schema_excluded(part, &single);
    const size_t count = !values ? 0 : single ? 1 : json_array_size(values);

    for (size_t i = 0; i < count; i++) {
        const json_t *value = single ? values : json_array_get(values, i);
        mt_decimal decimal;

        if (json_is_number(value) && mt_schema_decimal(value, &decimal) &&
            !add_bound(s, MT_NUMBER_NOT, false, &decimal))
            return mt_schema_loosen(r, part->path, "not", "lists too many numbers: use fewer");
    }
    return true;
}

static uint64_t shared_divisor(uint64_t a, uint64_t b)
{
    return b ? shared_divisor(b, a % b) : a;
}

/* Combines two multipleOf: their least common multiple, after scaling to whole numbers. */
static bool read_multiple(mt_schema_reader *r, const mt_schema_part *part, numbers *s)
{
    const json_t *value = json_object_get(part->schema, "multipleOf");
    uint64_t divisor = 0, own = s->n.divisor ? s->n.divisor : 1;
    unsigned scale, own_scale = s->n.scale;
    mt_decimal d;

    if (!value)
        return true;
    if (!json_is_number(value) || json_number_value(value) <= 0)
        return mt_schema_fail(r, part->path, "multipleOf", "is not a number above 0: give one");
    if (!mt_schema_decimal(value, &d) || d.whole_count + d.fraction_count > 15 || d.fraction_count > DIGITS)
        return mt_schema_loosen(r, part->path, "multipleOf", "has too many digits: round it");
    for (size_t i = 0; i < d.whole_count; i++)
        divisor = 10 * divisor + (uint64_t)(d.whole[i] - '0');
    for (size_t i = 0; i < d.fraction_count; i++)
        divisor = 10 * divisor + (uint64_t)(d.fraction[i] - '0');
    scale = d.fraction_count;
    for (; s->n.divisor && scale < own_scale && divisor < 1000000000; scale++)
        divisor *= 10;
    for (; s->n.divisor && own_scale < scale && own < 1000000000; own_scale++)
        own *= 10;
    divisor = divisor / shared_divisor(divisor, own) * own;
    if (divisor > UINT32_MAX || (s->n.divisor && scale != own_scale))
        return mt_schema_loosen(r, part->path, "multipleOf", "has too many digits: round it");
    s->n.divisor = (uint32_t)divisor;
    s->n.scale = (uint8_t)scale;
    return true;
}

/* Divides by 10, `count` times. */
static bool shift(mt_decimal *d, size_t count)
{
    for (; count > 0 && (d->whole_count || d->fraction_count); count--) {
        if (d->fraction_count == MT_DECIMAL_DIGITS)
            return false;
        if (d->fraction_count || (d->whole_count && d->whole[d->whole_count - 1] != '0') || !d->whole_count) {
            memmove(d->fraction + 1, d->fraction, d->fraction_count);
            d->fraction[0] = d->whole_count ? d->whole[d->whole_count - 1] : '0';
            d->fraction_count++;
        }
        if (d->whole_count)
            d->whole[--d->whole_count] = '\0';
    }
    return true;
}

/* A multiple of 10 n is a multiple of n with a zero appended; 0 itself gets none. */
static bool write_tens(mt_schema_reader *r, const mt_number *number, mt_expr *out)
{
    mt_grammar *g = r->j->g;
    mt_number n = *number;
    const mt_decimal zero = {0};
    char zeros[16] = "";
    size_t tens = 0;
    mt_expr some;
    bool has_zero = true;

    for (; n.divisor % 10 == 0; n.divisor /= 10)
        zeros[tens++] = '0';
    for (size_t i = 0; i < n.bound_count; i++) {
        const int order = mt_decimal_compare(&zero, &n.bounds[i].value);

        if (n.bounds[i].kind == MT_NUMBER_NOT)
            has_zero &= order != 0;
        else
            has_zero &= order == 0 ? !n.bounds[i].exclusive : (n.bounds[i].kind == MT_NUMBER_LEAST) == (order > 0);
        if (!shift(&n.bounds[i].value, tens))
            return false;
    }
    if (n.bound_count == MT_NUMBER_BOUNDS)
        return false;
    n.bounds[n.bound_count++].kind = MT_NUMBER_NOT;
    n.fractions = false;
    n.digits = (uint8_t)(DIGITS - tens);
    if (!mt_number_expr(g, &n, &some))
        return false;
    some = mt_grammar_seq(g, some, mt_grammar_text(g, zeros));
    *out = has_zero ? mt_grammar_or(g, some, mt_grammar_text(g, "0")) : some;
    return true;
}

static bool write_number(mt_schema_reader *r, const mt_number *n, mt_expr *out)
{
    mt_number plain = *n;

    if (n->divisor && n->scale == 0 && n->divisor % 10 == 0)
        return !n->broken && write_tens(r, n, out);
    for (; plain.divisor && plain.divisor % 10 == 0 && plain.scale; plain.scale--)
        plain.divisor /= 10;
    if (plain.divisor == 1 && plain.scale == 0) { /* whole numbers */
        plain.fractions = false;
        plain.divisor = 0;
    }
    return plain.divisor <= DIVISOR && mt_number_expr(r->j->g, &plain, out);
}

/* Equal descriptions are written once, as a rule. */
static bool write_known(mt_schema_reader *r, const mt_number *n, mt_expr *out)
{
    mt_rule rule;
    mt_expr made;

    for (size_t i = 0; i < r->number_count; i++)
        if (memcmp(&r->numbers[i].number, n, sizeof(*n)) == 0) {
            *out = r->numbers[i].expr;
            return true;
        }
    if (!write_number(r, n, &made))
        return false;
    r->numbers = mt_grow(r->numbers, &r->number_cap, r->number_count + 1, sizeof(*r->numbers));
    rule = mt_grammar_rule(r->j->g);
    mt_grammar_define(r->j->g, rule, made);
    *out = mt_grammar_call(r->j->g, rule);
    memcpy(&r->numbers[r->number_count].number, n, sizeof(*n));
    r->numbers[r->number_count++].expr = *out;
    return true;
}

/* Most digits before the point: DIGITS, unless a bound that keeps numbers away from zero needs more; with bounds on
   both sides, no more than these have. */
static uint8_t digits_of(const mt_number *n)
{
    uint8_t most = 0, sides = 0, limit = DIGITS;

    for (size_t i = 0; i < n->bound_count; i++) {
        const mt_number_bound *b = &n->bounds[i];

        if (b->kind == MT_NUMBER_NOT)
            continue;
        sides++;
        most = b->value.whole_count > most ? b->value.whole_count : most;
        const uint8_t needed = (uint8_t)(b->value.whole_count + b->exclusive); /* 99 is exclusive: 100 */
        if (b->value.negative == (b->kind == MT_NUMBER_MOST) && needed > limit)
            limit = needed;
    }
    return sides == 2 && most < limit ? (most ? most : 1) : limit;
}

bool mt_schema_numbers(mt_schema_reader *r, const mt_schema_place *place, unsigned types, mt_expr *out)
{
    numbers s;

    memset(&s, 0, sizeof(s));
    s.n.fractions = (types & MT_TYPE_NUMBER) != 0;
    s.n.broken = !(types & MT_TYPE_INTEGER);
    for (size_t i = 0; i < place->count; i++)
        if (!read_bounds(r, &place->part[i], &s) || !read_format(&place->part[i], &s) ||
            !read_excluded(r, &place->part[i], &s) || !read_multiple(r, &place->part[i], &s))
            return false;
    if (s.none || (s.n.broken && !s.n.fractions)) {
        *out = mt_grammar_never(r->j->g);
        return true;
    }
    if (s.n.bound_count == 0 && s.n.divisor == 0 && !s.n.broken) {
        *out = s.n.fractions ? mt_json_number(r->j) : mt_json_integer(r->j);
        return true;
    }
    s.n.digits = digits_of(&s.n);
    if (write_known(r, &s.n, out))
        return true;
    s.n.divisor = 0;
    return mt_schema_loosen(r, place->part[0].path, "multipleOf", "is too large: make it smaller") &&
           write_known(r, &s.n, out);
}
