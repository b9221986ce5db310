/* Evaluates expressions. Each evaluation that can recurse is counted, so that no template recurses without end. */

#include "template/attr.h"
#include "template/compare.h"
#include "template/eval.h"
#include "template/format.h"
#include "template/iter.h"
#include "template/loop.h"
#include "template/macro.h"
#include "template/number.h"
#include "template/repr.h"

enum { FEW_ARGS = 4 }; /* calls with no more arguments than this need no allocation */

static bool eval_name(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    *out = *mt_tpl_variable(act, node->ref);
    return MT_TPL_GIVEN(*out) || mt_tpl_set_undefined_in(run, out, *out, mt_tpl_const(node->name));
}

static bool eval_list(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_items items = {0};
    mt_tpl_value v;

    for (size_t i = 0; i < node->list.count; i++)
        if (!mt_tpl_eval(run, act, node->list.at[i], &v) || !mt_tpl_items_add(run, &items, v))
            return false;
    return mt_tpl_items_end(run, &items, node->type == MT_TPL_N_LIST ? MT_TPL_LIST : MT_TPL_TUPLE, out);
}

static bool eval_dict(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_dict *dict = mt_tpl_dict_new(run, node->list.count / 2);
    mt_tpl_value key, value;

    if (!dict)
        return false;
    for (size_t i = 0; i < node->list.count; i += 2)
        if (!mt_tpl_eval(run, act, node->list.at[i], &key) || !mt_tpl_eval(run, act, node->list.at[i + 1], &value) ||
            !mt_tpl_dict_set(run, dict, key, value))
            return false;
    return mt_tpl_set(out, mt_tpl_dict_value(dict));
}

static bool eval_binary(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_value a, b;

    if (!mt_tpl_eval(run, act, node->left, &a) || !mt_tpl_eval(run, act, node->right, &b))
        return false;
    return node->op == '%' ? mt_tpl_percent(run, a, b, out) : mt_tpl_arithmetic(run, node->op, a, b, out);
}

static bool eval_unary(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_value a;

    if (!mt_tpl_eval(run, act, node->left, &a))
        return false;
    if (node->type == MT_TPL_N_NEG)
        return mt_tpl_neg(run, a, out);
    if (node->type == MT_TPL_N_POS)
        return mt_tpl_pos(run, a, out);
    return mt_tpl_set(out, mt_tpl_bool(!mt_tpl_truth(a)));
}

/* and, or: the value of the operand that decides. */
static bool eval_logic(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    if (!mt_tpl_eval(run, act, node->left, out))
        return false;
    if (mt_tpl_truth(*out) == (node->type == MT_TPL_N_OR))
        return true;
    return mt_tpl_eval(run, act, node->right, out);
}

static bool eval_concat(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_str *all = NULL;
    mt_tpl_value v;

    for (size_t i = 0; i < node->list.count; i++) {
        if (!mt_tpl_eval(run, act, node->list.at[i], &v))
            return false;
        all = i ? mt_tpl_str_concat(run, all, mt_tpl_text(run, v)) : mt_tpl_text(run, v);
    }
    return mt_tpl_set_str(out, mt_tpl_str_plain(run, all));
}

static bool eval_compare(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_value a, b;
    bool holds = true;

    if (!mt_tpl_eval(run, act, node->left, &a))
        return false;
    for (size_t i = 0; holds && i < node->list.count; i++) {
        if (!mt_tpl_eval(run, act, node->list.at[i], &b))
            return false;
        holds = mt_tpl_compare(run, node->ops[i], a, b);
        a = b;
    }
    return mt_tpl_set_bool(run, out, holds);
}

static bool eval_condition(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_value test;

    if (!mt_tpl_eval(run, act, node->right, &test))
        return false;
    if (mt_tpl_truth(test))
        return mt_tpl_eval(run, act, node->left, out);
    if (node->third)
        return mt_tpl_eval(run, act, node->third, out);
    return mt_tpl_set_undefined(run, out,
                                "the inline if-expression evaluated to false and no else section was defined.");
}

