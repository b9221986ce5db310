/* All batches, and the thread that works on them. It reads the lines of files, hands them to the io thread, which
   answers them (lines.c), and writes their results. Invariants:

   1. A batch is a head, a file of lines and a journal of results, in the folder "batches" beside the files. The head is
      written before a client hears of the batch, and again whenever its state changes. A file without a head was never
      finished, and is removed when the folder is opened.
   2. A line is done when its result is in the journal and synced, not before: so a crash loses no result that counts,
      and a line has one result. A line that was being answered in a crash is answered again.
   3. At most `at_once` lines are on their way, of at most ACTIVE batches: a line is given to the batch with the fewest
      on their way. They come after the requests of all clients (mt_client.last).
   4. What a batch takes on disk counts among the files (mt_files_claim): its lines, its results, and, of OpenAI's API,
      these once more, since files are made of them. Where no more may be kept, the batch waits until more may.
   5. The lock is never held while the disk is waited for; `heads` is, by whoever writes a head, so that a head is
      never older than the one before it. A batch is freed by the thread alone, which takes both to take it out of the
      list.

   Rejected: a table of lines in a database, which would sync for each line; here all results that came while the last
   were synced are synced together. */
#include "server/batches/batches.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "base/log.h"
#include "server/inside.h"

/* ACTIVE: batches whose lines are known by heart; LOOK_MS: between two looks at what waits for a time */
enum { ACTIVE = 4, LOOK_MS = 1000 };

#define SECOND UINT64_C(1000000000)
#define AGAIN_NS SECOND         /* before lines are tried again that the server was too busy for */
#define FAILED_NS (10 * SECOND) /* before it is tried again to write what could not be written */

struct mt_batches {
    mt_batches_settings settings;
    int folder;
    pthread_mutex_t heads; /* whoever writes a head */
    pthread_mutex_t lock;  /* of the fields below, and of batches as bulk.h says */
    pthread_cond_t wake;
    bool woken, closing;
    atomic_bool stop, draining;
    mt_bulk *newest;
    size_t count;
    mt_bulk_job *back, **back_end; /* lines with their results */
    mt_batches_stats stats;        /* of it, the counters alone */

    bool works; /* there is a thread */
    pthread_t thread;

    /* Only the thread uses the rest. */
    size_t flying;
    uint64_t later; /* mt_clock_ns: no line is begun before it */
};

static int64_t seconds_now(void)
{
    return (int64_t)time(NULL);
}

/* ---- heads ---- */

/* Writes the head as it is. False: *err. */
static bool keep_head(mt_batches *all, const mt_bulk *b, mt_error *err)
{
    mt_buf head = {.limit = MT_LIMIT_BATCH_HEAD};
    bool ok;

    pthread_mutex_lock(&all->heads);
    pthread_mutex_lock(&all->lock);
    mt_bulk_head_write(&head, b);
    pthread_mutex_unlock(&all->lock);
    ok = (!head.full || mt_fail(err, MT_E_TOO_LARGE, "what is said of the batch is too long")) &&
         mt_bulk_head_keep(all->folder, b->id, &head, err);
    pthread_mutex_unlock(&all->heads);
    mt_buf_free(&head);
    return ok;
}

/* Where something of a batch could not be written: a line in the log, and it is tried again later. */
static void put_off(mt_bulk *b, const mt_error *err)
{
    if (!b->failing)
        mt_log_warn("batch.waits", "%s waits: %s", b->id, err->text);
    b->failing = true;
    b->later = mt_clock_ns() + FAILED_NS;
}

/* A batch gets into a state, on disk, too; where that fails, once more later. */
static bool change(mt_batches *all, mt_bulk *b, mt_bulk_state state)
{
    const mt_bulk_state before = b->state;
    mt_error err = {0};

    pthread_mutex_lock(&all->lock);
    b->state = state;
    b->at[state] = seconds_now();
    pthread_mutex_unlock(&all->lock);
    if (keep_head(all, b, &err)) {
        mt_log_info("batch.state", "%s is %s: %zu lines, %zu answered, %zu errors", b->id, mt_bulk_state_name(state),
                    b->total, b->counts[MT_BULK_ANSWERED], b->counts[MT_BULK_ERRED]);
        b->failing = false;
        return true;
    }
    pthread_mutex_lock(&all->lock);
    b->state = before;
    b->at[state] = 0;
    pthread_mutex_unlock(&all->lock);
    put_off(b, &err);
    return false;
}

