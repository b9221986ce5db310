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

mt_tpl_value mt_tpl_const(const mt_tpl_str *s)
{
    return (mt_tpl_value){.kind = MT_TPL_STR, .as.any = s};
}

mt_tpl_value mt_tpl_dict_value(mt_tpl_dict *dict)
{
    return (mt_tpl_value){.kind = MT_TPL_DICT, .as.dict = dict};
}

int64_t mt_tpl_as_int(mt_tpl_value v)
{
    return v.kind == MT_TPL_BOOL ? v.as.boolean : v.as.integer;
}

bool mt_tpl_set(mt_tpl_value *out, mt_tpl_value v)
{
    *out = v;
    return true;
}

bool mt_tpl_set_bool(mt_tpl_run *run, mt_tpl_value *out, bool b)
{
    return mt_tpl_set(out, mt_tpl_bool(b)) && !run->failed;
}

void mt_tpl_offer(mt_tpl_value *out, const mt_tpl_str *name, const char *is, mt_tpl_value v)
{
    if (mt_tpl_str_is(name, is))
        *out = v;
}

bool mt_tpl_set_new(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_kind kind, const void *what, size_t size)
{
    *out = (mt_tpl_value){.kind = kind, .as.any = mt_tpl_copy(run, what, size)};
    return out->as.any != NULL;
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
    return mt_tpl_set_new(run, out, MT_TPL_UNDEFINED, &why, sizeof(why));
}

bool mt_tpl_set_undefined(mt_tpl_run *run, mt_tpl_value *out, const char *hint)
{
    return set_undefined(run, out, (mt_tpl_undefined){.hint = hint});
}

bool mt_tpl_set_undefined_in(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_value object, mt_tpl_value name)
{
    return set_undefined(run, out, (mt_tpl_undefined){.object = object, .name = name});
}

bool mt_tpl_set_tuple2(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_value first, mt_tpl_value second)
{
    return mt_tpl_set_list(run, out, MT_TPL_TUPLE, (const mt_tpl_value[]){first, second}, 2);
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
    return mt_tpl_grow(run, &items->at, items->count, more, &items->cap, sizeof(*items->at));
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
    const mt_tpl_list list = {.at = items->at, .count = items->count};

    return mt_tpl_set_new(run, out, kind, &list, sizeof(list));
}

bool mt_tpl_set_list(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_kind kind, const mt_tpl_value *items, size_t count)
{
    mt_tpl_items copy = {0};

    for (size_t i = 0; i < count; i++)
        if (!mt_tpl_items_add(run, &copy, items[i]))
            return false;
    return mt_tpl_items_end(run, &copy, kind, out);
}

bool mt_tpl_list_concat(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    const mt_tpl_list *left = a.as.list, *right = b.as.list;
    mt_tpl_items *room = left->room;

    if (!mt_tpl_charge(run, right->count))
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
    return mt_tpl_set_new(run, out, a.kind, &(mt_tpl_list){.at = room->at, .count = room->count, .room = room},
                          sizeof(mt_tpl_list));
}