static bool eval_item(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    const mt_tpl_node *key = node->right;
    mt_tpl_value object, bounds[3] = {0};

    if (!mt_tpl_eval(run, act, node->left, &object))
        return false;
    if (key->type != MT_TPL_N_SLICE)
        return mt_tpl_eval(run, act, key, &bounds[0]) && mt_tpl_get_item(run, object, bounds[0], out);
    if ((key->left && !mt_tpl_eval(run, act, key->left, &bounds[0])) ||
        (key->right && !mt_tpl_eval(run, act, key->right, &bounds[1])) ||
        (key->third && !mt_tpl_eval(run, act, key->third, &bounds[2])))
        return false;
    return mt_tpl_slice(run, object, bounds, out);
}

static bool add_named(mt_tpl_run *run, mt_tpl_dict *named, mt_tpl_value key, mt_tpl_value value)
{
    if (key.kind != MT_TPL_STR)
        return mt_tpl_fail(run, "keywords must be strings");
    if (MT_TPL_GIVEN(mt_tpl_dict_get(run, named, key)))
        return mt_tpl_fail(run, "got multiple values for keyword argument '%.*s'", (int)key.as.str->len,
                           key.as.str->data);
    return mt_tpl_dict_set(run, named, key, value);
}

static bool eval_named(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_call_args *from,
                       const mt_tpl_value *caller, mt_tpl_dict *named)
{
    mt_tpl_value key, value;

    for (size_t i = 0; i < from->named.count; i++)
        if (!mt_tpl_eval(run, act, from->named.at[i], &value) ||
            !add_named(run, named, mt_tpl_const(from->names[i]), value))
            return false;
    if (caller && (!mt_tpl_set_lit(run, &key, "caller") || !add_named(run, named, key, *caller)))
        return false;
    if (!from->star_star)
        return true;
    if (!mt_tpl_eval(run, act, from->star_star, &value))
        return false;
    if (value.kind != MT_TPL_DICT)
        return mt_tpl_fail(run, "argument after ** must be a mapping, not %s", mt_tpl_type(value));
    for (size_t i = 0; i < value.as.dict->count; i++)
        if (!add_named(run, named, value.as.dict->at[i].key, value.as.dict->at[i].value))
            return false;
    return true;
}

/* few: space for up to FEW_ARGS arguments. */
static bool eval_args(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_call_args *from, const mt_tpl_value *caller,
                      mt_tpl_value *few, mt_tpl_args *out)
{
    static const mt_tpl_call_args nothing = {.star = NULL};
    mt_tpl_items items = {.at = few, .cap = FEW_ARGS};
    mt_tpl_dict *named = NULL;
    mt_tpl_value v;

    from = from ? from : &nothing;
    for (size_t i = 0; i < from->at.count; i++)
        if (!mt_tpl_eval(run, act, from->at.at[i], &v) || !mt_tpl_items_add(run, &items, v))
            return false;
    if (from->star) {
        if (!mt_tpl_eval(run, act, from->star, &v))
            return false;
        if (!mt_tpl_is_iterable(v))
            return mt_tpl_fail(run, "argument after * must be an iterable, not %s", mt_tpl_type(v));
        if (!mt_tpl_collect(run, v, &items))
            return false;
    }
    if (from->named.count || from->star_star || caller) {
        named = mt_tpl_dict_new(run, 0);
        if (!named || !eval_named(run, act, from, caller, named))
            return false;
    }
    *out = (mt_tpl_args){.at = items.at, .count = items.count, .named = named};
    return true;
}

static bool call_named(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value operand,
                       mt_tpl_value *out)
{
    mt_tpl_value few[FEW_ARGS];
    mt_tpl_args args;

    if (!eval_args(run, act, node->args, NULL, few, &args))
        return false;
    if (!node->builtin)
        return mt_tpl_fail(run, "No %s named '%.*s' found.", node->type == MT_TPL_N_FILTER ? "filter" : "test",
                           (int)node->name->len, node->name->data);
    return mt_tpl_call_builtin(run, node->builtin, operand, &args, out);
}

static bool eval_builtin(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_value operand;

    return mt_tpl_eval(run, act, node->left, &operand) && call_named(run, act, node, operand, out);
}

