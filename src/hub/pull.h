/* Downloading a model from a hub into Hugging Face's cache. */
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
    const char *digest; /* in hexadecimal: SHA-256 where it has 64 digits, else git's of a blob */
    uint64_t size, done;
} mt_pull_file;

typedef struct mt_pull_status {
    const char *phase;         /* "listing", "checking" (whether it can be run), "downloading", "done" */
    uint64_t total, done;      /* bytes; done counts what was there before */
    const mt_pull_file *files; /* those that belong to it, valid during the call; none while it is listing */
    size_t count;
} mt_pull_status;

typedef struct mt_pull_params {
    const char *model; /* "owner/name" or "owner/name@revision" */
    mt_hub_env *env;
    uint64_t memory; /* that the model may take; 0: as much as motet serve takes by itself */
    bool force;      /* download it whether or not it could be run */
    size_t at_once;  /* files; 0 chooses */
    void (*progress)(void *arg,
                     const mt_pull_status *status); /* on the calling thread, some ten times a second; or NULL */
    void *arg;
    const atomic_bool *cancel; /* once it is true the call ends soon; what has come stays. May be NULL */
} mt_pull_params;

/* Brings what motet reads of a model, and nothing else, and returns the folder of the snapshot, to free with mt_free.
   NULL with a sentence; then what has come stays, and the next call goes on from there. A model that motet could not
   run is refused before a byte of its weights has come: MT_E_UNSUPPORTED, MT_E_INVALID, MT_E_NOT_FOUND as motet info,
   or MT_E_MEMORY. Blocks; any thread, and several at once, of one process or of many. */
char *mt_pull(const mt_pull_params *params, mt_error *err) MT_NODISCARD;

#endif
