/* See value.h. */
#include "template/value.h"

#include <stdio.h>
#include <string.h>

#include "template/compare.h"
#include "template/iter.h"
#include "template/repr.h"

mt_tpl_value mt_tpl_none(void)
{
    return (mt_tpl_value){.kind = MT_TPL_NONE};
}

mt_tpl_value mt_tpl_bool(bool b)
{
    return (mt_tpl_value){.kind = MT_TPL_BOOL, .as.boolean = b};
}

mt_tpl_value mt_tpl_int(int64_t i)
{
    return (mt_tpl_value){.kind = MT_TPL_INT, .as.integer = i};
}

mt_tpl_value mt_tpl_float(double d)
{
    return (mt_tpl_value){.kind = MT_TPL_FLOAT, .as.real = d};
}

int64_t mt_tpl_as_int(mt_tpl_value v)
{
    return v.kind == MT_TPL_BOOL ? v.as.boolean : v.as.integer;
}

bool mt_tpl_set_str(mt_tpl_value *out, mt_tpl_str *s)
{
    *out = (mt_tpl_value){.kind = MT_TPL_STR, .as.str = s};
    return s != NULL;
}

bool mt_tpl_set_lit(mt_tpl_run *run, mt_tpl_value *out, const char *text)
{
    return mt_tpl_set_str(out, mt_tpl_str_lit(run, text));
}

static bool set_undefined(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_undefined why)
{
    mt_tpl_undefined *copy = mt_tpl_alloc(run, sizeof(*copy));

    if (!copy)
        return false;
    *copy = why;
    *out = (mt_tpl_value){.kind = MT_TPL_UNDEFINED, .as.undefined = copy};
    return true;
}

bool mt_tpl_set_undefined(mt_tpl_run *run, mt_tpl_value *out, const char *hint)
{
    return set_undefined(run, out, (mt_tpl_undefined){.hint = hint});
}

bool mt_tpl_set_undefined_name(mt_tpl_run *run, mt_tpl_value *out, const char *name, size_t len)
{
    mt_tpl_undefined why = {.hint = NULL};

    return mt_tpl_set_str(&why.name, mt_tpl_str_new(run, name, len, false)) && set_undefined(run, out, why);
}

bool mt_tpl_set_undefined_in(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_value object, mt_tpl_value name)
{
    return set_undefined(run, out, (mt_tpl_undefined){.object = object, .name = name});
}

bool mt_tpl_set_tuple2(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_value first, mt_tpl_value second)
{
    mt_tpl_items items = {0};

    return mt_tpl_items_add(run, &items, first) && mt_tpl_items_add(run, &items, second) &&
           mt_tpl_items_end(run, &items, MT_TPL_TUPLE, out);
}

bool mt_tpl_truth(mt_tpl_value v)
{
    size_t count;

    switch (v.kind) {
    case MT_TPL_MISSING:
    case MT_TPL_UNDEFINED:
    case MT_TPL_NONE: return false;
    case MT_TPL_BOOL: return v.as.boolean;
    case MT_TPL_INT: return v.as.integer != 0;
    case MT_TPL_FLOAT: return v.as.real != 0;
    case MT_TPL_BIG: return true;
    case MT_TPL_STR: return v.as.str->len > 0;
    default: return !mt_tpl_length(v, &count) || count > 0;
    }
}

static const char *const view_types[] = {
    [MT_TPL_KEYS] = "dict_keys", [MT_TPL_VALUES] = "dict_values", [MT_TPL_ITEMS] = "dict_items"};

const char *mt_tpl_type(mt_tpl_value v)
{
    switch (v.kind) {
    case MT_TPL_MISSING: return "missing";
    case MT_TPL_UNDEFINED: return "Undefined";
    case MT_TPL_NONE: return "NoneType";
    case MT_TPL_BOOL: return "bool";
    case MT_TPL_INT:
    case MT_TPL_BIG: return "int";
    case MT_TPL_FLOAT: return "float";
    case MT_TPL_STR: return v.as.str->markup ? "Markup" : "str";
    case MT_TPL_LIST: return "list";
    case MT_TPL_TUPLE: return v.as.list->group ? "_GroupTuple" : "tuple";
    case MT_TPL_DICT: return "dict";
    case MT_TPL_RANGE: return "range";
    case MT_TPL_VIEW: return view_types[v.as.view->part];
    case MT_TPL_ITER: return v.as.iter->type;
    case MT_TPL_NAMESPACE: return "Namespace";
    case MT_TPL_MACRO: return "Macro";
    case MT_TPL_SELF: return "TemplateReference";
    case MT_TPL_BLOCK: return "BlockReference";
    case MT_TPL_LOOP: return "LoopContext";
    case MT_TPL_CYCLER: return "Cycler";
    case MT_TPL_JOINER: return "Joiner";
    case MT_TPL_FUNCTION: return "function";
    case MT_TPL_METHOD: return "builtin_function_or_method";
    }
    return "object";
}

bool mt_tpl_length(mt_tpl_value v, size_t *out)
{
    switch (v.kind) {
    case MT_TPL_UNDEFINED: *out = 0; return true;
    case MT_TPL_STR: *out = mt_tpl_str_chars(v.as.str); return true;
    case MT_TPL_LIST:
    case MT_TPL_TUPLE: *out = v.as.list->count; return true;
    case MT_TPL_DICT: *out = v.as.dict->count; return true;
    case MT_TPL_RANGE: *out = v.as.range->count; return true;
    case MT_TPL_VIEW: *out = v.as.view->dict->count; return true;
    default: return false;
    }
}

static bool items_reserve(mt_tpl_run *run, mt_tpl_items *items, size_t more)
{
    mt_tpl_value *at = mt_tpl_grow(run, items->at, items->count, more, &items->cap, sizeof(*at));

    items->at = at ? at : items->at;
    return at || more == 0;
}

bool mt_tpl_items_add(mt_tpl_run *run, mt_tpl_items *items, mt_tpl_value v)
{
    if (!items_reserve(run, items, 1))
        return false;
    items->at[items->count++] = v;
    return true;
}

bool mt_tpl_items_end(mt_tpl_run *run, mt_tpl_items *items, mt_tpl_kind kind, mt_tpl_value *out)
{
    mt_tpl_list *list = mt_tpl_alloc(run, sizeof(*list));

    if (!list)
        return false;
    *list = (mt_tpl_list){.at = items->at, .count = items->count};
    *out = (mt_tpl_value){.kind = kind, .as.list = list};
    return true;
}

bool mt_tpl_list_concat(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    const mt_tpl_list *left = a.as.list, *right = b.as.list;
    mt_tpl_items *room = left->room;
    mt_tpl_list *list = mt_tpl_alloc(run, sizeof(*list));

    if (!list || !mt_tpl_charge(run, right->count))
        return false;
    if (!room || room->at != left->at || room->count != left->count) {
        room = mt_tpl_alloc(run, sizeof(*room));
        if (!room || !mt_tpl_charge(run, left->count) || !items_reserve(run, room, left->count + right->count))
            return false;
        for (size_t i = 0; i < left->count; i++)
            room->at[room->count++] = left->at[i];
    }
    if (!items_reserve(run, room, right->count))
        return false;
    for (size_t i = 0; i < right->count; i++)
        room->at[room->count++] = right->at[i];
    *list = (mt_tpl_list){.at = room->at, .count = room->count, .room = room};
    *out = (mt_tpl_value){.kind = a.kind, .as.list = list};
    return true;
}
