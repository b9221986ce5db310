/* A target: what makes vectors of texts, which is a loaded model itself or an encoder beside it. Part of mt_served;
   does not change once it is loaded. */
#ifndef MT_SERVER_FLEET_TARGET_H
#define MT_SERVER_FLEET_TARGET_H

#include <jansson.h>

#include "engine/encoder.h"
#include "engine/request.h"
#include "text/tokenizer.h"

typedef struct mt_target {
    char *name; /* as clients know it; free with mt_free */
    mt_tokenizer *tokenizer;
    size_t context, vocab, width; /* tokens that it can read; number of token ids; length of its vectors */
    /* How vectors of tokens become one; MT_POOL_CLASSES: it has a classifier and makes no embeddings */
    mt_pool pool;
    json_t *labels;                /* a list of the names of the classifier's labels; owned; NULL: it has none */
    bool apart;                    /* several labels may fit a text: each has a probability of its own */
    bool normalise;                /* embeddings are scaled to length 1 */
    bool embeds;                   /* its folder was made for embeddings */
    bool twice;                    /* pairs have two separators between their texts */
    char dense[MT_BERT_AFTER][64]; /* folders of the dense layers behind pooling; empty: there are no more */
    json_t *prompts;               /* texts that may stand in front of a text, by name; owned; NULL: there are none */
    const char *prompt;            /* the one that does unless a call says otherwise; NULL: none */
    mt_error unfit;                /* why it makes no embeddings; MT_OK: it does */
    size_t number;                 /* number among the engine's encoders, from 1; 0: it is the model itself */
    mt_encoder encoder;            /* of an encoder */
} mt_target;

/* Reads modules.json, the pooling settings and the prompts of sentence-transformers in this folder; settings that it
   does not give stay as they are. What is not supported is told in unfit. */
void mt_target_read(mt_target *target, const char *dir);

/* Frees what mt_target_read made. */
void mt_target_clear(mt_target *target);

/* Reads from the folder's config.json what its classifier's labels are called. */
void mt_target_read_labels(mt_target *target, const char *dir);

#endif
