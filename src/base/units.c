/* See units.h. */
#include "base/units.h"

#include <stdio.h>

#include "base/compiler.h"

const char *mt_bytes_text(uint64_t bytes, char out[MT_UNITS_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;

    for (; value >= 1024 && unit + 1 < MT_COUNT(units); unit++)
        value /= 1024;
    snprintf(out, MT_UNITS_TEXT, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

const char *mt_seconds_text(uint64_t seconds, char out[MT_UNITS_TEXT])
{
    const unsigned long long s = seconds;

    if (s < 60)
        snprintf(out, MT_UNITS_TEXT, "%llu s", s);
    else if (s < 3600)
        snprintf(out, MT_UNITS_TEXT, "%llu:%02llu min", s / 60, s % 60);
    else if (s < 48 * 3600)
        snprintf(out, MT_UNITS_TEXT, "%llu:%02llu h", s / 3600, s / 60 % 60);
    else
        snprintf(out, MT_UNITS_TEXT, "%llu days", s / 86400);
    return out;
}
