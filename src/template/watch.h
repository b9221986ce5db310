/* Records which bytes of the text loops over a list wrote for each of its items (chat/prompt.c: where turns begin). */
#ifndef MT_TEMPLATE_WATCH_H
#define MT_TEMPLATE_WATCH_H

#include "template/template.h"
#include "template/value.h"

typedef struct mt_tpl_watch {
    const mt_tpl_build *out; /* the template's text; what is written elsewhere does not count */
    mt_mark *marks;
    size_t count, cap;
} mt_tpl_watch;

/* Marks the dicts of a list, so that a loop recognises them; other items are not watched. */
void mt_tpl_watch_list(mt_tpl_value list);

/* Around one round of any loop: mt_tpl_watch_begin returns a mark for mt_tpl_watch_end; MT_TPL_UNCOUNTED: the item is
   not watched, or the run has failed for lack of memory. */
size_t mt_tpl_watch_begin(mt_tpl_run *run, mt_tpl_watch *watch, mt_tpl_value item, const mt_tpl_build *out);
void mt_tpl_watch_end(mt_tpl_watch *watch, size_t mark);

#endif
