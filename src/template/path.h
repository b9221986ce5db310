/* The parameter `attribute` of filters: "name", "a.b.0" or a number. */
#ifndef MT_TEMPLATE_PATH_H
#define MT_TEMPLATE_PATH_H

#include "template/value.h"

/* What item has there; item itself when attribute is MISSING or NONE. fallback replaces what is undefined on the way,
   unless it is MISSING or NONE. */
bool mt_tpl_path_get(mt_tpl_run *run, mt_tpl_value item, mt_tpl_value attribute, mt_tpl_value fallback,
                     mt_tpl_value *out);

/* A string in lower case; everything else as it is. */
bool mt_tpl_ignore_case(mt_tpl_run *run, mt_tpl_value *v);

#endif
