/* The batches of all clients: lists of requests, kept on disk beside the files of clients. The server answers their
   lines when no client needs the machine. batches_inside.h has the invariants. Any thread may call a function that does
   not name its thread. */
#ifndef MT_SERVER_BATCHES_BATCHES_H
#define MT_SERVER_BATCHES_BATCHES_H

#include "server/batches/bulk.h"

typedef struct mt_batches_settings {
    mt_server *server;
    mt_files *files;
    size_t at_once;   /* lines that run at a time */
    size_t line_most; /* bytes of a line */
    int64_t keep;     /* seconds after its end at which a batch is deleted; 0: only clients delete it */
} mt_batches_settings;

/* Opens the folder, makes it where it is missing, and reads the heads in it. NULL: *err. */
mt_batches *mt_batches_open(const char *folder, const mt_batches_settings *settings, mt_error *err) MT_NODISCARD;

/* Io thread: starts the thread that has lines answered; line_most: bytes of a line. False: *err. */
bool mt_batches_start(mt_batches *batches, size_t line_most, mt_error *err) MT_NODISCARD;
void mt_batches_drain(mt_batches *batches); /* no more lines start; those that run are finished */
void mt_batches_stop(mt_batches *batches);  /* waits for the thread; NULL is fine */
void mt_batches_close(mt_batches *batches); /* when no line runs any more; NULL is fine */

/* Keeps a new batch whose client-given fields the caller has filled in, and appends its description. Owns the batch in
   any case. False: *why. */
bool mt_batches_add(mt_batches *batches, mt_bulk *batch, mt_buf *out, mt_failure *why) MT_NODISCARD;
int mt_batches_folder(const mt_batches *batches);
mt_files *mt_batches_files(const mt_batches *batches);

/* These append the description of an owner's batch in the shape of its API. False: *why. */
bool mt_batches_tell(mt_batches *batches, const char *owner, bool anthropic, const char *id, mt_buf *out,
                     mt_failure *why) MT_NODISCARD;
bool mt_batches_cancel(mt_batches *batches, const char *owner, bool anthropic, const char *id, mt_buf *out,
                       mt_failure *why) MT_NODISCARD;
bool mt_batches_remove(mt_batches *batches, const char *owner, bool anthropic, const char *id, mt_buf *out,
                       mt_failure *why) MT_NODISCARD;

/* A page of the list of an owner's batches, the newest first. */
typedef struct mt_batches_query {
    const char *after, *before; /* only batches that follow, or precede, the one of that id; NULL: no such bound */
    size_t limit;
} mt_batches_query;

bool mt_batches_list(mt_batches *batches, const char *owner, bool anthropic, const mt_batches_query *query, mt_buf *out,
                     mt_failure *why) MT_NODISCARD;

/* Calls the reader for each result of a batch of Anthropic's API that has ended. False: *err. */
bool mt_batches_results(mt_batches *batches, const char *owner, const char *id, mt_journal_reader *reader, void *ctx,
                        mt_error *err) MT_NODISCARD;

/* Io thread: hands a line with its result to the batches' thread, which owns it from then on. */
void mt_batches_give(mt_batches *batches, mt_bulk_job *job);

typedef struct mt_batches_stats {
    size_t states[MT_BULK_STATES]; /* batches by state */
    size_t running;                /* lines that run */
    uint64_t lines[MT_BULK_RESULTS], again;
} mt_batches_stats;

mt_batches_stats mt_batches_look(mt_batches *batches);
const char *mt_bulk_state_name(mt_bulk_state state);

/* ---- tell.c: the description of a batch in the shape of its API ---- */
void mt_bulk_tell(mt_buf *out, const mt_bulk *batch);

#endif
