/* JSON to values. */
#ifndef MT_TEMPLATE_CONTEXT_H
#define MT_TEMPLATE_CONTEXT_H

#include "template/template.h"
#include "template/value.h"

/* Strings are borrowed from the JSON; options say which of them are trusted. */
bool mt_tpl_from_json(mt_tpl_run *run, const json_t *json, const mt_template_options *options, mt_tpl_value *out);

#endif