static void remove_file(const mt_batches *all, const mt_bulk *b, const char *end)
{
    mt_bulk_path path;

    unlinkat(all->folder, mt_bulk_path_of(path, b, end), 0);
}

/* ---- the journal ---- */

static int kind_of(char letter)
{
    const char *at = strchr(MT_BULK_KINDS, letter);

    return at && letter ? (int)(at - MT_BULK_KINDS) : MT_BULK_RESULTS;
}

/* Counts a record, and where the batch is active, its line is done. */
static bool count_record(void *ctx, const mt_journal_record *r)
{
    mt_bulk *b = ctx;
    const int kind = kind_of(r->kind);

    if (kind == MT_BULK_RESULTS || r->line >= b->total)
        return true;
    if (b->lines)
        b->lines[r->line].state = MT_LINE_DONE;
    b->counts[kind]++;
    return true;
}

/* Bytes on disk that results of so many bytes stand for: invariant 4. */
static uint64_t worth(const mt_bulk *b, uint64_t bytes)
{
    return b->anthropic ? bytes : 2 * bytes;
}

/* Counts what a batch of an earlier run has on disk. */
static bool claim_all(mt_batches *all, mt_bulk *b, mt_error *err)
{
    static const char *const ends[] = {MT_BULK_LINES, MT_BULK_JOURNAL};
    mt_bulk_path path;
    struct stat st;

    if (b->claim)
        return true;
    b->claim = mt_files_claim(all->settings.files, b->owner, true, err);
    for (size_t i = 0; i < MT_COUNT(ends); i++)
        if (fstatat(all->folder, mt_bulk_path_of(path, b, ends[i]), &st, 0) == 0 &&
            !mt_files_claim_more(b->claim, i ? worth(b, (uint64_t)st.st_size) : (uint64_t)st.st_size, true, err))
            return false;
    return true;
}

/* Counts the results that there are, once, and removes what an end that was broken off has left. */
static void count_all(mt_batches *all, mt_bulk *b)
{
    const bool over = mt_bulk_is_over(b->state), has = b->state != MT_BULK_VALIDATING && (b->anthropic || !over);
    mt_bulk copy = {.total = b->total};
    mt_bulk_path path;
    mt_error err;

    if (b->counted)
        return;
    b->counted = true;
    if (over)
        remove_file(all, b, MT_BULK_LINES);
    if (over && !has)
        remove_file(all, b, MT_BULK_JOURNAL);
    if (!has)
        return;
    if (!claim_all(all, b, &err) ||
        !mt_journal_read(all->folder, mt_bulk_path_of(path, b, MT_BULK_JOURNAL), count_record, &copy, &err))
        mt_log_warn("batch.failed", "%s: %s", b->id, err.text);
    pthread_mutex_lock(&all->lock);
    if (!over)
        memcpy(b->counts, copy.counts, sizeof(b->counts));
    pthread_mutex_unlock(&all->lock);
}

static size_t done_of(const mt_bulk *b)
{
    size_t done = 0;

    for (size_t i = 0; i < MT_BULK_RESULTS; i++)
        done += b->counts[i];
    return done;
}

static void rest(mt_bulk *b)
{
    mt_journal_close(b->journal);
    b->journal = NULL;
    mt_free(b->lines);
    b->lines = NULL;
    if (b->lines_fd >= 0)
        close(b->lines_fd);
    b->lines_fd = -1;
    b->active = false;
}

/* Reads which lines of a batch are done. */
static bool activate(mt_batches *all, mt_bulk *b)
{
    mt_bulk_path path;
    mt_error err = {0};
    mt_bulk copy;

    if (!mt_bulk_index(b, all->folder, &err)) {
        put_off(b, &err);
        rest(b);
        return false;
    }
    copy = (mt_bulk){.total = b->total, .lines = b->lines};
    b->journal = mt_journal_open(all->folder, mt_bulk_path_of(path, b, MT_BULK_JOURNAL), count_record, &copy, &err);
    if (!b->journal) {
        put_off(b, &err);
        rest(b);
        return false;
    }
    b->first = 0;
    b->active = true;
    return true;
}

