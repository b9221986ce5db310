/* Formatted text: the operator % and str.format. */
#ifndef MT_TEMPLATE_FORMAT_H
#define MT_TEMPLATE_FORMAT_H

#include "template/builtin.h"

/* format % value, where value is a tuple of arguments, a dict, or the only argument. */
bool mt_tpl_format_percent(mt_tpl_run *run, const mt_tpl_str *format, mt_tpl_value value, mt_tpl_value *out);

/* format.format(...) */
bool mt_tpl_format_braces(mt_tpl_run *run, const mt_tpl_str *format, const mt_tpl_args *args, mt_tpl_value *out);

/* How one value is to look: what a format spec of Python says. */
typedef struct mt_tpl_spec {
    mt_tpl_str fill;
    char align; /* one of <>^=, or 0 */
    char sign;  /* one of +- and space, or 0 */
    bool alternate, zero;
    char group;        /* one of ,_ or 0 */
    int64_t width;     /* 0: as wide as it is */
    int64_t precision; /* -1: none */
    char type;         /* or 0 */
} mt_tpl_spec;

/* format(value, spec) */
bool mt_tpl_format_value(mt_tpl_build *b, mt_tpl_value value, const mt_tpl_str *spec);

/* A number, written by spec->type, which suits it. */
bool mt_tpl_format_int(mt_tpl_build *b, int64_t value, const mt_tpl_spec *spec);
bool mt_tpl_format_float(mt_tpl_build *b, double value, const mt_tpl_spec *spec);

/* Text within spec's width, and the character of a code point. */
bool mt_tpl_format_text(mt_tpl_build *b, mt_tpl_str *text, const mt_tpl_spec *spec);
bool mt_tpl_format_char(mt_tpl_build *b, int64_t code, const mt_tpl_spec *spec);

/* The operator %: of a string, or of numbers. */
bool mt_tpl_percent(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out);

#endif
