/* Filters on anything that can be iterated over. Those that are generators in Jinja2 are generators here. */
#include "template/builtin.h"
#include "template/compare.h"
#include "template/iter.h"
#include "template/number.h"
#include "template/path.h"
#include "template/repr.h"
#include "template/sort.h"
#include "template/text.h"

static const mt_tpl_value nothing = {.kind = MT_TPL_MISSING};

/* The key by which an item is compared. */
static bool key_of(mt_tpl_run *run, mt_tpl_value item, mt_tpl_value attribute, mt_tpl_value fallback, bool any_case,
                   mt_tpl_value *out)
{
    return mt_tpl_path_get(run, item, attribute, fallback, out) && (!any_case || mt_tpl_ignore_case(run, out));
}

MT_TPL_BODY(list)
{
    mt_tpl_items items = {0};

    return mt_tpl_collect(run, self, &items) && mt_tpl_items_end(run, &items, MT_TPL_LIST, out);
}

/* The next item; none: an undefined value. */
static bool next_or(mt_tpl_run *run, mt_tpl_iter *iter, const char *none, mt_tpl_value *out)
{
    mt_tpl_step step = mt_tpl_next(run, iter, out);

    return step == MT_TPL_ITEM || (step == MT_TPL_END && mt_tpl_set_undefined(run, out, none));
}

MT_TPL_BODY(first)
{
    mt_tpl_iter *iter = mt_tpl_iterate(run, self);

    return iter && next_or(run, iter, "No first item, sequence was empty.", out);
}

MT_TPL_BODY(last)
{
    mt_tpl_iter *iter = mt_tpl_reversed(run, self);

    if (!iter)
        return mt_tpl_fail(run, "'%s' object is not reversible", mt_tpl_type(self));
    return next_or(run, iter, "No last item, sequence was empty.", out);
}

MT_TPL_BODY(reverse)
{
    mt_tpl_items items = {0}, back = {0};
    mt_tpl_iter *iter;

    if (self.kind == MT_TPL_STR)
        return mt_tpl_set_str(out, mt_tpl_reverse_text(run, self.as.str));
    iter = mt_tpl_reversed(run, self);
    if (iter)
        return mt_tpl_set(out, (mt_tpl_value){.kind = MT_TPL_ITER, .as.iter = iter});
    if (!mt_tpl_is_iterable(self))
        return mt_tpl_fail(run, "argument must be iterable");
    if (!mt_tpl_collect(run, self, &items))
        return false;
    for (size_t i = items.count; i-- > 0;)
        if (!mt_tpl_items_add(run, &back, items.at[i]))
            return false;
    return mt_tpl_items_end(run, &back, MT_TPL_LIST, out);
}

MT_TPL_BODY(join)
{
    mt_tpl_str *by = &MT_TPL_LIT("");
    mt_tpl_items items = {0};

    if ((MT_TPL_GIVEN(a[0]) && !(by = mt_tpl_text(run, a[0]))) || !mt_tpl_collect(run, self, &items))
        return false;
    for (size_t i = 0; i < items.count; i++)
        if (!mt_tpl_path_get(run, items.at[i], a[1], nothing, &items.at[i]))
            return false;
    return mt_tpl_set_str(out, mt_tpl_join(run, by, items.at, items.count));
}

MT_TPL_BODY(sum)
{
    mt_tpl_items items = {0};
    mt_tpl_value v;

    *out = MT_TPL_GIVEN(a[1]) ? a[1] : mt_tpl_int(0);
    if (out->kind == MT_TPL_STR)
        return mt_tpl_fail(run, "sum() can't sum strings [use ''.join(seq) instead]");
    if (!mt_tpl_collect(run, self, &items))
        return false;
    for (size_t i = 0; i < items.count; i++)
        if (!mt_tpl_path_get(run, items.at[i], a[0], nothing, &v) || !mt_tpl_arithmetic(run, '+', *out, v, out))
            return false;
    return true;
}

