/* The parameter `attribute` of filters: "name", "a.b.0" or a number. */
#ifndef MT_TEMPLATE_PATH_H
#define MT_TEMPLATE_PATH_H

#include "template/value.h"

/* The value of item at that path; item itself where attribute is MISSING or NONE. fallback replaces an undefined value
   on the way, unless it is MISSING or NONE. False: the run has failed. */
bool mt_tpl_path_get(mt_tpl_run *run, mt_tpl_value item, mt_tpl_value attribute, mt_tpl_value fallback,
                     mt_tpl_value *out);

/* Makes a string lower-case; other values stay. */
bool mt_tpl_ignore_case(mt_tpl_run *run, mt_tpl_value *v);

#endif
