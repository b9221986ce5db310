/* Values as text: Python's str() and repr(). NULL: the run has failed. */
#ifndef MT_TEMPLATE_REPR_H
#define MT_TEMPLATE_REPR_H

#include "template/value.h"

mt_tpl_str *mt_tpl_text(mt_tpl_run *run, mt_tpl_value v) MT_NODISCARD; /* str(v); a string is returned as it is */
mt_tpl_str *mt_tpl_repr(mt_tpl_run *run, mt_tpl_value v) MT_NODISCARD;
void mt_tpl_build_text(mt_tpl_build *b, mt_tpl_value v);
void mt_tpl_build_repr(mt_tpl_build *b, mt_tpl_value v);

#endif
