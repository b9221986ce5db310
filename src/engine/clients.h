/* Clients that share something: how many seats each has and how much time it has had lately, so that a client with many
   requests does not crowd out the others. The engine, each lane of preparation and the fleet have a table of their own;
   whoever has it calls from one thread at a time. */
#ifndef MT_ENGINE_CLIENTS_H
#define MT_ENGINE_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most clients without requests whose debt is remembered; the one with the least debt is forgotten first. */
#define MT_CLIENTS 64

/* The client of a request, as its submitter says. */
typedef struct mt_client {
    uint64_t id;
    uint32_t share; /* weight among the other clients: with 2 a client gets twice as much as with 1; at least 1 */
    bool last;      /* a batch: it has a seat only while no client that is not last wants it */
} mt_client;

/* The engine's record of a client. */
typedef struct mt_client_record {
    mt_client client;
    double seconds; /* seconds of the machine that it has had, decayed until `when` */
    uint64_t when;  /* mt_clock_ns */
    size_t here;    /* its sequences and texts that wait or run */
    size_t running; /* its sequences that run: the seats it has */

    /* valid while a step is planned */
    double debt;   /* mt_client_record_debt at this step */
    size_t eager;  /* its waiting sequences that could go on */
    size_t first;  /* index of the first of these among all waiting sequences */
    size_t places; /* seats that it may take in this step */
    size_t looks;  /* its waiting sequences that may still be considered */
} mt_client_record;

typedef struct mt_clients {
    mt_client_record *client_record;
    size_t count, most;
} mt_clients;

/* here: most clients that have requests at the same time. Free with mt_clients_free. */
void mt_clients_init(mt_clients *clients, size_t here);
void mt_clients_free(mt_clients *clients);

/* Finds or makes the record of a client and adds `count` to its `here`. The record does not move while `here` is above
   0. `here` is counted down where a sequence ends. */
mt_client_record *mt_clients_enter(mt_clients *clients, const mt_client *client, size_t count, uint64_t now);

/* Debt: seconds of the machine the client has had, halved for every five seconds that have passed, divided by its
   share. Charging adds to it. now: mt_clock_ns. */
double mt_client_record_debt(const mt_client_record *client_record, uint64_t now);
void mt_client_record_charge(mt_client_record *client_record, double seconds, uint64_t now);

/* The debt of a client; 0 where nothing is known of it. */
double mt_clients_debt(const mt_clients *clients, const mt_client *client, uint64_t now);

/* Compares the seats of two clients, divided by their shares, as if a had more_a and b more_b seats more (or fewer):
   below 0: a has fewer. A client that is last counts as having more than any that is not. */
int mt_client_record_compare(const mt_client_record *a, int more_a, const mt_client_record *b, int more_b);

/* The client that gets the next free seat: of those with more eager sequences than places, the one with the fewest
   seats and places; of equals, the one with the least debt; then the one whose sequence waits first. NULL: none wants a
   seat. */
mt_client_record *mt_clients_next(const mt_clients *clients);

#endif
