/* See iter.h. */
#include "template/iter.h"

#include "base/utf8.h"
#include "template/limits.h"

static mt_tpl_step next_char(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    const mt_tpl_str *s = iter->source.as.str;
    size_t at = iter->at;

    if (at == s->len)
        return MT_TPL_END;
    iter->at += mt_utf8_size(s->data[at]);
    if (!mt_tpl_set_str(out, mt_tpl_str_sub(run, s, at, iter->at)))
        return MT_TPL_FAILED;
    out->as.str->markup = false;
    return MT_TPL_ITEM;
}

static mt_tpl_step next_char_back(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    const mt_tpl_str *s = iter->source.as.str;
    size_t end = s->len - iter->at, begin;

    if (end == 0)
        return MT_TPL_END;
    begin = mt_utf8_before(s->data, end);
    iter->at = s->len - begin;
    return mt_tpl_set_str(out, mt_tpl_str_sub(run, s, begin, end)) ? MT_TPL_ITEM : MT_TPL_FAILED;
}

/* The count of items; an undefined value has none. */
static size_t count_of(mt_tpl_value source)
{
    size_t count = 0;

    mt_tpl_length(source, &count);
    return count;
}

static mt_tpl_step entry(mt_tpl_run *run, mt_tpl_value source, size_t i, mt_tpl_value *out)
{
    mt_tpl_part part = source.kind == MT_TPL_VIEW ? source.as.view->part : MT_TPL_KEYS;
    const mt_tpl_dict *d = source.kind == MT_TPL_VIEW ? source.as.view->dict : source.as.dict;

    if (part == MT_TPL_ITEMS)
        return mt_tpl_set_tuple2(run, out, d->at[i].key, d->at[i].value) ? MT_TPL_ITEM : MT_TPL_FAILED;
    *out = part == MT_TPL_KEYS ? d->at[i].key : d->at[i].value;
    return MT_TPL_ITEM;
}

/* Item number i of a list, tuple, dict, view or range. */
static mt_tpl_step item(mt_tpl_run *run, mt_tpl_value source, size_t i, mt_tpl_value *out)
{
    if (source.kind == MT_TPL_DICT || source.kind == MT_TPL_VIEW)
        return entry(run, source, i, out);
    *out = source.kind == MT_TPL_RANGE ? mt_tpl_int(mt_tpl_range_at(source.as.range, i)) : source.as.list->at[i];
    return MT_TPL_ITEM;
}

static mt_tpl_step next_item(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    return iter->at == count_of(iter->source) ? MT_TPL_END : item(run, iter->source, iter->at++, out);
}

static mt_tpl_step next_item_back(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    const size_t count = count_of(iter->source);

    return iter->at == count ? MT_TPL_END : item(run, iter->source, count - ++iter->at, out);
}

/* Kinds of values that have items, each with Python's name of the type that goes through them backwards. */
static const char *const reversed_types[MT_TPL_METHOD + 1] = {
    [MT_TPL_UNDEFINED] = "reversed",
    [MT_TPL_STR] = "reversed",
    [MT_TPL_LIST] = "list_reverseiterator",
    [MT_TPL_TUPLE] = "reversed",
    [MT_TPL_DICT] = "dict_reversekeyiterator",
    [MT_TPL_RANGE] = "range_iterator",
    [MT_TPL_VIEW] = "dict_reverseitemiterator",
};

static mt_tpl_iter *new_iter(mt_tpl_run *run, mt_tpl_next_fn *next, const char *type, mt_tpl_value source)
{
    return mt_tpl_copy(run, &(mt_tpl_iter){.next = next, .type = type, .source = source}, sizeof(mt_tpl_iter));
}

bool mt_tpl_is_iterable(mt_tpl_value v)
{
    return v.kind == MT_TPL_ITER || v.kind == MT_TPL_LOOP || reversed_types[v.kind];
}

mt_tpl_iter *mt_tpl_iterate(mt_tpl_run *run, mt_tpl_value v)
{
    if (v.kind == MT_TPL_ITER)
        return v.as.iter;
    if (reversed_types[v.kind])
        return new_iter(run, v.kind == MT_TPL_STR ? next_char : next_item, "iterator", v);
    mt_tpl_fail(run, "'%s' object is not iterable", mt_tpl_type(v));
    return NULL;
}

