#include "engine/stats.h"

double mt_histogram_bound(size_t bucket)
{
    static const double steps[3] = {1, 2, 5};
    double bound = steps[bucket % 3];
    for (size_t i = 0; i < bucket / 3; i++)
        bound *= 10;
    return bound;
}

/* Bounds are compared in the value's own unit, as they are told: 10 ms is not above 0.01. */
static void add(mt_histogram *h, double value, double unit)
{
    size_t i = 0;
    while (i < MT_HISTOGRAM_BUCKETS && value > mt_histogram_bound(i) * unit)
        i++;
    if (i < MT_HISTOGRAM_BUCKETS)
        h->bucket[i]++;
    h->count++;
    h->sum += value;
}

/* Up to more than an hour. */
void mt_histogram_add(mt_histogram *h, double seconds)
{
    add(h, seconds, MT_HISTOGRAM_SECONDS);
}

void mt_histogram_count(mt_histogram *h, uint64_t count)
{
    add(h, (double)count, 1);
}
