/* Clients: the seats each has and its debt (clients.h). */
#include "engine/clients.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"

#define HALF_LIFE 5e9 /* nanoseconds in which a client's debt halves */

void mt_clients_init(mt_clients *c, size_t here)
{
    *c = (mt_clients){.most = MT_CLIENTS + here};
    c->client_record = mt_alloc_array(c->most, sizeof(*c->client_record));
}

void mt_clients_free(mt_clients *c)
{
    mt_free(c->client_record);
    *c = (mt_clients){0};
}

double mt_client_record_debt(const mt_client_record *g, uint64_t now)
{
    return g->seconds * exp2(-(double)(now - g->when) / HALF_LIFE) / g->client.share;
}

void mt_client_record_charge(mt_client_record *g, double seconds, uint64_t now)
{
    g->seconds = mt_client_record_debt(g, now) * g->client.share + seconds;
    g->when = now;
}

/* Of the clients without sequences, the one with the least debt; NULL: all have sequences. */
static mt_client_record *least_indebted(const mt_clients *c, uint64_t now)
{
    mt_client_record *best = NULL;
    for (size_t i = 0; i < c->count; i++) {
        mt_client_record *g = &c->client_record[i];
        if (g->here == 0 && (!best || mt_client_record_debt(g, now) < mt_client_record_debt(best, now)))
            best = g;
    }
    return best;
}

static mt_client_record *find(const mt_clients *c, const mt_client *client)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->client_record[i].client.id == client->id)
            return &c->client_record[i];
    return NULL;
}

double mt_clients_debt(const mt_clients *c, const mt_client *client, uint64_t now)
{
    const mt_client_record *g = find(c, client);
    return g ? mt_client_record_debt(g, now) : 0;
}

mt_client_record *mt_clients_enter(mt_clients *c, const mt_client *client, size_t count, uint64_t now)
{
    mt_client_record *g = find(c, client);
    if (!g) {
        g = c->count < MT_CLIENTS ? NULL : least_indebted(c, now);
        assert(g || c->count < c->most);
        g = g ? g : &c->client_record[c->count++];
        *g = (mt_client_record){.when = now};
    }
    g->client = *client;
    g->here += count;
    return g;
}

int mt_client_record_compare(const mt_client_record *a, int more_a, const mt_client_record *b, int more_b)
{
    const int64_t x = ((int64_t)a->running + more_a) * b->client.share;
    const int64_t y = ((int64_t)b->running + more_b) * a->client.share;
    return a->client.last != b->client.last ? (a->client.last ? 1 : -1) : (x > y) - (x < y);
}

static bool comes_before(const mt_client_record *a, const mt_client_record *b)
{
    const int fewer = mt_client_record_compare(a, (int)a->places, b, (int)b->places);
    if (fewer != 0)
        return fewer < 0;
    return a->debt != b->debt ? a->debt < b->debt : a->first < b->first;
}

mt_client_record *mt_clients_next(const mt_clients *c)
{
    mt_client_record *next = NULL;
    for (size_t i = 0; i < c->count; i++) {
        mt_client_record *g = &c->client_record[i];
        if (g->eager > g->places && (!next || comes_before(g, next)))
            next = g;
    }
    return next;
}
