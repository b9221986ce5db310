/* A merge sort: see sort.h. */
#include "template/sort.h"

#include <string.h>

#include "template/compare.h"

/* A sort in progress: indexes of values in order, and space to merge them. */
typedef struct sorter {
    mt_tpl_run *run;
    const mt_tpl_value *keys;
    size_t *order, *spare;
    bool reverse;
} sorter;

/* Whether b must stand before a, which stands before it now. */
static bool is_before(sorter *s, size_t b, size_t a)
{
    return mt_tpl_compare(s->run, '<', s->keys[s->reverse ? a : b], s->keys[s->reverse ? b : a]);
}

static bool merge(sorter *s, size_t begin, size_t middle, size_t end)
{
    size_t left = begin, right = middle, n = begin;

    while (left < middle && right < end && mt_tpl_charge(s->run, 1))
        s->spare[n++] = is_before(s, s->order[right], s->order[left]) ? s->order[right++] : s->order[left++];
    if (s->run->failed)
        return false;
    while (left < middle)
        s->spare[n++] = s->order[left++];
    while (right < end)
        s->spare[n++] = s->order[right++];
    memcpy(s->order + begin, s->spare + begin, (end - begin) * sizeof(*s->order));
    return true;
}

bool mt_tpl_sort(mt_tpl_run *run, mt_tpl_value *values, const mt_tpl_value *keys, size_t count, bool reverse)
{
    sorter s = {.run = run, .keys = keys, .reverse = reverse};
    mt_tpl_value *sorted;

    if (count < 2)
        return true;
    s.order = mt_tpl_alloc_array(run, count, sizeof(*s.order));
    s.spare = mt_tpl_alloc_array(run, count, sizeof(*s.spare));
    sorted = mt_tpl_alloc_array(run, count, sizeof(*sorted));
    if (!s.order || !s.spare || !sorted)
        return false;
    for (size_t i = 0; i < count; i++)
        s.order[i] = i;
    for (size_t width = 1; width < count; width *= 2)
        for (size_t begin = 0; begin + width < count; begin += 2 * width)
            if (!merge(&s, begin, begin + width, begin + 2 * width < count ? begin + 2 * width : count))
                return false;
    for (size_t i = 0; i < count; i++)
        sorted[i] = values[s.order[i]];
    memcpy(values, sorted, count * sizeof(*sorted));
    return true;
}
