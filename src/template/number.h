/* Numbers: 64-bit integers and doubles with Python's arithmetic. Where Python would compute with a larger integer,
   rendering fails and says so; larger integers from the context can be shown and compared. */
#ifndef MT_TEMPLATE_NUMBER_H
#define MT_TEMPLATE_NUMBER_H

#include "template/value.h"

/* a + b and so on, for values of all types; % of a string is in format.h. False: the run has failed. */
bool mt_tpl_arithmetic(mt_tpl_run *run, mt_tpl_operator op, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out);
bool mt_tpl_neg(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value *out);
bool mt_tpl_pos(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value *out);

double mt_tpl_round(double d, int64_t digits); /* ties to even, as Python's round() */
double mt_tpl_as_float(mt_tpl_value v);        /* v is a number */

/* int(text, base) and float(text). False: the text is no such number. *huge: it is one, but not within 64 bits. */
bool mt_tpl_parse_int(const mt_tpl_str *s, int64_t base, int64_t *out, bool *huge);
bool mt_tpl_parse_float(const mt_tpl_str *s, double *out);

/* int(d). Fails where d is not finite, or out of 64 bits. */
bool mt_tpl_float_to_int(mt_tpl_run *run, double d, int64_t *out);

bool mt_tpl_fail_huge(mt_tpl_run *run);

#endif
