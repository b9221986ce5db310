/* The batches' thread: checks the files that batches are made of, chooses which lines are answered next, hands them to
   the io thread (lines.c), stores their results, and ends batches whose lines are all done. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "server/batches/batches_inside.h"
#include "server/inside.h"

/* ACTIVE: batches whose lines and journals are open; LOOK_MS: time between two looks at clocks and retries */
enum { ACTIVE = 4, LOOK_MS = 1000 };

#define LINE_BYTES (8 * MT_LIMIT_BATCH_NAME + 1024) /* of a line of results besides the response */

static bool has_lapsed(const mt_bulk *b)
{
    return b->expires <= mt_batches_now();
}

static void fail(mt_batches *all, mt_bulk *b, char *errors)
{
    pthread_mutex_lock(&all->lock);
    mt_free(b->errors);
    b->errors = errors;
    b->total = 0;
    pthread_mutex_unlock(&all->lock);
    mt_batches_change(all, b, MT_BULK_FAILED);
}

/* Checks the lines of the client's file and copies them. A file that the disk does not give is tried again until the
   batch is cancelled or expires. */
static void validate(mt_batches *all, mt_bulk *b, bool cancel)
{
    mt_buf errors = {.limit = MT_LIMIT_BATCH_HEAD / 2};
    mt_error err = {0};
    mt_bulk copy; /* clients ask about the batch meanwhile */
    bool ok;

    pthread_mutex_lock(&all->lock);
    copy = *b;
    pthread_mutex_unlock(&all->lock);
    ok = mt_bulk_copy(&copy, all->folder, all->settings.files, all->settings.line_most, &all->stop, &errors, &err);

    b->claim = copy.claim;
    if (atomic_load(&all->stop)) {
        mt_buf_free(&errors);
        return;
    }
    if (!ok)
        mt_buf_free(&errors);
    if (!ok && err.code == MT_E_IO && !cancel && !has_lapsed(b)) {
        mt_batches_retry_later(b, &err);
        return;
    }
    if (!ok) {
        mt_json_write(&errors, "[{'code':%s,'message':%s,'param':'input_file_id','line':null}]",
                      err.code == MT_E_NOT_FOUND ? "file_not_found" : "invalid_file", err.text);
    }
    if (errors.data) {
        fail(all, b, errors.data);
        return;
    }
    pthread_mutex_lock(&all->lock);
    b->total = copy.total;
    pthread_mutex_unlock(&all->lock);
    mt_batches_change(all, b, MT_BULK_RUNNING);
}

static bool note_file(void *ctx, mt_bulk *b, bool errors, const char *id, mt_error *err)
{
    mt_batches *all = ctx;

    pthread_mutex_lock(&all->lock);
    snprintf(errors ? b->errors_file : b->output, MT_RANDOM_ID, "%s", id);
    pthread_mutex_unlock(&all->lock);
    return mt_batches_save_head(all, b, err);
}

/* All lines have results: makes files of them (OpenAI's API), and ends the batch. */
static void finish(mt_batches *all, mt_bulk *b)
{
    const mt_bulk_state end = b->at[MT_BULK_CANCELLING]       ? MT_BULK_CANCELLED
                              : b->counts[MT_BULK_LAPSED] > 0 ? MT_BULK_EXPIRED
                                                              : MT_BULK_COMPLETED;
    mt_error err = {0};
    struct stat st = {.st_size = 0};
    mt_bulk_path path;

    mt_batches_deactivate(b);
    if (b->state != MT_BULK_FINALIZING && !mt_batches_change(all, b, MT_BULK_FINALIZING))
        return;
    if (!b->anthropic) {
        /* The files claim these bytes themselves */
        if (fstatat(all->folder, mt_bulk_path_of(path, b, MT_BULK_JOURNAL), &st, 0) == 0)
            mt_files_claim_less(b->claim, (uint64_t)st.st_size);
        if (!mt_bulk_publish(b, all->folder, all->settings.files, note_file, all, &err)) {
            (void)!mt_files_claim_more(b->claim, (uint64_t)st.st_size, true, &err);
            mt_batches_retry_later(b, &err);
            return;
        }
    }
    if (!mt_batches_change(all, b, end))
        return;
    mt_batches_remove_file(all, b, MT_BULK_LINES);
    if (!b->anthropic) {
        mt_batches_remove_file(all, b, MT_BULK_JOURNAL);
        mt_files_drop(b->claim);
        b->claim = NULL;
    }
}