bool mt_tpl_apply_filters(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value input,
                          mt_tpl_value *out)
{
    if (node->left && !mt_tpl_apply_filters(run, act, node->left, input, &input))
        return false;
    return call_named(run, act, node, input, out) || mt_tpl_locate(run, node->place);
}

static bool call_joiner(mt_tpl_run *run, mt_tpl_joiner *joiner, mt_tpl_value *out)
{
    if (joiner->used)
        return mt_tpl_set(out, joiner->separator);
    joiner->used = true;
    return mt_tpl_set_lit(run, out, "");
}

static bool call_block(mt_tpl_run *run, const mt_tpl_node *block, const mt_tpl_args *args, mt_tpl_value *out)
{
    mt_tpl_build text = {.run = run};

    if (args->count || (args->named && args->named->count))
        return mt_tpl_fail(run, "a block takes no arguments");
    return mt_tpl_exec_block(run, block, &text) && mt_tpl_set_str(out, mt_tpl_build_end(&text));
}

static bool call_value(mt_tpl_run *run, mt_tpl_value callee, const mt_tpl_args *args, mt_tpl_value *out)
{
    switch (callee.kind) {
    case MT_TPL_METHOD: return mt_tpl_call_builtin(run, callee.as.method->call, callee.as.method->self, args, out);
    case MT_TPL_FUNCTION: return mt_tpl_call_builtin(run, callee.as.function, mt_tpl_none(), args, out);
    case MT_TPL_MACRO: return mt_tpl_call_macro(run, callee.as.macro, args, out);
    case MT_TPL_BLOCK: return call_block(run, callee.as.block, args, out);
    case MT_TPL_LOOP: return mt_tpl_call_loop(run, callee.as.loop, args, out);
    case MT_TPL_JOINER: return call_joiner(run, callee.as.joiner, out);
    case MT_TPL_UNDEFINED: return mt_tpl_fail_undefined(run, callee);
    default: return mt_tpl_fail(run, "'%s' object is not callable", mt_tpl_type(callee));
    }
}

bool mt_tpl_eval_call(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, const mt_tpl_value *caller,
                      mt_tpl_value *out)
{
    mt_tpl_value callee, few[FEW_ARGS];
    mt_tpl_args args;

    return (mt_tpl_eval(run, act, node->left, &callee) && eval_args(run, act, node->args, caller, few, &args) &&
            call_value(run, callee, &args, out)) ||
           mt_tpl_locate(run, node->place);
}

static bool eval_node(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_value object;

    switch (node->type) {
    case MT_TPL_N_LIST:
    case MT_TPL_N_TUPLE: return eval_list(run, act, node, out);
    case MT_TPL_N_DICT: return eval_dict(run, act, node, out);
    case MT_TPL_N_AND:
    case MT_TPL_N_OR: return eval_logic(run, act, node, out);
    case MT_TPL_N_NOT:
    case MT_TPL_N_NEG:
    case MT_TPL_N_POS: return eval_unary(run, act, node, out);
    case MT_TPL_N_CONCAT: return eval_concat(run, act, node, out);
    case MT_TPL_N_COMPARE: return eval_compare(run, act, node, out);
    case MT_TPL_N_CONDITION: return eval_condition(run, act, node, out);
    case MT_TPL_N_ATTRIBUTE:
        return mt_tpl_eval(run, act, node->left, &object) && mt_tpl_get_attribute(run, object, node->name, out);
    case MT_TPL_N_ITEM: return eval_item(run, act, node, out);
    case MT_TPL_N_CALL: return mt_tpl_eval_call(run, act, node, NULL, out);
    case MT_TPL_N_FILTER:
    case MT_TPL_N_TEST: return eval_builtin(run, act, node, out);
    default: return eval_binary(run, act, node, out);
    }
}

bool mt_tpl_eval(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_value *out)
{
    bool ok;

    if (node->type == MT_TPL_N_CONST)
        return mt_tpl_set(out, node->value);
    if (node->type == MT_TPL_N_NAME)
        return eval_name(run, act, node, out);
    ok = mt_tpl_enter(run);
    if (ok) {
        ok = eval_node(run, act, node, out);
        mt_tpl_leave(run);
    }
    return ok || mt_tpl_locate(run, node->place);
}
