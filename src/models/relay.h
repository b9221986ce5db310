/* Tells the other ranks what rank 0 does with a model, so that they do the same with theirs: every rank runs the same
   decoder over the same batches, and partial results are exchanged within (mt_op_share).

   model.h's implementation calls the functions mt_relay_*; they do nothing where there is one rank, and on other ranks.
   A message is a list of 32-bit words: what to do, the model's number, and the call's arguments. */
#ifndef MT_MODELS_RELAY_H
#define MT_MODELS_RELAY_H

#include "models/model.h"

typedef enum mt_told {
    MT_TOLD_OPEN = 1, /* about checkpoints, see engine/follow.h */
    MT_TOLD_CLOSE,
    MT_TOLD_NEW, /* this and the following: about models */
    MT_TOLD_FREE,
    MT_TOLD_RESERVE,
    MT_TOLD_FEATURES,
    MT_TOLD_STEP,
    MT_TOLD_GUESS,
    MT_TOLD_COPY,
    MT_TOLD_CARRY,
    MT_TOLD_POISON
} mt_told;

typedef struct mt_relay {
    mt_ranks *ranks; /* NULL: there is no other rank */
    mt_device *dev;
    const mt_model_spec *spec;
    uint32_t number; /* of the model */
    uint32_t *words; /* the message that is being built */
    size_t count, cap;
    bool awaited; /* the other ranks are about to answer (mt_relay_agree) */
    const mt_tensor *features;
    mt_reading *reading; /* reads a row of features */
    size_t width;        /* floats of a row of features */
} mt_relay;

/* Begins a model's life. The other ranks make theirs meanwhile; mt_relay_agree waits for their answers, also after
   mt_relay_reserve. False with a sentence. */
bool mt_relay_new(mt_relay *r, mt_device *dev, const mt_model_spec *spec, const mt_model_params *params,
                  mt_error *err) MT_NODISCARD;
bool mt_relay_agree(mt_relay *r, mt_error *err) MT_NODISCARD;
void mt_relay_free(mt_relay *r);

void mt_relay_reserve(mt_relay *r, const size_t pages[MT_KV_GROUPS], size_t states);
void mt_relay_set_features(mt_relay *r, mt_set *set, mt_device *dev, const mt_tensor *features);
void mt_relay_copy(mt_relay *r, const uint32_t to[MT_KV_GROUPS], const uint32_t from[MT_KV_GROUPS]);
void mt_relay_carry(mt_relay *r, size_t place, uint32_t row);
void mt_relay_poison(mt_relay *r, size_t group, uint32_t page);

/* Begin a step or a guess; features of its rows are sent along. Until mt_relay_done the ranks exchange this call's
   partial results, and no other thread may use them. */
void mt_relay_step(mt_relay *r, const mt_batch *batch, const uint32_t *rows, size_t count);
void mt_relay_guess(mt_relay *r, const mt_batch *batch, bool chained);
void mt_relay_done(mt_relay *r);

/* ---- the other ranks ---- */

typedef struct mt_follower mt_follower;

/* The model of another rank: words[0 .. count) is the message MT_TOLD_NEW. Borrows as mt_model_new does. NULL with a
   sentence. */
mt_follower *mt_follower_new(mt_device *dev, mt_model_spec *spec, const mt_model_weights *weights,
                             const uint32_t *words, size_t count, mt_error *err) MT_NODISCARD;
void mt_follower_free(mt_follower *f); /* NULL is fine */

/* Does what a message says. False with a sentence on failure, or where the words are not understood. */
bool mt_follower_do(mt_follower *f, const uint32_t *words, size_t count, mt_error *err) MT_NODISCARD;

#endif
