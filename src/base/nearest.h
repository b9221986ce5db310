/* "Did you mean": finds the candidate closest to a mistyped name. */
#ifndef MT_BASE_NEAREST_H
#define MT_BASE_NEAREST_H

#include <stddef.h>

typedef struct mt_nearest {
    const char *name;
    const char *best; /* NULL while no candidate is close: at most one slip in three letters */
    size_t distance;
} mt_nearest;

void mt_nearest_init(mt_nearest *nearest, const char *name);       /* borrows name */
void mt_nearest_offer(mt_nearest *nearest, const char *candidate); /* borrows candidate */

#endif
