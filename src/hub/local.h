/* The models that are on this machine: below a folder of models, and in Hugging Face's cache. */
#ifndef MT_HUB_LOCAL_H
#define MT_HUB_LOCAL_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "hub/names.h"

enum {
    MT_LOCAL_TEXT = 1,   /* it writes */
    MT_LOCAL_VISION = 2, /* it sees pictures */
    MT_LOCAL_EMBED = 4,  /* it makes vectors of texts */
    MT_LOCAL_SCORE = 8   /* it says how well texts fit a question */
};

typedef struct mt_local_model {
    const char *name;     /* by which mt_hub_find finds it; revisions that no plain name means: "owner/name@commit" */
    const char *folder;   /* with config.json and weights */
    const char *place;    /* what it lies below: models_dir or the cache */
    const char *revision; /* commit of a snapshot; "" below models_dir, and where nothing has been downloaded yet */
    const char *family;   /* model_type of config.json; "" where there is none */
    const char *problem;  /* why it cannot be run, as far as config.json and the names of files tell; "" where it can */
    uint64_t bytes;       /* of its files */
    int64_t modified;     /* of its newest file, in seconds since 1970 */
    unsigned can;         /* MT_LOCAL_ bits; 0 where its family is not known */
    bool whole;           /* config.json and all weights are there */
    bool cached;          /* in the hub's cache, not below models_dir */
} mt_local_model;

typedef struct mt_local {
    mt_local_model *at; /* in order of name, each name once: what lies below models_dir hides what is in the cache */
    size_t count;
    mt_arena *arena; /* what they point to */
} mt_local;

/* models_dir may be NULL. Folders that do not exist hold nothing. False with a sentence for what may not be looked at,
   and for more than MT_LIMIT_LOCAL_MODELS. Free with mt_local_free either way. Any thread; reads small files only. */
bool mt_local_list(mt_local *list, const char *models_dir, mt_hub_env *env, mt_error *err) MT_NODISCARD;
void mt_local_free(mt_local *list);

/* What a model can do, in words: "text, vision"; into out. */
const char *mt_local_abilities(unsigned can, char out[64]);

#endif
