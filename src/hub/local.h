/* Lists the models on this machine: below a folder of models, in Hugging Face's cache, and in the stores of LM
   Studio and Ollama. */
#ifndef MT_HUB_LOCAL_H
#define MT_HUB_LOCAL_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "hub/limits.h"
#include "hub/names.h"

enum {
    MT_LOCAL_TEXT = 1,   /* it generates text */
    MT_LOCAL_VISION = 2, /* it takes pictures */
    MT_LOCAL_EMBED = 4,  /* it gives vectors of texts */
    MT_LOCAL_SCORE = 8,  /* it scores how well texts answer a question */
    MT_LOCAL_LABEL = 16  /* it tells which of several labels texts have */
};

typedef struct mt_local_model {
    const char *name;     /* the name for mt_hub_find; of a snapshot that no plain name means: "owner/name@commit" */
    const char *folder;   /* with config.json and weights; or its GGUF file, or a manifest of Ollama's store */
    const char *place;    /* the folder that it is below: models_dir, the cache, another program's store */
    const char *revision; /* commit of the snapshot; "" below models_dir, and where nothing is downloaded yet */
    const char *family;   /* model_type of config.json, or the architecture of a GGUF file; "": none */
    const char *problem;  /* why it cannot run, as far as config.json and file names tell; "": it can */
    uint64_t bytes;       /* size of its files */
    int64_t modified;     /* time of its newest file, in seconds since 1970 */
    size_t order;         /* in which it was found */
    unsigned can;         /* MT_LOCAL_ bits; 0: unknown family */
    bool whole;           /* config.json and all weights exist */
    bool cached;          /* it is not below models_dir */
} mt_local_model;

typedef struct mt_local {
    mt_local_model *at; /* by name, each once: a model below models_dir hides one elsewhere */
    size_t count;
    mt_arena *arena; /* owns all that the models point to */
} mt_local;

/* models_dir may be NULL. A missing folder has no models. False with a sentence where a folder may not be read, or
   there are more than MT_LIMIT_LOCAL_MODELS. Free with mt_local_free either way. Any thread; reads small files only. */
bool mt_local_list(mt_local *list, const char *models_dir, mt_hub_env *env, mt_error *err) MT_NODISCARD;
void mt_local_free(mt_local *list);

/* Writes what a model can do, "text, vision", to out. */
const char *mt_local_abilities(unsigned can, char out[64]);

#endif
