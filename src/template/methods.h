/* Parts of methods that filters and tests use as well. */
#ifndef MT_TEMPLATE_METHODS_H
#define MT_TEMPLATE_METHODS_H

#include "template/value.h"

bool mt_tpl_is_all_case(const mt_tpl_str *s, bool upper); /* str.isupper, str.islower */

#endif
