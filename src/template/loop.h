/* The variable `loop` of a for loop. */
#ifndef MT_TEMPLATE_LOOP_H
#define MT_TEMPLATE_LOOP_H

#include "template/builtin.h"

typedef struct mt_tpl_loop {
    struct mt_tpl_iter *iter;
    mt_tpl_value iterable;
    int64_t index0; /* -1: before the first item */
    int64_t depth0;
    int64_t length;                      /* -1: not known yet */
    mt_tpl_value before, current, after; /* after: fetched in advance, or MISSING */
    mt_tpl_value changed;                /* arguments of the last call of loop.changed */
    const struct mt_tpl_node *node;      /* of a recursive loop; else NULL */
    struct mt_tpl_activation *outer;     /* activation around a recursive loop */
} mt_tpl_loop;

bool mt_tpl_loop_attribute(mt_tpl_run *run, mt_tpl_loop *loop, const mt_tpl_str *name, mt_tpl_value *out);
void mt_tpl_loop_repr(mt_tpl_build *b, mt_tpl_loop *loop);

/* loop(items) in a recursive loop: the text of the loop over those items. */
bool mt_tpl_call_loop(mt_tpl_run *run, mt_tpl_loop *loop, const mt_tpl_args *args, mt_tpl_value *out);

#endif