MT_TPL_BODY(extreme)
{
    mt_tpl_items items = {0};
    mt_tpl_value best, key;

    if (!mt_tpl_collect(run, self, &items))
        return false;
    if (items.count == 0)
        return mt_tpl_set_undefined(run, out, "No aggregated item, sequence was empty.");
    *out = items.at[0];
    if (!key_of(run, items.at[0], a[1], nothing, !mt_tpl_truth(a[0]), &best))
        return false;
    for (size_t i = 1; i < items.count; i++) {
        if (!key_of(run, items.at[i], a[1], nothing, !mt_tpl_truth(a[0]), &key))
            return false;
        if (mt_tpl_compare(run, which, key, best)) {
            *out = items.at[i];
            best = key;
        }
    }
    return !run->failed;
}

/* A list of keys by which an item is sorted; attribute="a,b" names more than one. */
static bool sort_key(mt_tpl_run *run, mt_tpl_value item, mt_tpl_value attribute, bool any_case, mt_tpl_value *out)
{
    mt_tpl_items paths = {0};

    if (attribute.kind == MT_TPL_STR ? !mt_tpl_split(run, attribute.as.str, &MT_TPL_LIT(","), -1, &paths)
                                     : !mt_tpl_items_add(run, &paths, attribute))
        return false;
    for (size_t i = 0; i < paths.count; i++)
        if (!key_of(run, item, paths.at[i], nothing, any_case, &paths.at[i]))
            return false;
    return mt_tpl_items_end(run, &paths, MT_TPL_LIST, out);
}

MT_TPL_BODY(sort)
{
    mt_tpl_items items = {0}, keys = {0};
    mt_tpl_value key;

    if (!mt_tpl_collect(run, self, &items))
        return false;
    for (size_t i = 0; i < items.count; i++)
        if (!sort_key(run, items.at[i], a[2], !mt_tpl_truth(a[1]), &key) || !mt_tpl_items_add(run, &keys, key))
            return false;
    return mt_tpl_sort(run, items.at, keys.at, items.count, mt_tpl_truth(a[0])) &&
           mt_tpl_items_end(run, &items, MT_TPL_LIST, out);
}

MT_TPL_BODY(dictsort)
{
    mt_tpl_str *by = mt_tpl_arg_str(run, a[1], &MT_TPL_LIT("key"));
    mt_tpl_items items = {0}, keys = {0};
    mt_tpl_value key;

    if (!mt_tpl_str_is(by, "key") && !mt_tpl_str_is(by, "value"))
        return mt_tpl_fail(run, "You can only sort by either \"key\" or \"value\"");
    if (self.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, self);
    if (self.kind != MT_TPL_DICT)
        return mt_tpl_fail(run, "'%s' object has no attribute 'items'", mt_tpl_type(self));
    if (!mt_tpl_collect_pairs(run, self.as.dict, &items))
        return false;
    for (size_t i = 0; i < items.count; i++) {
        key = items.at[i].as.list->at[mt_tpl_str_is(by, "value")];
        if ((!mt_tpl_truth(a[0]) && !mt_tpl_ignore_case(run, &key)) || !mt_tpl_items_add(run, &keys, key))
            return false;
    }
    return mt_tpl_sort(run, items.at, keys.at, items.count, mt_tpl_truth(a[2])) &&
           mt_tpl_items_end(run, &items, MT_TPL_LIST, out);
}

static bool set_group(mt_tpl_run *run, mt_tpl_value grouper, mt_tpl_items *members, mt_tpl_value *out)
{
    mt_tpl_value list_of;
    mt_tpl_list *group;

    if (!mt_tpl_items_end(run, members, MT_TPL_LIST, &list_of) || !mt_tpl_set_tuple2(run, out, grouper, list_of))
        return false;
    group = (mt_tpl_list *)(uintptr_t)out->as.list; /* it was made just now */
    group->group = true;
    return true;
}

