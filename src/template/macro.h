/* Macros, and the bodies of call blocks. */
#ifndef MT_TEMPLATE_MACRO_H
#define MT_TEMPLATE_MACRO_H

#include "template/eval.h"

typedef struct mt_tpl_macro {
    const mt_tpl_node *node;  /* a MACRO, CALL_BLOCK or GENERATION */
    mt_tpl_activation *outer; /* activation in which it was defined */
} mt_tpl_macro;

/* Makes a value of a macro that is defined by the node. */
bool mt_tpl_set_macro(mt_tpl_run *run, mt_tpl_activation *outer, const mt_tpl_node *node, mt_tpl_value *out);
bool mt_tpl_call_macro(mt_tpl_run *run, const mt_tpl_macro *macro, const mt_tpl_args *args, mt_tpl_value *out);
/* Members that templates may ask a macro for, such as "name" and "arguments". */
bool mt_tpl_macro_attribute(mt_tpl_run *run, const mt_tpl_macro *macro, const mt_tpl_str *name, mt_tpl_value *out);
void mt_tpl_macro_repr(mt_tpl_build *b, const mt_tpl_macro *macro);

#endif
