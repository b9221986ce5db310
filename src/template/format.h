/* Formatted text: Python's operator % and str.format. */
#ifndef MT_TEMPLATE_FORMAT_H
#define MT_TEMPLATE_FORMAT_H

#include "template/builtin.h"

/* format % value, where value is a tuple of arguments, a dict, or the only argument. False: the run has failed. */
bool mt_tpl_format_percent(mt_tpl_run *run, const mt_tpl_str *format, mt_tpl_value value, mt_tpl_value *out);

/* format.format(...) */
bool mt_tpl_format_braces(mt_tpl_run *run, const mt_tpl_str *format, const mt_tpl_args *args, mt_tpl_value *out);

/* A parsed format specification of Python. */
typedef struct mt_tpl_spec {
    mt_tpl_str fill;      /* the character that pads */
    char align;           /* one of <>^=, or 0 */
    char sign;            /* one of +- and space, or 0 */
    bool alternate, zero; /* # stands in the spec; 0 does, without an align */
    char group;           /* one of ,_ or 0 */
    int64_t width;        /* characters; 0: as wide as the text */
    int64_t precision;    /* -1: none */
    char type;            /* the letter at its end, or 0 */
} mt_tpl_spec;

/* Appends format(value, spec). False, here and below: the run has failed. */
bool mt_tpl_format_value(mt_tpl_build *b, mt_tpl_value value, const mt_tpl_str *spec);

/* Appends a number as spec->type says, which must suit it. */
bool mt_tpl_format_int(mt_tpl_build *b, int64_t value, const mt_tpl_spec *spec);
bool mt_tpl_format_float(mt_tpl_build *b, double value, const mt_tpl_spec *spec);

/* Appends text, cut to spec's precision and padded to its width; the character of a code point, padded. */
bool mt_tpl_format_text(mt_tpl_build *b, mt_tpl_str *text, const mt_tpl_spec *spec);
bool mt_tpl_format_char(mt_tpl_build *b, int64_t code, const mt_tpl_spec *spec);

/* The operator %: of a string, or of numbers. */
bool mt_tpl_percent(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out);

#endif