MT_TPL_BODY(groupby)
{
    bool any_case = !mt_tpl_truth(a[2]);
    mt_tpl_items items = {0}, keys = {0}, members = {0}, groups = {0};
    mt_tpl_value key, group;

    if (!mt_tpl_collect(run, self, &items))
        return false;
    for (size_t i = 0; i < items.count; i++)
        if (!key_of(run, items.at[i], a[0], a[1], any_case, &key) || !mt_tpl_items_add(run, &keys, key))
            return false;
    if (!mt_tpl_sort(run, items.at, keys.at, items.count, false) ||
        !mt_tpl_sort(run, keys.at, keys.at, keys.count, false))
        return false;
    for (size_t i = 0; i < items.count; i++) {
        if (!mt_tpl_items_add(run, &members, items.at[i]))
            return false;
        if (i + 1 < items.count && mt_tpl_equal(run, keys.at[i], keys.at[i + 1]))
            continue;
        if (!key_of(run, members.at[0], a[0], a[1], false, &key) ||
            !set_group(run, any_case ? key : keys.at[i], &members, &group) || !mt_tpl_items_add(run, &groups, group))
            return false;
        members = (mt_tpl_items){0};
    }
    return mt_tpl_items_end(run, &groups, MT_TPL_LIST, out);
}

static bool make_items(mt_tpl_run *run, mt_tpl_value from, const mt_tpl_value *a, mt_tpl_items *out)
{
    (void)a;
    if (from.kind == MT_TPL_UNDEFINED)
        return true;
    if (from.kind != MT_TPL_DICT)
        return mt_tpl_fail(run, "Can only get item pairs from a mapping.");
    return mt_tpl_collect_pairs(run, from.as.dict, out);
}

static bool add_part(mt_tpl_run *run, mt_tpl_items *part, mt_tpl_items *out)
{
    mt_tpl_value v;

    if (!mt_tpl_items_end(run, part, MT_TPL_LIST, &v) || !mt_tpl_items_add(run, out, v))
        return false;
    *part = (mt_tpl_items){0};
    return true;
}

static bool fill_up(mt_tpl_run *run, mt_tpl_items *part, mt_tpl_value with, int64_t count)
{
    while (MT_TPL_GIVEN(with) && with.kind != MT_TPL_NONE && (int64_t)part->count < count)
        if (!mt_tpl_charge(run, 1) || !mt_tpl_items_add(run, part, with))
            return false;
    return true;
}

static bool make_batches(mt_tpl_run *run, mt_tpl_value from, const mt_tpl_value *a, mt_tpl_items *out)
{
    mt_tpl_items all = {0}, part = {0};
    const int64_t size = mt_tpl_arg_int(run, a[0], 0);

    if (!mt_tpl_collect(run, from, &all))
        return false;
    for (size_t i = 0; i < all.count; i++)
        if (((int64_t)part.count == size && !add_part(run, &part, out)) || !mt_tpl_items_add(run, &part, all.at[i]))
            return false;
    return part.count == 0 || (fill_up(run, &part, a[1], size) && add_part(run, &part, out));
}

static bool make_slices(mt_tpl_run *run, mt_tpl_value from, const mt_tpl_value *a, mt_tpl_items *out)
{
    mt_tpl_items all = {0}, part = {0};
    int64_t slices = mt_tpl_arg_int(run, a[0], 0), each, extra;
    size_t at = 0;

    if (!mt_tpl_collect(run, from, &all))
        return false;
    if (slices == 0)
        return mt_tpl_fail(run, "integer division or modulo by zero");
    each = (int64_t)all.count / slices;
    extra = (int64_t)all.count % slices;
    for (int64_t n = 0; n < slices; n++) {
        if (!mt_tpl_charge(run, 1))
            return false;
        for (int64_t i = 0; i < each + (n < extra); i++)
            if (!mt_tpl_items_add(run, &part, all.at[at++]))
                return false;
        if ((n >= extra && !fill_up(run, &part, a[1], (int64_t)part.count + 1)) || !add_part(run, &part, out))
            return false;
    }
    return true;
}

