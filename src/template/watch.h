/* Where in the text the items of a list came out: which loop over it wrote what. */
#ifndef MT_TEMPLATE_WATCH_H
#define MT_TEMPLATE_WATCH_H

#include "template/template.h"
#include "template/value.h"

typedef struct mt_tpl_watch {
    const mt_tpl_build *out; /* where the text of the template goes; what is written elsewhere is not looked at */
    mt_mark *marks;
    size_t count, cap;
} mt_tpl_watch;

/* Marks the dicts of a list, so that a round knows them at once; anything else is not watched. */
void mt_tpl_watch_list(mt_tpl_value list);

/* Around one round of a loop over anything: begin returns a mark for end, or MT_TPL_UNCOUNTED when the item is not one
   of the list. Memory that runs out fails the run. */
size_t mt_tpl_watch_begin(mt_tpl_run *run, mt_tpl_watch *watch, mt_tpl_value item, const mt_tpl_build *out);
void mt_tpl_watch_end(mt_tpl_watch *watch, size_t mark);

#endif
