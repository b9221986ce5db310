/* Locally typical sampling (typical.h). */
#include "sample/typical.h"

#include <math.h>

/* Positions as a heap: nearest to the entropy on top; of equals, the better candidate first. */
typedef struct heap {
    const float *distance;
    uint32_t *at;
    size_t count;
} heap;

/* Fills distance[count] with | -log p - entropy |. Sums are in double, in the order of the candidates. */
static void measure(const mt_candidates *c, size_t count, uint64_t total, float *distance)
{
    float mass = (float)((double)total / (double)MT_MASS_ONE), log_mass;
    double entropy = 0;
    c->k->log(&log_mass, &mass, 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t m = mt_candidates_mass(c, i);
        if (m > 0)
            entropy += (double)m / (double)total * ((double)log_mass - (double)mt_candidates_scaled(c, i));
    }
    for (size_t i = 0; i < count; i++)
        distance[i] = (float)fabs((double)log_mass - (double)mt_candidates_scaled(c, i) - entropy);
}

static bool before(const heap *h, uint32_t a, uint32_t b)
{
    return h->distance[a] < h->distance[b] || (h->distance[a] == h->distance[b] && a < b);
}

static void sink(heap *h, size_t i)
{
    uint32_t moving = h->at[i];
    for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count && before(h, h->at[child + 1], h->at[child]))
            child++;
        if (!before(h, h->at[child], moving))
            break;
        h->at[i] = h->at[child];
    }
    h->at[i] = moving;
}

static uint32_t pop(heap *h)
{
    uint32_t top = h->at[0];
    h->at[0] = h->at[--h->count];
    sink(h, 0);
    return top;
}

size_t mt_typical(const mt_candidates *c, size_t count, float typical_p, uint64_t *total, const uint32_t **kept)
{
    float *distance = (float *)(void *)c->ranking->spare;
    uint32_t *at = (uint32_t *)(void *)(distance + count);
    heap h = {.distance = distance, .at = at, .count = count};
    uint64_t mass = 0, enough = mt_mass_share(typical_p, *total);
    size_t n = 0;
    measure(c, count, *total, distance);
    for (size_t i = 0; i < count; i++)
        at[i] = (uint32_t)i;
    for (size_t i = count / 2; i > 0; i--)
        sink(&h, i - 1);
    while (mass < enough && h.count > 0) {
        uint32_t top = pop(&h);
        distance[top] = -1.0f; /* marks it as kept; it is not compared any more */
        mass += mt_candidates_mass(c, top);
    }
    for (size_t i = 0; i < count; i++)
        if (distance[i] < 0.0f)
            at[n++] = (uint32_t)i;
    *total = mass;
    *kept = at;
    return n;
}
