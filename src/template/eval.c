/* Runs statements. */
#include "template/eval.h"

#include "template/loop.h"
#include "template/macro.h"
#include "template/repr.h"

static mt_tpl_flow go_on(bool ok)
{
    return ok ? MT_TPL_GO_ON : MT_TPL_STOP;
}

static bool exec_output(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_build *out)
{
    mt_tpl_value v;

    for (size_t i = 0; i < node->list.count; i++) {
        if (!mt_tpl_eval(run, act, node->list.at[i], &v))
            return false;
        mt_tpl_build_text(out, v);
        if (!mt_tpl_locate(run, node->list.at[i]->place))
            return false;
    }
    return true;
}

static mt_tpl_flow exec_if(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_build *out)
{
    mt_tpl_value test;

    for (;;) {
        if (!mt_tpl_eval(run, act, node->left, &test))
            return MT_TPL_STOP;
        if (mt_tpl_truth(test))
            return mt_tpl_exec(run, act, &node->body, out);
        if (node->orelse.count != 1 || node->orelse.at[0]->type != MT_TPL_N_IF)
            return mt_tpl_exec(run, act, &node->orelse, out);
        node = node->orelse.at[0];
    }
}

static bool exec_set(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node)
{
    mt_tpl_value v;

    return mt_tpl_eval(run, act, node->right, &v) && mt_tpl_assign(run, act, node->left, v);
}

/* Runs a body and keeps its text. break and continue end it, and the text is lost. */
static mt_tpl_flow capture(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_build text = {.run = run};
    mt_tpl_flow flow;

    if (!mt_tpl_enter_scope(run, act, &node->scope))
        return MT_TPL_STOP;
    flow = mt_tpl_exec(run, act, &node->body, &text);
    return flow == MT_TPL_GO_ON ? go_on(mt_tpl_set_str(out, mt_tpl_build_end(&text))) : flow;
}

static mt_tpl_flow exec_set_block(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node)
{
    mt_tpl_value text;
    mt_tpl_flow flow = capture(run, act, node, &text);

    if (flow != MT_TPL_GO_ON)
        return flow;
    return go_on((!node->right || mt_tpl_apply_filters(run, act, node->right, text, &text)) &&
                 mt_tpl_assign(run, act, node->left, text));
}

static mt_tpl_flow exec_filter_block(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node,
                                     mt_tpl_build *out)
{
    mt_tpl_value text;
    mt_tpl_flow flow = capture(run, act, node, &text);

    if (flow != MT_TPL_GO_ON)
        return flow;
    if (!mt_tpl_apply_filters(run, act, node->left, text, &text))
        return MT_TPL_STOP;
    if (text.kind != MT_TPL_STR) /* unlike an expression, a block's result is not converted to a string */
        mt_tpl_fail(run, "the filters of a block must make a string of it, not %s", mt_tpl_type(text));
    mt_tpl_build_text(out, text);
    return go_on(!run->failed);
}

/* A call block calls a macro, which may call the block's body as `caller`. {% generation %}, by which templates mark
   what the model wrote, is such a body that is called at once: what it sets is not seen outside. */
static bool exec_call_block(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_build *out)
{
    const mt_tpl_args nothing = {0};
    mt_tpl_value caller, text;

    if (!mt_tpl_set_macro(run, act, node, &caller))
        return false;
    if (node->type == MT_TPL_N_GENERATION ? !mt_tpl_call_macro(run, caller.as.macro, &nothing, &text)
                                          : !mt_tpl_eval_call(run, act, node->left, &caller, &text))
        return false;
    mt_tpl_build_text(out, text);
    return !run->failed;
}

static mt_tpl_flow exec_with(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_build *out)
{
    mt_tpl_value v;

    if (!mt_tpl_enter_scope(run, act, &node->scope))
        return MT_TPL_STOP;
    for (size_t i = 0; i < node->list.count; i += 2)
        if (!mt_tpl_eval(run, act, node->list.at[i + 1], &v) || !mt_tpl_assign(run, act, node->list.at[i], v))
            return MT_TPL_STOP;
    return mt_tpl_exec(run, act, &node->body, out);
}

