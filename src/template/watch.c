/* See watch.h. */
#include "template/watch.h"

void mt_tpl_watch_list(mt_tpl_value list)
{
    for (size_t i = 0; list.kind == MT_TPL_LIST && i < list.as.list->count; i++)
        if (list.as.list->at[i].kind == MT_TPL_DICT)
            list.as.list->at[i].as.dict->watched = i + 1;
}

size_t mt_tpl_watch_begin(mt_tpl_run *run, mt_tpl_watch *watch, mt_tpl_value item, const mt_tpl_build *out)
{
    if (!watch || watch->out != out || item.kind != MT_TPL_DICT || item.as.dict->watched == 0 ||
        !mt_tpl_grow(run, &watch->marks, watch->count, 1, &watch->cap, sizeof(*watch->marks)))
        return MT_TPL_UNCOUNTED;
    watch->marks[watch->count] =
        (mt_mark){.item = item.as.dict->watched - 1, .bytes = {.begin = out->len, .end = out->len}};
    return watch->count++;
}

void mt_tpl_watch_end(mt_tpl_watch *watch, size_t mark)
{
    if (mark != MT_TPL_UNCOUNTED)
        watch->marks[mark].bytes.end = watch->out->len;
}
