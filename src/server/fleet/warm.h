/* --warm-prompts: prompts that are computed when a model has been loaded, so that the cache has their beginnings before
   the first client asks. See warm.c. */
#ifndef MT_SERVER_FLEET_WARM_H
#define MT_SERVER_FLEET_WARM_H

#include "api/dialect.h"
#include "base/error.h"
#include "server/calls/keys.h"
#include "server/fleet/fleet.h"

typedef struct mt_server mt_server;

/* A prompt of the file, as the body of a request. */
typedef struct mt_warm_prompt {
    const mt_dialect *dialect;
    char *body, *model; /* model: for which alone it is; NULL: for all */
    size_t line;        /* where it begins in the file */
} mt_warm_prompt;

/* Reads a file of prompts; free the list with mt_warm_free in any case. False: *err, with the line. See warm_file.c. */
typedef struct mt_warm_list {
    mt_warm_prompt *at;
    size_t count, cap;
} mt_warm_list;

bool mt_warm_read(mt_warm_list *list, const char *path, mt_error *err) MT_NODISCARD;
void mt_warm_free(mt_warm_list *list);

/* Prompts that are computed without a key are not found by keys that have a cache of their own. False: *err. */
bool mt_warm_may(const mt_options *opt, const mt_keys *keys, mt_error *err) MT_NODISCARD;

/* Part of mt_server. Only the io thread uses it once the server runs. */
typedef struct mt_warm {
    mt_warm_list list;
    mt_member *member;     /* for which prompts are computed; NULL: for none now */
    size_t next;           /* prompt that follows the one under way */
    size_t warmed, failed; /* prompts of this round */
    size_t tokens;         /* of these prompts, and how many of them the cache had before */
    size_t cached;
    uint64_t began; /* mt_clock_ns */
    bool once;      /* a round is over */
} mt_warm;

/* Whether the server, with one model alone, is still to compute its prompts for the first time. */
bool mt_warm_pending(const mt_server *server);

/* Io thread: begins a round for a model that was loaded since its last one, unless a round is under way. */
void mt_warm_check(mt_server *server);

#endif
