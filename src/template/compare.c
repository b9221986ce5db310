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

/* Compares two integers given as decimal digits without leading zeros. Returns -1, 0 or 1: what strcmp returns may be
   any number, UNORDERED too. */
static int compare_digits(const char *a, const char *b)
{
    const size_t x = strlen(a), y = strlen(b);
    int order;

    if ((*a == '-') != (*b == '-'))
        return *a == '-' ? -1 : 1;
    order = x != y ? (x < y ? -1 : 1) : strcmp(a, b);
    order = (order > 0) - (order < 0);
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
    if (MT_TPL_IS_INT(a) && MT_TPL_IS_INT(b)) {
        int64_t x = mt_tpl_as_int(a), y = mt_tpl_as_int(b);

        return x < y ? -1 : x > y;
    }
    if (b.kind == MT_TPL_BIG || MT_TPL_IS_INT(b)) {
        order = compare_numbers(b, a);
        return order == UNORDERED ? UNORDERED : -order;
    }
    if (MT_TPL_IS_INT(a))
        return compare_int_float(mt_tpl_as_int(a), b.as.real);
    if (isnan(a.as.real) || isnan(b.as.real))
        return UNORDERED;
    return a.as.real < b.as.real ? -1 : a.as.real > b.as.real;
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

/* The first index at which two sequences differ; the shorter one's length: none. */
static size_t first_difference(mt_tpl_run *run, const mt_tpl_list *a, const mt_tpl_list *b)
{
    size_t at = 0;

    while (at < a->count && at < b->count && mt_tpl_charge(run, 1) && mt_tpl_equal(run, a->at[at], b->at[at]))
        at++;
    return at;
}

static bool equal_dicts(mt_tpl_run *run, const mt_tpl_dict *a, const mt_tpl_dict *b, bool values)
{
    bool equal = a->count == b->count;

    for (size_t i = 0; equal && i < a->count; i++) {
        const mt_tpl_value other = mt_tpl_dict_get(run, b, a->at[i].key);

        equal = mt_tpl_charge(run, 1) && other.kind != MT_TPL_MISSING &&
                (!values || mt_tpl_equal(run, a->at[i].value, other));
    }
    return equal;
}

static bool equal_ranges(const mt_tpl_range *a, const mt_tpl_range *b)
{
    return a->count == b->count && (a->count == 0 || a->start == b->start) && (a->count < 2 || a->step == b->step);
}

static bool equal_containers(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b)
{
    switch (a.kind) {
    case MT_TPL_LIST:
    case MT_TPL_TUPLE:
        return a.as.list->count == b.as.list->count && first_difference(run, a.as.list, b.as.list) == a.as.list->count;
    case MT_TPL_DICT: return equal_dicts(run, a.as.dict, b.as.dict, true);
    case MT_TPL_RANGE: return equal_ranges(a.as.range, b.as.range);
    case MT_TPL_VIEW:
        return a.as.view->part == b.as.view->part && a.as.view->part != MT_TPL_VALUES &&
               equal_dicts(run, a.as.view->dict, b.as.view->dict, a.as.view->part == MT_TPL_ITEMS);
    default: return mt_tpl_identical(a, b);
    }
}

bool mt_tpl_equal(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b)
{
    bool equal;

    if (MT_TPL_IS_NUMBER(a) && MT_TPL_IS_NUMBER(b))
        return compare_numbers(a, b) == 0;
    if (a.kind != b.kind)
        return false;
    if (a.kind == MT_TPL_STR)
        return a.as.str->len == b.as.str->len && mt_tpl_charge_bytes(run, a.as.str->len) &&
               mt_tpl_str_equal(a.as.str, b.as.str);
    if (a.kind == MT_TPL_UNDEFINED || a.kind == MT_TPL_NONE)
        return true;
    if (!mt_tpl_enter(run))
        return false;
    equal = equal_containers(run, a, b);
    mt_tpl_leave(run);
    return equal;
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

static bool order_lists(mt_tpl_run *run, mt_tpl_operator op, const mt_tpl_list *a, const mt_tpl_list *b)
{
    size_t at;
    bool result;

    if (!mt_tpl_enter(run))
        return false;
    at = first_difference(run, a, b);
    if (at < a->count && at < b->count)
        result = mt_tpl_compare(run, op, a->at[at], b->at[at]);
    else
        result = holds(op, a->count < b->count ? -1 : a->count > b->count);
    mt_tpl_leave(run);
    return result;
}

/* op: one of < <= > >=. */
static bool ordered(mt_tpl_run *run, mt_tpl_operator op, mt_tpl_value a, mt_tpl_value b)
{
    const bool or_equal = op == MT_TPL_LE || op == MT_TPL_GE;

    if (MT_TPL_IS_NUMBER(a) && MT_TPL_IS_NUMBER(b))
        return holds(op, compare_numbers(a, b));
    if (a.kind == MT_TPL_UNDEFINED || b.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, a.kind == MT_TPL_UNDEFINED ? a : b);
    if (a.kind == MT_TPL_STR && b.kind == MT_TPL_STR)
        return mt_tpl_charge_bytes(run, MT_MIN(a.as.str->len, b.as.str->len)) &&
               holds(op, mt_tpl_str_compare(a.as.str, b.as.str));
    if (a.kind == b.kind && (a.kind == MT_TPL_LIST || a.kind == MT_TPL_TUPLE))
        return order_lists(run, op, a.as.list, b.as.list);
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

static bool contains_by_iterating(mt_tpl_run *run, mt_tpl_value container, mt_tpl_value item)
{
    mt_tpl_iter *iter = mt_tpl_iterate(run, container);
    mt_tpl_value v;
    bool found = false;

    while (iter && !found && mt_tpl_next(run, iter, &v) == MT_TPL_ITEM)
        found = mt_tpl_equal(run, v, item);
    return found;
}

static bool contains_text(mt_tpl_run *run, const mt_tpl_str *s, mt_tpl_value item)
{
    if (item.kind != MT_TPL_STR)
        return mt_tpl_fail(run, "'in <string>' requires string as left operand, not %s", mt_tpl_type(item));
    return mt_tpl_charge_bytes(run, s->len) &&
           (item.as.str->len == 0 || memmem(s->data, s->len, item.as.str->data, item.as.str->len));
}

bool mt_tpl_contains(mt_tpl_run *run, mt_tpl_value container, mt_tpl_value item)
{
    switch (container.kind) {
    case MT_TPL_STR: return contains_text(run, container.as.str, item);
    case MT_TPL_DICT: return mt_tpl_dict_get(run, container.as.dict, item).kind != MT_TPL_MISSING;
    case MT_TPL_RANGE:
        return MT_TPL_IS_INT(item) ? range_has(container.as.range, mt_tpl_as_int(item))
                                   : contains_by_iterating(run, container, item);
    case MT_TPL_UNDEFINED:
    case MT_TPL_LIST:
    case MT_TPL_TUPLE:
    case MT_TPL_VIEW:
    case MT_TPL_ITER: return contains_by_iterating(run, container, item);
    default: return mt_tpl_fail(run, "argument of type '%s' is not iterable", mt_tpl_type(container));
    }
}

bool mt_tpl_compare(mt_tpl_run *run, mt_tpl_operator op, mt_tpl_value a, mt_tpl_value b)
{
    switch (op) {
    case MT_TPL_EQ: return mt_tpl_equal(run, a, b);
    case MT_TPL_NE: return !mt_tpl_equal(run, a, b);
    case MT_TPL_IN: return mt_tpl_contains(run, b, a);
    case MT_TPL_NOT_IN: return !mt_tpl_contains(run, b, a);
    default: return ordered(run, op, a, b);
    }
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

static uint64_t hash_value(mt_tpl_run *run, mt_tpl_value v);

static uint64_t hash_tuple(mt_tpl_run *run, const mt_tpl_list *list)
{
    uint64_t hash = mix(run->seed + list->count);

    if (!mt_tpl_enter(run))
        return 0;
    for (size_t i = 0; i < list->count && mt_tpl_charge(run, 1); i++)
        hash = mix(hash ^ hash_value(run, list->at[i]));
    mt_tpl_leave(run);
    return hash;
}

static uint64_t hash_float(mt_tpl_run *run, double d)
{
    if (d == floor(d) && d >= -0x1p63 && d < 0x1p63)
        return mix(run->seed ^ (uint64_t)(int64_t)d);
    return hash_bytes(run->seed, (const char *)&d, sizeof(d));
}

/* Equal values have equal hashes. What cannot be hashed fails the run. */
static uint64_t hash_value(mt_tpl_run *run, mt_tpl_value v)
{
    switch (v.kind) {
    case MT_TPL_STR:
        return mt_tpl_charge(run, v.as.str->len / HASHED_PER_STEP)
                   ? hash_bytes(run->seed, v.as.str->data, v.as.str->len)
                   : 0;
    case MT_TPL_BOOL:
    case MT_TPL_INT: return mix(run->seed ^ (uint64_t)mt_tpl_as_int(v));
    case MT_TPL_BIG: /* as the double that may be equal to it */
    case MT_TPL_FLOAT: return hash_float(run, mt_tpl_as_float(v));
    case MT_TPL_TUPLE: return hash_tuple(run, v.as.list);
    case MT_TPL_LIST:
    case MT_TPL_DICT:
    case MT_TPL_VIEW: return mt_tpl_fail(run, "unhashable type: '%s'", mt_tpl_type(v));
    default: return mix(run->seed + (uint64_t)v.kind);
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

static bool is_key(mt_tpl_run *run, const mt_tpl_dict *d, size_t entry, mt_tpl_value key, uint64_t hash)
{
    return d->at[entry].hash == hash && mt_tpl_charge(run, 1) && mt_tpl_equal(run, d->at[entry].key, key);
}

/* The index of the entry with that key; the count of entries: there is none, or the run has failed. */
static size_t find(mt_tpl_run *run, const mt_tpl_dict *d, mt_tpl_value key, uint64_t hash)
{
    for (size_t i = 0; !d->index && i < d->count; i++)
        if (is_key(run, d, i, key, hash))
            return i;
    for (size_t slot = (size_t)hash & (d->slots - 1); d->index && d->index[slot]; slot = (slot + 1) & (d->slots - 1))
        if (is_key(run, d, d->index[slot] - 1, key, hash))
            return d->index[slot] - 1;
    return d->count;
}

bool mt_tpl_dict_set(mt_tpl_run *run, mt_tpl_dict *d, mt_tpl_value key, mt_tpl_value value)
{
    const uint64_t hash = hash_value(run, key);
    const size_t at = find(run, d, key, hash);

    if (run->failed)
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

mt_tpl_value mt_tpl_dict_get(mt_tpl_run *run, const mt_tpl_dict *d, mt_tpl_value key)
{
    const size_t at = find(run, d, key, hash_value(run, key));

    return at < d->count && !run->failed ? d->at[at].value : (mt_tpl_value){.kind = MT_TPL_MISSING};
}

mt_tpl_value mt_tpl_dict_name(mt_tpl_run *run, const mt_tpl_dict *d, const mt_tpl_str *name)
{
    return d ? mt_tpl_dict_get(run, d, mt_tpl_const(name)) : (mt_tpl_value){.kind = MT_TPL_MISSING};
}
