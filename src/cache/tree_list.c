/* Doubly linked lists of nodes: of each group's idle pages, oldest use first, and of nodes that are not resident. */
#include "cache/tree_inside.h"

void mt_tree_leave(mt_tree_list *l, size_t g, mt_node *n)
{
    mt_tree_link *at = &n->idle[g];
    *(at->before ? &at->before->idle[g].after : &l->oldest) = at->after;
    *(at->after ? &at->after->idle[g].before : &l->newest) = at->before;
    *at = (mt_tree_link){0};
    l->count--;
}

void mt_tree_join(mt_tree_list *l, size_t g, mt_node *n, bool oldest)
{
    mt_tree_link *at = &n->idle[g];
    *at = oldest ? (mt_tree_link){.after = l->oldest} : (mt_tree_link){.before = l->newest};
    *(at->before ? &at->before->idle[g].after : &l->oldest) = n;
    *(at->after ? &at->after->idle[g].before : &l->newest) = n;
    l->count++;
}
