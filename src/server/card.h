/* What the folder of a model says of itself, for lists that people choose from: read from its config and the headers of
   its weights, whether or not it is loaded, and kept. */
#ifndef MT_SERVER_CARD_H
#define MT_SERVER_CARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct mt_card {
    char *dir;             /* free with mt_free */
    char family[48];       /* model_type of config.json; "" where it has none */
    char size[16];         /* its parameters in short: "7.6B" */
    char quantisation[48]; /* of most of its weights: "affine 4-bit group 64", "BF16" */
    char digest[65];       /* hexadecimal: another where the folder holds another model */
    uint64_t bytes;        /* of its weights */
    uint64_t parameters;
    int64_t modified;                                            /* seconds since 1970 */
    int64_t context, width, layers, heads, kv_heads, ffn, vocab; /* 0: its config does not say */
} mt_card;

/* Cards that were read, and stay until the end. Any thread. */
typedef struct mt_cards {
    pthread_mutex_t lock;
    mt_card **at;
    size_t count, cap;
} mt_cards;

void mt_cards_init(mt_cards *cards);
void mt_cards_free(mt_cards *cards);

/* The card of a folder, as it is now; what could not be read of it is missing there. May read files. Lives as long as
   the cards. */
const mt_card *mt_cards_get(mt_cards *cards, const char *dir);

#endif
