/* What makes vectors of texts: the model that is served, or an encoder beside it. Unchanged once it is open. */
#ifndef MT_SERVER_TARGET_H
#define MT_SERVER_TARGET_H

#include "engine/encoder.h"
#include "engine/request.h"
#include "text/tokenizer.h"

typedef struct mt_target {
    char *name; /* as clients know it; free with mt_free */
    mt_tokenizer *tokenizer;
    size_t context, vocab, width;
    mt_pool pool; /* MT_POOL_SCORE: it scores pairs of texts and makes no embeddings */
    bool normalise;
    bool embeds;        /* its folder was made for embeddings, and so they may be compared */
    bool twice;         /* two separators stand between the texts of a pair */
    mt_error unfit;     /* why it makes no embeddings; MT_OK: it does */
    size_t number;      /* of the engine's encoders; 0: it is the model */
    mt_encoder encoder; /* its folder */
} mt_target;

/* Reads how sentence-transformers pools in this folder; what it does not say stays as it is. What cannot be done goes
   to unfit. */
void mt_target_read(mt_target *target, const char *dir);

#endif
