/* object.name, object[key] and object[a:b], with the rules of Jinja2's sandbox. */
#ifndef MT_TEMPLATE_ATTR_H
#define MT_TEMPLATE_ATTR_H

#include "template/value.h"

/* A name or key that does not exist gives an undefined value; only using an undefined object fails (false: the run has
   failed). */
bool mt_tpl_get_attribute(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_str *name, mt_tpl_value *out);
bool mt_tpl_get_item(mt_tpl_run *run, mt_tpl_value object, mt_tpl_value key, mt_tpl_value *out);

/* The attribute alone, ignoring items of a dict: Jinja2's filter attr. */
bool mt_tpl_get_own_attribute(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_str *name, mt_tpl_value *out);

/* object[a:b:c]; bounds that are left out are MISSING or NONE. */
bool mt_tpl_slice(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_value bounds[3], mt_tpl_value *out);

#endif