static mt_tpl_flow exec_autoescape(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_build *out)
{
    mt_tpl_value escape;

    if (!mt_tpl_enter_scope(run, act, &node->scope) || !mt_tpl_eval(run, act, node->left, &escape))
        return MT_TPL_STOP;
    if (mt_tpl_truth(escape))
        return go_on(mt_tpl_fail(run, "autoescape is not supported; use the filter escape where HTML is wanted"));
    return mt_tpl_exec(run, act, &node->body, out);
}

/* A block as if it stood at the top level. */
bool mt_tpl_exec_block(mt_tpl_run *run, const mt_tpl_node *node, mt_tpl_build *out)
{
    mt_tpl_activation *act = mt_tpl_activate(run, run->root, node->slots);

    return act && mt_tpl_enter_scope(run, act, &node->scope) && mt_tpl_exec(run, act, &node->body, out) != MT_TPL_STOP;
}

/* A dict of the variables that a scoped block sees, and of those that the block around it was given. */
static mt_tpl_dict *give_variables(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_scope *visible)
{
    mt_tpl_dict *given = mt_tpl_dict_new(run, visible->count);

    if (given && run->given && !mt_tpl_dict_update(run, given, run->given))
        return NULL;
    for (size_t i = 0; given && i < visible->count; i++) {
        const mt_tpl_value value = *mt_tpl_variable(act, visible->at[i].outer);

        if (MT_TPL_GIVEN(value) && !mt_tpl_dict_set(run, given, mt_tpl_const(visible->at[i].name), value))
            return NULL;
    }
    return given;
}

static bool exec_block(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_build *out)
{
    const mt_tpl_dict *saved = run->given;
    bool ok;

    if (node->required) /* another template would have to replace it, and none is ever loaded */
        return mt_tpl_fail(run, "Required block '%.*s' not found", (int)node->name->len, node->name->data);
    if (node->scoped && !(run->given = give_variables(run, act, &node->else_scope)))
        return false;
    ok = mt_tpl_exec_block(run, node, out);
    run->given = saved;
    return ok;
}

static mt_tpl_flow exec_statement(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_build *out)
{
    switch (node->type) {
    case MT_TPL_N_OUTPUT: return go_on(exec_output(run, act, node, out));
    case MT_TPL_N_FOR: return mt_tpl_exec_for(run, act, node, out);
    case MT_TPL_N_IF: return exec_if(run, act, node, out);
    case MT_TPL_N_SET: return go_on(exec_set(run, act, node));
    case MT_TPL_N_SET_BLOCK: return exec_set_block(run, act, node);
    case MT_TPL_N_MACRO: return go_on(mt_tpl_set_macro(run, act, node, mt_tpl_variable(act, node->ref)));
    case MT_TPL_N_CALL_BLOCK:
    case MT_TPL_N_GENERATION: return go_on(exec_call_block(run, act, node, out));
    case MT_TPL_N_FILTER_BLOCK: return exec_filter_block(run, act, node, out);
    case MT_TPL_N_WITH: return exec_with(run, act, node, out);
    case MT_TPL_N_AUTOESCAPE: return exec_autoescape(run, act, node, out);
    case MT_TPL_N_BLOCK: return go_on(exec_block(run, act, node, out));
    case MT_TPL_N_BREAK: return MT_TPL_DO_BREAK;
    case MT_TPL_N_CONTINUE: return MT_TPL_DO_CONTINUE;
    default: break; /* LOAD: the others are expressions */
    }
    return go_on(mt_tpl_fail(run, "other templates cannot be loaded; put their text into this one"));
}

mt_tpl_flow mt_tpl_exec(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_nodes *body, mt_tpl_build *out)
{
    mt_tpl_flow flow = MT_TPL_GO_ON;

    for (size_t i = 0; flow == MT_TPL_GO_ON && i < body->count; i++) {
        if (!mt_tpl_enter(run))
            flow = MT_TPL_STOP;
        else {
            flow = exec_statement(run, act, body->at[i], out);
            mt_tpl_leave(run);
        }
        mt_tpl_locate(run, body->at[i]->place);
    }
    return flow;
}
