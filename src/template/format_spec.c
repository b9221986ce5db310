/* Parses Python's format specification, [[fill]align][sign][#][0][width][grouping][.precision][type], and writes values
   by it. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/float_text.h"
#include "base/utf8.h"
#include "template/format.h"
#include "template/number.h"
#include "template/repr.h"

enum { PRECISION_MAX = 1000, DIGITS_MAX = 400 + PRECISION_MAX }; /* bytes */

/* Parses up to 18 digits. */
static bool parse_count(mt_tpl_run *run, const mt_tpl_str *s, size_t *at, int64_t *out)
{
    int64_t value = 0;

    for (size_t begin = *at; *at < s->len && isdigit((unsigned char)s->data[*at]); ++*at) {
        if (*at - begin > 17)
            return mt_tpl_fail(run, "Too many decimal digits in format string");
        value = value * 10 + (s->data[*at] - '0');
    }
    *out = value;
    return true;
}

/* True: a fill was given, too. */
static bool parse_align(const mt_tpl_str *s, size_t *at, mt_tpl_spec *spec)
{
    size_t n = s->len ? mt_utf8_size(s->data[0]) : 0;

    if (n && n < s->len && strchr("<>=^", s->data[n])) {
        if (!mt_tpl_str_untrusted(s, 0, n))
            spec->fill = (mt_tpl_str){.data = s->data, .len = n, .chars = 1};
        spec->align = s->data[n];
        *at = n + 1;
        return true;
    }
    if (n == 1 && strchr("<>=^", s->data[0])) {
        spec->align = s->data[0];
        *at = 1;
    }
    return false;
}

static bool parse_spec(mt_tpl_run *run, const mt_tpl_str *s, const char *type_name, mt_tpl_spec *spec)
{
    size_t at = 0;
    bool filled;

    *spec = (mt_tpl_spec){.fill = MT_TPL_LIT(" "), .precision = -1};
    filled = parse_align(s, &at, spec);
    if (at < s->len && strchr("+- ", s->data[at]))
        spec->sign = s->data[at++];
    if (at < s->len && s->data[at] == '#') {
        spec->alternate = true;
        at++;
    }
    if (at < s->len && s->data[at] == '0') {
        spec->zero = !spec->align;
        spec->fill = filled ? spec->fill : MT_TPL_LIT("0");
        spec->align = spec->align ? spec->align : '=';
        at++;
    }
    if (!parse_count(run, s, &at, &spec->width))
        return false;
    if (at < s->len && (s->data[at] == ',' || s->data[at] == '_'))
        spec->group = s->data[at++];
    if (at < s->len && s->data[at] == '.') {
        size_t digits = ++at;

        if (!parse_count(run, s, &at, &spec->precision))
            return false;
        if (at == digits)
            return mt_tpl_fail(run, "Format specifier missing precision");
    }
    if (at < s->len && (unsigned char)s->data[at] < 0x80)
        spec->type = s->data[at++];
    if (at < s->len)
        return mt_tpl_fail(run, "Invalid format specifier '%.*s' for object of type '%s'", (int)s->len, s->data,
                           type_name);
    return true;
}

/* Appends text in spec's width; with '=' the fill comes after the first `split` bytes (sign, prefix). */
static bool aligned(mt_tpl_build *b, mt_tpl_str *text, size_t split, const mt_tpl_spec *spec, char align)
{
    size_t chars = mt_tpl_str_chars(text), missing;

    missing = spec->width > 0 && (uint64_t)spec->width > chars ? (size_t)spec->width - chars : 0;
    if (align == '=')
        mt_tpl_build_sub(b, text, 0, split);
    mt_tpl_build_fill(b, &spec->fill, align == '<' ? 0 : align == '^' ? missing / 2 : missing);
    mt_tpl_build_sub(b, text, align == '=' ? split : 0, text->len);
    mt_tpl_build_fill(b, &spec->fill, align == '<' ? missing : align == '^' ? missing - missing / 2 : 0);
    return !b->run->failed;
}

