/* Equality, order, membership and hashes as in Python. False: the run has failed. */
#ifndef MT_TEMPLATE_COMPARE_H
#define MT_TEMPLATE_COMPARE_H

#include "template/value.h"

bool mt_tpl_compare(mt_tpl_run *run, mt_tpl_operator op, mt_tpl_value a, mt_tpl_value b, bool *out); /* a op b */
bool mt_tpl_equal(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, bool *out);
bool mt_tpl_contains(mt_tpl_run *run, mt_tpl_value container, mt_tpl_value item, bool *out);
bool mt_tpl_hash(mt_tpl_run *run, mt_tpl_value v, uint64_t *out); /* equal values have equal hashes */
bool mt_tpl_identical(mt_tpl_value a, mt_tpl_value b);            /* Python's `is` */

#endif
