/* object.name, object[key] and object[a:b], with the rules of the sandbox. */
#ifndef MT_TEMPLATE_ATTR_H
#define MT_TEMPLATE_ATTR_H

#include "template/value.h"

/* What is not there is undefined; only asking something of an undefined value fails. */
bool mt_tpl_get_attribute(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_str *name, mt_tpl_value *out);
bool mt_tpl_get_item(mt_tpl_run *run, mt_tpl_value object, mt_tpl_value key, mt_tpl_value *out);

/* The attribute alone, without a look at the items of a dict: Jinja2's filter attr. */
bool mt_tpl_get_own_attribute(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_str *name, mt_tpl_value *out);

/* Bounds are MISSING or NONE where they are left out. */
bool mt_tpl_slice(mt_tpl_run *run, mt_tpl_value object, const mt_tpl_value bounds[3], mt_tpl_value *out);

#endif
