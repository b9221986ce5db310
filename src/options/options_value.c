/* Parses the value of one option. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "kernels/kernels.h"
#include "options/options_table.h"

static bool parse_integer(const mt_option_row *row, const char *label, const char *text, mt_option_value *v,
                          mt_error *err)
{
    char *end;

    errno = 0;
    v->integer = strtoll(text, &end, 10);
    if (end == text || *end || strchr(" \t\n\v\f\r", *text))
        return mt_fail(err, MT_E_INVALID, "%s \"%s\" is not a whole number: use %lld to %lld", label, text,
                       (long long)row->least, (long long)row->most);
    if (errno || v->integer < row->least || v->integer > row->most)
        return mt_fail(err, MT_E_INVALID, "%s %s is out of range: use %lld to %lld", label, text, (long long)row->least,
                       (long long)row->most);
    return true;
}

static bool parse_choice(const mt_option_row *row, const char *label, const char *text, mt_option_value *v,
                         mt_error *err)
{
    v->integer = 0;
    for (const char *choice = row->values;; v->integer++) {
        size_t len = strcspn(choice, "|");

        if (strlen(text) == len && memcmp(text, choice, len) == 0)
            return true;
        if (!choice[len])
            return mt_fail(err, MT_E_INVALID, "%s \"%s\" is not one of the choices: use %s", label, text, row->values);
        choice += len + 1;
    }
}

static bool parse_number(const mt_option_row *row, const char *label, const char *text, mt_option_value *v,
                         mt_error *err)
{
    char *end;

    v->number = strtod(text, &end);
    if (end == text || *end || strchr(" \t\n\v\f\r", *text) || !isfinite(v->number))
        return mt_fail(err, MT_E_INVALID, "%s \"%s\" is not a number: use %g to %g", label, text, row->low, row->high);
    if (v->number < row->low || v->number > row->high)
        return mt_fail(err, MT_E_INVALID, "%s %s is out of range: use %g to %g", label, text, row->low, row->high);
    return true;
}

/* A number of bytes, with K, M, G or T for powers of 1024: "512M". */
static bool parse_size(const mt_option_row *row, const char *label, const char *text, mt_option_value *v, mt_error *err)
{
    static const char units[] = "KMGT";
    char *end;
    const char *unit;
    int64_t factor = 1;

    errno = 0;
    v->integer = strtoll(text, &end, 10);
    unit = *end ? strchr(units, *end & ~0x20) : NULL;
    if (end == text || *text < '0' || *text > '9' || (*end && (!unit || end[1])))
        return mt_fail(err, MT_E_INVALID, "%s \"%s\" is not a size: use a number of bytes, such as 512M or 64G", label,
                       text);
    for (; unit && unit >= units; unit--)
        factor *= 1024;
    if (errno || MT_MUL_OVERFLOWS(v->integer, factor, &v->integer) || v->integer < row->least ||
        v->integer > row->most) {
        char least[24], most[24];

        return mt_fail(err, MT_E_INVALID, "%s %s is out of range: use %s to %s", label, text,
                       mt_option_size_text(row->least, least), mt_option_size_text(row->most, most));
    }
    return true;
}

const char *mt_option_size_text(int64_t bytes, char text[24])
{
    static const char units[][2] = {"", "K", "M", "G"};
    size_t unit = 0;

    while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < MT_COUNT(units)) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 24, "%lld%s", (long long)bytes, units[unit]);
    return text;
}

/* text NULL: the flag stands alone, and v has its value already. */
static bool parse_flag(const char *label, const char *text, mt_option_value *v, mt_error *err)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true"};

    for (size_t i = 0; text && i < MT_COUNT(words); i++)
        if (strcmp(text, words[i]) == 0) {
            v->integer = i % 2;
            return true;
        }
    return !text || mt_fail(err, MT_E_INVALID, "%s \"%s\" is neither yes nor no: use one of them", label, text);
}

bool mt_option_value_parse(mt_option_value *v, const mt_option_row *row, const char *label, const char *text,
                           mt_error *err)
{
    *v = (mt_option_value){.integer = 1, .text = text};
    switch (row->type) {
    case MT_OPTION_INT: return parse_integer(row, label, text, v, err);
    case MT_OPTION_SIZE: return parse_size(row, label, text, v, err);
    case MT_OPTION_NUMBER: return parse_number(row, label, text, v, err);
    case MT_OPTION_TIME:
        return mt_duration_parse(text, &v->number) ||
               mt_fail(err, MT_E_INVALID, "%s \"%s\" is not a time: use one such as 30s, 5m, 1h30m, 0 or never", label,
                       text);
    case MT_OPTION_CHOICE: return parse_choice(row, label, text, v, err);
    case MT_OPTION_CPUS:
        return mt_cpu_parse(text, &v->mask) ||
               mt_fail(err, MT_E_INVALID,
                       "%s \"%s\" names no instruction sets: use all, portable, or a list such as "
                       "neon,dotprod or avx2",
                       label, text);
    case MT_OPTION_FLAG: return parse_flag(label, text, v, err);
    case MT_OPTION_LIST:
    case MT_OPTION_TEXT: return true;
    }
    return false;
}