bool mt_tpl_format_text(mt_tpl_build *b, mt_tpl_str *text, const mt_tpl_spec *spec)
{
    if (spec->precision >= 0 && (uint64_t)spec->precision < mt_tpl_str_chars(text)) {
        text = mt_tpl_str_sub(b->run, text, 0, mt_tpl_str_offset(text, (size_t)spec->precision));
        if (!text)
            return false;
    }
    return aligned(b, text, 0, spec, spec->align ? spec->align : '<');
}

bool mt_tpl_format_char(mt_tpl_build *b, int64_t code, const mt_tpl_spec *spec)
{
    mt_tpl_build c = {.run = b->run};
    mt_tpl_str *text;

    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return mt_tpl_fail(b->run, "%%c arg not in range(0x110000)");
    mt_tpl_build_char(&c, (uint32_t)code, true);
    text = mt_tpl_build_end(&c);
    return text && mt_tpl_format_text(b, text, spec);
}

/* Writes separators between groups of digits. With '0' as fill Python groups the fill, too, so zeros are put in
   front. */
static size_t group_digits(const char *digits, size_t count, size_t size, char separator, size_t least, char *out)
{
    size_t n = 0, total = count, groups;

    while ((groups = (total - 1) / size) + total < least)
        total++;
    for (size_t i = 0; i < total; i++) {
        out[n++] = i < total - count ? '0' : digits[i - (total - count)];
        if ((total - 1 - i) % size == 0 && i + 1 < total)
            out[n++] = separator;
    }
    return n;
}

/* Appends sign, digits and the rest, such as a fraction, in spec's width. */
static bool number(mt_tpl_build *b, const char *sign, const char *digits, size_t count, const char *rest,
                   const mt_tpl_spec *spec, size_t group_size)
{
    char grouped[2 * DIGITS_MAX];
    size_t used = strlen(sign) + strlen(rest), least = 0;
    mt_tpl_build whole = {.run = b->run};
    mt_tpl_str *text;

    if (spec->group && count > 0) {
        if (spec->zero && spec->width > (int64_t)used)
            least = spec->width - (int64_t)used < DIGITS_MAX ? (size_t)spec->width - used : DIGITS_MAX;
        count = group_digits(digits, count, group_size, spec->group, least, grouped);
        digits = grouped;
    }
    mt_tpl_build_lit(&whole, sign);
    mt_tpl_build_add(&whole, digits, count, false);
    mt_tpl_build_lit(&whole, rest);
    text = mt_tpl_build_end(&whole);
    return text && aligned(b, text, strlen(sign), spec, spec->align ? spec->align : '>');
}

static const char *sign_of(bool negative, const mt_tpl_spec *spec)
{
    return negative ? "-" : spec->sign == '+' ? "+" : spec->sign == ' ' ? " " : "";
}

bool mt_tpl_format_int(mt_tpl_build *b, int64_t value, const mt_tpl_spec *spec)
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    unsigned base = spec->type == 'b' ? 2 : spec->type == 'o' ? 8 : spec->type == 'x' || spec->type == 'X' ? 16 : 10;
    char digits[DIGITS_MAX], sign[8];
    size_t at = sizeof(digits);

    do
        digits[--at] = (spec->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[rest % base];
    while ((rest /= base) > 0);
    while (spec->precision > (int64_t)(sizeof(digits) - at) && at > 0) /* only of % */
        digits[--at] = '0';
    snprintf(sign, sizeof(sign), "%s%s%.1s", sign_of(value < 0, spec), spec->alternate && base != 10 ? "0" : "",
             spec->alternate && base != 10 ? (const char[]){spec->type, '\0'} : "");
    return number(b, sign, digits + at, sizeof(digits) - at, "", spec, base == 10 ? 3 : 4);
}

/* Like %g, but with at least one digit after the point: what format(x, '.3') gives. */
static void general_text(double value, int precision, char *out, size_t size)
{
    size_t len;

    snprintf(out, size, "%.*g", precision, value);
    len = strlen(out);
    if (!strpbrk(out, ".en") && len + 2 < size) {
        if (len >= (size_t)precision && precision > 0 && len > 1 && len >= (size_t)precision)
            snprintf(out, size, "%.*e", precision > 0 ? precision - 1 : 0, value);
        else
            memcpy(out + len, ".0", 3);
    }
}