/* ---- results ---- */

static void wait_again(mt_bulk *b, uint32_t line)
{
    b->lines[line].state = MT_LINE_WAITS;
    b->first = line < b->first ? line : b->first;
}

/* Writes a result, not synced yet. False: *err. */
static bool record(mt_bulk *b, uint32_t line, mt_bulk_result result, const mt_buf *text, mt_error *err)
{
    const uint64_t bytes = worth(b, mt_journal_size(text->len));
    const mt_journal_record r = {.line = line, .kind = MT_BULK_KINDS[result], .text = text->data, .len = text->len};

    if (!mt_files_claim_more(b->claim, bytes, false, err))
        return false;
    if (mt_journal_add(b->journal, &r, err))
        return true;
    mt_files_claim_less(b->claim, bytes);
    return false;
}

/* Stores the results that have come. All that are of one batch are synced together. */
static void store(mt_batches *all, mt_bulk_job *jobs)
{
    const uint64_t now = mt_clock_ns();
    mt_bulk_job *next;

    for (mt_bulk_job *j = jobs; j; j = j->next) {
        mt_error err = {0};

        if (j->result == MT_BULK_AGAIN)
            all->later = now + AGAIN_NS;
        else if (!record(j->batch, j->line, j->result, &j->text, &err)) {
            j->result = MT_BULK_AGAIN;
            put_off(j->batch, &err);
        }
    }
    for (mt_bulk *b = all->newest; b; b = b->next) {
        mt_error err = {0};
        bool any = false, ok;

        for (mt_bulk_job *j = jobs; j && !any; j = j->next)
            any = j->batch == b && j->result != MT_BULK_AGAIN;
        ok = !any || mt_journal_sync(b->journal, &err);
        if (!ok)
            put_off(b, &err);
        else if (any)
            b->failing = false;
        for (mt_bulk_job *j = jobs; j && !ok; j = j->next)
            if (j->batch == b)
                j->result = MT_BULK_AGAIN;
    }
    pthread_mutex_lock(&all->lock);
    for (mt_bulk_job *j = jobs; j; j = next) {
        next = j->next;
        j->batch->flying--;
        all->flying--;
        if (j->result == MT_BULK_AGAIN) {
            wait_again(j->batch, j->line);
            all->stats.again++;
        } else {
            j->batch->lines[j->line].state = MT_LINE_DONE;
            j->batch->counts[j->result]++;
            all->stats.lines[j->result]++;
        }
        mt_bulk_job_free(j);
    }
    pthread_mutex_unlock(&all->lock);
}

/* All lines that wait get a result of this kind: they are not answered. */
static void give_up_lines(mt_batches *all, mt_bulk *b, mt_bulk_result result)
{
    mt_buf text = {.limit = MT_LIMIT_ERROR_TEXT + 8 * MT_LIMIT_BATCH_NAME};
    mt_error err = {0};
    const char *custom;
    const json_t *body;
    mt_failure why;
    size_t given = 0;
    bool ok = true, synced;

    for (size_t i = 0; ok && i < b->total; i++) {
        json_t *line = b->lines[i].state == MT_LINE_WAITS ? mt_bulk_load(b, i, &err) : NULL;

        if (b->lines[i].state != MT_LINE_WAITS)
            continue;
        text.len = 0;
        ok = line && mt_bulk_line_read(b, line, &custom, &body, &why);
        if (ok)
            mt_bulk_tell_none(&text, b, custom, result);
        ok = ok && record(b, (uint32_t)i, result, &text, &err);
        if (ok)
            b->lines[i].state = MT_LINE_LEFT;
        json_decref(line);
    }
    synced = mt_journal_sync(b->journal, &err);
    for (size_t i = 0; i < b->total; i++)
        if (b->lines[i].state == MT_LINE_LEFT) {
            b->lines[i].state = synced ? MT_LINE_DONE : MT_LINE_WAITS;
            given += synced;
        }
    pthread_mutex_lock(&all->lock);
    b->counts[result] += given;
    all->stats.lines[result] += given;
    pthread_mutex_unlock(&all->lock);
    if (!ok || !synced)
        put_off(b, &err);
    mt_buf_free(&text);
}

