/* Files that clients have uploaded, kept in a folder until they are deleted or expire. store.c has the rules. Any
   thread may call. */
#ifndef MT_FILES_STORE_H
#define MT_FILES_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "api/random.h"
#include "base/error.h"
#include "files/limits.h"

typedef struct mt_files mt_files;
typedef struct mt_files_part mt_files_part;

#define MT_FILES_OWNER 33  /* bytes of an owner's name, NUL included; "": clients without an account */
#define MT_FILES_WORD 96   /* bytes of a purpose or a media type, NUL included */
#define MT_FILES_DIGEST 65 /* bytes of a digest, NUL included */

/* What is known of a file. */
typedef struct mt_files_about {
    char id[MT_RANDOM_ID];
    uint64_t bytes;
    int64_t created, expires; /* seconds since 1970; expires 0: never */
    char sha256[MT_FILES_DIGEST];
    char purpose[MT_FILES_WORD], type[MT_FILES_WORD];
    char name[MT_LIMIT_FILE_NAME + 1];
} mt_files_about;

typedef struct mt_files_limits {
    uint64_t bytes;  /* of all files together */
    size_t files;    /* number of files, unfinished uploads included */
    int64_t seconds; /* after which a file expires that was not told when; 0: never */
} mt_files_limits;

/* Makes the folder where it is missing, and removes what unfinished uploads have left there. NULL: *err. */
mt_files *mt_files_open(const char *folder, mt_files_limits limits, mt_error *err) MT_NODISCARD;
/* Whether the folder is in use by another process; changes nothing. */
bool mt_files_check(const char *folder, mt_error *err) MT_NODISCARD;
void mt_files_close(mt_files *files); /* no part is left; NULL is fine */

/* Begins a file of an owner. size: how many bytes it will have at least, as far as is known; else 0. NULL: *err. End it
   with mt_files_end or mt_files_drop. */
mt_files_part *mt_files_begin(mt_files *files, const char *owner, uint64_t size, mt_error *err) MT_NODISCARD;
bool mt_files_add(mt_files_part *part, const void *data, size_t len, mt_error *err) MT_NODISCARD;

/* The file is complete: from now on it is there, after a crash, too. Of about, the caller gives the purpose, type, name
   and in how many seconds it expires (expires; 0: not said); the rest is filled in. Frees the part. False: *err, and
   nothing of it is left. */
bool mt_files_end(mt_files_part *part, mt_files_about *about, mt_error *err) MT_NODISCARD;
void mt_files_drop(mt_files_part *part); /* nothing of it is left; NULL is fine */

/* Room in the store for what an owner has in a place of its own: counted as a file is, without one. forced: it is there
   already, whatever the limits say. NULL: *err. End it with mt_files_drop. */
mt_files_part *mt_files_claim(mt_files *files, const char *owner, bool forced, mt_error *err) MT_NODISCARD;
bool mt_files_claim_more(mt_files_part *claim, uint64_t bytes, bool forced, mt_error *err) MT_NODISCARD;
void mt_files_claim_less(mt_files_part *claim, uint64_t bytes);

const char *mt_files_part_id(const mt_files_part *part); /* the id that its file will have */

bool mt_files_find(mt_files *files, const char *owner, const char *id, mt_files_about *about);

/* A descriptor from which the file's bytes are read, from its present position on; -1: *err, MT_E_NOT_FOUND where there
   is no such file. The caller closes it. */
int mt_files_read(mt_files *files, const char *owner, const char *id, mt_files_about *about, mt_error *err);

bool mt_files_remove(mt_files *files, const char *owner, const char *id); /* false: there was none */

/* Which of an owner's files are listed. */
typedef struct mt_files_query {
    const char *purpose;        /* NULL: any */
    const char *after, *before; /* only files that follow, or precede, the one of that id; NULL: no such bound */
    bool oldest_first;          /* else the newest is the first */
    size_t limit;               /* most files; with `before` alone, the last of those that precede it */
} mt_files_query;

typedef struct mt_files_page {
    mt_files_about *at; /* mt_free */
    size_t count;
    bool more; /* there are others behind these; with `before` alone, before them */
} mt_files_page;

/* False: *err, there is no file of the id after or before which to begin. */
bool mt_files_list(mt_files *files, const char *owner, const mt_files_query *query, mt_files_page *page,
                   mt_error *err) MT_NODISCARD;

/* Removes files that have expired at that time (seconds since 1970). The store does so by itself every half minute;
   until then they are not found, but take room. */
void mt_files_sweep(mt_files *files, int64_t now);

typedef struct mt_files_stats {
    size_t count;          /* files, those that are being uploaded included */
    uint64_t bytes, limit; /* of them, and how many there may be */
    uint64_t taken, expired, removed, refused;
} mt_files_stats;

mt_files_stats mt_files_look(mt_files *files); /* never waits for the disk */

#endif