bool mt_tpl_format_float(mt_tpl_build *b, double value, const mt_tpl_spec *spec)
{
    char text[DIGITS_MAX + 8], format[8], type = spec->type ? spec->type : spec->precision >= 0 ? 'g' : 'r';
    size_t whole;
    double size = fabs(value);

    if (spec->precision > PRECISION_MAX)
        return mt_tpl_fail_limit(b->run, "a precision of more than %d digits; ask for fewer", PRECISION_MAX);
    if (!isfinite(value))
        snprintf(text, sizeof(text), "%s%s", isnan(value) ? "nan" : "inf", type == '%' ? "%" : "");
    else if (type == 'r')
        mt_float_text(size, text);
    else if (!spec->type)
        general_text(size, (int)spec->precision, text, sizeof(text));
    else {
        snprintf(format, sizeof(format), "%%%s.*%c", spec->alternate ? "#" : "",
                 type == '%'   ? 'f'
                 : type == 'n' ? 'g'
                               : type);
        snprintf(text, sizeof(text) - 1, format, spec->precision < 0 ? 6 : (int)spec->precision,
                 type == '%' ? size * 100 : size);
        if (type == '%')
            memcpy(text + strlen(text), "%", 2);
    }
    for (char *p = text; (type == 'F' || type == 'E' || type == 'G') && *p; p++)
        *p = (char)toupper((unsigned char)*p);
    whole = strspn(text, "0123456789");
    if (whole == 0) /* inf, nan */
        whole = strlen(text);
    return number(
        b, sign_of(signbit(value) && !isnan(value), spec), text, whole, text + whole,
        isfinite(value) ? spec : &(mt_tpl_spec){.fill = spec->fill, .align = spec->align, .width = spec->width}, 3);
}

static bool format_number(mt_tpl_build *b, mt_tpl_value value, mt_tpl_spec *spec)
{
    if (value.kind == MT_TPL_FLOAT || (spec->type && strchr("eEfFgG%", spec->type))) {
        if (spec->type && !strchr("eEfFgGn%", spec->type))
            return mt_tpl_fail(b->run, "Unknown format code '%c' for object of type 'float'", spec->type);
        return mt_tpl_format_float(b, mt_tpl_as_float(value), spec);
    }
    if (value.kind == MT_TPL_BIG)
        return mt_tpl_fail_huge(b->run);
    if (spec->type && !strchr("bcdoxXn", spec->type))
        return mt_tpl_fail(b->run, "Unknown format code '%c' for object of type 'int'", spec->type);
    if (spec->precision >= 0)
        return mt_tpl_fail(b->run, "Precision not allowed in integer format specifier");
    if (spec->type == 'c')
        return mt_tpl_format_char(b, mt_tpl_as_int(value), spec);
    return mt_tpl_format_int(b, mt_tpl_as_int(value), spec);
}

bool mt_tpl_format_value(mt_tpl_build *b, mt_tpl_value value, const mt_tpl_str *spec_text)
{
    mt_tpl_spec spec;

    if (spec_text->len == 0) {
        mt_tpl_build_text(b, value);
        return !b->run->failed;
    }
    if (value.kind != MT_TPL_STR && !MT_TPL_IS_NUMBER(value))
        return mt_tpl_fail(b->run, "unsupported format string passed to %s.__format__", mt_tpl_type(value));
    if (!parse_spec(b->run, spec_text, mt_tpl_type(value), &spec))
        return false;
    if (value.kind != MT_TPL_STR)
        return format_number(b, value, &spec);
    if (spec.type && spec.type != 's')
        return mt_tpl_fail(b->run, "Unknown format code '%c' for object of type 'str'", spec.type);
    if (spec.sign || spec.group || (spec.align == '=' && !spec.zero))
        return mt_tpl_fail(b->run, "Sign, grouping and '=' alignment are not allowed in string format specifier");
    if (spec.alternate)
        return mt_tpl_fail(b->run, "Alternate form (#) not allowed in string format specifier");
    if (spec.zero)
        spec.align = '<';
    return mt_tpl_format_text(b, value.as.str, &spec);
}
