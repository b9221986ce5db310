/* See attr.h. */
#include "template/attr.h"

#include <stdio.h>

#include "base/utf8.h"
#include "template/builtin.h"
#include "template/iter.h"
#include "template/loop.h"
#include "template/macro.h"
#include "template/scope.h"

/* Whether it is an attribute that exists in Python and that the sandbox hides from templates. */
static bool is_unsafe(mt_tpl_value object, const mt_tpl_str *name)
{
    static const char *const list_names[] = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
    static const char *const dict_names[] = {"clear", "pop", "popitem", "setdefault", "update"};
    static const char *const object_names[] = {
        "__class__",  "__doc__",       "__init__",   "__new__",          "__repr__",         "__str__",
        "__eq__",     "__ne__",        "__lt__",     "__le__",           "__gt__",           "__ge__",
        "__hash__",   "__dir__",       "__format__", "__getattribute__", "__setattr__",      "__delattr__",
        "__reduce__", "__reduce_ex__", "__sizeof__", "__subclasshook__", "__init_subclass__"};
    const bool any = name->len > 1 && name->data[0] == '_' && name->data[1] == '_', list = object.kind == MT_TPL_LIST;
    const char *const *names = any ? object_names : list ? list_names : dict_names;
    size_t count = any ? MT_COUNT(object_names) : list ? MT_COUNT(list_names) : MT_COUNT(dict_names);

    if (!any && !list && object.kind != MT_TPL_DICT)
        return false;
    while (count > 0 && !mt_tpl_str_is(name, names[count - 1]))
        count--;
    return count > 0;
}

static bool set_unsafe(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_str *name, mt_tpl_value *out)
{
    const size_t size = name->len + 96;
    char *hint = mt_tpl_alloc(run, size);

    if (!hint)
        return false;
    snprintf(hint, size, "access to attribute '%.*s' of '%s' object is unsafe.", (int)name->len, name->data,
             mt_tpl_type(object));
    return mt_tpl_set_undefined(run, out, hint);
}

static mt_tpl_value block_of(const mt_tpl_run *run, const mt_tpl_str *name)
{
    const mt_tpl_node *block = mt_tpl_block_find(run->blocks, name);

    return (mt_tpl_value){.kind = block ? MT_TPL_BLOCK : MT_TPL_MISSING, .as.block = block};
}

/* Sets *out to an attribute that is no method; MISSING: there is none. */
static bool property(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_str *name, mt_tpl_value *out)
{
    switch (object.kind) {
    case MT_TPL_NAMESPACE: *out = mt_tpl_dict_name(run, object.as.dict, name); break;
    case MT_TPL_LOOP: return mt_tpl_loop_attribute(run, object.as.loop, name, out);
    case MT_TPL_SELF: *out = block_of(run, name); break;
    case MT_TPL_MACRO: return mt_tpl_macro_attribute(run, object.as.macro, name, out);
    case MT_TPL_CYCLER:
        mt_tpl_offer(out, name, "current", object.as.cycler->items->at[object.as.cycler->at]);
        mt_tpl_offer(out, name, "pos", mt_tpl_int((int64_t)object.as.cycler->at));
        mt_tpl_offer(out, name, "items", (mt_tpl_value){.kind = MT_TPL_TUPLE, .as.list = object.as.cycler->items});
        break;
    case MT_TPL_JOINER:
        mt_tpl_offer(out, name, "sep", object.as.joiner->separator);
        mt_tpl_offer(out, name, "used", mt_tpl_bool(object.as.joiner->used));
        break;
    case MT_TPL_TUPLE:
        if (object.as.list->group) {
            mt_tpl_offer(out, name, "grouper", object.as.list->at[0]);
            mt_tpl_offer(out, name, "list", object.as.list->at[1]);
        }
        break;
    case MT_TPL_RANGE:
        mt_tpl_offer(out, name, "start", mt_tpl_int(object.as.range->start));
        mt_tpl_offer(out, name, "stop", mt_tpl_int(object.as.range->stop));
        mt_tpl_offer(out, name, "step", mt_tpl_int(object.as.range->step));
        break;
    case MT_TPL_BOOL:
    case MT_TPL_INT:
        mt_tpl_offer(out, name, "real", mt_tpl_int(mt_tpl_as_int(object)));
        mt_tpl_offer(out, name, "numerator", mt_tpl_int(mt_tpl_as_int(object)));
        mt_tpl_offer(out, name, "imag", mt_tpl_int(0));
        mt_tpl_offer(out, name, "denominator", mt_tpl_int(1));
        break;
    case MT_TPL_FLOAT:
        mt_tpl_offer(out, name, "real", object);
        mt_tpl_offer(out, name, "imag", mt_tpl_float(0));
        break;
    default: break;
    }
    return !run->failed;
}

