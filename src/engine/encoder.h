/* The folder of an encoder (BERT, RoBERTa, XLM-R), opened for an engine to run. */
#ifndef MT_ENGINE_ENCODER_H
#define MT_ENGINE_ENCODER_H

#include "models/bert.h"

typedef struct mt_encoder {
    mt_arena *arena;
    mt_checkpoint *checkpoint;
    mt_bert_spec spec;
    mt_bert_weights weights;
} mt_encoder;

/* Whether the folder holds one. False with a sentence where its config.json is there and the system does not let it be
   read; what else may be wrong with it is found by who opens it. */
bool mt_encoder_known(const char *dir, bool *known, mt_error *err) MT_NODISCARD;

/* False with a sentence; then nothing is left open. Close with mt_encoder_close, after the engine has ended. */
bool mt_encoder_open(mt_encoder *encoder, const char *dir, mt_error *err) MT_NODISCARD;
void mt_encoder_close(mt_encoder *encoder); /* a zeroed one is fine */

/* Bytes of its weights. */
uint64_t mt_encoder_weights(const mt_encoder *encoder);

typedef struct mt_encoder_stats {
    uint64_t texts, tokens; /* computed so far */
    double seconds;         /* that took */
    size_t waiting;
} mt_encoder_stats;

#endif
