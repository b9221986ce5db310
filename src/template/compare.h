/* Equality, order, membership and hashes as in Python. False: the run has failed. */
#ifndef MT_TEMPLATE_COMPARE_H
#define MT_TEMPLATE_COMPARE_H

#include "template/value.h"

typedef enum mt_tpl_order { MT_TPL_LT, MT_TPL_LE, MT_TPL_GT, MT_TPL_GE } mt_tpl_order;

bool mt_tpl_equal(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, bool *out);
bool mt_tpl_ordered(mt_tpl_run *run, mt_tpl_order op, mt_tpl_value a, mt_tpl_value b, bool *out);
bool mt_tpl_contains(mt_tpl_run *run, mt_tpl_value container, mt_tpl_value item, bool *out);
bool mt_tpl_hash(mt_tpl_run *run, mt_tpl_value v, uint64_t *out); /* equal values have equal hashes */
bool mt_tpl_identical(mt_tpl_value a, mt_tpl_value b);            /* Python's `is` */

#endif
