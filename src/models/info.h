/* What `motet info` shows, before it is written as text or JSON: what a checkpoint contains and needs. Only headers of
   files are read. */
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
    mt_bert_spec encoder; /* instead of spec, where `encodes`: the checkpoint is an encoder */
    bool encodes;
    mt_drafter_spec drafter; /* where `drafts`: the checkpoint is a drafter, and spec is its own model */
    bool drafts;
    mt_bind_cost cost;
    mt_census census;
    char quantisation[512];
    mt_error problem; /* why the model cannot run, or MT_OK */

    /* sizes for keys and values in bf16 */
    uint64_t cache_bytes;                  /* per 1024 tokens, as if every layer kept all of them */
    uint64_t cache_full_bytes;             /* per 1024 tokens of the layers without a window */
    uint64_t cache_window_bytes;           /* the most that the layers with a window keep */
    uint32_t window;                       /* the largest window; 0: no layer has one */
    size_t windowed_layers, window_caches; /* window_caches: those of the windowed layers that keep keys of their own */
    uint64_t state_bytes;                  /* of all recurrent layers, for one sequence */

    const char *remark[MT_INFO_REMARKS]; /* sentences about what is unusual */
    size_t remarks;
} mt_info;

/* False with a sentence when the folder is no checkpoint of a known architecture. Free with mt_info_free either way. */
bool mt_info_gather(mt_info *info, const char *dir, mt_error *err) MT_NODISCARD;
void mt_info_free(mt_info *info);

#endif