mt_tpl_step mt_tpl_next(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    mt_tpl_step step = MT_TPL_END;

    if (!mt_tpl_enter(run))
        return MT_TPL_FAILED;
    if (!iter->done)
        step = iter->next(run, iter, out);
    iter->done = step != MT_TPL_ITEM;
    mt_tpl_leave(run);
    return step;
}

mt_tpl_iter *mt_tpl_reversed(mt_tpl_run *run, mt_tpl_value v)
{
    if (!reversed_types[v.kind])
        return NULL;
    return new_iter(run, v.kind == MT_TPL_STR ? next_char_back : next_item_back, reversed_types[v.kind], v);
}

bool mt_tpl_generator(mt_tpl_run *run, mt_tpl_value from, mt_tpl_next_fn *next, const void *state, size_t size,
                      mt_tpl_value *out)
{
    const mt_tpl_iter iter = {
        .next = next, .type = "generator", .source = from, .state = mt_tpl_copy(run, state, size)};

    return iter.state && mt_tpl_set_new(run, out, MT_TPL_ITER, &iter, sizeof(iter));
}

bool mt_tpl_collect(mt_tpl_run *run, mt_tpl_value v, mt_tpl_items *items)
{
    mt_tpl_iter *iter = mt_tpl_iterate(run, v);
    mt_tpl_value item;
    mt_tpl_step step;

    if (!iter)
        return false;
    while ((step = mt_tpl_next(run, iter, &item)) == MT_TPL_ITEM)
        if (!mt_tpl_items_add(run, items, item))
            return false;
    return step == MT_TPL_END;
}

bool mt_tpl_collect_pairs(mt_tpl_run *run, const mt_tpl_dict *dict, mt_tpl_items *items)
{
    const mt_tpl_view view = {.dict = dict, .part = MT_TPL_ITEMS};

    return mt_tpl_collect(run, (mt_tpl_value){.kind = MT_TPL_VIEW, .as.view = &view}, items);
}

bool mt_tpl_unpack(mt_tpl_run *run, mt_tpl_value v, size_t count, mt_tpl_value *out)
{
    mt_tpl_iter *iter;
    mt_tpl_step step = MT_TPL_ITEM;
    mt_tpl_value extra;
    size_t got = 0;

    if (!mt_tpl_is_iterable(v))
        return mt_tpl_fail(run, "cannot unpack non-iterable %s object", mt_tpl_type(v));
    iter = mt_tpl_iterate(run, v);
    if (!iter)
        return false;
    while (got < count && (step = mt_tpl_next(run, iter, &out[got])) == MT_TPL_ITEM)
        got++;
    if (step == MT_TPL_FAILED)
        return false;
    if (got < count)
        return mt_tpl_fail(run, "not enough values to unpack (expected %zu, got %zu)", count, got);
    step = mt_tpl_next(run, iter, &extra);
    if (step == MT_TPL_ITEM)
        return mt_tpl_fail(run, "too many values to unpack (expected %zu)", count);
    return step == MT_TPL_END;
}

mt_tpl_range mt_tpl_range_of(int64_t start, int64_t stop, int64_t step)
{
    uint64_t distance = 0, stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;

    if (step > 0 ? stop > start : stop < start)
        distance = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    return (mt_tpl_range){
        .start = start, .stop = stop, .step = step, .count = distance / stride + (distance % stride != 0)};
}

bool mt_tpl_set_range(mt_tpl_run *run, mt_tpl_value *out, int64_t start, int64_t stop, int64_t step)
{
    const mt_tpl_range range = mt_tpl_range_of(start, stop, step);

    if (range.count > MT_LIMIT_TEMPLATE_RANGE)
        return mt_tpl_fail_limit(run, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).",
                                 MT_LIMIT_TEMPLATE_RANGE);
    return mt_tpl_set_new(run, out, MT_TPL_RANGE, &range, sizeof(range));
}

int64_t mt_tpl_range_at(const mt_tpl_range *range, size_t i)
{
    return (int64_t)((uint64_t)range->start + (uint64_t)i * (uint64_t)range->step);
}
