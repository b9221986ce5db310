/* Turns at the processor: who computes in steps takes the lease for each, and gets it in the order of asking. So two
   models in one process slow each other down, by one step of the other's at most, and never fight for cores. */
#ifndef MT_BASE_LEASE_H
#define MT_BASE_LEASE_H

#include <pthread.h>
#include <stdint.h>

typedef struct mt_lease {
    pthread_mutex_t lock;
    pthread_cond_t passed;
    uint64_t next, now; /* the number that the next one draws, and the one whose turn it is */
} mt_lease;

void mt_lease_init(mt_lease *lease);
void mt_lease_free(mt_lease *lease);

/* NULL is fine: nobody else is there. */
void mt_lease_take(mt_lease *lease);
void mt_lease_give(mt_lease *lease);

#endif
