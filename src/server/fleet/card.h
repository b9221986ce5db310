/* A card: what is known of a model by its folder, for lists that people choose from. Read from config.json and the
   headers of the weights' files, whether or not the model is loaded, and kept in memory. */
#ifndef MT_SERVER_FLEET_CARD_H
#define MT_SERVER_FLEET_CARD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mt_card {
    char *dir;             /* the folder; the card frees it */
    char family[48];       /* model_type of config.json; "" where there is none */
    char size[16];         /* number of parameters in short: "7.6B" */
    char quantisation[48]; /* how most of the weights are stored: "affine 4-bit group 64", "BF16" */
    char digest[65];       /* hexadecimal; changes when the folder gets another model */
    uint64_t bytes;        /* of all files of weights */
    uint64_t parameters;
    int64_t modified;                                            /* time of config.json, seconds since 1970 */
    int64_t context, width, layers, heads, kv_heads, ffn, vocab; /* 0: config.json does not say */
} mt_card;

/* All cards that were read. They are kept until mt_cards_free. Any thread. */
typedef struct mt_cards {
    pthread_mutex_t lock;
    mt_card **at;
    size_t count, cap;
} mt_cards;

void mt_cards_init(mt_cards *cards);
void mt_cards_free(mt_cards *cards);

/* The card of a folder. Reads files unless they were read before and have not changed; what could not be read is 0 or
   "". The card lives as long as `cards`. */
const mt_card *mt_cards_get(mt_cards *cards, const char *dir);

#endif
