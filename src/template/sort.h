/* Python's sorted(). */
#ifndef MT_TEMPLATE_SORT_H
#define MT_TEMPLATE_SORT_H

#include "template/value.h"

/* Sorts values in place by their keys: values[i] has keys[i], and both may be one array. reverse: the largest key comes
   first. Values of equal keys keep their order, also in reverse. False: the run has failed, such as where keys cannot
   be compared; then the order is unchanged. */
bool mt_tpl_sort(mt_tpl_run *run, mt_tpl_value *values, const mt_tpl_value *keys, size_t count, bool reverse);

#endif
