/* See number.h. */
#include "template/number.h"

#include <math.h>
#include <stdlib.h>

bool mt_tpl_fail_huge(mt_tpl_run *run)
{
    return mt_tpl_fail(run, "an integer beyond 64 bits; use a float, or smaller numbers");
}

double mt_tpl_as_float(mt_tpl_value v)
{
    if (v.kind == MT_TPL_BIG)
        return strtod(v.as.str->data, NULL);
    return v.kind == MT_TPL_FLOAT ? v.as.real : (double)mt_tpl_as_int(v);
}

/* Whether an operand is undefined, which fails the run. */
static bool is_undefined(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b)
{
    if (a.kind != MT_TPL_UNDEFINED && b.kind != MT_TPL_UNDEFINED)
        return false;
    mt_tpl_fail_undefined(run, a.kind == MT_TPL_UNDEFINED ? a : b);
    return true;
}

static bool unsupported(mt_tpl_run *run, const char *op, mt_tpl_value a, mt_tpl_value b)
{
    return mt_tpl_fail(run, "unsupported operand type(s) for %s: '%s' and '%s'", op, mt_tpl_type(a), mt_tpl_type(b));
}

static bool both_int(mt_tpl_value a, mt_tpl_value b)
{
    return MT_TPL_IS_INT(a) && MT_TPL_IS_INT(b);
}

static bool both_number(mt_tpl_value a, mt_tpl_value b)
{
    return MT_TPL_IS_NUMBER(a) && MT_TPL_IS_NUMBER(b);
}

/* Whether both are integers and one has more than 64 bits, which fails the run. */
static bool is_huge(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b)
{
    if (!both_number(a, b) || a.kind == MT_TPL_FLOAT || b.kind == MT_TPL_FLOAT || both_int(a, b))
        return false;
    mt_tpl_fail_huge(run);
    return true;
}

static bool set_int(mt_tpl_value *out, int64_t i)
{
    *out = mt_tpl_int(i);
    return true;
}

static bool set_float(mt_tpl_value *out, double d)
{
    *out = mt_tpl_float(d);
    return true;
}

/* Text that is markup escapes what is added to it. */
static bool add_text(mt_tpl_run *run, mt_tpl_str *a, mt_tpl_str *b, mt_tpl_value *out)
{
    bool markup = a->markup || b->markup;

    if (markup && !a->markup)
        a = mt_tpl_str_escape(run, a);
    if (markup && a && !b->markup)
        b = mt_tpl_str_escape(run, b);
    if (!a || !b || !mt_tpl_set_str(out, mt_tpl_str_concat(run, a, b)))
        return false;
    out->as.str->markup = markup;
    return true;
}

bool mt_tpl_add(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    int64_t sum;

    if (a.kind == MT_TPL_STR && b.kind == MT_TPL_STR)
        return add_text(run, a.as.str, b.as.str, out);
    if (both_int(a, b))
        return MT_ADD_OVERFLOWS(mt_tpl_as_int(a), mt_tpl_as_int(b), &sum) ? mt_tpl_fail_huge(run) : set_int(out, sum);
    if (is_huge(run, a, b))
        return false;
    if (both_number(a, b))
        return set_float(out, mt_tpl_as_float(a) + mt_tpl_as_float(b));
    if (is_undefined(run, a, b))
        return false;
    if (a.kind == b.kind && (a.kind == MT_TPL_LIST || a.kind == MT_TPL_TUPLE))
        return mt_tpl_list_concat(run, a, b, out);
    if (a.kind == MT_TPL_STR || a.kind == MT_TPL_LIST || a.kind == MT_TPL_TUPLE)
        return mt_tpl_fail(run, "can only concatenate %s (not \"%s\") to %s", mt_tpl_type(a), mt_tpl_type(b),
                           mt_tpl_type(a));
    return unsupported(run, "+", a, b);
}

