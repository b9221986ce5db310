/* Parses operators, from the tightest binding to the loosest. */
#include <string.h>

#include "template/parser.h"

static mt_tpl_node *parse_unary(mt_tpl_parser *p, bool with_filter)
{
    const mt_tpl_token *at = p->token;
    mt_tpl_node *node;

    if (!mt_tpl_parse_enter(p))
        return NULL;
    if (mt_tpl_accept(p, MT_TPL_T_SUB))
        node = mt_tpl_node_unary(p, MT_TPL_N_NEG, at, parse_unary(p, false));
    else if (mt_tpl_accept(p, MT_TPL_T_ADD))
        node = mt_tpl_node_unary(p, MT_TPL_N_POS, at, parse_unary(p, false));
    else
        node = mt_tpl_parse_primary(p);
    node = mt_tpl_parse_postfix(p, node);
    if (with_filter)
        node = mt_tpl_parse_filter_expr(p, node);
    mt_tpl_parse_leave(p);
    return node;
}

static mt_tpl_node *parse_pow(mt_tpl_parser *p)
{
    mt_tpl_node *left = parse_unary(p, true);

    while (left && p->token->type == MT_TPL_T_POW) {
        const mt_tpl_token *at = p->token++;

        left = mt_tpl_node_binary(p, MT_TPL_N_POW, at, left, parse_unary(p, true));
    }
    return left;
}

static bool product_op(mt_tpl_token_type type, mt_tpl_node_type *op)
{
    switch (type) {
    case MT_TPL_T_MUL: *op = MT_TPL_N_MUL; return true;
    case MT_TPL_T_DIV: *op = MT_TPL_N_DIV; return true;
    case MT_TPL_T_FLOORDIV: *op = MT_TPL_N_FLOORDIV; return true;
    case MT_TPL_T_MOD: *op = MT_TPL_N_MOD; return true;
    default: return false;
    }
}

static mt_tpl_node *parse_product(mt_tpl_parser *p)
{
    mt_tpl_node *left = parse_pow(p);
    mt_tpl_node_type op;

    while (left && product_op(p->token->type, &op)) {
        const mt_tpl_token *at = p->token++;

        left = mt_tpl_node_binary(p, op, at, left, parse_pow(p));
    }
    return left;
}

static mt_tpl_node *parse_concat(mt_tpl_parser *p)
{
    const mt_tpl_token *at = p->token;
    mt_tpl_node *first = parse_product(p), *concat;

    if (!first || p->token->type != MT_TPL_T_TILDE)
        return first;
    concat = mt_tpl_node_new(p, MT_TPL_N_CONCAT, at);
    if (!concat || !mt_tpl_nodes_add(p, &concat->list, first))
        return NULL;
    while (mt_tpl_accept(p, MT_TPL_T_TILDE))
        if (!mt_tpl_nodes_add(p, &concat->list, parse_product(p)))
            return NULL;
    return mt_tpl_node_checked(p, concat);
}

static mt_tpl_node *parse_sum(mt_tpl_parser *p)
{
    mt_tpl_node *left = parse_concat(p);

    while (left && (p->token->type == MT_TPL_T_ADD || p->token->type == MT_TPL_T_SUB)) {
        const mt_tpl_token *at = p->token++;

        left = mt_tpl_node_binary(p, at->type == MT_TPL_T_ADD ? MT_TPL_N_ADD : MT_TPL_N_SUB, at, left, parse_concat(p));
    }
    return left;
}

/* Reads a comparison operator, which may be two words. False: there is none. */
static bool accept_compare_op(mt_tpl_parser *p, mt_tpl_compare_op *op)
{
    switch (p->token->type) {
    case MT_TPL_T_EQ: *op = MT_TPL_OP_EQ; break;
    case MT_TPL_T_NE: *op = MT_TPL_OP_NE; break;
    case MT_TPL_T_LT: *op = MT_TPL_OP_LT; break;
    case MT_TPL_T_LE: *op = MT_TPL_OP_LE; break;
    case MT_TPL_T_GT: *op = MT_TPL_OP_GT; break;
    case MT_TPL_T_GE: *op = MT_TPL_OP_GE; break;
    default:
        if (mt_tpl_token_is(p->token, "in"))
            *op = MT_TPL_OP_IN;
        else if (mt_tpl_token_is(p->token, "not") && mt_tpl_token_is(p->token + 1, "in")) {
            *op = MT_TPL_OP_NOT_IN;
            p->token++;
        } else
            return false;
    }
    p->token++;
    return true;
}

static mt_tpl_node *parse_compare(mt_tpl_parser *p)
{
    const mt_tpl_token *at = p->token;
    mt_tpl_node *first = parse_sum(p), *node = NULL;
    mt_tpl_compare_op op, *ops;

    while (first && accept_compare_op(p, &op)) {
        if (!node) {
            node = mt_tpl_node_new(p, MT_TPL_N_COMPARE, at);
            if (!node)
                return NULL;
            node->left = first;
        }
        ops = mt_tpl_alloc_array(p->run, node->list.count + 1, sizeof(*ops));
        if (!ops)
            return NULL;
        if (node->list.count)
            memcpy(ops, node->ops, node->list.count * sizeof(*ops));
        ops[node->list.count] = op;
        node->ops = ops;
        if (!mt_tpl_nodes_add(p, &node->list, parse_sum(p)))
            return NULL;
    }
    return node ? mt_tpl_node_checked(p, node) : first;
}

static mt_tpl_node *parse_not(mt_tpl_parser *p)
{
    const mt_tpl_token *at = p->token;
    mt_tpl_node *node;

    if (!mt_tpl_accept_word(p, "not"))
        return parse_compare(p);
    if (!mt_tpl_parse_enter(p))
        return NULL;
    node = mt_tpl_node_unary(p, MT_TPL_N_NOT, at, parse_not(p));
    mt_tpl_parse_leave(p);
    return node;
}

static mt_tpl_node *parse_and(mt_tpl_parser *p)
{
    mt_tpl_node *left = parse_not(p);
    const mt_tpl_token *at;

    while (left && (at = p->token, mt_tpl_accept_word(p, "and")))
        left = mt_tpl_node_binary(p, MT_TPL_N_AND, at, left, parse_not(p));
    return left;
}

mt_tpl_node *mt_tpl_parse_no_condition(mt_tpl_parser *p)
{
    mt_tpl_node *left = parse_and(p);
    const mt_tpl_token *at;

    while (left && (at = p->token, mt_tpl_accept_word(p, "or")))
        left = mt_tpl_node_binary(p, MT_TPL_N_OR, at, left, parse_and(p));
    return left;
}

mt_tpl_node *mt_tpl_parse_expression(mt_tpl_parser *p)
{
    mt_tpl_node *then = NULL;
    const mt_tpl_token *at;

    if (!mt_tpl_parse_enter(p))
        return NULL;
    then = mt_tpl_parse_no_condition(p);
    while (then && (at = p->token, mt_tpl_accept_word(p, "if"))) {
        mt_tpl_node *node = mt_tpl_node_binary(p, MT_TPL_N_CONDITION, at, then, mt_tpl_parse_no_condition(p));

        if (node && mt_tpl_accept_word(p, "else")) {
            node->third = mt_tpl_parse_expression(p);
            node = node->third ? mt_tpl_node_checked(p, node) : NULL;
        }
        then = node;
    }
    mt_tpl_parse_leave(p);
    return then;
}
