/* The evaluator: runs the syntax tree of a template. eval.c has statements, eval_expr.c expressions, frame.c
   variables. */
#ifndef MT_TEMPLATE_EVAL_H
#define MT_TEMPLATE_EVAL_H

#include "template/ast.h"
#include "template/builtin.h"

/* An activation: the variables of a running function, which is the template itself, a macro, a call block, a recursive
   loop, a loop's test or a block. It outlives the call, since a macro defined in it may refer to it. */
typedef struct mt_tpl_activation {
    struct mt_tpl_activation *parent; /* activation of the function around this one */
    mt_tpl_value slots[];
} mt_tpl_activation;

typedef enum mt_tpl_flow {
    MT_TPL_GO_ON,
    MT_TPL_DO_BREAK,
    MT_TPL_DO_CONTINUE,
    MT_TPL_STOP /* the run has failed */
} mt_tpl_flow;

/* A new activation; NULL: the run has failed. The variable at a reference. Initialises the variables of a scope. */
mt_tpl_activation *mt_tpl_activate(mt_tpl_run *run, mt_tpl_activation *parent, uint32_t slots) MT_NODISCARD;
mt_tpl_value *mt_tpl_variable(mt_tpl_activation *act, mt_tpl_ref ref);
bool mt_tpl_enter_scope(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_scope *scope);

/* Runs statements and appends their text to out. */
mt_tpl_flow mt_tpl_exec(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_nodes *body, mt_tpl_build *out);
bool mt_tpl_exec_block(mt_tpl_run *run, const mt_tpl_node *node, mt_tpl_build *out);
mt_tpl_flow mt_tpl_exec_for(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_build *out);
bool mt_tpl_assign(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *target, mt_tpl_value value);

bool mt_tpl_eval(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out);

/* Applies a chain of filters whose innermost has no operand: input takes its place. */
bool mt_tpl_apply_filters(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value input,
                          mt_tpl_value *out);

/* Evaluates a CALL; caller, where not NULL, is passed as the argument `caller`. */
bool mt_tpl_eval_call(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, const mt_tpl_value *caller,
                      mt_tpl_value *out);

#endif
