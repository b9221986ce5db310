/* What motet info tells, before it is written as text or JSON: what a checkpoint holds and needs. Only headers are
   read. */
#ifndef MT_MODELS_INFO_H
#define MT_MODELS_INFO_H

#include "models/bert.h"
#include "models/model.h"
#include "weights/census.h"

#define MT_INFO_REMARKS 16

typedef struct mt_info {
    mt_checkpoint *checkpoint; /* owned */
    mt_arena *arena;           /* owned; what spec and remarks point to */
    mt_model_spec spec;
    mt_bert_spec encoder; /* instead of it, where the checkpoint is an encoder's */
    bool encodes;
    mt_drafter_spec drafter; /* where it is what guesses for a model; spec is its own model then */
    bool drafts;
    mt_bind_cost cost;
    mt_census census;
    char quantisation[512];
    mt_error problem; /* why the model cannot run, or MT_OK */

    /* keys and values in bf16 */
    uint64_t cache_bytes;                  /* per 1024 tokens while every layer keeps all of them */
    uint64_t cache_full_bytes;             /* per 1024 tokens of the layers without a window */
    uint64_t cache_window_bytes;           /* the most that layers with a window ever keep */
    uint32_t window;                       /* the largest; 0 when no layer has one */
    size_t windowed_layers, window_caches; /* the latter: those that keep keys themselves */
    uint64_t state_bytes;                  /* of the recurrent layers, per sequence */

    const char *remark[MT_INFO_REMARKS]; /* what is unusual */
    size_t remarks;
} mt_info;

/* False with a sentence when the folder is no checkpoint of a known architecture. Free with mt_info_free either way. */
bool mt_info_gather(mt_info *info, const char *dir, mt_error *err) MT_NODISCARD;
void mt_info_free(mt_info *info);

#endif
