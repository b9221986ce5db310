/* An encoder checkpoint (models/bert.h) opened from its folder, for engines to run. The server opens encoders
   and passes them in mt_engine_params. */
#ifndef MT_ENGINE_ENCODER_H
#define MT_ENGINE_ENCODER_H

#include "models/bert.h"

typedef struct mt_encoder {
    mt_arena *arena;
    mt_checkpoint *checkpoint;
    mt_bert_spec spec;
    mt_bert_weights weights;
    mt_checkpoint *after[MT_BERT_AFTER]; /* of the dense layers behind pooling that have folders of their own */
    size_t after_count;
} mt_encoder;

/* Sets *known to whether the folder holds an encoder. False with a sentence only where its config.json exists but the
   system does not let it be read; other faults are found by mt_encoder_open. */
bool mt_encoder_known(const char *dir, bool *known, mt_error *err) MT_NODISCARD;

/* False with a sentence; then nothing is left open. Close with mt_encoder_close, after the engine has ended. */
bool mt_encoder_open(mt_encoder *encoder, const char *dir, mt_error *err) MT_NODISCARD;
void mt_encoder_close(mt_encoder *encoder); /* a zeroed one is fine */

/* Adds the dense layer of this folder behind pooling. False with a sentence. */
bool mt_encoder_add(mt_encoder *encoder, const char *dir, mt_error *err) MT_NODISCARD;

/* Bytes of the encoder's weights. */
uint64_t mt_encoder_weights(const mt_encoder *encoder);

typedef struct mt_encoder_stats {
    uint64_t texts, tokens; /* computed so far */
    double seconds;         /* spent computing them */
    size_t waiting;         /* texts that wait */
} mt_encoder_stats;

#endif
