/* What the files of the batches share. Invariants:

   1. A batch is a head, a file of lines and a journal of results, in the folder "batches" beside the files. The head is
      written before a client hears of the batch, and again whenever the state of the batch changes. Lines and results
      without a head belong to a batch that was never finished or that is deleted: they are removed when the folder is
      opened.
   2. A line is done when its result is in the journal and the journal is synced, not before: a crash loses no result
      that was counted, and no line has two results. A line that was being answered in a crash is answered again.
   3. At most settings.at_once lines run at a time, of at most ACTIVE batches; the next line is taken from the batch
      with the fewest running lines. The engine puts them behind the requests of all clients (mt_client.last).
   4. The bytes of a batch on disk count among the files (mt_files_claim): its lines, its results, and for OpenAI's API
      the results once more, since files are made of them. When the files' limit is reached, the batch waits.
   5. `lock` is never held while the disk is waited for. `heads` is held from the time that a head is composed until it
      is on disk, so that an older head never replaces a newer one. Only the batches' thread frees a batch; it holds
      both mutexes while it takes the batch out of the list.

   Rejected: a table of lines in a database, which would sync for each line; here the results that arrive during a sync
   share the next one. */
#ifndef MT_SERVER_BATCHES_BATCHES_INSIDE_H
#define MT_SERVER_BATCHES_BATCHES_INSIDE_H

#include <pthread.h>
#include <time.h>

#include "server/batches/batches.h"

struct mt_batches {
    mt_batches_settings settings;
    int folder;
    pthread_mutex_t heads; /* held while a head is composed and written */
    pthread_mutex_t lock;  /* of the fields below, and of the fields of a batch that bulk.h names */
    pthread_cond_t wake;
    bool woken, closing;
    atomic_bool stop, draining;
    mt_bulk *newest;
    size_t count;
    mt_bulk_job *back, **back_end; /* lines with their results */
    mt_batches_stats stats;        /* only its counters are kept here; mt_batches_look fills in the rest */

    bool started; /* `thread` exists */
    pthread_t thread;

    size_t running; /* lines that the io thread has; only the thread changes it */
};

static inline int64_t mt_batches_now(void)
{
    return (int64_t)time(NULL);
}

/* The head of the list. Other threads add batches in front of it; only the thread removes any. */
static inline mt_bulk *mt_batches_newest(mt_batches *all)
{
    mt_bulk *b;

    pthread_mutex_lock(&all->lock);
    b = all->newest;
    pthread_mutex_unlock(&all->lock);
    return b;
}

/* Has the thread look at all batches now. With the lock. */
static inline void mt_batches_wake(mt_batches *all)
{
    all->woken = true;
    pthread_cond_signal(&all->wake);
}

/* ---- batches_journal.c: heads and journals ----
   Called by the batches' thread, without the lock; mt_batches_save_head and mt_batches_remove_file by any thread. */

bool mt_batches_save_head(mt_batches *all, const mt_bulk *batch, mt_error *err) MT_NODISCARD; /* False: *err */
void mt_batches_remove_file(const mt_batches *all, const mt_bulk *batch, const char *end);

/* Something of a batch could not be written: says so in the log, and leaves the batch alone for a while. */
void mt_batches_retry_later(mt_bulk *batch, const mt_error *err);

/* The server had no room for a line of the batch: leaves the batch alone for a moment. */
void mt_batches_pause(mt_bulk *batch);

/* Changes the state of a batch, in memory and on disk. False: it could not be written, and the state is as before. */
bool mt_batches_change(mt_batches *all, mt_bulk *batch, mt_bulk_state state);

/* After a restart, once for each batch: counts its results and its bytes, and removes files that it needs no more.
   False: the journal cannot be read; it is tried again later. */
bool mt_batches_count(mt_batches *all, mt_bulk *batch);

/* Opens the lines and the journal of a batch, so that its lines can be answered. False: it is tried again later. */
bool mt_batches_activate(mt_batches *all, mt_bulk *batch);
void mt_batches_deactivate(mt_bulk *batch); /* closes them; no line may be running */

void mt_batches_store(mt_batches *all, mt_bulk_job *jobs); /* stores results of lines; frees the jobs */

/* Gives all waiting lines of a batch this result without answering them. */
void mt_batches_close_lines(mt_batches *all, mt_bulk *batch, mt_bulk_result result);

size_t mt_bulk_done(const mt_bulk *batch); /* lines that have results */

/* ---- batches_thread.c: which line is answered next ---- */

void *mt_batches_work(void *all); /* the thread */

#endif
