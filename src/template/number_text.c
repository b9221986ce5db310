/* Converts numbers from text, and rounds them by their text. Part of number.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "template/number.h"
#include "template/unicode.h"

enum { NUMBER_MAX = 400 }; /* bytes */

double mt_tpl_round(double d, int64_t digits)
{
    char text[NUMBER_MAX];
    double unit;

    if (!isfinite(d) || digits > 323)
        return d;
    if (digits < -308)
        return copysign(0, d);
    if (digits >= 0) {
        snprintf(text, sizeof(text), "%.*f", (int)digits, d);
        return digits > 22 && strlen(text) + 1 == sizeof(text) ? d : strtod(text, NULL);
    }
    unit = pow(10, (double)-digits);
    return nearbyint(d / unit) * unit;
}

/* Removes underscores between digits. False: one stands elsewhere. */
static bool drop_underscores(char *text)
{
    char *to = text, before = '\0';

    for (const char *p = text; *p; before = *p++) {
        if (*p != '_')
            *to++ = *p;
        else if (!isalnum((unsigned char)before) || !isalnum((unsigned char)p[1]))
            return false;
    }
    *to = '\0';
    return true;
}

/* The text without surrounding white space and without underscores between digits; decimal digits of all scripts become
   ASCII. False: it is too long, has other characters outside of ASCII, or an underscore elsewhere. */
static bool clean(const mt_tpl_str *s, char *out, size_t size)
{
    const char *p = s->data, *end = s->data + s->len;
    size_t n = 0;

    while (p < end && mt_tpl_is_space(mt_utf8_at(p)))
        p += mt_utf8_size(*p);
    while (end > p) {
        size_t before = mt_utf8_before(p, (size_t)(end - p));

        if (!mt_tpl_is_space(mt_utf8_at(p + before)))
            break;
        end = p + before;
    }
    for (; p < end; p += mt_utf8_size(*p)) {
        const uint32_t c = mt_utf8_at(p);

        if ((c >= 0x80 && !mt_tpl_is_decimal(c)) || n + 1 >= size)
            return false;
        out[n++] = c < 0x80 ? *p : (char)('0' + mt_tpl_decimal_value(c));
    }
    out[n] = '\0';
    return n > 0 && drop_underscores(out);
}

/* The base of a prefix such as 0x; 0: there is none. */
static int64_t prefix_base(const char *p)
{
    const int letter = p[0] == '0' ? tolower((unsigned char)p[1]) : 0;

    return letter == 'b' ? 2 : letter == 'o' ? 8 : letter == 'x' ? 16 : 0;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
}

bool mt_tpl_parse_int(const mt_tpl_str *s, int64_t base, int64_t *out, bool *huge)
{
    char text[NUMBER_MAX], *p = text;
    bool negative = false;
    int64_t value = 0, prefix;

    *huge = false;
    if (!clean(s, text, sizeof(text)))
        return false;
    if (*p == '+' || *p == '-')
        negative = *p++ == '-';
    prefix = prefix_base(p);
    if (prefix && (base == prefix || base == 0)) {
        p += 2;
        base = prefix;
    } else if (base == 0) {
        if (*p == '0' && p[strspn(p, "0")])
            return false; /* 007 is no literal */
        base = 10;
    }
    if (!*p)
        return false;
    for (; *p; p++) {
        int digit = digit_value(*p);

        if (digit >= base)
            return false;
        if (!*huge && (MT_MUL_OVERFLOWS(value, base, &value) || MT_SUB_OVERFLOWS(value, (int64_t)digit, &value)))
            *huge = true; /* counted downwards, so that the smallest number fits */
    }
    if (!negative && value == INT64_MIN)
        *huge = true;
    *out = *huge ? 0 : negative ? value : -value;
    return true;
}

bool mt_tpl_parse_float(const mt_tpl_str *s, double *out)
{
    char text[NUMBER_MAX], *end;
    const char *p;

    if (!clean(s, text, sizeof(text)))
        return false;
    p = text + (*text == '+' || *text == '-');
    if (isdigit((unsigned char)*p) || *p == '.') {
        if (prefix_base(p) == 16)
            return false;
    } else if (strcasecmp(p, "inf") && strcasecmp(p, "infinity") && strcasecmp(p, "nan"))
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && end != text;
}

bool mt_tpl_float_to_int(mt_tpl_run *run, double d, int64_t *out)
{
    if (isnan(d))
        return mt_tpl_fail(run, "cannot convert float NaN to integer");
    if (isinf(d))
        return mt_tpl_fail(run, "cannot convert float infinity to integer");
    if (d < -0x1p63 || d >= 0x1p63)
        return mt_tpl_fail_huge(run);
    *out = (int64_t)d;
    return true;
}