bool mt_tpl_sub(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    int64_t difference;

    if (both_int(a, b))
        return MT_SUB_OVERFLOWS(mt_tpl_as_int(a), mt_tpl_as_int(b), &difference) ? mt_tpl_fail_huge(run)
                                                                                 : set_int(out, difference);
    if (is_huge(run, a, b))
        return false;
    if (both_number(a, b))
        return set_float(out, mt_tpl_as_float(a) - mt_tpl_as_float(b));
    return !is_undefined(run, a, b) && unsupported(run, "-", a, b);
}

static bool is_repeatable(mt_tpl_value v)
{
    return v.kind == MT_TPL_STR || v.kind == MT_TPL_LIST || v.kind == MT_TPL_TUPLE;
}

static bool repeat(mt_tpl_run *run, mt_tpl_value v, mt_tpl_value times, mt_tpl_value *out)
{
    int64_t count = mt_tpl_as_int(times) < 0 ? 0 : mt_tpl_as_int(times);
    mt_tpl_items items = {0};
    mt_tpl_build b;

    if (v.kind == MT_TPL_STR) {
        mt_tpl_build_init(&b, run);
        mt_tpl_build_fill(&b, v.as.str, (size_t)count);
        return mt_tpl_set_str(out, mt_tpl_build_end_like(&b, v.as.str));
    }
    for (int64_t n = 0; v.as.list->count && n < count; n++) {
        if (!mt_tpl_charge(run, v.as.list->count))
            return false;
        for (size_t i = 0; i < v.as.list->count; i++)
            if (!mt_tpl_items_add(run, &items, v.as.list->at[i]))
                return false;
    }
    return mt_tpl_items_end(run, &items, v.kind, out);
}

bool mt_tpl_mul(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    int64_t product;

    if (both_int(a, b))
        return MT_MUL_OVERFLOWS(mt_tpl_as_int(a), mt_tpl_as_int(b), &product) ? mt_tpl_fail_huge(run)
                                                                              : set_int(out, product);
    if (is_huge(run, a, b))
        return false;
    if (both_number(a, b))
        return set_float(out, mt_tpl_as_float(a) * mt_tpl_as_float(b));
    if (is_undefined(run, a, b))
        return false;
    if (is_repeatable(a) && MT_TPL_IS_INT(b))
        return repeat(run, a, b, out);
    if (is_repeatable(b) && MT_TPL_IS_INT(a))
        return repeat(run, b, a, out);
    if (is_repeatable(a) || is_repeatable(b))
        return mt_tpl_fail(run, "can't multiply sequence by non-int of type '%s'",
                           mt_tpl_type(is_repeatable(a) ? b : a));
    return unsupported(run, "*", a, b);
}

bool mt_tpl_div(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    if (!both_number(a, b))
        return !is_undefined(run, a, b) && unsupported(run, "/", a, b);
    if (mt_tpl_as_float(b) == 0)
        return mt_tpl_fail(run, "%s", both_int(a, b) ? "division by zero" : "float division by zero");
    if (both_int(a, b))
        return set_float(out, (double)((long double)mt_tpl_as_int(a) / (long double)mt_tpl_as_int(b)));
    return set_float(out, mt_tpl_as_float(a) / mt_tpl_as_float(b));
}

/* Python's quotient and remainder: the remainder has the sign of the divisor. b is not 0. */
static void float_divmod(double a, double b, double *quotient, double *remainder)
{
    double mod = fmod(a, b), div = (a - mod) / b, whole;

    if (mod != 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1;
        }
    } else
        mod = copysign(0, b);
    if (div != 0) {
        whole = floor(div);
        *quotient = div - whole > 0.5 ? whole + 1 : whole;
    } else
        *quotient = copysign(0, a / b);
    *remainder = mod;
}