/* ---- what is next for a batch ---- */

static bool has_lapsed(const mt_bulk *b)
{
    return b->expires <= seconds_now();
}

static void fail(mt_batches *all, mt_bulk *b, char *errors)
{
    pthread_mutex_lock(&all->lock);
    mt_free(b->errors);
    b->errors = errors;
    b->total = 0;
    pthread_mutex_unlock(&all->lock);
    change(all, b, MT_BULK_FAILED);
}

/* Reads the client's file. */
static void validate(mt_batches *all, mt_bulk *b)
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
    if (!ok && err.code == MT_E_IO) {
        put_off(b, &err);
        return;
    }
    if (!ok) {
        mt_buf_free(&errors);
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
    change(all, b, MT_BULK_RUNNING);
}

static bool note_file(void *ctx, mt_bulk *b, bool errors, const char *id, mt_error *err)
{
    mt_batches *all = ctx;

    pthread_mutex_lock(&all->lock);
    snprintf(errors ? b->errors_file : b->output, MT_RANDOM_ID, "%s", id);
    pthread_mutex_unlock(&all->lock);
    return keep_head(all, b, err);
}

/* All lines have results: files are made of them, where the API has such, and the batch is over. */
static void finish(mt_batches *all, mt_bulk *b)
{
    const mt_bulk_state end = b->at[MT_BULK_CANCELLING]       ? MT_BULK_CANCELLED
                              : b->counts[MT_BULK_LAPSED] > 0 ? MT_BULK_EXPIRED
                                                              : MT_BULK_COMPLETED;
    mt_error err = {0};
    struct stat st = {.st_size = 0};
    mt_bulk_path path;

    rest(b);
    if (b->state != MT_BULK_FINALIZING && !change(all, b, MT_BULK_FINALIZING))
        return;
    if (!b->anthropic) {
        /* The files take the place of what was claimed for them */
        if (fstatat(all->folder, mt_bulk_path_of(path, b, MT_BULK_JOURNAL), &st, 0) == 0)
            mt_files_claim_less(b->claim, (uint64_t)st.st_size);
        if (!mt_bulk_publish(b, all->folder, all->settings.files, note_file, all, &err)) {
            (void)!mt_files_claim_more(b->claim, (uint64_t)st.st_size, true, &err);
            put_off(b, &err);
            return;
        }
    }
    if (!change(all, b, end))
        return;
    remove_file(all, b, MT_BULK_LINES);
    if (!b->anthropic) {
        remove_file(all, b, MT_BULK_JOURNAL);
        mt_files_drop(b->claim);
        b->claim = NULL;
    }
}

/* Takes a batch out of the list and deletes what is left of it. */
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
    remove_file(all, b, MT_BULK_HEAD); /* first: without it, all else is nobody's */
    remove_file(all, b, MT_BULK_LINES);
    remove_file(all, b, MT_BULK_JOURNAL);
    mt_bulk_free(b);
}

/* Whether a batch is kept no longer. */
static bool is_old(const mt_batches *all, const mt_bulk *b)
{
    return b->gone || (mt_bulk_is_over(b->state) && all->settings.keep > 0 &&
                       b->at[b->state] + all->settings.keep <= seconds_now());
}

/* Does what is next for a batch. */
static void go_on(mt_batches *all, mt_bulk *b)
{
    bool cancel;

    pthread_mutex_lock(&all->lock);
    cancel = b->cancel != 0;
    pthread_mutex_unlock(&all->lock);
    if (mt_clock_ns() < b->later)
        return;
    count_all(all, b);
    if (b->state == MT_BULK_VALIDATING)
        validate(all, b);
    if (mt_bulk_is_over(b->state) || b->state == MT_BULK_VALIDATING)
        return;
    if (cancel && b->state == MT_BULK_RUNNING && !change(all, b, MT_BULK_CANCELLING))
        return;
    if ((b->state == MT_BULK_CANCELLING || has_lapsed(b)) && done_of(b) + b->flying < b->total) {
        if (!b->active && !activate(all, b))
            return;
        give_up_lines(all, b, b->state == MT_BULK_CANCELLING ? MT_BULK_DROPPED : MT_BULK_LAPSED);
    }
    if (done_of(b) == b->total && b->flying == 0)
        finish(all, b);
}