/* Takes a batch out of the list and deletes its files. */
static void forget(mt_batches *all, mt_bulk *b)
{
    mt_bulk **at;

    pthread_mutex_lock(&all->heads);
    pthread_mutex_lock(&all->lock);
    at = &all->newest;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    all->count--;
    pthread_mutex_unlock(&all->lock);
    pthread_mutex_unlock(&all->heads);
    mt_batches_remove_file(all, b, MT_BULK_HEAD); /* first: files without a head are removed at the next start */
    mt_batches_remove_file(all, b, MT_BULK_LINES);
    mt_batches_remove_file(all, b, MT_BULK_JOURNAL);
    mt_bulk_free(b);
}

/* Whether a batch is to be deleted. With the lock. */
static bool is_old(const mt_batches *all, const mt_bulk *b)
{
    return b->gone || (mt_bulk_is_over(b->state) && all->settings.keep > 0 &&
                       b->at[b->state] + all->settings.keep <= mt_batches_now());
}

/* Brings a batch to its next state where it is time for that. */
static void advance(mt_batches *all, mt_bulk *b)
{
    bool cancel;

    pthread_mutex_lock(&all->lock);
    cancel = b->cancel != 0;
    pthread_mutex_unlock(&all->lock);
    if (mt_clock_ns() < b->later)
        return;
    if (!mt_batches_count(all, b))
        return;
    if (b->state == MT_BULK_VALIDATING)
        validate(all, b, cancel);
    if (mt_bulk_is_over(b->state) || b->state == MT_BULK_VALIDATING)
        return;
    if (cancel && b->state == MT_BULK_RUNNING && !mt_batches_change(all, b, MT_BULK_CANCELLING))
        return;
    if ((b->state == MT_BULK_CANCELLING || has_lapsed(b)) && mt_bulk_done(b) + b->running < b->total)
        mt_batches_close_lines(all, b, b->state == MT_BULK_CANCELLING ? MT_BULK_DROPPED : MT_BULK_LAPSED);
    if (mt_bulk_done(b) == b->total && b->running == 0)
        finish(all, b);
}

/* Whether a line of the batch may start now. */
static bool may_run(const mt_bulk *b)
{
    return b->state == MT_BULK_RUNNING && mt_clock_ns() >= b->later && mt_bulk_done(b) + b->running < b->total &&
           !has_lapsed(b);
}

/* Activates batches that may run, up to ACTIVE: the owner with the fewest active ones first, of equals the oldest.
   Where all places are taken, a batch that pauses leaves its own: so accounts without tokens do not stop others. */
static void activate_some(mt_batches *all)
{
    mt_bulk *const newest = mt_batches_newest(all);

    for (;;) {
        mt_bulk *active[ACTIVE], *pausing = NULL, *best = NULL;
        size_t count = 0, fewest = SIZE_MAX;

        for (mt_bulk *b = newest; b; b = b->next)
            if (b->active && count < ACTIVE) {
                active[count++] = b;
                pausing = b->running == 0 && !may_run(b) ? b : pausing;
            }
        if (count == ACTIVE && !pausing)
            return;
        for (mt_bulk *b = newest; b; b = b->next) {
            size_t own = 0;

            if (b->active || !may_run(b))
                continue;
            for (size_t i = 0; i < count; i++)
                own += strcmp(active[i]->owner, b->owner) == 0;
            if (own <= fewest) { /* the last is the oldest */
                fewest = own;
                best = b;
            }
        }
        if (!best)
            return;
        if (count == ACTIVE)
            mt_batches_deactivate(pausing);
        if (!mt_batches_activate(all, best))
            return;
    }
}

/* The active batch with the fewest running lines; of equals, the oldest. */
static mt_bulk *next_batch(mt_batches *all)
{
    mt_bulk *best = NULL;

    for (mt_bulk *b = mt_batches_newest(all); b; b = b->next)
        if (b->active && may_run(b) && (!best || b->running <= best->running))
            best = b;
    return best;
}

