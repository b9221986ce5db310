/* See compare.h; also dicts, which need equality and hashes. */
#include "template/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "template/iter.h"
#include "template/number.h"

/* The result of comparing two numbers of which one is NaN. */
enum { UNORDERED = 2 };

/* Of a dict: entries allocated first; from how many entries on it has an index */
enum { ENTRIES_FIRST = 4, INDEX_FROM = 8 };
enum { HASHED_PER_STEP = 16 }; /* bytes of a key per step; short keys are free */

/* Returns -1, 0, 1 or UNORDERED. */
static int compare_int_float(int64_t i, double d)
{
    int64_t whole;

    if (isnan(d))
        return UNORDERED;
    if (d >= 0x1p63)
        return -1;
    if (d < -0x1p63)
        return 1;
    whole = (int64_t)d;
    if (i != whole)
        return i < whole ? -1 : 1;
    d -= (double)whole;
    return d > 0 ? -1 : d < 0;
}

/* Compares two integers given as decimal digits without leading zeros. */
static int compare_digits(const char *a, const char *b)
{
    const size_t x = strlen(a), y = strlen(b);
    int order;

    if ((*a == '-') != (*b == '-'))
        return *a == '-' ? -1 : 1;
    order = x != y ? (x < y ? -1 : 1) : strcmp(a, b);
    return *a == '-' ? -order : order;
}

/* Compares an integer of more than 64 bits with a number of another kind; a double that large is an integer, too. */
static int compare_big(const char *big, mt_tpl_value v)
{
    char digits[320];
    const double d = v.kind == MT_TPL_FLOAT ? v.as.real : 0;

    if (isnan(d))
        return UNORDERED;
    if (!isinf(d) && fabs(d) >= 0x1p63) {
        snprintf(digits, sizeof(digits), "%.0f", d);
        return compare_digits(big, digits);
    }
    return isinf(d) ? (d > 0 ? -1 : 1) : *big == '-' ? -1 : 1;
}

static int compare_numbers(mt_tpl_value a, mt_tpl_value b)
{
    int order;

    if (a.kind == MT_TPL_BIG)
        return b.kind == MT_TPL_BIG ? compare_digits(a.as.str->data, b.as.str->data) : compare_big(a.as.str->data, b);
    if (b.kind == MT_TPL_BIG) {
        order = compare_big(b.as.str->data, a);
        return order == UNORDERED ? UNORDERED : -order;
    }
    if (MT_TPL_IS_INT(a) && MT_TPL_IS_INT(b)) {
        int64_t x = mt_tpl_as_int(a), y = mt_tpl_as_int(b);

        return x < y ? -1 : x > y;
    }
    if (MT_TPL_IS_INT(a))
        return compare_int_float(mt_tpl_as_int(a), b.as.real);
    if (MT_TPL_IS_INT(b)) {
        order = compare_int_float(mt_tpl_as_int(b), a.as.real);
        return order == UNORDERED ? UNORDERED : -order;
    }
    if (isnan(a.as.real) || isnan(b.as.real))
        return UNORDERED;
    return a.as.real < b.as.real ? -1 : a.as.real > b.as.real;
}

static bool is_sequence(mt_tpl_value v)
{
    return v.kind == MT_TPL_LIST || v.kind == MT_TPL_TUPLE;
}

bool mt_tpl_identical(mt_tpl_value a, mt_tpl_value b)
{
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case MT_TPL_MISSING:
    case MT_TPL_NONE: return true;
    case MT_TPL_BOOL: return a.as.boolean == b.as.boolean;
    case MT_TPL_INT: return a.as.integer == b.as.integer;
    case MT_TPL_FLOAT: return a.as.real == b.as.real;
    case MT_TPL_BIG:
    case MT_TPL_STR: return mt_tpl_str_equal(a.as.str, b.as.str); /* Python interns most strings */
    case MT_TPL_METHOD: return false;                             /* each access makes a new one */
    default: return a.as.list == b.as.list;                       /* all members of the union are pointers here */
    }
}

/* *at: the first index at which two sequences differ; the shorter one's length: none. */
static bool first_difference(mt_tpl_run *run, const mt_tpl_list *a, const mt_tpl_list *b, size_t *at)
{
    size_t count = a->count < b->count ? a->count : b->count;
    bool same = true;

    for (*at = 0; *at < count; ++*at) {
        if (!mt_tpl_charge(run, 1) || !mt_tpl_equal(run, a->at[*at], b->at[*at], &same))
            return false;
        if (!same)
            return true;
    }
    return true;
}