/* ---- lines ---- */

/* Whether lines of it may be begun. */
static bool may_run(const mt_bulk *b)
{
    return b->state == MT_BULK_RUNNING && mt_clock_ns() >= b->later && done_of(b) + b->flying < b->total &&
           !has_lapsed(b);
}

/* Has up to ACTIVE batches active that may run, the oldest of the owners with the fewest. */
static void activate_some(mt_batches *all)
{
    for (;;) {
        mt_bulk *best = NULL;
        size_t active = 0, fewest = SIZE_MAX;

        for (mt_bulk *b = all->newest; b; b = b->next) {
            size_t own = 0;

            active += b->active;
            if (b->active || !may_run(b))
                continue;
            for (const mt_bulk *other = all->newest; other; other = other->next)
                own += other->active && strcmp(other->owner, b->owner) == 0;
            if (own <= fewest) { /* the last is the oldest */
                fewest = own;
                best = b;
            }
        }
        if (!best || active >= ACTIVE || !activate(all, best))
            return;
    }
}

/* The active batch that has the fewest lines on their way; of equals, the oldest. */
static mt_bulk *next_batch(const mt_batches *all)
{
    mt_bulk *best = NULL;

    for (mt_bulk *b = all->newest; b; b = b->next)
        if (b->active && may_run(b) && (!best || b->flying <= best->flying))
            best = b;
    return best;
}

static bool is_true(const json_t *body, const char *key)
{
    return json_is_true(json_object_get(body, key));
}

/* Makes a job of a line. NULL: *err. */
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
                         .text = {.limit = MT_LIMIT_RESPONSE_BYTES}};
    if (!is_true(body, "stream") && !is_true(body, "background") && mt_json_tree_write(&text, body)) {
        job->body = text.data;
        job->body_len = text.len;
    }
    json_decref(object);
    return job;
}

/* Gives lines to the io thread, as many as may be on their way. */
static void give_lines(mt_batches *all)
{
    while (all->flying < all->settings.at_once && !atomic_load(&all->draining) && mt_clock_ns() >= all->later) {
        mt_bulk *b = next_batch(all);
        mt_error err = {0};
        mt_bulk_job *job;

        if (!b)
            return;
        while (b->lines[b->first].state != MT_LINE_WAITS)
            b->first++;
        job = make_job(all, b, b->first, &err);
        if (!job && err.code == MT_E_BUSY)
            all->later = mt_clock_ns() + AGAIN_NS;
        else if (!job)
            put_off(b, &err);
        if (!job)
            continue;
        b->lines[b->first++].state = MT_LINE_GIVEN;
        pthread_mutex_lock(&all->lock);
        b->flying++;
        all->flying++;
        pthread_mutex_unlock(&all->lock);
        mt_mailbox_post(all->settings.server->mailbox, &job->message);
    }
}

/* ---- the thread ---- */

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

/* The newest batch; others are added in front of it. */
static mt_bulk *newest(mt_batches *all)
{
    mt_bulk *b;

    pthread_mutex_lock(&all->lock);
    b = all->newest;
    pthread_mutex_unlock(&all->lock);
    return b;
}

static void *work(void *arg)
{
    mt_batches *all = arg;

    while (!atomic_load(&all->stop)) {
        mt_bulk_job *jobs = wait_for_jobs(all);
        bool old;

        store(all, jobs);
        for (mt_bulk *b = newest(all), *next; b && !atomic_load(&all->stop); b = next) {
            next = b->next;
            go_on(all, b);
            pthread_mutex_lock(&all->lock);
            old = is_old(all, b);
            pthread_mutex_unlock(&all->lock);
            if (old)
                forget(all, b);
        }
        activate_some(all);
        give_lines(all);
    }
    return NULL;
}

