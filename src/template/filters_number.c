/* Filters that give numbers, and some that suit any value. */
#include <math.h>

#include "template/attr.h"
#include "template/builtin.h"
#include "template/loop.h"
#include "template/number.h"

MT_TPL_BODY(absolute)
{
    bool negative;

    if (!MT_TPL_IS_NUMBER(self))
        return mt_tpl_fail(run, "bad operand type for abs(): '%s'", mt_tpl_type(self));
    if (self.kind == MT_TPL_BIG)
        negative = self.as.str->data[0] == '-';
    else
        negative = self.kind == MT_TPL_FLOAT ? signbit(self.as.real) : mt_tpl_as_int(self) < 0;
    return negative ? mt_tpl_neg(run, self, out) : mt_tpl_pos(run, self, out);
}

static bool or_default(mt_tpl_value *out, mt_tpl_value given, mt_tpl_value otherwise)
{
    return mt_tpl_set(out, MT_TPL_GIVEN(given) ? given : otherwise);
}

/* int(text), or else int(float(text)). *found: it is a number at all. */
static bool text_to_int(mt_tpl_run *run, const mt_tpl_str *s, int64_t base, int64_t *out, bool *found)
{
    double d;
    bool huge;

    *found = (base == 0 || (base >= 2 && base <= 36)) && mt_tpl_parse_int(s, base, out, &huge);
    if (*found)
        return !huge || mt_tpl_fail_huge(run);
    *found = mt_tpl_parse_float(s, &d) && isfinite(d);
    return !*found || mt_tpl_float_to_int(run, d, out);
}

MT_TPL_BODY(to_int)
{
    int64_t base = 10, value = 0;
    bool found = true;

    if (MT_TPL_GIVEN(a[1]))
        base = MT_TPL_IS_INT(a[1]) ? mt_tpl_as_int(a[1]) : -1; /* what is no base: no text is a number in it */
    if (self.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, self);
    if (MT_TPL_IS_INT(self) || self.kind == MT_TPL_BIG)
        return mt_tpl_pos(run, self, out);
    if (self.kind == MT_TPL_STR) {
        if (!text_to_int(run, self.as.str, base, &value, &found))
            return false;
    } else {
        found = self.kind == MT_TPL_FLOAT && isfinite(self.as.real);
        if (found && !mt_tpl_float_to_int(run, self.as.real, &value))
            return false;
    }
    return found ? mt_tpl_set(out, mt_tpl_int(value)) : or_default(out, a[0], mt_tpl_int(0));
}

MT_TPL_BODY(to_float)
{
    double value;

    if (self.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, self);
    if (MT_TPL_IS_NUMBER(self))
        value = mt_tpl_as_float(self);
    else if (self.kind != MT_TPL_STR || !mt_tpl_parse_float(self.as.str, &value))
        return or_default(out, a[0], mt_tpl_float(0));
    return mt_tpl_set(out, mt_tpl_float(value));
}

/* round() of an integer: to a power of ten where the precision is negative, ties to even. */
static bool round_int(mt_tpl_run *run, int64_t value, int64_t precision, mt_tpl_value *out)
{
    int64_t unit = 1, rest, down;

    if (precision >= 0)
        return mt_tpl_set(out, mt_tpl_int(value));
    for (; precision < 0; precision++)
        if (MT_MUL_OVERFLOWS(unit, (int64_t)10, &unit))
            return mt_tpl_set(out, mt_tpl_int(0));
    rest = ((value % unit) + unit) % unit;
    if (MT_SUB_OVERFLOWS(value, rest, &down))
        return mt_tpl_fail_huge(run);
    if (rest > unit / 2 || (rest == unit / 2 && (down / unit) % 2 != 0))
        return mt_tpl_arithmetic(run, '+', mt_tpl_int(down), mt_tpl_int(unit), out);
    return mt_tpl_set(out, mt_tpl_int(down));
}

