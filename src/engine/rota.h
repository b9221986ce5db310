/* Turns on one device that several engines share: one of them computes at a time, for a step. See rota.c. */
#ifndef MT_ENGINE_ROTA_H
#define MT_ENGINE_ROTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mt_rota mt_rota;

/* An engine's place. A zeroed one is new. */
typedef struct mt_rota_place {
    struct mt_rota_place *next;
    double had;     /* seconds of turns, or what others had while it wanted none; the rota's */
    uint64_t began; /* mt_clock_ns of its turn */
} mt_rota_place;

/* Free with mt_rota_free, when nobody has a turn or wants one. */
mt_rota *mt_rota_new(void);
void mt_rota_free(mt_rota *rota); /* NULL is fine */

/* Waits for a turn; of those who wait the one has it that had the least until now. What the one before has written is
   seen. */
void mt_rota_begin(mt_rota *rota, mt_rota_place *place);
void mt_rota_end(mt_rota *rota, mt_rota_place *place);

/* How many have a turn or wait for one. */
size_t mt_rota_wanting(mt_rota *rota);

#endif
