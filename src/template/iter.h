/* Iteration. As in Python it is lazy: an item is made when it is asked for, and a generator can be iterated over only
   once. */
#ifndef MT_TEMPLATE_ITER_H
#define MT_TEMPLATE_ITER_H

#include "template/value.h"

typedef enum mt_tpl_step { MT_TPL_END, MT_TPL_ITEM, MT_TPL_FAILED } mt_tpl_step;
struct mt_tpl_iter;
typedef mt_tpl_step mt_tpl_next_fn(mt_tpl_run *run, struct mt_tpl_iter *iter, mt_tpl_value *out);

typedef struct mt_tpl_iter {
    mt_tpl_next_fn *next;
    const char *type;          /* Python's name of the iterator's type */
    mt_tpl_value source;       /* what is iterated over */
    size_t at;                 /* position, in a unit of the function next */
    struct mt_tpl_iter *inner; /* of a generator: where its items come from */
    void *state;               /* of a generator: its own */
    bool done;                 /* the end was reached */
} mt_tpl_iter;

/* iter(v). NULL: the run has failed, with Python's message where v is not iterable. */
mt_tpl_iter *mt_tpl_iterate(mt_tpl_run *run, mt_tpl_value v) MT_NODISCARD;
bool mt_tpl_is_iterable(mt_tpl_value v);
mt_tpl_step mt_tpl_next(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out) MT_NODISCARD;

/* reversed(v). NULL: Python cannot reverse it, or the run has failed. */
mt_tpl_iter *mt_tpl_reversed(mt_tpl_run *run, mt_tpl_value v) MT_NODISCARD;

/* A generator whose items the function next makes from the items of `from`. It has a copy of the state. */
bool mt_tpl_generator(mt_tpl_run *run, mt_tpl_value from, mt_tpl_next_fn *next, const void *state, size_t size,
                      mt_tpl_value *out);

/* Appends every item of v to items; every pair of key and value. */
bool mt_tpl_collect(mt_tpl_run *run, mt_tpl_value v, mt_tpl_items *items);
bool mt_tpl_collect_pairs(mt_tpl_run *run, const mt_tpl_dict *dict, mt_tpl_items *items);

/* Unpacks v into exactly `count` values, as a, b = v does. */
bool mt_tpl_unpack(mt_tpl_run *run, mt_tpl_value v, size_t count, mt_tpl_value *out);

/* range(start, stop, step); step is not 0. Fails where it has more items than the limit. */
bool mt_tpl_set_range(mt_tpl_run *run, mt_tpl_value *out, int64_t start, int64_t stop, int64_t step);
mt_tpl_range mt_tpl_range_of(int64_t start, int64_t stop, int64_t step); /* with its count; step is not 0 */
int64_t mt_tpl_range_at(const mt_tpl_range *range, size_t i);

#endif