/* Sets *out to an attribute; MISSING: there is none. */
static bool attribute(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_str *name, mt_tpl_value *out)
{
    const mt_tpl_builtin *method;

    out->kind = MT_TPL_MISSING;
    if (object.kind != MT_TPL_NAMESPACE && is_unsafe(object, name))
        return set_unsafe(run, object, name, out);
    method = mt_tpl_method_of(object, name);
    if (method)
        return mt_tpl_set_new(run, out, MT_TPL_METHOD, &(mt_tpl_method){.self = object, .call = method},
                              sizeof(mt_tpl_method));
    if (!property(run, object, name, out))
        return false;
    return out->kind == MT_TPL_MISSING || !name->len || name->data[0] != '_' || set_unsafe(run, object, name, out);
}

static bool is_hashable(mt_tpl_value v)
{
    if (v.kind == MT_TPL_TUPLE)
        for (size_t i = 0; i < v.as.list->count; i++)
            if (v.as.list->at[i].kind == MT_TPL_TUPLE || !is_hashable(v.as.list->at[i]))
                return false; /* tuples in tuples are not supported as keys */
    return v.kind != MT_TPL_LIST && v.kind != MT_TPL_DICT && v.kind != MT_TPL_VIEW;
}

static bool index_of(mt_tpl_value key, size_t count, size_t *out)
{
    int64_t i;

    if (!MT_TPL_IS_INT(key))
        return false;
    i = mt_tpl_as_int(key);
    if (i < 0)
        i += (int64_t)count;
    *out = (size_t)i;
    return i >= 0 && (uint64_t)i < count;
}

/* Sets *out to object[key]; MISSING where Python raises TypeError or LookupError. */
static bool item(mt_tpl_run *run, mt_tpl_value object, mt_tpl_value key, mt_tpl_value *out)
{
    size_t i, begin;

    out->kind = MT_TPL_MISSING;
    switch (object.kind) {
    case MT_TPL_DICT:
        if (is_hashable(key))
            *out = mt_tpl_dict_get(run, object.as.dict, key);
        return !run->failed;
    case MT_TPL_SELF:
        if (key.kind == MT_TPL_STR)
            *out = block_of(run, key.as.str);
        return true;
    case MT_TPL_LIST:
    case MT_TPL_TUPLE:
        if (index_of(key, object.as.list->count, &i))
            *out = object.as.list->at[i];
        return true;
    case MT_TPL_RANGE:
        if (index_of(key, object.as.range->count, &i))
            *out = mt_tpl_int(mt_tpl_range_at(object.as.range, i));
        return true;
    case MT_TPL_STR:
        if (!index_of(key, mt_tpl_str_chars(object.as.str), &i))
            return true;
        begin = mt_tpl_str_offset(object.as.str, i);
        if (object.as.str->chars != object.as.str->len && !mt_tpl_charge(run, begin / 4))
            return false;
        return mt_tpl_set_str(
            out, mt_tpl_str_sub(run, object.as.str, begin, begin + mt_utf8_size(object.as.str->data[begin])));
    default: return true;
    }
}

bool mt_tpl_get_attribute(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_str *name, mt_tpl_value *out)
{
    const mt_tpl_value key = mt_tpl_const(name);

    if (object.kind == MT_TPL_UNDEFINED && !is_unsafe(object, name))
        return mt_tpl_fail_undefined(run, object);
    if (!attribute(run, object, name, out))
        return false;
    if (out->kind == MT_TPL_MISSING && object.kind == MT_TPL_DICT && !item(run, object, key, out))
        return false;
    return out->kind != MT_TPL_MISSING || mt_tpl_set_undefined_in(run, out, object, key);
}

bool mt_tpl_get_own_attribute(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_str *name, mt_tpl_value *out)
{
    if (object.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, object);
    return attribute(run, object, name, out) &&
           (out->kind != MT_TPL_MISSING || mt_tpl_set_undefined_in(run, out, object, mt_tpl_const(name)));
}

bool mt_tpl_get_item(mt_tpl_run *run, mt_tpl_value object, mt_tpl_value key, mt_tpl_value *out)
{
    if (object.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, object);
    if (!item(run, object, key, out))
        return false;
    if (out->kind == MT_TPL_MISSING && key.kind == MT_TPL_STR && !attribute(run, object, key.as.str, out))
        return false;
    return out->kind != MT_TPL_MISSING || mt_tpl_set_undefined_in(run, out, object, key);
}

static bool bound(mt_tpl_run *run, mt_tpl_value v, int64_t *out)
{
    if (v.kind == MT_TPL_MISSING || v.kind == MT_TPL_NONE)
        return true;
    if (!MT_TPL_IS_INT(v))
        return mt_tpl_fail(run, "slice indices must be integers or None or have an __index__ method");
    *out = mt_tpl_as_int(v);
    return true;
}

