/* Functions of the evaluator that files below it call. Evaluation recurses (an attribute may be a method that formats
   attributes, a loop has statements, a filter may name another filter), but source files call each other in one
   direction only; so a run (run.h) carries this table, which eval.c fills. */
#ifndef MT_TEMPLATE_ABOVE_H
#define MT_TEMPLATE_ABOVE_H

#include "template/eval.h"

/* Each is the function mt_tpl_... of that name, declared in eval.h, builtin.h, loop.h or macro.h. */
typedef struct mt_tpl_above {
    bool (*eval)(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out);
    mt_tpl_flow (*exec)(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_nodes *body, mt_tpl_build *out);
    bool (*exec_block)(mt_tpl_run *run, const mt_tpl_node *node, mt_tpl_build *out);
    const mt_tpl_builtin *(*method_of)(mt_tpl_value self, const mt_tpl_str *name);
    const mt_tpl_builtin *(*filter)(const mt_tpl_str *name);
    void (*loop_repr)(mt_tpl_build *b, struct mt_tpl_loop *loop);
    void (*macro_repr)(mt_tpl_build *b, const struct mt_tpl_macro *macro);
} mt_tpl_above;

extern const mt_tpl_above mt_tpl_evaluation;

#endif
