/* See nearest.h. */
#include "base/nearest.h"

#include "base/compiler.h"

#include <string.h>

enum { LONGEST = 63 }; /* letters that are compared */

/* The number of letters inserted, left out, replaced, or exchanged with their neighbour between a and b. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][LONGEST + 1]; /* the table's current row and the two before it */

    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            now[j] = MT_MIN(MT_MIN(above[j], now[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = MT_MIN(now[j], above2[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

void mt_nearest_init(mt_nearest *nearest, const char *name)
{
    *nearest = (mt_nearest){.name = name, .distance = (strlen(name) + 2) / 3 + 1};
}

void mt_nearest_offer(mt_nearest *nearest, const char *candidate)
{
    size_t name_len = strlen(nearest->name), len = strlen(candidate), d;

    if (name_len > LONGEST || len > LONGEST)
        return;
    if ((name_len > len ? name_len - len : len - name_len) >= nearest->distance)
        return; /* so many letters at least are inserted or left out */
    d = distance(nearest->name, name_len, candidate, len);
    if (d < nearest->distance) {
        nearest->distance = d;
        nearest->best = candidate;
    }
}
