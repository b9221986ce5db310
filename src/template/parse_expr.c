/* Parses operators, from the tightest binding to the loosest. */
#include "template/parser.h"

static mt_tpl_node *parse_unary(mt_tpl_parser *p, bool with_filter)
{
    const mt_tpl_token *at = p->token;
    mt_tpl_node *node;

    if (!mt_tpl_parse_enter(p))
        return &p->none;
    if (mt_tpl_accept(p, '-'))
        node = mt_tpl_node_of(p, MT_TPL_N_NEG, at, parse_unary(p, false), NULL);
    else if (mt_tpl_accept(p, '+'))
        node = mt_tpl_node_of(p, MT_TPL_N_POS, at, parse_unary(p, false), NULL);
    else
        node = mt_tpl_parse_primary(p);
    node = mt_tpl_parse_postfix(p, node);
    if (with_filter)
        node = mt_tpl_parse_filter_expr(p, node);
    mt_tpl_parse_leave(p);
    return node;
}

/* The operation of the operator that is read here, on left and what follows. */
static mt_tpl_node *parse_right(mt_tpl_parser *p, mt_tpl_node *left, mt_tpl_node *(*operand)(mt_tpl_parser *p))
{
    const mt_tpl_token *at = p->token++;
    mt_tpl_node *node = mt_tpl_node_of(p, MT_TPL_N_ARITHMETIC, at, left, operand(p));

    node->op = at->type;
    return node;
}

static mt_tpl_node *parse_operand(mt_tpl_parser *p)
{
    return parse_unary(p, true);
}

static mt_tpl_node *parse_pow(mt_tpl_parser *p)
{
    mt_tpl_node *left = parse_operand(p);

    while (p->token->type == MT_TPL_POW)
        left = parse_right(p, left, parse_operand);
    return left;
}

static mt_tpl_node *parse_product(mt_tpl_parser *p)
{
    mt_tpl_node *left = parse_pow(p);

    while (p->token->type == '*' || p->token->type == '/' || p->token->type == MT_TPL_FLOORDIV || p->token->type == '%')
        left = parse_right(p, left, parse_pow);
    return left;
}

static mt_tpl_node *parse_concat(mt_tpl_parser *p)
{
    const mt_tpl_token *at = p->token;
    mt_tpl_node *first = parse_product(p), *concat;

    if (p->token->type != '~')
        return first;
    concat = mt_tpl_node_new(p, MT_TPL_N_CONCAT, at);
    mt_tpl_nodes_add(p, &concat->list, first);
    while (mt_tpl_accept(p, '~'))
        mt_tpl_nodes_add(p, &concat->list, parse_product(p));
    return mt_tpl_node_checked(p, concat);
}

static mt_tpl_node *parse_sum(mt_tpl_parser *p)
{
    mt_tpl_node *left = parse_concat(p);

    while (p->token->type == '+' || p->token->type == '-')
        left = parse_right(p, left, parse_concat);
    return left;
}

/* Reads a comparison operator, which may be two words. False: there is none. */
static bool accept_comparison(mt_tpl_parser *p, mt_tpl_operator *op)
{
    const bool not_in = mt_tpl_token_is(p->token, "not") && mt_tpl_token_is(p->token + 1, "in");

    *op = p->token->type;
    if (not_in || mt_tpl_token_is(p->token, "in"))
        *op = not_in ? MT_TPL_NOT_IN : MT_TPL_IN;
    else if (*op != '<' && *op != '>' && (*op < MT_TPL_EQ || *op > MT_TPL_LE))
        return false;
    p->token += not_in ? 2 : 1;
    return true;
}

static mt_tpl_node *parse_compare(mt_tpl_parser *p)
{
    const mt_tpl_token *at = p->token;
    mt_tpl_node *first = parse_sum(p), *node = NULL;
    mt_tpl_operator op;
    size_t cap = 0;

    while (accept_comparison(p, &op)) {
        node = node ? node : mt_tpl_node_of(p, MT_TPL_N_COMPARE, at, first, NULL);
        if (mt_tpl_grow(p->run, &node->ops, node->list.count, 1, &cap, sizeof(op)))
            node->ops[node->list.count] = op;
        mt_tpl_nodes_add(p, &node->list, parse_sum(p));
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
        return &p->none;
    node = mt_tpl_node_of(p, MT_TPL_N_NOT, at, parse_not(p), NULL);
    mt_tpl_parse_leave(p);
    return node;
}

static mt_tpl_node *parse_and(mt_tpl_parser *p)
{
    mt_tpl_node *left = parse_not(p);
    const mt_tpl_token *at;

    while ((at = p->token, mt_tpl_accept_word(p, "and")))
        left = mt_tpl_node_of(p, MT_TPL_N_AND, at, left, parse_not(p));
    return left;
}

mt_tpl_node *mt_tpl_parse_no_condition(mt_tpl_parser *p)
{
    mt_tpl_node *left = parse_and(p);
    const mt_tpl_token *at;

    while ((at = p->token, mt_tpl_accept_word(p, "or")))
        left = mt_tpl_node_of(p, MT_TPL_N_OR, at, left, parse_and(p));
    return left;
}

mt_tpl_node *mt_tpl_parse_expression(mt_tpl_parser *p)
{
    const mt_tpl_token *at;
    mt_tpl_node *node;

    if (!mt_tpl_parse_enter(p))
        return &p->none;
    node = mt_tpl_parse_no_condition(p);
    while ((at = p->token, mt_tpl_accept_word(p, "if"))) {
        node = mt_tpl_node_of(p, MT_TPL_N_CONDITION, at, node, mt_tpl_parse_no_condition(p));
        if (mt_tpl_accept_word(p, "else"))
            node->third = mt_tpl_parse_expression(p);
        mt_tpl_node_checked(p, node);
    }
    mt_tpl_parse_leave(p);
    return node;
}
