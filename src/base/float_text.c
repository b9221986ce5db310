/* See float_text.h. */
#include "base/float_text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 17 }; /* significant digits of a double */

/* d is finite and not negative. digits gets "123" for 1.23. Returns the decimal exponent of the first digit. */
static int shortest_digits(double d, char digits[DIGITS_MAX + 1])
{
    char text[40];
    size_t n = 0;

    for (int precision = 0; precision < DIGITS_MAX; precision++) {
        snprintf(text, sizeof(text), "%.*e", precision, d);
        if (strtod(text, NULL) == d)
            break;
    }
    for (const char *p = text; *p && *p != 'e'; p++)
        if (isdigit((unsigned char)*p))
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return (int)strtol(strchr(text, 'e') + 1, NULL, 10);
}

void mt_float_text(double d, char out[MT_FLOAT_TEXT])
{
    const char *sign = signbit(d) && !isnan(d) ? "-" : "";
    char digits[DIGITS_MAX + 1];
    int exponent, count;

    if (!isfinite(d)) {
        snprintf(out, MT_FLOAT_TEXT, "%s%s", sign, isnan(d) ? "nan" : "inf");
        return;
    }
    exponent = shortest_digits(fabs(d), digits);
    count = (int)strlen(digits);
    if (exponent < -4 || exponent >= 16)
        snprintf(out, MT_FLOAT_TEXT, "%s%c%s%se%c%02d", sign, digits[0], count > 1 ? "." : "", digits + 1,
                 exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        snprintf(out, MT_FLOAT_TEXT, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
    else if (count <= exponent + 1)
        snprintf(out, MT_FLOAT_TEXT, "%s%s%.*s.0", sign, digits, exponent + 1 - count, "0000000000000000");
    else
        snprintf(out, MT_FLOAT_TEXT, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
}