MT_TPL_BODY(to_rounded)
{
    int64_t precision = mt_tpl_arg_int(run, a[0], 0), whole;
    mt_tpl_str *method = mt_tpl_arg_str(run, a[1], &MT_TPL_LIT("common"));
    mt_tpl_value scale, product;
    double d;

    if (!mt_tpl_str_is(method, "common") && !mt_tpl_str_is(method, "ceil") && !mt_tpl_str_is(method, "floor"))
        return mt_tpl_fail(run, "method must be common, ceil or floor");
    if (!MT_TPL_IS_NUMBER(self))
        return mt_tpl_fail(run, "type %s doesn't define __round__ method", mt_tpl_type(self));
    if (mt_tpl_str_is(method, "common")) {
        if (self.kind == MT_TPL_BIG)
            return precision < 0 ? mt_tpl_fail_huge(run) : mt_tpl_pos(run, self, out);
        if (MT_TPL_IS_INT(self))
            return round_int(run, mt_tpl_as_int(self), precision, out);
        return mt_tpl_set(out, mt_tpl_float(mt_tpl_round(self.as.real, precision)));
    }
    if (!mt_tpl_arithmetic(run, MT_TPL_POW, mt_tpl_int(10), mt_tpl_int(precision), &scale) ||
        !mt_tpl_arithmetic(run, '*', self, scale, &product))
        return false;
    if (product.kind == MT_TPL_FLOAT) {
        d = mt_tpl_str_is(method, "ceil") ? ceil(product.as.real) : floor(product.as.real);
        if (!mt_tpl_float_to_int(run, d, &whole))
            return false;
        product = mt_tpl_int(whole);
    }
    return mt_tpl_arithmetic(run, '/', product, scale, out);
}

MT_TPL_BODY(filesizeformat)
{
    static const char letters[] = "kMGTPEZY";
    bool binary = mt_tpl_truth(a[0]);
    double base = binary ? 1024 : 1000, bytes, unit;
    mt_tpl_value number;
    mt_tpl_build b = {.run = run};
    size_t i = 0;

    if (!to_float(run, self, 0, &(mt_tpl_value){.kind = MT_TPL_NONE}, args, &number))
        return false;
    if (number.kind != MT_TPL_FLOAT)
        return mt_tpl_fail(run, "could not convert %s to float", mt_tpl_type(self));
    bytes = number.as.real;
    if (bytes == 1)
        mt_tpl_build_lit(&b, "1 Byte");
    else if (bytes < base)
        mt_tpl_build_printf(&b, "%.0f Bytes", trunc(bytes));
    else {
        for (unit = base * base; i + 1 < sizeof(letters) - 1 && bytes >= unit; i++)
            unit *= base;
        mt_tpl_build_printf(&b, "%.1f %c%sB", base * bytes / unit, binary && i == 0 ? 'K' : letters[i],
                            binary ? "i" : "");
    }
    return mt_tpl_set_str(out, mt_tpl_build_end(&b));
}

MT_TPL_BODY(fallback)
{
    if (self.kind != MT_TPL_UNDEFINED && (!mt_tpl_truth(a[1]) || mt_tpl_truth(self)))
        return mt_tpl_set(out, self);
    return MT_TPL_GIVEN(a[0]) ? mt_tpl_set(out, a[0]) : mt_tpl_set_lit(run, out, "");
}

MT_TPL_BODY(length)
{
    size_t count;

    if (self.kind == MT_TPL_LOOP)
        return mt_tpl_loop_attribute(run, self.as.loop, &MT_TPL_LIT("length"), out);
    if (!mt_tpl_length(self, &count))
        return mt_tpl_fail(run, "object of type '%s' has no len()", mt_tpl_type(self));
    *out = mt_tpl_int((int64_t)count);
    return self.kind != MT_TPL_STR || mt_tpl_charge_bytes(run, self.as.str->len);
}

MT_TPL_BODY(attribute)
{
    return mt_tpl_get_own_attribute(run, self, mt_tpl_arg_str(run, a[0], &MT_TPL_LIT("")), out);
}

const mt_tpl_builtin mt_tpl_number_filters[] = {
    {"abs", absolute, 0, 0, 0, {0}},
    {"int", to_int, 0, 0, 2, {"default", "base"}},
    {"float", to_float, 0, 0, 1, {"default"}},
    {"round", to_rounded, 0, 0, 2, {"precision", "method"}},
    {"filesizeformat", filesizeformat, 0, 0, 1, {"binary"}},
    {"default", fallback, 0, 0, 2, {"default_value", "boolean"}},
    {"d", fallback, 0, 0, 2, {"default_value", "boolean"}},
    {"length", length, 0, 0, 0, {0}},
    {"count", length, 0, 0, 0, {0}},
    {"attr", attribute, 0, 1, 1, {"name"}},
    {0},
};
