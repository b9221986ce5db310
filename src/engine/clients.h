/* How much of the machine each client has had lately, so that one with many requests does not crowd out the others. */
#ifndef MT_ENGINE_CLIENTS_H
#define MT_ENGINE_CLIENTS_H

#include <stddef.h>
#include <stdint.h>

#define MT_CLIENTS 64 /* that are remembered; the least indebted gives way */

typedef struct mt_client {
    uint64_t id;
    uint32_t share; /* of what there is, beside the others': who has 2 gets twice as much as who has 1; at least 1 */
} mt_client;

typedef struct mt_clients {
    struct {
        uint64_t client;
        double seconds; /* as of `when` */
        uint64_t when;
    } entry[MT_CLIENTS];
    size_t count;
} mt_clients;

/* Seconds of the machine, half as much for every five seconds that have passed. now: mt_clock_ns. */
double mt_clients_debt(const mt_clients *clients, uint64_t client, uint64_t now);
void mt_clients_charge(mt_clients *clients, uint64_t client, double seconds, uint64_t now);

#endif
