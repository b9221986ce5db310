/* Downloads a model from a hub into Hugging Face's cache. Used by `motet pull` and the server. */
#ifndef MT_HUB_PULL_H
#define MT_HUB_PULL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "hub/names.h"

/* False in a build without libcurl, where mt_pull fails as MT_E_UNSUPPORTED (line_absent.c). */
extern const bool mt_pull_present;

typedef struct mt_pull_file {
    const char *name;
    const char *digest; /* hexadecimal: SHA-256 where it has 64 digits, else git's blob hash */
    uint64_t size, done;
} mt_pull_file;

typedef struct mt_pull_status {
    const char *phase;         /* "listing", "checking" (whether it can run), "downloading", "done" */
    uint64_t total, done;      /* bytes; done includes what was downloaded before */
    const mt_pull_file *files; /* the files of the model, valid during the call; none while listing */
    size_t count;
} mt_pull_status;

typedef struct mt_pull_params {
    const char *model; /* "owner/name", with "@revision", ":tag" (of GGUF files) or both; or a short name (known.h) */
    mt_hub_env *env;
    uint64_t memory; /* most bytes that the model may take; 0: as many as motet serve would use */
    bool force;      /* download it even if it could not run */
    size_t at_once;  /* files downloaded in parallel; 0: chosen here */
    /* called on the calling thread, about ten times a second; or NULL */
    void (*progress)(void *arg, const mt_pull_status *status);
    void *arg;
    const atomic_bool *cancel; /* once true, the call ends soon; what was downloaded stays. May be NULL */
} mt_pull_params;

/* Downloads the files of a model that motet reads, and returns the folder of the snapshot, or the GGUF file in it,
   to be freed with mt_free. Of GGUF files the tag chooses one quantisation (weights/gguf_choice.h), else `memory`
   does. NULL with a sentence; then what was downloaded stays, and the next call continues. A model that motet could
   not run is refused before its weights are downloaded: MT_E_UNSUPPORTED, MT_E_INVALID, MT_E_NOT_FOUND as from motet
   info, or MT_E_MEMORY. Blocks; may be called from any thread, and from several threads and processes at once. */
char *mt_pull(const mt_pull_params *params, mt_error *err) MT_NODISCARD;

#endif
