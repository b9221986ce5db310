/* Makes nodes of the syntax tree, for the parser. */
#include "template/ast.h"

#include <string.h>

#include "template/limits.h"
#include "template/parser.h"

mt_tpl_node *mt_tpl_node_new(mt_tpl_parser *p, mt_tpl_node_type type, const mt_tpl_token *at)
{
    mt_tpl_node *node = mt_tpl_alloc(p->run, sizeof(*node));

    node = node ? node : &p->none;
    node->type = type;
    node->place = at->place;
    node->height = 1;
    return node;
}

void mt_tpl_nodes_add(mt_tpl_parser *p, mt_tpl_nodes *list, mt_tpl_node *node)
{
    if (!p->run->failed && mt_tpl_grow(p->run, &list->at, list->count, 1, &list->cap, sizeof(mt_tpl_node *)))
        list->at[list->count++] = node;
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

void mt_tpl_node_check_height(mt_tpl_parser *p, const mt_tpl_node *node)
{
    if (node->height > MT_LIMIT_TEMPLATE_NESTING)
        mt_tpl_fail_nesting(p, node->place);
}

mt_tpl_node *mt_tpl_node_checked(mt_tpl_parser *p, mt_tpl_node *node)
{
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
    mt_tpl_node_check_height(p, node);
    return node;
}

mt_tpl_node *mt_tpl_node_of(mt_tpl_parser *p, mt_tpl_node_type type, const mt_tpl_token *at, mt_tpl_node *left,
                            mt_tpl_node *right)
{
    mt_tpl_node *node = mt_tpl_node_new(p, type, at);

    node->left = left;
    node->right = right;
    return mt_tpl_node_checked(p, node);
}
