/* Who the machine is shared by: what each client has of it now and has had lately, so that one with many requests does
   not crowd out the others. Owned by the engine's thread. */
#ifndef MT_ENGINE_CLIENTS_H
#define MT_ENGINE_CLIENTS_H

#include <stddef.h>
#include <stdint.h>

#define MT_CLIENTS 64 /* that are remembered, though they have no request any more; the least indebted gives way */

typedef struct mt_client {
    uint64_t id;
    uint32_t share; /* of what there is, beside the others': who has 2 gets twice as much as who has 1; at least 1 */
} mt_client;

/* A client as the engine knows it. */
typedef struct mt_guest {
    mt_client client;
    double seconds; /* of the machine, as of `when` */
    uint64_t when;
    size_t here;    /* its sequences that wait or run */
    size_t running; /* those that run: the seats it has */

    /* of the step that is being planned */
    double debt;   /* as of now */
    size_t eager;  /* its sequences that wait and could go on */
    size_t first;  /* where the first of them stands among all that wait */
    size_t places; /* seats that it may take */
    size_t looks;  /* of its sequences that may still be looked at */
} mt_guest;

typedef struct mt_clients {
    mt_guest *guest;
    size_t count, most;
} mt_clients;

/* Room for so many clients with requests at a time. Free with mt_clients_free. */
void mt_clients_init(mt_clients *clients, size_t here);
void mt_clients_free(mt_clients *clients);

/* The guest that a client is, with `count` sequences more; it stays where it is until the last of them has gone (who
   takes one away counts `here` down). */
mt_guest *mt_clients_enter(mt_clients *clients, const mt_client *client, size_t count, uint64_t now);

/* Seconds of the machine, half as much for every five seconds that have passed, by its share. now: mt_clock_ns. */
double mt_guest_debt(const mt_guest *guest, uint64_t now);
void mt_guest_charge(mt_guest *guest, double seconds, uint64_t now);

/* Which of the two has fewer seats, by their shares, with so many more (or less) than they have: below 0, a. */
int mt_guest_compare(const mt_guest *a, int more_a, const mt_guest *b, int more_b);

/* The one whose turn it is: of those with eager sequences beyond their places, that with the fewest seats and places;
   of equals, who has had the least lately; then who came first. NULL: nobody. */
mt_guest *mt_clients_next(const mt_clients *clients);

#endif