enum { ITEMS, BATCHES, SLICES };

static bool (*const makers[])(mt_tpl_run *run, mt_tpl_value from, const mt_tpl_value *a, mt_tpl_items *out) = {
    [ITEMS] = make_items, [BATCHES] = make_batches, [SLICES] = make_slices};

/* A generator that does all its work when its first item is asked for. which: index in makers; a: arguments of the
   filter. */
typedef struct deferred {
    unsigned which;
    mt_tpl_value a[2];
} deferred;

static mt_tpl_step next_deferred(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    const deferred *d = iter->state;
    mt_tpl_items made = {0};
    mt_tpl_value items;

    if (!iter->inner && makers[d->which](run, iter->source, d->a, &made) &&
        mt_tpl_items_end(run, &made, MT_TPL_LIST, &items))
        iter->inner = mt_tpl_iterate(run, items);
    return iter->inner ? mt_tpl_next(run, iter->inner, out) : MT_TPL_FAILED;
}

MT_TPL_BODY(defer)
{
    const deferred d = {.which = which, .a = {a[0], a[1]}};

    return mt_tpl_generator(run, self, next_deferred, &d, sizeof(d), out);
}

/* The state of the filter unique, which passes on items as it finds them to be new. */
typedef struct uniqueness {
    mt_tpl_value attribute;
    bool any_case;
    mt_tpl_dict *seen;
} uniqueness;

static mt_tpl_step next_unique(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    uniqueness *u = iter->state;
    mt_tpl_value key;
    mt_tpl_step step;

    if (!iter->inner && !(iter->inner = mt_tpl_iterate(run, iter->source)))
        return MT_TPL_FAILED;
    while ((step = mt_tpl_next(run, iter->inner, out)) == MT_TPL_ITEM) {
        if (!key_of(run, *out, u->attribute, nothing, u->any_case, &key))
            return MT_TPL_FAILED;
        if (!MT_TPL_GIVEN(mt_tpl_dict_get(run, u->seen, key)))
            return mt_tpl_dict_set(run, u->seen, key, mt_tpl_none()) ? MT_TPL_ITEM : MT_TPL_FAILED;
    }
    return step;
}

MT_TPL_BODY(unique)
{
    const uniqueness u = {.attribute = a[1], .any_case = !mt_tpl_truth(a[0]), .seen = mt_tpl_dict_new(run, 0)};

    return u.seen && mt_tpl_generator(run, self, next_unique, &u, sizeof(u), out);
}

const mt_tpl_builtin mt_tpl_sequence_filters[] = {
    {"batch", defer, BATCHES, 1, 2, {"linecount", "fill_with"}},
    {"dictsort", dictsort, 0, 0, 3, {"case_sensitive", "by", "reverse"}},
    {"first", first, 0, 0, 0, {0}},
    {"groupby", groupby, 0, 1, 3, {"attribute", "default", "case_sensitive"}},
    {"items", defer, ITEMS, 0, 0, {0}},
    {"join", join, 0, 0, 2, {"d", "attribute"}},
    {"last", last, 0, 0, 0, {0}},
    {"list", list, 0, 0, 0, {0}},
    {"max", extreme, '>', 0, 2, {"case_sensitive", "attribute"}},
    {"min", extreme, '<', 0, 2, {"case_sensitive", "attribute"}},
    {"reverse", reverse, 0, 0, 0, {0}},
    {"slice", defer, SLICES, 1, 2, {"slices", "fill_with"}},
    {"sort", sort, 0, 0, 3, {"reverse", "case_sensitive", "attribute"}},
    {"sum", sum, 0, 0, 2, {"attribute", "start"}},
    {"unique", unique, 0, 0, 2, {"case_sensitive", "attribute"}},
    {0},
};
