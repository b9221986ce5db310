#include "engine/stats.h"

/* 1, 2, 5, 10, 20, 50 ... times 100 microseconds: up to more than an hour. */
double mt_histogram_bound(size_t bucket)
{
    static const double steps[3] = {1, 2, 5};
    double bound = 0.0001 * steps[bucket % 3];
    for (size_t i = 0; i < bucket / 3; i++)
        bound *= 10;
    return bound;
}

void mt_histogram_add(mt_histogram *h, double seconds)
{
    size_t i = 0;
    while (i < MT_HISTOGRAM_BUCKETS && seconds > mt_histogram_bound(i))
        i++;
    if (i < MT_HISTOGRAM_BUCKETS)
        h->bucket[i]++;
    h->count++;
    h->sum += seconds;
}
