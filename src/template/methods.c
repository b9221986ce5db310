/* Methods of all types but str. Methods that would change a list or dict are refused where attributes are looked up
   (attr.c), so they are not here. */
#include "template/builtin.h"
#include "template/compare.h"
#include "template/iter.h"
#include "template/loop.h"
#include "template/number.h"

MT_TPL_BODY(dict_view)
{
    mt_tpl_view *view = mt_tpl_alloc(run, sizeof(*view));

    if (!view)
        return false;
    *view = (mt_tpl_view){.dict = self.as.dict, .part = which};
    *out = (mt_tpl_value){.kind = MT_TPL_VIEW, .as.view = view};
    return true;
}

MT_TPL_BODY(dict_get)
{
    if (!mt_tpl_dict_get(run, self.as.dict, a[0], out))
        return false;
    if (!MT_TPL_GIVEN(*out))
        *out = MT_TPL_GIVEN(a[1]) ? a[1] : mt_tpl_none();
    return true;
}

/* Values cannot be changed, so a copy is the value itself. */
MT_TPL_BODY(copy)
{
    *out = self;
    return true;
}

static const mt_tpl_builtin dict_methods[] = {
    {"keys", dict_view, MT_TPL_KEYS, 0, 0, {0}},
    {"values", dict_view, MT_TPL_VALUES, 0, 0, {0}},
    {"items", dict_view, MT_TPL_ITEMS, 0, 0, {0}},
    {"get", dict_get, 0, 1, 2, {0}},
    {"copy", copy, 0, 0, 0, {0}},
    {0},
};

MT_TPL_BODY(sequence_count)
{
    int64_t count = 0;
    bool same;

    for (size_t i = 0; i < self.as.list->count; i++) {
        if (!mt_tpl_charge(run, 1) || !mt_tpl_equal(run, self.as.list->at[i], a[0], &same))
            return false;
        count += same;
    }
    *out = mt_tpl_int(count);
    return true;
}

MT_TPL_BODY(sequence_index)
{
    int64_t count = (int64_t)self.as.list->count, begin = 0, end = count;
    bool same;

    if (!mt_tpl_arg_int(run, a[1], &begin) || !mt_tpl_arg_int(run, a[2], &end))
        return false;
    begin = begin < 0 ? begin + count : begin;
    end = end < 0 ? end + count : end;
    for (int64_t i = begin < 0 ? 0 : begin; i < end && i < count; i++) {
        if (!mt_tpl_charge(run, 1) || !mt_tpl_equal(run, self.as.list->at[i], a[0], &same))
            return false;
        if (same) {
            *out = mt_tpl_int(i);
            return true;
        }
    }
    return mt_tpl_fail(run, "the value is not in the %s", mt_tpl_type(self));
}

static const mt_tpl_builtin list_methods[] = {
    {"count", sequence_count, 0, 1, 1, {0}},
    {"index", sequence_index, 0, 1, 3, {0}},
    {"copy", copy, 0, 0, 0, {0}},
    {0},
};

static const mt_tpl_builtin tuple_methods[] = {
    {"count", sequence_count, 0, 1, 1, {0}},
    {"index", sequence_index, 0, 1, 3, {0}},
    {0},
};

MT_TPL_BODY(range_count)
{
    bool found;

    if (!mt_tpl_contains(run, self, a[0], &found))
        return false;
    *out = mt_tpl_int(found);
    return true;
}

static const mt_tpl_builtin range_methods[] = {
    {"count", range_count, 0, 1, 1, {0}},
    {0},
};

MT_TPL_BODY(int_bit_length)
{
    int64_t value = mt_tpl_as_int(self), bits = 0;

    for (uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value; rest; rest >>= 1)
        bits++;
    *out = mt_tpl_int(bits);
    return true;
}

MT_TPL_BODY(number_conjugate)
{
    return mt_tpl_pos(run, self, out);
}

static const mt_tpl_builtin int_methods[] = {
    {"bit_length", int_bit_length, 0, 0, 0, {0}},
    {"conjugate", number_conjugate, 0, 0, 0, {0}},
    {0},
};

MT_TPL_BODY(float_is_integer)
{
    *out = mt_tpl_bool(self.as.real >= -0x1p63 && self.as.real < 0x1p63 ? (double)(int64_t)self.as.real == self.as.real
                                                                        : self.as.real - self.as.real == 0);
    return true;
}

static const mt_tpl_builtin float_methods[] = {
    {"is_integer", float_is_integer, 0, 0, 0, {0}},
    {"conjugate", number_conjugate, 0, 0, 0, {0}},
    {0},
};

MT_TPL_BODY(cycler_next)
{
    mt_tpl_cycler *cycler = self.as.cycler;

    *out = cycler->items->at[cycler->at];
    cycler->at = (cycler->at + 1) % cycler->items->count;
    return true;
}

MT_TPL_BODY(cycler_reset)
{
    self.as.cycler->at = 0;
    *out = mt_tpl_none();
    return true;
}

static const mt_tpl_builtin cycler_methods[] = {
    {"next", cycler_next, 0, 0, 0, {0}},
    {"reset", cycler_reset, 0, 0, 0, {0}},
    {0},
};

MT_TPL_BODY(loop_cycle)
{
    if (args->count == 0)
        return mt_tpl_fail(run, "no items for cycling given");
    *out = args->at[(size_t)self.as.loop->index0 % args->count];
    return true;
}

MT_TPL_BODY(loop_changed)
{
    mt_tpl_items items = {0};
    mt_tpl_value now;
    bool same = false;

    for (size_t i = 0; i < args->count; i++)
        if (!mt_tpl_items_add(run, &items, args->at[i]))
            return false;
    if (!mt_tpl_items_end(run, &items, MT_TPL_TUPLE, &now) || !mt_tpl_equal(run, self.as.loop->changed, now, &same))
        return false;
    self.as.loop->changed = now;
    *out = mt_tpl_bool(!same);
    return true;
}

static const mt_tpl_builtin loop_methods[] = {
    {"cycle", loop_cycle, 0, 0, MT_TPL_ANY, {0}},
    {"changed", loop_changed, 0, 0, MT_TPL_ANY, {0}},
    {0},
};

const mt_tpl_builtin *mt_tpl_method_of(mt_tpl_value self, const char *name, size_t len)
{
    const mt_tpl_builtin *found;

    switch (self.kind) {
    case MT_TPL_STR:
        found = mt_tpl_table_find(mt_tpl_str_methods, name, len);
        return found ? found : mt_tpl_table_find(mt_tpl_str_class_methods, name, len);
    case MT_TPL_DICT: return mt_tpl_table_find(dict_methods, name, len);
    case MT_TPL_LIST: return mt_tpl_table_find(list_methods, name, len);
    case MT_TPL_TUPLE: return mt_tpl_table_find(tuple_methods, name, len);
    case MT_TPL_RANGE: return mt_tpl_table_find(range_methods, name, len);
    case MT_TPL_BOOL:
    case MT_TPL_INT:
    case MT_TPL_BIG: return mt_tpl_table_find(int_methods, name, len);
    case MT_TPL_FLOAT: return mt_tpl_table_find(float_methods, name, len);
    case MT_TPL_CYCLER: return mt_tpl_table_find(cycler_methods, name, len);
    case MT_TPL_LOOP: return mt_tpl_table_find(loop_methods, name, len);
    default: return NULL;
    }
}