static void wake(mt_batches *all)
{
    all->woken = true;
    pthread_cond_signal(&all->wake);
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

/* ---- opening and closing ---- */

static int by_age(const void *a, const void *b)
{
    const mt_bulk *const *x = a, *const *y = b;
    const int64_t at = (*x)->at[MT_BULK_VALIDATING], other = (*y)->at[MT_BULK_VALIDATING];

    return at != other ? (at < other ? -1 : 1) : strcmp((*x)->id, (*y)->id);
}

/* Whether a name ends so; then the rest is an id. */
static bool id_of(char id[MT_RANDOM_ID], const char *name, const char *end)
{
    const size_t len = strlen(name), tail = strlen(end);

    return len > tail && len - tail < MT_RANDOM_ID && strcmp(name + len - tail, end) == 0 &&
           snprintf(id, MT_RANDOM_ID, "%.*s", (int)(len - tail), name) > 0;
}

/* Removes what has no head. */
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
    all->works = pthread_create(&all->thread, NULL, work, all) == 0;
    return all->works || mt_fail(err, MT_E_IO, "a thread for batches cannot be started");
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
    wake(all);
    pthread_mutex_unlock(&all->lock);
    if (all->works)
        pthread_join(all->thread, NULL);
    all->works = false;
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

/* ---- what clients ask ---- */

bool mt_batches_add(mt_batches *all, mt_bulk *b, mt_buf *out, mt_failure *why)
{
    mt_error err = {0};
    bool full;

    pthread_mutex_lock(&all->lock);
    full = all->count >= MT_LIMIT_BATCHES;
    pthread_mutex_unlock(&all->lock);
    if (full)
        mt_failure_set(why, 429, "too_many_batches", NULL,
                       "%d batches are kept here already: delete some, or let them expire", MT_LIMIT_BATCHES);
    else if (keep_head(all, b, &err)) {
        pthread_mutex_lock(&all->lock);
        b->counted = true;
        b->next = all->newest;
        all->newest = b;
        all->count++;
        mt_bulk_tell(out, b);
        wake(all);
        pthread_mutex_unlock(&all->lock);
        return true;
    } else
        mt_failure_from_files(why, &err, NULL, NULL);
    remove_file(all, b, MT_BULK_LINES);
    mt_bulk_free(b);
    return false;
}

/* With the lock. */
static mt_bulk *find(const mt_batches *all, const char *owner, bool anthropic, const char *id)
{
    mt_bulk *b = all->newest;

    while (b && (b->gone || b->anthropic != anthropic || strcmp(b->id, id) != 0 || strcmp(b->owner, owner) != 0))
        b = b->next;
    return b;
}

static bool is_missing(const char *id, mt_failure *why)
{
    return mt_failure_set(why, 404, "batch_not_found", "id",
                          "there is no batch \"%.60s\" here: look at the list of batches", id);
}

bool mt_batches_tell(mt_batches *all, const char *owner, bool anthropic, const char *id, mt_buf *out, mt_failure *why)
{
    const mt_bulk *b;

    pthread_mutex_lock(&all->lock);
    b = find(all, owner, anthropic, id);
    if (b)
        mt_bulk_tell(out, b);
    pthread_mutex_unlock(&all->lock);
    return b || is_missing(id, why);
}

bool mt_batches_cancel(mt_batches *all, const char *owner, bool anthropic, const char *id, mt_buf *out, mt_failure *why)
{
    mt_buf head = {.limit = MT_LIMIT_BATCH_HEAD};
    mt_error err = {0};
    bool over = false, ok;
    mt_bulk *b;

    pthread_mutex_lock(&all->heads);
    pthread_mutex_lock(&all->lock);
    b = find(all, owner, anthropic, id);
    if (b) {
        over = mt_bulk_is_over(b->state) || b->state == MT_BULK_FINALIZING;
        if (!over && !b->cancel)
            b->cancel = seconds_now();
        mt_bulk_head_write(&head, b);
        mt_bulk_tell(out, b);
        wake(all);
    }
    pthread_mutex_unlock(&all->lock);
    ok = !b || over || mt_bulk_head_keep(all->folder, id, &head, &err);
    pthread_mutex_unlock(&all->heads);
    mt_buf_free(&head);
    if (!b)
        return is_missing(id, why);
    if (over && !anthropic)
        return mt_failure_set(why, 409, "batch_is_over", "id", "the batch \"%s\" is over, or is being ended", id);
    return ok || mt_failure_from_files(why, &err, NULL, NULL);
}

bool mt_batches_remove(mt_batches *all, const char *owner, bool anthropic, const char *id, mt_buf *out, mt_failure *why)
{
    bool over;
    mt_bulk *b;

    pthread_mutex_lock(&all->lock);
    b = find(all, owner, anthropic, id);
    over = b && mt_bulk_is_over(b->state);
    if (over) {
        b->gone = true;
        wake(all);
    }
    pthread_mutex_unlock(&all->lock);
    if (!b)
        return is_missing(id, why);
    if (!over)
        return mt_failure_set(why, 400, "batch_is_running", "id",
                              "the batch \"%s\" is not over: cancel it first, and wait for its end", id);
    mt_json_write(out, "{'id':%s,'type':'message_batch_deleted'}", id);
    return true;
}

bool mt_batches_list(mt_batches *all, const char *owner, bool anthropic, const mt_batches_query *q, mt_buf *out,
                     mt_failure *why)
{
    const char *bound = q->after ? q->after : q->before;
    const mt_bulk **at = NULL, *b;
    size_t count = 0, cap = 0, begin = 0, end;
    bool more, found;

    pthread_mutex_lock(&all->lock);
    found = !bound || find(all, owner, anthropic, bound);
    for (b = all->newest; b && found; b = b->next)
        if (!b->gone && b->anthropic == anthropic && strcmp(b->owner, owner) == 0) {
            at = mt_grow(at, &cap, count + 1, sizeof(*at));
            at[count++] = b;
        }
    end = count;
    for (size_t i = 0; i < count; i++) {
        begin = q->after && strcmp(at[i]->id, q->after) == 0 ? i + 1 : begin;
        end = q->before && strcmp(at[i]->id, q->before) == 0 ? i : end;
    }
    more = end > begin && end - begin > q->limit;
    if (more && q->before && !q->after)
        begin = end - q->limit;
    else if (more)
        end = begin + q->limit;
    mt_json_write(out, anthropic ? "{'data':[" : "{'object':'list','data':[");
    for (size_t i = begin; i < end; i++)
        mt_bulk_tell(out, at[i]);
    mt_json_write(out, "],'first_id':%s,'last_id':%s,'has_more':%hhd}", begin < end ? at[begin]->id : NULL,
                  begin < end ? at[end - 1]->id : NULL, more);
    pthread_mutex_unlock(&all->lock);
    mt_free(at);
    return found || mt_failure_value(why, q->after ? "after" : "before", "names no batch to list from");
}

bool mt_batches_results(mt_batches *all, const char *owner, const char *id, mt_journal_reader *reader, void *ctx,
                        mt_error *err)
{
    char path[MT_RANDOM_ID + sizeof(MT_BULK_JOURNAL)];
    const mt_bulk *b;
    bool over;

    pthread_mutex_lock(&all->lock);
    b = find(all, owner, true, id);
    over = b && mt_bulk_is_over(b->state);
    pthread_mutex_unlock(&all->lock);
    if (!b)
        return mt_fail(err, MT_E_NOT_FOUND, "there is no batch \"%.60s\" here: look at the list of batches", id);
    if (!over)
        return mt_fail(err, MT_E_INVALID, "the batch \"%.60s\" has no results yet: wait for its end", id);
    snprintf(path, sizeof(path), "%s" MT_BULK_JOURNAL, id);
    return mt_journal_read(all->folder, path, reader, ctx, err);
}

mt_batches_stats mt_batches_look(mt_batches *all)
{
    mt_batches_stats stats;

    pthread_mutex_lock(&all->lock);
    stats = all->stats;
    stats.flying = all->flying;
    for (const mt_bulk *b = all->newest; b; b = b->next)
        stats.states[b->state]++;
    pthread_mutex_unlock(&all->lock);
    return stats;
}
