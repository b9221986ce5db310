/* A hub as clients see it: its address, the token, and the list of a model's files. */
#ifndef MT_HUB_REMOTE_H
#define MT_HUB_REMOTE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "hub/limits.h"
#include "hub/names.h"

typedef struct mt_remote {
    char endpoint[MT_LIMIT_HUB_NAME]; /* "https://huggingface.co", without a slash at its end */
    char token[MT_LIMIT_HUB_NAME];    /* "": none */
    char cache[MT_LIMIT_PATH];        /* folder where files go */
    const char *authorities;          /* file of trusted certificates; NULL: the system's. Belongs to the environment */
    int64_t patience_ms;              /* a transfer without a byte for so long counts as broken */
    _Atomic int reach;                /* of the hub's address (media/address.h), once line.c knows it; else -1 */
    int proxy_port, proxy_reach;      /* the same of the proxy that leads to it; 0: there is none */
} mt_remote;

/* From HF_ENDPOINT; HF_TOKEN, or the file that hf auth login writes; HF_HUB_CACHE and related variables;
   HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT and SSL_CERT_FILE. False with a sentence where one cannot be used. */
bool mt_remote_read(mt_remote *remote, mt_hub_env *env, mt_error *err) MT_NODISCARD;

typedef struct mt_remote_file {
    const char *name;   /* may have slashes; never leads out of its folder */
    const char *digest; /* hexadecimal: SHA-256 where it has 64 digits, else git's blob hash; NULL: unknown */
    uint64_t size;      /* where digest is known */
    bool weights;       /* *.safetensors or *.gguf */
} mt_remote_file;

typedef struct mt_listing {
    char commit[MT_HUB_COMMIT + 1];
    mt_remote_file *files; /* the files that motet reads, by name */
    size_t count;
    const char *other; /* a weight file of a kind that motet does not read; NULL: none */
    mt_arena *arena;
} mt_listing;

/* Reads the response of /api/models/ID/revision/REVISION?blobs=true. The hub is not trusted: names that lead out of a
   folder, endless lists and invalid digests are errors. Free with mt_listing_free either way. */
bool mt_listing_read(mt_listing *list, const char *text, size_t len, mt_error *err) MT_NODISCARD;
void mt_listing_free(mt_listing *list);

/* Whether a digest has one of the two forms. */
bool mt_remote_is_digest(const char *text);

/* Append the URL of the list, and of a file of a commit. */
void mt_remote_list_url(mt_buf *out, const mt_remote *remote, const mt_hub_name *name);
void mt_remote_file_url(mt_buf *out, const mt_remote *remote, const mt_hub_name *name, const char *commit,
                        const char *file);

/* Sets the error for a response other than success, with advice; code: the hub's name of the error. Returns false. */
bool mt_remote_explain(const mt_remote *remote, const mt_hub_name *name, long status, const char *code, int64_t wait,
                       mt_error *err);

#endif