bool mt_tpl_floordiv(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    double quotient, remainder;

    if (!both_number(a, b))
        return !is_undefined(run, a, b) && unsupported(run, "//", a, b);
    if (is_huge(run, a, b))
        return false;
    if (both_int(a, b)) {
        int64_t x = mt_tpl_as_int(a), y = mt_tpl_as_int(b);

        if (y == 0)
            return mt_tpl_fail(run, "integer division or modulo by zero");
        if (x == INT64_MIN && y == -1)
            return mt_tpl_fail_huge(run);
        return set_int(out, x / y - (x % y != 0 && (x % y < 0) != (y < 0)));
    }
    if (mt_tpl_as_float(b) == 0)
        return mt_tpl_fail(run, "float floor division by zero");
    float_divmod(mt_tpl_as_float(a), mt_tpl_as_float(b), &quotient, &remainder);
    return set_float(out, quotient);
}

static bool int_pow(mt_tpl_run *run, int64_t base, int64_t exponent, mt_tpl_value *out)
{
    int64_t result = 1;

    for (;;) {
        if ((exponent & 1) && MT_MUL_OVERFLOWS(result, base, &result))
            return mt_tpl_fail_huge(run);
        exponent >>= 1;
        if (exponent == 0)
            return set_int(out, result);
        if (MT_MUL_OVERFLOWS(base, base, &base))
            return mt_tpl_fail_huge(run);
    }
}

bool mt_tpl_pow(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    double x, y, result;

    if (!both_number(a, b))
        return !is_undefined(run, a, b) && unsupported(run, "** or pow()", a, b);
    if (is_huge(run, a, b))
        return false;
    if (both_int(a, b) && mt_tpl_as_int(b) >= 0)
        return int_pow(run, mt_tpl_as_int(a), mt_tpl_as_int(b), out);
    x = mt_tpl_as_float(a);
    y = mt_tpl_as_float(b);
    if (x == 0 && y < 0)
        return mt_tpl_fail(run, "0.0 cannot be raised to a negative power");
    if (x < 0 && isfinite(x) && isfinite(y) && y != floor(y))
        return mt_tpl_fail(run, "a negative number to a fractional power is complex; use its absolute value");
    result = pow(x, y);
    if (isinf(result) && isfinite(x) && isfinite(y))
        return mt_tpl_fail(run, "(34, 'Numerical result out of range')");
    return set_float(out, result);
}

bool mt_tpl_neg(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value *out)
{
    if (a.kind == MT_TPL_FLOAT)
        return set_float(out, -a.as.real);
    if (MT_TPL_IS_INT(a))
        return mt_tpl_as_int(a) == INT64_MIN ? mt_tpl_fail_huge(run) : set_int(out, -mt_tpl_as_int(a));
    if (a.kind == MT_TPL_BIG)
        return mt_tpl_fail_huge(run);
    if (a.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, a);
    return mt_tpl_fail(run, "bad operand type for unary -: '%s'", mt_tpl_type(a));
}

bool mt_tpl_pos(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value *out)
{
    if (a.kind == MT_TPL_FLOAT)
        return set_float(out, a.as.real);
    if (MT_TPL_IS_INT(a))
        return set_int(out, mt_tpl_as_int(a));
    if (a.kind == MT_TPL_BIG) {
        *out = a;
        return true;
    }
    if (a.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, a);
    return mt_tpl_fail(run, "bad operand type for unary +: '%s'", mt_tpl_type(a));
}

bool mt_tpl_mod(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    double quotient, remainder;

    if (!both_number(a, b))
        return !is_undefined(run, a, b) && unsupported(run, "%", a, b);
    if (is_huge(run, a, b))
        return false;
    if (both_int(a, b)) {
        int64_t x = mt_tpl_as_int(a), y = mt_tpl_as_int(b), rest;

        if (y == 0)
            return mt_tpl_fail(run, "integer modulo by zero");
        rest = y == -1 ? 0 : x % y;
        return set_int(out, rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
    }
    if (mt_tpl_as_float(b) == 0)
        return mt_tpl_fail(run, "float modulo");
    float_divmod(mt_tpl_as_float(a), mt_tpl_as_float(b), &quotient, &remainder);
    return set_float(out, remainder);
}
