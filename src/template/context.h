/* JSON to values. */
#ifndef MT_TEMPLATE_CONTEXT_H
#define MT_TEMPLATE_CONTEXT_H

#include <jansson.h>

#include "template/value.h"

/* Strings are borrowed from the JSON, the names of members too. trusted: all of them are as good as the template's
   own. */
bool mt_tpl_from_json(mt_tpl_run *run, const json_t *json, bool trusted, mt_tpl_value *out);

/* Sets each member of an object in a dict, by a name that is the caller's. */
bool mt_tpl_set_members(mt_tpl_run *run, mt_tpl_dict *to, const json_t *object, bool trusted);

/* Sets what a name that the caller wrote stands for; it is borrowed. */
bool mt_tpl_set_name(mt_tpl_run *run, mt_tpl_dict *to, const char *name, mt_tpl_value value);

#endif
