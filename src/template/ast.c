/* Makes nodes of the syntax tree, for the parser. */
#include "template/ast.h"

#include <string.h>

#include "base/limits.h"
#include "template/parser.h"

mt_tpl_node *mt_tpl_node_new(mt_tpl_parser *p, mt_tpl_node_type type, const mt_tpl_token *at)
{
    mt_tpl_node *node = mt_tpl_alloc(p->run, sizeof(*node));

    if (!node)
        return NULL;
    node->type = type;
    node->place = at->place;
    node->height = 1;
    return node;
}

bool mt_tpl_nodes_add(mt_tpl_parser *p, mt_tpl_nodes *list, mt_tpl_node *node)
{
    if (!node || !mt_tpl_grow(p->run, &list->at, list->count, 1, &list->cap, sizeof(mt_tpl_node *)))
        return false;
    list->at[list->count++] = node;
    return true;
}

void mt_tpl_node_raise(mt_tpl_node *node, const mt_tpl_node *child)
{
    if (child && child->height >= node->height)
        node->height = child->height + 1;
}

static void raise_list(mt_tpl_node *node, const mt_tpl_nodes *list)
{
    for (size_t i = 0; i < list->count; i++)
        mt_tpl_node_raise(node, list->at[i]);
}

bool mt_tpl_node_check_height(mt_tpl_parser *p, const mt_tpl_node *node)
{
    return node->height <= MT_LIMIT_TEMPLATE_NESTING || mt_tpl_fail_nesting(p, node->place);
}

bool mt_tpl_node_check(mt_tpl_parser *p, mt_tpl_node *node)
{
    if (!node)
        return false;
    mt_tpl_node_raise(node, node->left);
    mt_tpl_node_raise(node, node->right);
    mt_tpl_node_raise(node, node->third);
    raise_list(node, &node->list);
    raise_list(node, &node->body);
    raise_list(node, &node->orelse);
    if (node->args) {
        raise_list(node, &node->args->at);
        raise_list(node, &node->args->named);
        mt_tpl_node_raise(node, node->args->star);
        mt_tpl_node_raise(node, node->args->star_star);
    }
    if (node->params)
        raise_list(node, &node->params->defaults);
    return mt_tpl_node_check_height(p, node);
}

mt_tpl_node *mt_tpl_node_checked(mt_tpl_parser *p, mt_tpl_node *node)
{
    return mt_tpl_node_check(p, node) ? node : NULL;
}

mt_tpl_node *mt_tpl_node_binary(mt_tpl_parser *p, mt_tpl_node_type type, const mt_tpl_token *at, mt_tpl_node *left,
                                mt_tpl_node *right)
{
    mt_tpl_node *node = left && right ? mt_tpl_node_new(p, type, at) : NULL;

    if (!node)
        return NULL;
    node->left = left;
    node->right = right;
    return mt_tpl_node_checked(p, node);
}

mt_tpl_node *mt_tpl_node_unary(mt_tpl_parser *p, mt_tpl_node_type type, const mt_tpl_token *at, mt_tpl_node *operand)
{
    mt_tpl_node *node = operand ? mt_tpl_node_new(p, type, at) : NULL;

    if (!node)
        return NULL;
    node->left = operand;
    return mt_tpl_node_checked(p, node);
}