static int64_t clamp(int64_t i, int64_t count, int64_t low, int64_t high)
{
    if (i < 0)
        i = i < -count ? -1 : i + count;
    return i < low ? low : i > high ? high : i;
}

/* As Python's slice.indices. */
static bool find_bounds(mt_tpl_run *run, const mt_tpl_value given[3], size_t length, mt_tpl_range *out)
{
    int64_t count = (int64_t)length, start, stop, step = 1, low, high;

    if (!bound(run, given[2], &step))
        return false;
    if (step == 0)
        return mt_tpl_fail(run, "slice step cannot be zero");
    start = step > 0 ? 0 : INT64_MAX;
    stop = step > 0 ? INT64_MAX : INT64_MIN;
    if (!bound(run, given[0], &start) || !bound(run, given[1], &stop))
        return false;
    low = step > 0 ? 0 : -1;
    high = step > 0 ? count : count - 1;
    *out = mt_tpl_range_of(clamp(start, count, low, high), clamp(stop, count, low, high), step);
    return true;
}

static bool slice_text(mt_tpl_run *run, mt_tpl_str *s, mt_tpl_range by, mt_tpl_value *out)
{
    mt_tpl_build b = {.run = run};
    size_t at;

    if (!mt_tpl_charge_bytes(run, s->len))
        return false;
    if (by.step == 1 || by.count == 0) {
        size_t begin = by.count ? mt_tpl_str_offset(s, (size_t)by.start) : 0;
        size_t end = by.count ? mt_tpl_str_offset(s, (size_t)by.start + by.count) : 0;

        return mt_tpl_set_str(out, mt_tpl_str_sub(run, s, begin, end));
    }
    at = mt_tpl_str_offset(s, (size_t)by.start);
    for (size_t i = 0; i < by.count && !run->failed; i++) {
        size_t next = at + mt_utf8_size(s->data[at]);

        mt_tpl_build_sub(&b, s, at, next);
        for (int64_t n = by.step; n > 0 && i + 1 < by.count; n--)
            at += mt_utf8_size(s->data[at]);
        for (int64_t n = by.step; n < 0 && i + 1 < by.count; n++)
            at = mt_utf8_before(s->data, at);
    }
    return mt_tpl_set_str(out, mt_tpl_build_end_like(&b, s));
}

static bool slice_list(mt_tpl_run *run, mt_tpl_value list, mt_tpl_range by, mt_tpl_value *out)
{
    const mt_tpl_list part = {.at = by.count ? list.as.list->at + by.start : NULL, .count = by.count};
    mt_tpl_items items = {0};

    if (by.step == 1 || by.count == 0)
        return mt_tpl_set_new(run, out, list.kind, &part, sizeof(part));
    if (!mt_tpl_charge(run, by.count))
        return false;
    for (size_t i = 0; i < by.count; i++)
        if (!mt_tpl_items_add(run, &items, list.as.list->at[by.start + (int64_t)i * by.step]))
            return false;
    return mt_tpl_items_end(run, &items, list.kind, out);
}

static bool slice_range(mt_tpl_run *run, const mt_tpl_range *range, mt_tpl_range by, mt_tpl_value *out)
{
    uint64_t start = (uint64_t)range->start + (uint64_t)by.start * (uint64_t)range->step;
    uint64_t stop = (uint64_t)range->start + (uint64_t)by.stop * (uint64_t)range->step;
    int64_t step;

    if (MT_MUL_OVERFLOWS(range->step, by.step, &step))
        step = (range->step < 0) == (by.step < 0) ? INT64_MAX : -INT64_MAX;
    return mt_tpl_set_range(run, out, (int64_t)start, (int64_t)stop, step);
}

bool mt_tpl_slice(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_value bounds[3], mt_tpl_value *out)
{
    mt_tpl_range by = {0};
    size_t length;

    switch (object.kind) {
    case MT_TPL_UNDEFINED: return mt_tpl_fail_undefined(run, object);
    case MT_TPL_DICT: return mt_tpl_fail(run, "unhashable type: 'slice'");
    case MT_TPL_STR:
    case MT_TPL_LIST:
    case MT_TPL_TUPLE:
    case MT_TPL_RANGE: break;
    default: return mt_tpl_fail(run, "'%s' object is not subscriptable", mt_tpl_type(object));
    }
    if (!mt_tpl_length(object, &length) || !find_bounds(run, bounds, length, &by))
        return false;
    if (object.kind == MT_TPL_STR)
        return slice_text(run, object.as.str, by, out);
    return object.kind == MT_TPL_RANGE ? slice_range(run, object.as.range, by, out) : slice_list(run, object, by, out);
}
