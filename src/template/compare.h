/* Equality, order and membership as in Python. All are false where the run has failed, except negations. */
#ifndef MT_TEMPLATE_COMPARE_H
#define MT_TEMPLATE_COMPARE_H

#include "template/value.h"

bool mt_tpl_compare(mt_tpl_run *run, mt_tpl_operator op, mt_tpl_value a, mt_tpl_value b); /* a op b */
bool mt_tpl_equal(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b);
bool mt_tpl_contains(mt_tpl_run *run, mt_tpl_value container, mt_tpl_value item);
bool mt_tpl_identical(mt_tpl_value a, mt_tpl_value b); /* Python's `is` */

#endif
