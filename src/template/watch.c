#include "template/watch.h"

#include <string.h>

enum { MARKS_FIRST = 16 };

/* Which item of the list this is. Loops mostly go forwards, so the search begins behind the last one found. */
static size_t find(mt_tpl_watch *watch, mt_tpl_value item)
{
    size_t count = watch->list->count;

    for (size_t i = 0; i < count; i++) {
        size_t at = (watch->next + i) % count;

        if (watch->list->at[at].kind == MT_TPL_DICT && watch->list->at[at].as.dict == item.as.dict) {
            watch->next = at + 1;
            return at;
        }
    }
    return MT_TPL_UNCOUNTED;
}

size_t mt_tpl_watch_begin(mt_tpl_run *run, mt_tpl_watch *watch, mt_tpl_value item, const mt_tpl_build *out)
{
    size_t at;

    if (!watch || !watch->list || watch->out != out || item.kind != MT_TPL_DICT)
        return MT_TPL_UNCOUNTED;
    at = find(watch, item);
    if (at == MT_TPL_UNCOUNTED)
        return at;
    if (watch->count == watch->cap) {
        size_t cap = watch->cap ? watch->cap * 2 : MARKS_FIRST;
        mt_mark *marks = mt_tpl_alloc_array(run, cap, sizeof(*marks));

        if (!marks)
            return MT_TPL_UNCOUNTED;
        if (watch->count)
            memcpy(marks, watch->marks, watch->count * sizeof(*marks));
        watch->marks = marks;
        watch->cap = cap;
    }
    watch->marks[watch->count] = (mt_mark){.item = at, .bytes = {.begin = out->len, .end = out->len}};
    return watch->count++;
}

void mt_tpl_watch_end(mt_tpl_watch *watch, size_t mark)
{
    if (mark != MT_TPL_UNCOUNTED)
        watch->marks[mark].bytes.end = watch->out->len;
}
