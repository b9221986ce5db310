#include "engine/clients.h"

#include <math.h>

#define HALF_LIFE 5e9 /* nanoseconds */

static double faded(double seconds, uint64_t when, uint64_t now)
{
    return seconds * exp2(-(double)(now - when) / HALF_LIFE);
}

static size_t find(const mt_clients *c, uint64_t client)
{
    size_t i = 0;
    while (i < c->count && c->entry[i].client != client)
        i++;
    return i;
}

double mt_clients_debt(const mt_clients *c, uint64_t client, uint64_t now)
{
    const size_t i = find(c, client);
    return i < c->count ? faded(c->entry[i].seconds, c->entry[i].when, now) : 0;
}

static size_t least_indebted(const mt_clients *c, uint64_t now)
{
    size_t best = 0;
    for (size_t i = 1; i < c->count; i++)
        if (faded(c->entry[i].seconds, c->entry[i].when, now) < faded(c->entry[best].seconds, c->entry[best].when, now))
            best = i;
    return best;
}

void mt_clients_charge(mt_clients *c, uint64_t client, double seconds, uint64_t now)
{
    size_t i = find(c, client);
    if (i == c->count) {
        i = c->count < MT_CLIENTS ? c->count++ : least_indebted(c, now);
        c->entry[i].client = client;
        c->entry[i].seconds = 0;
        c->entry[i].when = now;
    }
    c->entry[i].seconds = faded(c->entry[i].seconds, c->entry[i].when, now) + seconds;
    c->entry[i].when = now;
}
