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

/* Text that is markup escapes what is added to it. */
static bool add_text(mt_tpl_run *run, mt_tpl_str *a, mt_tpl_str *b, mt_tpl_value *out)
{
    bool markup = a->markup || b->markup;

    if (markup && !a->markup)
        a = mt_tpl_str_escape(run, a);
    if (markup && !b->markup)
        b = mt_tpl_str_escape(run, b);
    if (!mt_tpl_set_str(out, mt_tpl_str_concat(run, a, b)))
        return false;
    out->as.str->markup = markup;
    return true;
}

static bool is_sequence(mt_tpl_value v)
{
    return v.kind == MT_TPL_STR || v.kind == MT_TPL_LIST || v.kind == MT_TPL_TUPLE;
}

static bool repeat(mt_tpl_run *run, mt_tpl_value v, mt_tpl_value times, mt_tpl_value *out)
{
    int64_t count = mt_tpl_as_int(times) < 0 ? 0 : mt_tpl_as_int(times);
    mt_tpl_items items = {0};
    mt_tpl_build b = {.run = run};

    if (v.kind == MT_TPL_STR) {
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

/* + and * where an operand is a string, list or tuple. */
static bool join_sequences(mt_tpl_run *run, mt_tpl_operator op, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    if (op == '+' && a.kind == MT_TPL_STR && b.kind == MT_TPL_STR)
        return add_text(run, a.as.str, b.as.str, out);
    if (op == '+' && a.kind == b.kind)
        return mt_tpl_list_concat(run, a, b, out);
    if (op == '+')
        return mt_tpl_fail(run, "can only concatenate %s (not \"%s\") to %s", mt_tpl_type(a), mt_tpl_type(b),
                           mt_tpl_type(a));
    if (MT_TPL_IS_INT(a) || MT_TPL_IS_INT(b))
        return MT_TPL_IS_INT(b) ? repeat(run, a, b, out) : repeat(run, b, a, out);
    return mt_tpl_fail(run, "can't multiply sequence by non-int of type '%s'", mt_tpl_type(is_sequence(a) ? b : a));
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

/* False: it has more than 64 bits. */
static bool int_pow(int64_t base, int64_t exponent, int64_t *out)
{
    for (*out = 1;;) {
        if ((exponent & 1) && MT_MUL_OVERFLOWS(*out, base, out))
            return false;
        exponent >>= 1;
        if (exponent == 0)
            return true;
        if (MT_MUL_OVERFLOWS(base, base, &base))
            return false;
    }
}

static bool float_pow(mt_tpl_run *run, double x, double y, mt_tpl_value *out)
{
    const double result = pow(x, y);

    if (x == 0 && y < 0)
        return mt_tpl_fail(run, "0.0 cannot be raised to a negative power");
    if (x < 0 && isfinite(x) && isfinite(y) && y != floor(y))
        return mt_tpl_fail(run, "a negative number to a fractional power is complex; use its absolute value");
    if (isinf(result) && isfinite(x) && isfinite(y))
        return mt_tpl_fail(run, "(34, 'Numerical result out of range')");
    return mt_tpl_set(out, mt_tpl_float(result));
}

/* Of POW y is not negative. */
static bool with_ints(mt_tpl_run *run, mt_tpl_operator op, int64_t x, int64_t y, mt_tpl_value *out)
{
    int64_t z = 0;
    bool huge = false;

    switch (op) {
    case '+': huge = MT_ADD_OVERFLOWS(x, y, &z); break;
    case '-': huge = MT_SUB_OVERFLOWS(x, y, &z); break;
    case '*': huge = MT_MUL_OVERFLOWS(x, y, &z); break;
    case '/':
        if (y == 0)
            return mt_tpl_fail(run, "division by zero");
        return mt_tpl_set(out, mt_tpl_float((double)((long double)x / (long double)y)));
    case MT_TPL_FLOORDIV:
        if (y == 0)
            return mt_tpl_fail(run, "integer division or modulo by zero");
        huge = x == INT64_MIN && y == -1;
        z = huge ? 0 : x / y - (x % y != 0 && (x % y < 0) != (y < 0));
        break;
    case '%':
        if (y == 0)
            return mt_tpl_fail(run, "integer modulo by zero");
        z = y == -1 ? 0 : x % y;
        z = z != 0 && (z < 0) != (y < 0) ? z + y : z;
        break;
    default: huge = !int_pow(x, y, &z); break;
    }
    return huge ? mt_tpl_fail_huge(run) : mt_tpl_set(out, mt_tpl_int(z));
}

static bool with_floats(mt_tpl_run *run, mt_tpl_operator op, double x, double y, mt_tpl_value *out)
{
    double z, other;

    if (y == 0 && (op == '/' || op == MT_TPL_FLOORDIV || op == '%'))
        return mt_tpl_fail(run, "float %s",
                           op == '/'   ? "division by zero"
                           : op == '%' ? "modulo"
                                       : "floor division by zero");
    switch (op) {
    case '+': z = x + y; break;
    case '-': z = x - y; break;
    case '*': z = x * y; break;
    case '/': z = x / y; break;
    case MT_TPL_FLOORDIV: float_divmod(x, y, &z, &other); break;
    case '%': float_divmod(x, y, &other, &z); break;
    default: return float_pow(run, x, y, out);
    }
    return mt_tpl_set(out, mt_tpl_float(z));
}

bool mt_tpl_arithmetic(mt_tpl_run *run, mt_tpl_operator op, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    const char *sign = (const char[]){(char)op, '\0'};

    if (MT_TPL_IS_INT(a) && MT_TPL_IS_INT(b) && (op != MT_TPL_POW || mt_tpl_as_int(b) >= 0))
        return with_ints(run, op, mt_tpl_as_int(a), mt_tpl_as_int(b), out);
    if (MT_TPL_IS_NUMBER(a) && MT_TPL_IS_NUMBER(b)) {
        if ((a.kind == MT_TPL_BIG || b.kind == MT_TPL_BIG) && a.kind != MT_TPL_FLOAT && b.kind != MT_TPL_FLOAT &&
            op != '/')
            return mt_tpl_fail_huge(run);
        return with_floats(run, op, mt_tpl_as_float(a), mt_tpl_as_float(b), out);
    }
    if (a.kind == MT_TPL_UNDEFINED || b.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, a.kind == MT_TPL_UNDEFINED ? a : b);
    if ((op == '+' && is_sequence(a)) || (op == '*' && (is_sequence(a) || is_sequence(b))))
        return join_sequences(run, op, a, b, out);
    if (op == MT_TPL_FLOORDIV || op == MT_TPL_POW)
        sign = op == MT_TPL_POW ? "** or pow()" : "//";
    return mt_tpl_fail(run, "unsupported operand type(s) for %s: '%s' and '%s'", sign, mt_tpl_type(a), mt_tpl_type(b));
}

/* Fails the run where a is no number: op is the sign before it. */
static bool fail_unary(mt_tpl_run *run, char op, mt_tpl_value a)
{
    if (a.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, a);
    return mt_tpl_fail(run, "bad operand type for unary %c: '%s'", op, mt_tpl_type(a));
}

bool mt_tpl_neg(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value *out)
{
    if (a.kind == MT_TPL_FLOAT)
        return mt_tpl_set(out, mt_tpl_float(-a.as.real));
    if (a.kind == MT_TPL_BIG || (MT_TPL_IS_INT(a) && mt_tpl_as_int(a) == INT64_MIN))
        return mt_tpl_fail_huge(run);
    return MT_TPL_IS_INT(a) ? mt_tpl_set(out, mt_tpl_int(-mt_tpl_as_int(a))) : fail_unary(run, '-', a);
}

bool mt_tpl_pos(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value *out)
{
    if (!MT_TPL_IS_NUMBER(a))
        return fail_unary(run, '+', a);
    return mt_tpl_set(out, a.kind == MT_TPL_BOOL ? mt_tpl_int(a.as.boolean) : a);
}
