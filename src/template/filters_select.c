/* The filters map, select, reject, selectattr and rejectattr: generators that call another filter or a test on each
   item. */
#include "template/builtin.h"
#include "template/iter.h"
#include "template/path.h"
#include "template/repr.h"

typedef struct selection {
    mt_tpl_args args; /* a copy; the first ones name the attribute, and the filter or test */
    bool by_attribute, negate;
} selection;

/* A generator whose state is a selection with a copy of the arguments. */
static bool select_by(mt_tpl_run *run, mt_tpl_value from, mt_tpl_next_fn *next, selection s, mt_tpl_value *out)
{
    mt_tpl_value copy;

    if (!mt_tpl_set_list(run, &copy, MT_TPL_LIST, s.args.at, s.args.count))
        return false;
    s.args.at = copy.as.list->at;
    return mt_tpl_generator(run, from, next, &s, sizeof(s), out);
}

/* Calls the builtin whose name is args->at[off], with the arguments after it. */
static bool call_by_name(mt_tpl_run *run, const mt_tpl_args *args, size_t off, bool is_filter, mt_tpl_value item,
                         mt_tpl_value *out)
{
    mt_tpl_args rest = {.at = args->at + off + 1, .count = args->count - off - 1, .named = args->named};
    mt_tpl_value name = args->at[off];
    const mt_tpl_builtin *builtin = NULL;
    mt_tpl_str *shown;

    if (name.kind == MT_TPL_STR)
        builtin = is_filter ? mt_tpl_filter(name.as.str) : mt_tpl_test(name.as.str);
    if (builtin)
        return mt_tpl_call_builtin(run, builtin, item, &rest, out);
    shown = mt_tpl_repr(run, name);
    return shown && mt_tpl_fail(run, "No %s named %.*s.", is_filter ? "filter" : "test", (int)shown->len, shown->data);
}

/* The next item of the source; a source that is empty, None or undefined has none. */
static mt_tpl_step next_source(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    if (!iter->inner) {
        if (!mt_tpl_truth(iter->source))
            return MT_TPL_END;
        iter->inner = mt_tpl_iterate(run, iter->source);
        if (!iter->inner)
            return MT_TPL_FAILED;
    }
    return mt_tpl_next(run, iter->inner, out);
}

static mt_tpl_step next_mapped(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    const selection *s = iter->state;
    mt_tpl_value item;
    mt_tpl_step step;

    if (!iter->inner && mt_tpl_truth(iter->source) && !s->by_attribute && s->args.count == 0) {
        mt_tpl_fail(run, "map requires a filter argument");
        return MT_TPL_FAILED;
    }
    step = next_source(run, iter, &item);
    if (step != MT_TPL_ITEM)
        return step;
    if (s->by_attribute)
        return mt_tpl_path_get(run, item, s->args.at[0], s->args.at[1], out) ? MT_TPL_ITEM : MT_TPL_FAILED;
    return call_by_name(run, &s->args, 0, true, item, out) ? MT_TPL_ITEM : MT_TPL_FAILED;
}

/* map(attribute="name", default=value): these two become the arguments. */
static bool map_attribute(mt_tpl_run *run, const mt_tpl_dict *named, mt_tpl_value two[2])
{
    for (size_t i = 0; i < named->count; i++) {
        const mt_tpl_str *name = named->at[i].key.as.str;

        if (mt_tpl_str_is(name, "attribute"))
            two[0] = named->at[i].value;
        else if (mt_tpl_str_is(name, "default"))
            two[1] = named->at[i].value;
        else
            return mt_tpl_fail(run, "Unexpected keyword argument '%.*s'", (int)name->len, name->data);
    }
    return true;
}

MT_TPL_BODY(map)
{
    mt_tpl_value two[2] = {0};
    mt_tpl_args pair = {.at = two, .count = 2};
    bool by_attribute = args->count == 0 && MT_TPL_GIVEN(mt_tpl_dict_name(run, args->named, &MT_TPL_LIT("attribute")));
    const selection s = {.args = by_attribute ? pair : *args, .by_attribute = by_attribute};

    return (!by_attribute || map_attribute(run, args->named, two)) && select_by(run, self, next_mapped, s, out);
}

static bool is_selected(mt_tpl_run *run, const selection *s, mt_tpl_value item, bool *out)
{
    size_t off = s->by_attribute;
    mt_tpl_value v = item, answer;

    if (s->by_attribute && !mt_tpl_path_get(run, item, s->args.at[0], (mt_tpl_value){.kind = MT_TPL_MISSING}, &v))
        return false;
    answer = v;
    if (s->args.count > off && !call_by_name(run, &s->args, off, false, v, &answer))
        return false;
    *out = mt_tpl_truth(answer) != s->negate;
    return true;
}

static mt_tpl_step next_selected(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    const selection *s = iter->state;
    mt_tpl_step step;
    bool selected;

    if (!iter->inner && mt_tpl_truth(iter->source) && s->by_attribute && s->args.count == 0) {
        mt_tpl_fail(run, "Missing parameter for attribute name");
        return MT_TPL_FAILED;
    }
    while ((step = next_source(run, iter, out)) == MT_TPL_ITEM) {
        if (!is_selected(run, s, *out, &selected))
            return MT_TPL_FAILED;
        if (selected)
            return MT_TPL_ITEM;
    }
    return step;
}

enum { REJECT = 1, BY_ATTRIBUTE = 2 };

MT_TPL_BODY(choose)
{
    const selection s = {.args = *args, .by_attribute = which & BY_ATTRIBUTE, .negate = which & REJECT};

    return select_by(run, self, next_selected, s, out);
}

const mt_tpl_builtin mt_tpl_select_filters[] = {
    {"map", map, 0, 0, MT_TPL_ANY, {0}},
    {"select", choose, 0, 0, MT_TPL_ANY, {0}},
    {"reject", choose, REJECT, 0, MT_TPL_ANY, {0}},
    {"selectattr", choose, BY_ATTRIBUTE, 0, MT_TPL_ANY, {0}},
    {"rejectattr", choose, BY_ATTRIBUTE | REJECT, 0, MT_TPL_ANY, {0}},
    {0},
};
