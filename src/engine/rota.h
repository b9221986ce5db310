/* Turns on a device that several engines share: one engine computes at a time, for one step. See rota.c. */
#ifndef MT_ENGINE_ROTA_H
#define MT_ENGINE_ROTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mt_rota mt_rota;

/* An engine's place in a rota. Zeroed before its first use. */
typedef struct mt_rota_place {
    struct mt_rota_place *next;
    double had;     /* the rota's: seconds of turns it had, raised after a pause to what the others had */
    uint64_t began; /* mt_clock_ns when its turn began */
} mt_rota_place;

/* Free with mt_rota_free, when no engine has a turn or wants one. */
mt_rota *mt_rota_new(void);
void mt_rota_free(mt_rota *rota); /* NULL is fine */

/* Waits for a turn: of the engines that wait, the one that had the least time goes first. What the engine before has
   written to memory is visible afterwards. */
void mt_rota_begin(mt_rota *rota, mt_rota_place *place);
void mt_rota_end(mt_rota *rota, mt_rota_place *place);

/* How many engines have a turn or wait for one. */
size_t mt_rota_wanting(mt_rota *rota);

#endif
