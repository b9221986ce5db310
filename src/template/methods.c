/* Methods of all types but str. Methods that would change a list or dict are refused where attributes are looked up
   (attr.c), so they are not here. */
#include "template/builtin.h"
#include "template/compare.h"
#include "template/iter.h"
#include "template/loop.h"
#include "template/number.h"

MT_TPL_BODY(dict_view)
{
    return mt_tpl_set_new(run, out, MT_TPL_VIEW, &(mt_tpl_view){.dict = self.as.dict, .part = which},
                          sizeof(mt_tpl_view));
}

MT_TPL_BODY(dict_get)
{
    *out = mt_tpl_dict_get(run, self.as.dict, a[0]);
    return MT_TPL_GIVEN(*out) || mt_tpl_set(out, MT_TPL_GIVEN(a[1]) ? a[1] : mt_tpl_none());
}

/* Values cannot be changed, so a copy is the value itself. */
MT_TPL_BODY(copy)
{
    return mt_tpl_set(out, self);
}

MT_TPL_BODY(sequence_count)
{
    int64_t count = 0;

    for (size_t i = 0; i < self.as.list->count && mt_tpl_charge(run, 1); i++)
        count += mt_tpl_equal(run, self.as.list->at[i], a[0]);
    return mt_tpl_set(out, mt_tpl_int(count));
}

MT_TPL_BODY(sequence_index)
{
    int64_t count = (int64_t)self.as.list->count;
    int64_t begin = mt_tpl_arg_int(run, a[1], 0), end = mt_tpl_arg_int(run, a[2], count);

    begin = begin < 0 ? begin + count : begin;
    end = end < 0 ? end + count : end;
    for (int64_t i = begin < 0 ? 0 : begin; i < end && i < count && mt_tpl_charge(run, 1); i++)
        if (mt_tpl_equal(run, self.as.list->at[i], a[0]))
            return mt_tpl_set(out, mt_tpl_int(i));
    return mt_tpl_fail(run, "the value is not in the %s", mt_tpl_type(self));
}

MT_TPL_BODY(range_count)
{
    return mt_tpl_set(out, mt_tpl_int(mt_tpl_contains(run, self, a[0])));
}

MT_TPL_BODY(int_bit_length)
{
    int64_t value = mt_tpl_as_int(self), bits = 0;

    for (uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value; rest; rest >>= 1)
        bits++;
    return mt_tpl_set(out, mt_tpl_int(bits));
}

MT_TPL_BODY(number_conjugate)
{
    return mt_tpl_pos(run, self, out);
}

MT_TPL_BODY(float_is_integer)
{
    *out = mt_tpl_bool(self.as.real >= -0x1p63 && self.as.real < 0x1p63 ? (double)(int64_t)self.as.real == self.as.real
                                                                        : self.as.real - self.as.real == 0);
    return true;
}

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
    return mt_tpl_set(out, mt_tpl_none());
}

MT_TPL_BODY(loop_cycle)
{
    if (args->count == 0)
        return mt_tpl_fail(run, "no items for cycling given");
    return mt_tpl_set(out, args->at[(size_t)self.as.loop->index0 % args->count]);
}

MT_TPL_BODY(loop_changed)
{
    const mt_tpl_value before = self.as.loop->changed;

    return mt_tpl_set_list(run, &self.as.loop->changed, MT_TPL_TUPLE, args->at, args->count) &&
           mt_tpl_set_bool(run, out, !mt_tpl_equal(run, before, self.as.loop->changed));
}

/* Methods, and the kinds that have them. */
static const struct {
    unsigned kinds;
    mt_tpl_builtin method;
} methods[] = {
    {MT_TPL_KIND(DICT), {"keys", dict_view, MT_TPL_KEYS, 0, 0, {0}}},
    {MT_TPL_KIND(DICT), {"values", dict_view, MT_TPL_VALUES, 0, 0, {0}}},
    {MT_TPL_KIND(DICT), {"items", dict_view, MT_TPL_ITEMS, 0, 0, {0}}},
    {MT_TPL_KIND(DICT), {"get", dict_get, 0, 1, 2, {0}}},
    {MT_TPL_KIND(DICT) | MT_TPL_KIND(LIST), {"copy", copy, 0, 0, 0, {0}}},
    {MT_TPL_KIND(LIST) | MT_TPL_KIND(TUPLE), {"count", sequence_count, 0, 1, 1, {0}}},
    {MT_TPL_KIND(LIST) | MT_TPL_KIND(TUPLE), {"index", sequence_index, 0, 1, 3, {0}}},
    {MT_TPL_KIND(RANGE), {"count", range_count, 0, 1, 1, {0}}},
    {MT_TPL_KIND(BOOL) | MT_TPL_KIND(INT) | MT_TPL_KIND(BIG), {"bit_length", int_bit_length, 0, 0, 0, {0}}},
    {MT_TPL_KIND(BOOL) | MT_TPL_KIND(INT) | MT_TPL_KIND(BIG) | MT_TPL_KIND(FLOAT),
     {"conjugate", number_conjugate, 0, 0, 0, {0}}},
    {MT_TPL_KIND(FLOAT), {"is_integer", float_is_integer, 0, 0, 0, {0}}},
    {MT_TPL_KIND(CYCLER), {"next", cycler_next, 0, 0, 0, {0}}},
    {MT_TPL_KIND(CYCLER), {"reset", cycler_reset, 0, 0, 0, {0}}},
    {MT_TPL_KIND(LOOP), {"cycle", loop_cycle, 0, 0, MT_TPL_ANY, {0}}},
    {MT_TPL_KIND(LOOP), {"changed", loop_changed, 0, 0, MT_TPL_ANY, {0}}},
};

const mt_tpl_builtin *mt_tpl_method_of(mt_tpl_value self, const mt_tpl_str *name)
{
    const mt_tpl_builtin *found = NULL;

    if (self.kind == MT_TPL_STR)
        found = mt_tpl_table_find(mt_tpl_str_methods, name);
    if (self.kind == MT_TPL_STR && !found)
        found = mt_tpl_table_find(mt_tpl_str_class_methods, name);
    for (size_t i = 0; !found && i < MT_COUNT(methods); i++)
        if ((methods[i].kinds >> self.kind & 1) && mt_tpl_str_is(name, methods[i].method.name))
            found = &methods[i].method;
    return found;
}
