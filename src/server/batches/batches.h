/* The batches of all clients, on disk beside the files that clients keep here. batches.c has the rules. Any thread may
   call what does not say otherwise. */
#ifndef MT_SERVER_BATCHES_BATCHES_H
#define MT_SERVER_BATCHES_BATCHES_H

#include "server/batches/bulk.h"

typedef struct mt_batches_settings {
    mt_server *server;
    mt_files *files;
    size_t at_once;   /* lines that are answered at a time */
    size_t line_most; /* bytes of one */
    int64_t keep;     /* seconds that a batch is kept after its end; 0: until it is deleted */
} mt_batches_settings;

/* Reads what is in the folder, which is made where it is missing. NULL: *err. */
mt_batches *mt_batches_open(const char *folder, const mt_batches_settings *settings, mt_error *err) MT_NODISCARD;

/* Io thread: from now on lines are answered; line_most: bytes of one. False: *err. */
bool mt_batches_start(mt_batches *batches, size_t line_most, mt_error *err) MT_NODISCARD;
void mt_batches_drain(mt_batches *batches); /* no line is begun any more */
void mt_batches_stop(mt_batches *batches);  /* waits for the thread; NULL is fine */
void mt_batches_close(mt_batches *batches); /* when no line is on its way any more; NULL is fine */

/* Keeps a new batch, of which the caller has filled in what the client says. Owns it in any case. spelled: its lines
   are written. Appends what is told of it. False: *why. */
bool mt_batches_add(mt_batches *batches, mt_bulk *batch, mt_buf *out, mt_failure *why) MT_NODISCARD;
int mt_batches_folder(const mt_batches *batches);
mt_files *mt_batches_files(const mt_batches *batches);

/* These append what is told of an owner's batch in its API's shape; false: *why, there is none, or it may not be. */
bool mt_batches_tell(mt_batches *batches, const char *owner, bool anthropic, const char *id, mt_buf *out,
                     mt_failure *why) MT_NODISCARD;
bool mt_batches_cancel(mt_batches *batches, const char *owner, bool anthropic, const char *id, mt_buf *out,
                       mt_failure *why) MT_NODISCARD;
bool mt_batches_remove(mt_batches *batches, const char *owner, bool anthropic, const char *id, mt_buf *out,
                       mt_failure *why) MT_NODISCARD;

/* Which of an owner's batches are listed, the newest first. */
typedef struct mt_batches_query {
    const char *after, *before; /* only batches that follow, or precede, the one of that id; NULL: no such bound */
    size_t limit;
} mt_batches_query;

bool mt_batches_list(mt_batches *batches, const char *owner, bool anthropic, const mt_batches_query *query, mt_buf *out,
                     mt_failure *why) MT_NODISCARD;

/* Tells the results of a batch of Anthropic's that has ended. False: *err. */
bool mt_batches_results(mt_batches *batches, const char *owner, const char *id, mt_journal_reader *reader, void *ctx,
                        mt_error *err) MT_NODISCARD;

/* Io thread: a line comes back with its result. */
void mt_batches_give(mt_batches *batches, mt_bulk_job *job);

typedef struct mt_batches_stats {
    size_t states[MT_BULK_STATES]; /* batches in each */
    size_t flying;                 /* lines that are being answered */
    uint64_t lines[MT_BULK_RESULTS], again;
} mt_batches_stats;

mt_batches_stats mt_batches_look(mt_batches *batches);
const char *mt_bulk_state_name(mt_bulk_state state);

/* ---- tell.c ---- */
void mt_bulk_tell(mt_buf *out, const mt_bulk *batch);

#endif
