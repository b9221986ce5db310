/* A hub as its clients see it: where it is, what they say to it, and the list of a model's files that it gives. */
#ifndef MT_HUB_REMOTE_H
#define MT_HUB_REMOTE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "hub/names.h"

typedef struct mt_remote {
    char endpoint[MT_LIMIT_HUB_NAME]; /* "https://huggingface.co", without a slash at its end */
    char token[MT_LIMIT_HUB_NAME];    /* "" where there is none */
    char cache[MT_LIMIT_PATH];        /* where files go */
    const char *authorities; /* file of certificates that are trusted; NULL: the system's. Of the environment */
    int64_t patience_ms;     /* without a byte, after which a transfer counts as broken */
} mt_remote;

/* From HF_ENDPOINT, HF_TOKEN or the file that hf auth login writes, HF_HUB_CACHE and its kin, HF_HUB_OFFLINE and
   HF_HUB_DOWNLOAD_TIMEOUT, SSL_CERT_FILE. False with a sentence where one of them cannot be used. */
bool mt_remote_read(mt_remote *remote, mt_hub_env *env, mt_error *err) MT_NODISCARD;

typedef struct mt_remote_file {
    const char *name;   /* with slashes; leads nowhere but below its folder */
    const char *digest; /* in hexadecimal: SHA-256 where it has 64 digits, else git's of a blob; NULL: not told */
    uint64_t size;      /* where digest is told */
    bool weights;       /* *.safetensors */
} mt_remote_file;

typedef struct mt_listing {
    char commit[MT_HUB_COMMIT + 1];
    mt_remote_file *files; /* those that motet reads, in order of name */
    size_t count;
    const char *other; /* weights of a kind that motet does not read; NULL: none */
    mt_arena *arena;
} mt_listing;

/* Reads what /api/models/ID/revision/REVISION?blobs=true answers. The hub is believed nothing: names that would lead
   out of a folder, lists without end, digests that are none are errors. Free with mt_listing_free either way. */
bool mt_listing_read(mt_listing *list, const char *text, size_t len, mt_error *err) MT_NODISCARD;
void mt_listing_free(mt_listing *list);

/* Whether a digest is one of the two kinds. */
bool mt_remote_is_digest(const char *text);

/* Appends the URL of the list, and of a file of a commit. */
void mt_remote_list_url(mt_buf *out, const mt_remote *remote, const mt_hub_name *name);
void mt_remote_file_url(mt_buf *out, const mt_remote *remote, const mt_hub_name *name, const char *commit,
                        const char *file);

/* What an answer other than success means, and what to do; code: the hub's own word for it. Returns false. */
bool mt_remote_explain(const mt_remote *remote, const mt_hub_name *name, long status, const char *code, int64_t wait,
                       mt_error *err);

#endif
