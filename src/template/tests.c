/* The tests: `value is name`. */
#include "template/builtin.h"
#include "template/compare.h"
#include "template/format.h"
#include "template/iter.h"
#include "template/number.h"
#include "template/repr.h"
#include "template/text.h"

/* odd, even and divisibleby; without an argument the divisor is 2. */
MT_TPL_BODY(is_remainder)
{
    mt_tpl_value rest;

    return mt_tpl_percent(run, self, MT_TPL_GIVEN(a[0]) ? a[0] : mt_tpl_int(2), &rest) &&
           mt_tpl_set_bool(run, out, mt_tpl_equal(run, rest, mt_tpl_int(which)));
}

enum {
    INTEGERS = MT_TPL_KIND(INT) | MT_TPL_KIND(BIG),
    NUMBERS = INTEGERS | MT_TPL_KIND(BOOL) | MT_TPL_KIND(FLOAT),
    /* Types that have a length and items in Python; an undefined value has both. */
    SEQUENCES = MT_TPL_KIND(STR) | MT_TPL_KIND(LIST) | MT_TPL_KIND(TUPLE) | MT_TPL_KIND(DICT) | MT_TPL_KIND(RANGE) |
                MT_TPL_KIND(UNDEFINED),
    CALLABLES = MT_TPL_KIND(UNDEFINED) | MT_TPL_KIND(MACRO) | MT_TPL_KIND(BLOCK) | MT_TPL_KIND(LOOP) |
                MT_TPL_KIND(JOINER) | MT_TPL_KIND(FUNCTION) | MT_TPL_KIND(METHOD),
};

MT_TPL_BODY(is_kind)
{
    return mt_tpl_set_bool(run, out, which >> self.kind & 1);
}

MT_TPL_BODY(is_bool)
{
    return mt_tpl_set_bool(run, out, self.kind == MT_TPL_BOOL && self.as.boolean == which);
}

MT_TPL_BODY(is_iterable)
{
    return mt_tpl_set_bool(run, out, mt_tpl_is_iterable(self));
}

MT_TPL_BODY(is_sameas)
{
    return (self.kind != MT_TPL_STR || mt_tpl_charge_bytes(run, self.as.str->len)) &&
           mt_tpl_set_bool(run, out, mt_tpl_identical(self, a[0]));
}

MT_TPL_BODY(is_escaped)
{
    return mt_tpl_set_bool(run, out, self.kind == MT_TPL_STR && self.as.str->markup);
}

MT_TPL_BODY(is_case)
{
    mt_tpl_str *text = mt_tpl_text(run, self);

    return text && mt_tpl_charge(run, text->len / 4) &&
           mt_tpl_set_bool(run, out, mt_tpl_is_all_case(text, which == MT_TPL_UPPER));
}

MT_TPL_BODY(is_filter)
{
    return mt_tpl_set_bool(run, out, self.kind == MT_TPL_STR && mt_tpl_filter(self.as.str));
}

MT_TPL_BODY(is_test)
{
    return mt_tpl_set_bool(run, out, self.kind == MT_TPL_STR && mt_tpl_test(self.as.str));
}

MT_TPL_BODY(is_compared)
{
    return mt_tpl_set_bool(run, out, mt_tpl_compare(run, which, self, a[0]));
}

static const mt_tpl_builtin tests[] = {
    {"odd", is_remainder, 1, 0, 0, {0}},
    {"even", is_remainder, 0, 0, 0, {0}},
    {"divisibleby", is_remainder, 0, 1, 1, {"num"}},
    {"defined", is_kind, ~MT_TPL_KIND(UNDEFINED), 0, 0, {0}},
    {"undefined", is_kind, MT_TPL_KIND(UNDEFINED), 0, 0, {0}},
    {"none", is_kind, MT_TPL_KIND(NONE), 0, 0, {0}},
    {"boolean", is_kind, MT_TPL_KIND(BOOL), 0, 0, {0}},
    {"true", is_bool, true, 0, 0, {0}},
    {"false", is_bool, false, 0, 0, {0}},
    {"integer", is_kind, INTEGERS, 0, 0, {0}},
    {"float", is_kind, MT_TPL_KIND(FLOAT), 0, 0, {0}},
    {"number", is_kind, NUMBERS, 0, 0, {0}},
    {"string", is_kind, MT_TPL_KIND(STR), 0, 0, {0}},
    {"mapping", is_kind, MT_TPL_KIND(DICT), 0, 0, {0}},
    {"sequence", is_kind, SEQUENCES, 0, 0, {0}},
    {"iterable", is_iterable, 0, 0, 0, {0}},
    {"callable", is_kind, CALLABLES, 0, 0, {0}},
    {"sameas", is_sameas, 0, 1, 1, {"other"}},
    {"escaped", is_escaped, 0, 0, 0, {0}},
    {"lower", is_case, MT_TPL_LOWER, 0, 0, {0}},
    {"upper", is_case, MT_TPL_UPPER, 0, 0, {0}},
    {"filter", is_filter, 0, 0, 0, {0}},
    {"test", is_test, 0, 0, 0, {0}},
    {"in", is_compared, MT_TPL_IN, 1, 1, {"seq"}},
    {"==", is_compared, MT_TPL_EQ, 1, 1, {0}},
    {"eq", is_compared, MT_TPL_EQ, 1, 1, {0}},
    {"equalto", is_compared, MT_TPL_EQ, 1, 1, {0}},
    {"!=", is_compared, MT_TPL_NE, 1, 1, {0}},
    {"ne", is_compared, MT_TPL_NE, 1, 1, {0}},
    {"<", is_compared, '<', 1, 1, {0}},
    {"lt", is_compared, '<', 1, 1, {0}},
    {"lessthan", is_compared, '<', 1, 1, {0}},
    {"<=", is_compared, MT_TPL_LE, 1, 1, {0}},
    {"le", is_compared, MT_TPL_LE, 1, 1, {0}},
    {">", is_compared, '>', 1, 1, {0}},
    {"gt", is_compared, '>', 1, 1, {0}},
    {"greaterthan", is_compared, '>', 1, 1, {0}},
    {">=", is_compared, MT_TPL_GE, 1, 1, {0}},
    {"ge", is_compared, MT_TPL_GE, 1, 1, {0}},
    {0},
};

const mt_tpl_builtin *mt_tpl_test(const mt_tpl_str *name)
{
    return mt_tpl_table_find(tests, name);
}