static bool equal_dicts(mt_tpl_run *run, const mt_tpl_dict *a, const mt_tpl_dict *b, bool values, bool *out)
{
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++) {
        mt_tpl_value other;

        if (!mt_tpl_charge(run, 1) || !mt_tpl_dict_get(run, b, a->at[i].key, &other))
            return false;
        *out = other.kind != MT_TPL_MISSING;
        if (*out && values && !mt_tpl_equal(run, a->at[i].value, other, out))
            return false;
    }
    return true;
}

static bool equal_ranges(const mt_tpl_range *a, const mt_tpl_range *b)
{
    return a->count == b->count && (a->count == 0 || a->start == b->start) && (a->count < 2 || a->step == b->step);
}

static bool equal_containers(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, bool *out)
{
    size_t at;

    switch (a.kind) {
    case MT_TPL_LIST:
    case MT_TPL_TUPLE:
        *out = a.as.list->count == b.as.list->count;
        if (!*out || !first_difference(run, a.as.list, b.as.list, &at))
            return !run->failed;
        *out = at == a.as.list->count;
        return true;
    case MT_TPL_DICT: return equal_dicts(run, a.as.dict, b.as.dict, true, out);
    case MT_TPL_RANGE: *out = equal_ranges(a.as.range, b.as.range); return true;
    case MT_TPL_VIEW:
        *out = false;
        if (a.as.view->part != b.as.view->part || a.as.view->part == MT_TPL_VALUES)
            return true;
        return equal_dicts(run, a.as.view->dict, b.as.view->dict, a.as.view->part == MT_TPL_ITEMS, out);
    default: *out = mt_tpl_identical(a, b); return true;
    }
}

bool mt_tpl_equal(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, bool *out)
{
    const bool numbers = MT_TPL_IS_NUMBER(a) && MT_TPL_IS_NUMBER(b);
    bool ok;

    *out = numbers && compare_numbers(a, b) == 0;
    if (numbers || a.kind != b.kind)
        return true;
    if (a.kind == MT_TPL_STR) {
        *out = mt_tpl_str_equal(a.as.str, b.as.str);
        return a.as.str->len != b.as.str->len || mt_tpl_charge_bytes(run, a.as.str->len);
    }
    if (a.kind == MT_TPL_UNDEFINED || a.kind == MT_TPL_NONE) {
        *out = true;
        return true;
    }
    if (!mt_tpl_enter(run))
        return false;
    ok = equal_containers(run, a, b, out);
    mt_tpl_leave(run);
    return ok;
}

static bool holds(mt_tpl_operator op, int order)
{
    if (order == UNORDERED)
        return false;
    switch (op) {
    case '<': return order < 0;
    case MT_TPL_LE: return order <= 0;
    case '>': return order > 0;
    default: return order >= 0;
    }
}

static bool order_lists(mt_tpl_run *run, mt_tpl_operator op, mt_tpl_value a, mt_tpl_value b, bool *out)
{
    const mt_tpl_list *x = a.as.list, *y = b.as.list;
    size_t at;
    bool ok = mt_tpl_enter(run);

    if (!ok)
        return false;
    ok = first_difference(run, x, y, &at);
    if (ok && at < x->count && at < y->count)
        ok = mt_tpl_compare(run, op, x->at[at], y->at[at], out);
    else
        *out = holds(op, x->count < y->count ? -1 : x->count > y->count);
    mt_tpl_leave(run);
    return ok;
}

/* op: one of < <= > >=. */
static bool ordered(mt_tpl_run *run, mt_tpl_operator op, mt_tpl_value a, mt_tpl_value b, bool *out)
{
    const bool or_equal = op == MT_TPL_LE || op == MT_TPL_GE;

    if (MT_TPL_IS_NUMBER(a) && MT_TPL_IS_NUMBER(b)) {
        *out = holds(op, compare_numbers(a, b));
        return true;
    }
    if (a.kind == MT_TPL_UNDEFINED || b.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, a.kind == MT_TPL_UNDEFINED ? a : b);
    if (a.kind == MT_TPL_STR && b.kind == MT_TPL_STR) {
        *out = holds(op, mt_tpl_str_compare(a.as.str, b.as.str));
        return mt_tpl_charge_bytes(run, a.as.str->len < b.as.str->len ? a.as.str->len : b.as.str->len);
    }
    if (is_sequence(a) && a.kind == b.kind)
        return order_lists(run, op, a, b, out);
    return mt_tpl_fail(run, "'%c%s' not supported between instances of '%s' and '%s'",
                       op == '<' || op == MT_TPL_LE ? '<' : '>', or_equal ? "=" : "", mt_tpl_type(a), mt_tpl_type(b));
}

