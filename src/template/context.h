/* Makes template values of JSON. */
#ifndef MT_TEMPLATE_CONTEXT_H
#define MT_TEMPLATE_CONTEXT_H

#include <jansson.h>

#include "template/value.h"

/* Makes a value of JSON. Strings and names of members are borrowed. trusted: all text counts as the template's own.
   False: the run has failed. */
bool mt_tpl_from_json(mt_tpl_run *run, const json_t *json, bool trusted, mt_tpl_value *out);

/* Sets each member of a JSON object in a dict; the names count as trusted. trusted: of the values. */
bool mt_tpl_set_members(mt_tpl_run *run, mt_tpl_dict *to, const json_t *object, bool trusted);

/* Sets a member of a dict; name is trusted and borrowed. */
bool mt_tpl_set_name(mt_tpl_run *run, mt_tpl_dict *to, const char *name, mt_tpl_value value);

#endif
