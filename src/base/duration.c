/* See duration.h. */
#include "base/duration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 1e9 /* seconds: more than anybody means */

static const struct {
    const char *name;
    double seconds;
} units[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};

/* The seconds of the unit at *text, which moves behind it; 0: there is none. */
static double parse_unit(const char **text)
{
    for (size_t i = 0; i < MT_COUNT(units); i++)
        if (strncmp(*text, units[i].name, strlen(units[i].name)) == 0) {
            *text += strlen(units[i].name);
            return units[i].seconds;
        }
    return 0;
}

bool mt_duration_parse(const char *text, double *seconds)
{
    const bool below = *text == '-';
    double sum = 0;

    if (strcmp(text, "never") == 0) {
        *seconds = -1;
        return true;
    }
    text += below;
    do {
        char *end;
        const bool digit = (*text >= '0' && *text <= '9') || *text == '.';
        const double number = digit ? strtod(text, &end) : 0;

        if (!digit || end == text || strcspn(text, "xXeEpP") < (size_t)(end - text))
            return false;
        text = end;
        const double unit = *text ? parse_unit(&text) : 1; /* a number alone is in seconds */
        if (unit <= 0)
            return false;
        sum += number * unit;
    } while (*text);
    if (!isfinite(sum) || sum > LONGEST)
        return false;
    *seconds = below && sum > 0 ? -1 : sum;
    return true;
}