static bool range_has(const mt_tpl_range *range, int64_t i)
{
    if (range->count == 0)
        return false;
    if (range->step > 0)
        return i >= range->start && i < range->stop &&
               ((uint64_t)i - (uint64_t)range->start) % (uint64_t)range->step == 0;
    return i <= range->start && i > range->stop &&
           ((uint64_t)range->start - (uint64_t)i) % (0 - (uint64_t)range->step) == 0;
}

static bool contains_by_iterating(mt_tpl_run *run, mt_tpl_value container, mt_tpl_value item, bool *out)
{
    mt_tpl_iter *iter;
    mt_tpl_value v;
    mt_tpl_step step;

    if (!mt_tpl_iterate(run, container, &iter))
        return false;
    *out = false;
    while ((step = mt_tpl_next(run, iter, &v)) == MT_TPL_ITEM) {
        if (!mt_tpl_equal(run, v, item, out))
            return false;
        if (*out)
            return true;
    }
    return step == MT_TPL_END;
}

static bool contains_text(mt_tpl_run *run, const mt_tpl_str *s, mt_tpl_value item, bool *out)
{
    if (item.kind != MT_TPL_STR)
        return mt_tpl_fail(run, "'in <string>' requires string as left operand, not %s", mt_tpl_type(item));
    *out = item.as.str->len == 0 || memmem(s->data, s->len, item.as.str->data, item.as.str->len);
    return mt_tpl_charge_bytes(run, s->len);
}

bool mt_tpl_contains(mt_tpl_run *run, mt_tpl_value container, mt_tpl_value item, bool *out)
{
    mt_tpl_value found;

    switch (container.kind) {
    case MT_TPL_STR: return contains_text(run, container.as.str, item, out);
    case MT_TPL_DICT:
        if (!mt_tpl_dict_get(run, container.as.dict, item, &found))
            return false;
        *out = found.kind != MT_TPL_MISSING;
        return true;
    case MT_TPL_RANGE:
        if (!MT_TPL_IS_INT(item))
            return contains_by_iterating(run, container, item, out);
        *out = range_has(container.as.range, mt_tpl_as_int(item));
        return true;
    case MT_TPL_UNDEFINED:
    case MT_TPL_LIST:
    case MT_TPL_TUPLE:
    case MT_TPL_VIEW:
    case MT_TPL_ITER: return contains_by_iterating(run, container, item, out);
    default: return mt_tpl_fail(run, "argument of type '%s' is not iterable", mt_tpl_type(container));
    }
}

