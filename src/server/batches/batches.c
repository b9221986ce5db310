/* Opening and closing the folder of batches, and the thread that works on them (batches_thread.c). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "server/batches/batches_inside.h"
#include "server/limits.h"

static int by_age(const void *a, const void *b)
{
    const mt_bulk *const *x = a, *const *y = b;
    const int64_t at = (*x)->at[MT_BULK_VALIDATING], other = (*y)->at[MT_BULK_VALIDATING];

    return at != other ? (at < other ? -1 : 1) : strcmp((*x)->id, (*y)->id);
}

/* Splits the name of a file into an id and `end`. False: it does not end so. */
static bool id_of(char id[MT_RANDOM_ID], const char *name, const char *end)
{
    const size_t len = strlen(name), tail = strlen(end);

    return len > tail && len - tail < MT_RANDOM_ID && strcmp(name + len - tail, end) == 0 &&
           snprintf(id, MT_RANDOM_ID, "%.*s", (int)(len - tail), name) > 0;
}

/* Removes a file whose batch has no head (invariant 1), and a head that was not written to its end. */
static void remove_orphan(const mt_batches *all, const char *name)
{
    static const char *const ends[] = {MT_BULK_LINES, MT_BULK_JOURNAL, ".new"};
    char id[MT_RANDOM_ID], head[MT_RANDOM_ID + sizeof(MT_BULK_HEAD)];
    struct stat st;

    for (size_t i = 0; i < MT_COUNT(ends); i++) {
        if (!id_of(id, name, ends[i]))
            continue;
        snprintf(head, sizeof(head), "%s" MT_BULK_HEAD, id);
        if (fstatat(all->folder, head, &st, 0) != 0 || i == 2)
            unlinkat(all->folder, name, 0);
    }
}

static bool read_folder(mt_batches *all, mt_error *err)
{
    const int copy = dup(all->folder);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    mt_bulk **found = NULL, *b;
    char id[MT_RANDOM_ID];
    size_t cap = 0;

    if (!dir) {
        if (copy >= 0)
            close(copy);
        return mt_fail(err, MT_E_IO, "the folder of batches cannot be read: %s", strerror(errno));
    }
    for (const struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        if (!id_of(id, d->d_name, MT_BULK_HEAD)) {
            remove_orphan(all, d->d_name);
            continue;
        }
        b = mt_bulk_head_read(all->folder, id);
        if (!b) {
            mt_log_warn("batch.broken", "the batch \"%s\" is not as it was written, and is left out: delete it", id);
            continue;
        }
        found = mt_grow(found, &cap, all->count + 1, sizeof(*found));
        found[all->count++] = b;
    }
    closedir(dir);
    if (all->count > 0)
        qsort(found, all->count, sizeof(*found), by_age);
    for (size_t i = 0; i < all->count; i++) {
        found[i]->next = all->newest;
        all->newest = found[i];
    }
    mt_free(found);
    return true;
}

mt_batches *mt_batches_open(const char *folder, const mt_batches_settings *settings, mt_error *err)
{
    mt_batches *all = mt_alloc(sizeof(*all));

    *all = (mt_batches){.settings = *settings, .folder = -1};
    all->back_end = &all->back;
    pthread_mutex_init(&all->lock, NULL);
    pthread_mutex_init(&all->heads, NULL);
    mt_clock_cond_init(&all->wake);
    if (mt_file_make_folder(folder))
        all->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (all->folder < 0)
        mt_fail(err, MT_E_IO, "\"%.200s\" cannot be made: %s", folder, strerror(errno));
    else if (read_folder(all, err))
        return all;
    mt_batches_close(all);
    return NULL;
}

bool mt_batches_start(mt_batches *all, size_t line_most, mt_error *err)
{
    all->settings.line_most = line_most;
    all->started = pthread_create(&all->thread, NULL, mt_batches_work, all) == 0;
    return all->started || mt_fail(err, MT_E_IO, "a thread for batches cannot be started");
}

void mt_batches_drain(mt_batches *all)
{
    atomic_store(&all->draining, true);
}

void mt_batches_stop(mt_batches *all)
{
    if (!all)
        return;
    atomic_store(&all->stop, true);
    pthread_mutex_lock(&all->lock);
    all->closing = true;
    mt_batches_wake(all);
    pthread_mutex_unlock(&all->lock);
    if (all->started)
        pthread_join(all->thread, NULL);
    all->started = false;
}

void mt_batches_close(mt_batches *all)
{
    mt_bulk_job *job;
    mt_bulk *b;

    if (!all)
        return;
    mt_batches_stop(all);
    while ((job = all->back)) {
        all->back = job->next;
        mt_bulk_job_free(job);
    }
    while ((b = all->newest)) {
        all->newest = b->next;
        mt_bulk_free(b);
    }
    if (all->folder >= 0)
        close(all->folder);
    pthread_cond_destroy(&all->wake);
    pthread_mutex_destroy(&all->lock);
    pthread_mutex_destroy(&all->heads);
    mt_free(all);
}

int mt_batches_folder(const mt_batches *all)
{
    return all->folder;
}

mt_files *mt_batches_files(const mt_batches *all)
{
    return all->settings.files;
}

mt_batches_stats mt_batches_look(mt_batches *all)
{
    mt_batches_stats stats;

    pthread_mutex_lock(&all->lock);
    stats = all->stats;
    stats.running = all->running;
    for (const mt_bulk *b = all->newest; b; b = b->next)
        stats.states[b->state]++;
    pthread_mutex_unlock(&all->lock);
    return stats;
}
