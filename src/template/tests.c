/* Tests: `value is name`. */
#include "template/builtin.h"
#include "template/compare.h"
#include "template/iter.h"
#include "template/methods.h"
#include "template/number.h"
#include "template/repr.h"

static bool answer(mt_tpl_value *out, bool is)
{
    *out = mt_tpl_bool(is);
    return true;
}

static bool remainder_is(mt_tpl_run *run, mt_tpl_value v, mt_tpl_value by, int64_t wanted, mt_tpl_value *out)
{
    mt_tpl_value rest;
    bool same;

    if (!mt_tpl_mod(run, v, by, &rest) || !mt_tpl_equal(run, rest, mt_tpl_int(wanted), &same))
        return false;
    return answer(out, same);
}

MT_TPL_BODY(is_odd)
{
    return remainder_is(run, self, mt_tpl_int(2), 1, out);
}

MT_TPL_BODY(is_even)
{
    return remainder_is(run, self, mt_tpl_int(2), 0, out);
}

MT_TPL_BODY(is_divisibleby)
{
    return remainder_is(run, self, a[0], 0, out);
}

MT_TPL_BODY(is_defined)
{
    return answer(out, self.kind != MT_TPL_UNDEFINED);
}

MT_TPL_BODY(is_undefined)
{
    return answer(out, self.kind == MT_TPL_UNDEFINED);
}

MT_TPL_BODY(is_none)
{
    return answer(out, self.kind == MT_TPL_NONE);
}

MT_TPL_BODY(is_boolean)
{
    return answer(out, self.kind == MT_TPL_BOOL);
}

MT_TPL_BODY(is_true)
{
    return answer(out, self.kind == MT_TPL_BOOL && self.as.boolean);
}

MT_TPL_BODY(is_false)
{
    return answer(out, self.kind == MT_TPL_BOOL && !self.as.boolean);
}

MT_TPL_BODY(is_integer)
{
    return answer(out, self.kind == MT_TPL_INT || self.kind == MT_TPL_BIG);
}

MT_TPL_BODY(is_float)
{
    return answer(out, self.kind == MT_TPL_FLOAT);
}

MT_TPL_BODY(is_number)
{
    return answer(out, MT_TPL_IS_NUMBER(self));
}

MT_TPL_BODY(is_string)
{
    return answer(out, self.kind == MT_TPL_STR);
}

MT_TPL_BODY(is_mapping)
{
    return answer(out, self.kind == MT_TPL_DICT);
}

/* What has a length and items, as Python sees it; an undefined value has both. */
MT_TPL_BODY(is_sequence)
{
    switch (self.kind) {
    case MT_TPL_STR:
    case MT_TPL_LIST:
    case MT_TPL_TUPLE:
    case MT_TPL_DICT:
    case MT_TPL_RANGE:
    case MT_TPL_UNDEFINED: return answer(out, true);
    default: return answer(out, false);
    }
}

MT_TPL_BODY(is_iterable)
{
    return answer(out, mt_tpl_is_iterable(self));
}

MT_TPL_BODY(is_callable)
{
    switch (self.kind) {
    case MT_TPL_UNDEFINED:
    case MT_TPL_MACRO:
    case MT_TPL_BLOCK:
    case MT_TPL_LOOP:
    case MT_TPL_JOINER:
    case MT_TPL_FUNCTION:
    case MT_TPL_METHOD: return answer(out, true);
    default: return answer(out, false);
    }
}

MT_TPL_BODY(is_sameas)
{
    return (self.kind != MT_TPL_STR || mt_tpl_charge_bytes(run, self.as.str->len)) &&
           answer(out, mt_tpl_identical(self, a[0]));
}

MT_TPL_BODY(is_escaped)
{
    return answer(out, self.kind == MT_TPL_STR && self.as.str->markup);
}

static bool is_case(mt_tpl_run *run, mt_tpl_value v, bool upper, mt_tpl_value *out)
{
    mt_tpl_str *text = mt_tpl_text(run, v);

    return text && mt_tpl_charge(run, text->len / 4) && answer(out, mt_tpl_is_all_case(text, upper));
}