static bool is_true(const json_t *body, const char *key)
{
    return json_is_true(json_object_get(body, key));
}

/* Reads a line and makes a job of it. NULL: *err. */
static mt_bulk_job *make_job(mt_batches *all, mt_bulk *b, size_t line, mt_error *err)
{
    mt_room *room = &all->settings.server->room;
    json_t *object = mt_bulk_load(b, line, err);
    mt_buf text = {.limit = SIZE_MAX};
    mt_bulk_job *job;
    const char *custom;
    const json_t *body;
    mt_failure why;

    if (!object || !mt_bulk_line_read(b, object, &custom, &body, &why)) {
        json_decref(object);
        mt_fail(err, MT_E_IO, "line %zu cannot be read", line + 1);
        return NULL;
    }
    if (!mt_room_take(room, b->lines[line].len)) {
        json_decref(object);
        mt_fail(err, MT_E_BUSY, "no memory is left for requests");
        return NULL;
    }
    job = mt_alloc(sizeof(*job));
    *job = (mt_bulk_job){.message = {.open = mt_bulk_job_open},
                         .server = all->settings.server,
                         .batch = b,
                         .line = (uint32_t)line,
                         .custom = mt_strdup(custom),
                         .charged = b->lines[line].len,
                         .text = {.limit = MT_LIMIT_RESPONSE_BYTES + LINE_BYTES}};
    if (!is_true(body, "stream") && !is_true(body, "background") && mt_json_tree_write(&text, body)) {
        job->body = text.data;
        job->body_len = text.len;
    }
    json_decref(object);
    return job;
}

/* Hands lines to the io thread, as many as may run. */
static void start_lines(mt_batches *all)
{
    while (all->running < all->settings.at_once && !atomic_load(&all->draining)) {
        mt_bulk *b = next_batch(all);
        mt_error err = {0};
        mt_bulk_job *job;

        if (!b)
            return;
        while (b->lines[b->first].state != MT_LINE_WAITS)
            b->first++;
        job = make_job(all, b, b->first, &err);
        if (!job && err.code == MT_E_BUSY)
            mt_batches_pause(b);
        else if (!job)
            mt_batches_retry_later(b, &err);
        if (!job)
            continue;
        b->lines[b->first++].state = MT_LINE_RUNNING;
        pthread_mutex_lock(&all->lock);
        b->running++;
        all->running++;
        pthread_mutex_unlock(&all->lock);
        mt_mailbox_post(all->settings.server->mailbox, &job->message);
    }
}

static mt_bulk_job *wait_for_jobs(mt_batches *all)
{
    const struct timespec until = mt_clock_deadline(LOOK_MS);
    mt_bulk_job *jobs;
    int timed_out = 0;

    pthread_mutex_lock(&all->lock);
    while (!all->back && !all->woken && !all->closing && !timed_out)
        timed_out = pthread_cond_timedwait(&all->wake, &all->lock, &until);
    jobs = all->back;
    all->back = NULL;
    all->back_end = &all->back;
    all->woken = false;
    pthread_mutex_unlock(&all->lock);
    return jobs;
}

void *mt_batches_work(void *arg)
{
    mt_batches *all = arg;

    while (!atomic_load(&all->stop)) {
        mt_bulk_job *jobs = wait_for_jobs(all);
        bool old;

        mt_batches_store(all, jobs);
        for (mt_bulk *b = mt_batches_newest(all), *next; b && !atomic_load(&all->stop); b = next) {
            next = b->next;
            advance(all, b);
            pthread_mutex_lock(&all->lock);
            old = is_old(all, b);
            pthread_mutex_unlock(&all->lock);
            if (old)
                forget(all, b);
        }
        activate_some(all);
        start_lines(all);
    }
    return NULL;
}

void mt_batches_give(mt_batches *all, mt_bulk_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&all->lock);
    *all->back_end = job;
    all->back_end = &job->next;
    pthread_cond_signal(&all->wake);
    pthread_mutex_unlock(&all->lock);
}
