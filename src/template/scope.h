/* Decides which variable each name means, when a template is compiled. */
#ifndef MT_TEMPLATE_SCOPE_H
#define MT_TEMPLATE_SCOPE_H

#include "template/ast.h"

/* Gives every name of the tree its variable, and every scope its loads. *slots: variables of the top level. reads: gets
   the names that are looked up in the context, some more than once. blocks: gets all blocks. False: the run has failed,
   for what Jinja2's compiler refuses: unknown filters and tests, break outside of loops, setting `loop` in one, two
   blocks of a name. */
bool mt_tpl_scope_resolve(mt_tpl_run *run, const mt_tpl_nodes *body, mt_tpl_scope *root, uint32_t *slots,
                          mt_tpl_scope *reads, mt_tpl_blocks *blocks);

const mt_tpl_node *mt_tpl_block_find(const mt_tpl_blocks *blocks, const mt_tpl_str *name); /* NULL: there is none */

#endif