MT_TPL_BODY(is_lower)
{
    return is_case(run, self, false, out);
}

MT_TPL_BODY(is_upper)
{
    return is_case(run, self, true, out);
}

MT_TPL_BODY(is_filter)
{
    return answer(out, self.kind == MT_TPL_STR && mt_tpl_filter(self.as.str->data, self.as.str->len));
}

MT_TPL_BODY(is_test)
{
    return answer(out, self.kind == MT_TPL_STR && mt_tpl_test(self.as.str->data, self.as.str->len));
}

MT_TPL_BODY(is_in)
{
    bool found;

    return mt_tpl_contains(run, a[0], self, &found) && answer(out, found);
}

MT_TPL_BODY(is_equal)
{
    bool same;

    return mt_tpl_equal(run, self, a[0], &same) && answer(out, same);
}

MT_TPL_BODY(is_unequal)
{
    bool same;

    return mt_tpl_equal(run, self, a[0], &same) && answer(out, !same);
}

static bool is_ordered(mt_tpl_run *run, mt_tpl_order op, mt_tpl_value self, mt_tpl_value other, mt_tpl_value *out)
{
    bool holds;

    return mt_tpl_ordered(run, op, self, other, &holds) && answer(out, holds);
}

MT_TPL_BODY(is_less)
{
    return is_ordered(run, MT_TPL_LT, self, a[0], out);
}

MT_TPL_BODY(is_at_most)
{
    return is_ordered(run, MT_TPL_LE, self, a[0], out);
}

MT_TPL_BODY(is_greater)
{
    return is_ordered(run, MT_TPL_GT, self, a[0], out);
}

MT_TPL_BODY(is_at_least)
{
    return is_ordered(run, MT_TPL_GE, self, a[0], out);
}

static const mt_tpl_builtin tests[] = {
    {"odd", is_odd, 0, 0, {0}},
    {"even", is_even, 0, 0, {0}},
    {"divisibleby", is_divisibleby, 1, 1, {"num"}},
    {"defined", is_defined, 0, 0, {0}},
    {"undefined", is_undefined, 0, 0, {0}},
    {"none", is_none, 0, 0, {0}},
    {"boolean", is_boolean, 0, 0, {0}},
    {"true", is_true, 0, 0, {0}},
    {"false", is_false, 0, 0, {0}},
    {"integer", is_integer, 0, 0, {0}},
    {"float", is_float, 0, 0, {0}},
    {"number", is_number, 0, 0, {0}},
    {"string", is_string, 0, 0, {0}},
    {"mapping", is_mapping, 0, 0, {0}},
    {"sequence", is_sequence, 0, 0, {0}},
    {"iterable", is_iterable, 0, 0, {0}},
    {"callable", is_callable, 0, 0, {0}},
    {"sameas", is_sameas, 1, 1, {"other"}},
    {"escaped", is_escaped, 0, 0, {0}},
    {"lower", is_lower, 0, 0, {0}},
    {"upper", is_upper, 0, 0, {0}},
    {"filter", is_filter, 0, 0, {0}},
    {"test", is_test, 0, 0, {0}},
    {"in", is_in, 1, 1, {"seq"}},
    {"==", is_equal, 1, 1, {0}},
    {"eq", is_equal, 1, 1, {0}},
    {"equalto", is_equal, 1, 1, {0}},
    {"!=", is_unequal, 1, 1, {0}},
    {"ne", is_unequal, 1, 1, {0}},
    {"<", is_less, 1, 1, {0}},
    {"lt", is_less, 1, 1, {0}},
    {"lessthan", is_less, 1, 1, {0}},
    {"<=", is_at_most, 1, 1, {0}},
    {"le", is_at_most, 1, 1, {0}},
    {">", is_greater, 1, 1, {0}},
    {"gt", is_greater, 1, 1, {0}},
    {"greaterthan", is_greater, 1, 1, {0}},
    {">=", is_at_least, 1, 1, {0}},
    {"ge", is_at_least, 1, 1, {0}},
    {0},
};

const mt_tpl_builtin *mt_tpl_test(const char *name, size_t len)
{
    return mt_tpl_table_find(tests, name, len);
}