bool mt_tpl_compare(mt_tpl_run *run, mt_tpl_operator op, mt_tpl_value a, mt_tpl_value b, bool *out)
{
    bool ok;

    switch (op) {
    case MT_TPL_EQ: return mt_tpl_equal(run, a, b, out);
    case MT_TPL_IN: return mt_tpl_contains(run, b, a, out);
    case MT_TPL_NE: ok = mt_tpl_equal(run, a, b, out); break;
    case MT_TPL_NOT_IN: ok = mt_tpl_contains(run, b, a, out); break;
    default: return ordered(run, op, a, b, out);
    }
    *out = ok && !*out;
    return ok;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

static uint64_t hash_bytes(uint64_t seed, const char *data, size_t len)
{
    uint64_t h = mix(seed + len), word;

    for (; len >= sizeof(word); data += sizeof(word), len -= sizeof(word)) {
        memcpy(&word, data, sizeof(word));
        h = mix(h ^ word);
    }
    word = 0;
    if (len)
        memcpy(&word, data, len);
    return mix(h ^ word);
}

static bool hash_tuple(mt_tpl_run *run, const mt_tpl_list *list, uint64_t *out)
{
    uint64_t part;
    bool ok = true;

    if (!mt_tpl_enter(run))
        return false;
    *out = mix(run->seed + list->count);
    for (size_t i = 0; ok && i < list->count; i++) {
        ok = mt_tpl_charge(run, 1) && mt_tpl_hash(run, list->at[i], &part);
        if (ok)
            *out = mix(*out ^ part);
    }
    mt_tpl_leave(run);
    return ok;
}

static uint64_t hash_float(mt_tpl_run *run, double d)
{
    if (d == floor(d) && d >= -0x1p63 && d < 0x1p63)
        return mix(run->seed ^ (uint64_t)(int64_t)d);
    return hash_bytes(run->seed, (const char *)&d, sizeof(d));
}

bool mt_tpl_hash(mt_tpl_run *run, mt_tpl_value v, uint64_t *out)
{
    switch (v.kind) {
    case MT_TPL_STR:
        *out = hash_bytes(run->seed, v.as.str->data, v.as.str->len);
        return mt_tpl_charge(run, v.as.str->len / HASHED_PER_STEP);
    case MT_TPL_BOOL:
    case MT_TPL_INT: *out = mix(run->seed ^ (uint64_t)mt_tpl_as_int(v)); return true;
    case MT_TPL_BIG: /* as the double that may be equal to it */
    case MT_TPL_FLOAT: *out = hash_float(run, mt_tpl_as_float(v)); return true;
    case MT_TPL_TUPLE: return hash_tuple(run, v.as.list, out);
    case MT_TPL_LIST:
    case MT_TPL_DICT:
    case MT_TPL_VIEW: return mt_tpl_fail(run, "unhashable type: '%s'", mt_tpl_type(v));
    default: *out = mix(run->seed + (uint64_t)v.kind); return true;
    }
}

mt_tpl_dict *mt_tpl_dict_new(mt_tpl_run *run, size_t count)
{
    mt_tpl_dict *d = mt_tpl_alloc(run, sizeof(*d));

    if (!d)
        return NULL;
    d->cap = count ? count : ENTRIES_FIRST;
    d->at = mt_tpl_alloc_array(run, d->cap, sizeof(*d->at));
    return d->at ? d : NULL;
}

static void index_add(mt_tpl_dict *d, size_t entry)
{
    size_t slot = (size_t)d->at[entry].hash & (d->slots - 1);

    while (d->index[slot])
        slot = (slot + 1) & (d->slots - 1);
    d->index[slot] = (uint32_t)entry + 1;
}

static bool index_grow(mt_tpl_run *run, mt_tpl_dict *d)
{
    size_t slots = d->slots ? d->slots * 2 : 2 * INDEX_FROM;

    while (slots < 2 * (d->count + 1))
        slots *= 2;
    d->index = mt_tpl_alloc_array(run, slots, sizeof(*d->index));
    if (!d->index)
        return false;
    d->slots = slots;
    for (size_t i = 0; i < d->count; i++)
        index_add(d, i);
    return true;
}

static bool is_key(mt_tpl_run *run, const mt_tpl_dict *d, size_t entry, mt_tpl_value key, uint64_t hash, bool *same)
{
    *same = false;
    return d->at[entry].hash != hash || (mt_tpl_charge(run, 1) && mt_tpl_equal(run, d->at[entry].key, key, same));
}

/* *found: the index of the entry with that key; the count of entries: none. */
static bool find(mt_tpl_run *run, const mt_tpl_dict *d, mt_tpl_value key, uint64_t hash, size_t *found)
{
    bool same, ok;

    if (!d->index) {
        for (*found = 0; *found < d->count; ++*found) {
            ok = is_key(run, d, *found, key, hash, &same);
            if (!ok || same)
                return ok;
        }
        return true;
    }
    for (size_t slot = (size_t)hash & (d->slots - 1); d->index[slot]; slot = (slot + 1) & (d->slots - 1)) {
        *found = d->index[slot] - 1;
        ok = is_key(run, d, *found, key, hash, &same);
        if (!ok || same)
            return ok;
    }
    *found = d->count;
    return true;
}

bool mt_tpl_dict_set(mt_tpl_run *run, mt_tpl_dict *d, mt_tpl_value key, mt_tpl_value value)
{
    uint64_t hash;
    size_t at;

    if (!mt_tpl_hash(run, key, &hash) || !find(run, d, key, hash, &at))
        return false;
    if (at < d->count) {
        d->at[at].value = value;
        return true;
    }
    if (!mt_tpl_grow(run, &d->at, d->count, 1, &d->cap, sizeof(*d->at)))
        return false;
    d->at[d->count++] = (mt_tpl_entry){.key = key, .value = value, .hash = hash};
    if (d->index && d->count * 2 <= d->slots)
        index_add(d, d->count - 1);
    else if (d->count > INDEX_FROM)
        return index_grow(run, d);
    return true;
}

bool mt_tpl_dict_update(mt_tpl_run *run, mt_tpl_dict *d, const mt_tpl_dict *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (!mt_tpl_charge(run, 1) || !mt_tpl_dict_set(run, d, from->at[i].key, from->at[i].value))
            return false;
    return true;
}

bool mt_tpl_dict_get(mt_tpl_run *run, const mt_tpl_dict *d, mt_tpl_value key, mt_tpl_value *out)
{
    uint64_t hash;
    size_t at;

    if (!mt_tpl_hash(run, key, &hash) || !find(run, d, key, hash, &at))
        return false;
    *out = at < d->count ? d->at[at].value : (mt_tpl_value){.kind = MT_TPL_MISSING};
    return true;
}

mt_tpl_value mt_tpl_dict_name(mt_tpl_run *run, const mt_tpl_dict *d, const mt_tpl_str *name)
{
    mt_tpl_value found;

    return d && mt_tpl_dict_get(run, d, mt_tpl_const(name), &found) ? found : (mt_tpl_value){.kind = MT_TPL_MISSING};
}
