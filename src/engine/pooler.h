/* A thread that runs an encoder beside the engine: requests that pool come in, and each gets BEGUN and DONE with a
   vector. See pooler.c. */
#ifndef MT_ENGINE_POOLER_H
#define MT_ENGINE_POOLER_H

#include "base/lease.h"
#include "device/device.h"
#include "engine/places.h"
#include "engine/request.h"

typedef struct mt_pooler mt_pooler;

typedef struct mt_pooler_params {
    mt_device_params device;
    size_t queue;    /* requests that may wait beside those of a job */
    mt_lease *lease; /* what computes beside it takes turns by; borrowed; NULL: nothing does */
} mt_pooler_params;

/* Whether the folder holds one; false where it cannot be read. */
bool mt_pooler_takes(const char *dir);

/* Opens the folder of an encoder. NULL with a sentence. Free with mt_pooler_stop. */
mt_pooler *mt_pooler_start(const char *dir, const mt_pooler_params *params, mt_error *err) MT_NODISCARD;

/* Ends what is left as cancelled. NULL is fine. */
void mt_pooler_stop(mt_pooler *pooler);

typedef struct mt_pooler_facts {
    size_t context, vocab, width; /* tokens of a text; numbers of a vector */
    bool scores;                  /* it has a classifier with one label */
    bool twice;                   /* two separators stand between the texts of a pair */
    uint64_t bytes;               /* weights and working memory */
} mt_pooler_facts;

mt_pooler_facts mt_pooler_look(const mt_pooler *pooler);

typedef struct mt_pooler_stats {
    uint64_t texts, tokens; /* computed so far */
    double seconds;         /* that took */
    size_t waiting;
} mt_pooler_stats;

mt_pooler_stats mt_pooler_count(mt_pooler *pooler); /* any thread */

/* Any thread. Takes the request on success; its tokens must be within the vocabulary, and no more than the context, and
   it must pool by score where the encoder scores and nowhere else. MT_E_BUSY when there is no place for it. */
bool mt_pooler_submit(mt_pooler *pooler, mt_request *request, mt_error *err) MT_NODISCARD;

/* As mt_engine_places. */
mt_places *mt_pooler_places(mt_pooler *pooler);

#endif
