/* The heads and journals of batches: what is written when a batch changes its state or a line has its result. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/log.h"
#include "server/batches/batches_inside.h"
#include "server/limits.h"

#define BUSY_NS UINT64_C(1000000000)    /* pause of a batch for one of whose lines the server had no room */
#define FAILED_NS UINT64_C(10000000000) /* pause of a batch that could not be written */

bool mt_batches_save_head(mt_batches *all, const mt_bulk *b, mt_error *err)
{
    mt_buf head = {.limit = MT_LIMIT_BATCH_HEAD};
    bool ok;

    pthread_mutex_lock(&all->heads);
    pthread_mutex_lock(&all->lock);
    mt_bulk_head_write(&head, b);
    pthread_mutex_unlock(&all->lock);
    ok = (!head.full || mt_fail(err, MT_E_TOO_LARGE, "the description of the batch is too long")) &&
         mt_bulk_head_keep(all->folder, b->id, &head, err);
    pthread_mutex_unlock(&all->heads);
    mt_buf_free(&head);
    return ok;
}

void mt_batches_retry_later(mt_bulk *b, const mt_error *err)
{
    if (!b->failing)
        mt_log_warn("batch.waits", "%s waits: %s", b->id, err->text);
    b->failing = true;
    b->later = mt_clock_ns() + FAILED_NS;
}

bool mt_batches_change(mt_batches *all, mt_bulk *b, mt_bulk_state state)
{
    const mt_bulk_state before = b->state;
    mt_error err = {0};

    pthread_mutex_lock(&all->lock);
    b->state = state;
    b->at[state] = mt_batches_now();
    pthread_mutex_unlock(&all->lock);
    if (mt_batches_save_head(all, b, &err)) {
        mt_log_info("batch.state", "%s is %s: %zu lines, %zu answered, %zu errors", b->id, mt_bulk_state_name(state),
                    b->total, b->counts[MT_BULK_ANSWERED], b->counts[MT_BULK_ERRED]);
        b->failing = false;
        return true;
    }
    pthread_mutex_lock(&all->lock);
    b->state = before;
    b->at[state] = 0;
    pthread_mutex_unlock(&all->lock);
    mt_batches_retry_later(b, &err);
    return false;
}

void mt_batches_remove_file(const mt_batches *all, const mt_bulk *b, const char *end)
{
    mt_bulk_path path;

    unlinkat(all->folder, mt_bulk_path_of(path, b, end), 0);
}

static int kind_of(char letter)
{
    const char *at = strchr(MT_BULK_KINDS, letter);

    return at && letter ? (int)(at - MT_BULK_KINDS) : MT_BULK_RESULTS;
}

/* Counts a record; where the batch is active, marks its line as done. */
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

/* Bytes that a batch claims for so many bytes of results: invariant 4. */
static uint64_t bytes_on_disk(const mt_bulk *b, uint64_t bytes)
{
    return b->anthropic ? bytes : 2 * bytes;
}

/* Claims the bytes that a batch of an earlier run has on disk, whatever the limits are now. */
static void claim_all(mt_batches *all, mt_bulk *b)
{
    static const char *const ends[] = {MT_BULK_LINES, MT_BULK_JOURNAL};
    mt_bulk_path path;
    mt_error over; /* a limit, which does not matter here */
    struct stat st;

    if (b->claim)
        return;
    b->claim = mt_files_claim(all->settings.files, b->owner, true, &over);
    for (size_t i = 0; i < MT_COUNT(ends); i++)
        if (fstatat(all->folder, mt_bulk_path_of(path, b, ends[i]), &st, 0) == 0)
            (void)!mt_files_claim_more(b->claim, i ? bytes_on_disk(b, (uint64_t)st.st_size) : (uint64_t)st.st_size,
                                       true, &over);
}

static void set_counts(mt_batches *all, mt_bulk *b, const mt_bulk *from)
{
    pthread_mutex_lock(&all->lock);
    memcpy(b->counts, from->counts, sizeof(b->counts));
    pthread_mutex_unlock(&all->lock);
}

bool mt_batches_count(mt_batches *all, mt_bulk *b)
{
    const bool over = mt_bulk_is_over(b->state);
    mt_bulk copy = {.total = b->total};
    mt_bulk_path path;
    mt_error err = {0};

    if (b->counted)
        return true;
    if (over)
        mt_batches_remove_file(all, b, MT_BULK_LINES);
    if (over && !b->anthropic)
        mt_batches_remove_file(all, b, MT_BULK_JOURNAL);
    if (b->state != MT_BULK_VALIDATING && (b->anthropic || !over)) {
        claim_all(all, b);
        if (!over &&
            !mt_journal_read(all->folder, mt_bulk_path_of(path, b, MT_BULK_JOURNAL), count_record, &copy, &err)) {
            mt_batches_retry_later(b, &err);
            return false;
        }
        if (!over)
            set_counts(all, b, &copy);
    }
    b->counted = true;
    return true;
}

size_t mt_bulk_done(const mt_bulk *b)
{
    size_t done = 0;

    for (size_t i = 0; i < MT_BULK_RESULTS; i++)
        done += b->counts[i];
    return done;
}

void mt_batches_deactivate(mt_bulk *b)
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

bool mt_batches_activate(mt_batches *all, mt_bulk *b)
{
    mt_bulk_path path;
    mt_error err = {0};
    mt_bulk copy = {.total = 0};

    if (mt_bulk_index(b, all->folder, &err)) {
        copy = (mt_bulk){.total = b->total, .lines = b->lines};
        b->journal = mt_journal_open(all->folder, mt_bulk_path_of(path, b, MT_BULK_JOURNAL), count_record, &copy, &err);
    }
    if (!b->journal) {
        mt_batches_retry_later(b, &err);
        mt_batches_deactivate(b);
        return false;
    }
    set_counts(all, b, &copy);
    b->first = 0;
    b->active = true;
    return true;
}

static void requeue(mt_bulk *b, uint32_t line)
{
    b->lines[line].state = MT_LINE_WAITS;
    b->first = line < b->first ? line : b->first;
}

void mt_batches_pause(mt_bulk *b)
{
    const uint64_t later = mt_clock_ns() + BUSY_NS;

    b->later = b->later > later ? b->later : later;
}

/* Appends a result to the journal; sync_results makes it durable. False: *err. */
static bool record(mt_bulk *b, uint32_t line, mt_bulk_result result, const mt_buf *text, mt_error *err)
{
    const uint64_t bytes = bytes_on_disk(b, mt_journal_size(text->len));
    const mt_journal_record r = {.line = line, .kind = MT_BULK_KINDS[result], .text = text->data, .len = text->len};

    if (!mt_files_claim_more(b->claim, bytes, false, err))
        return false;
    if (!mt_journal_add(b->journal, &r, err)) {
        mt_files_claim_less(b->claim, bytes);
        return false;
    }
    b->unsynced += bytes;
    return true;
}

/* Makes the results that were appended durable. False: *err, and they are not in the journal. */
static bool sync_results(mt_bulk *b, mt_error *err)
{
    const bool ok = mt_journal_sync(b->journal, err);

    if (!ok)
        mt_files_claim_less(b->claim, b->unsynced);
    b->unsynced = 0;
    return ok;
}

/* The results of one batch are synced together. */
void mt_batches_store(mt_batches *all, mt_bulk_job *jobs)
{
    mt_bulk_job *next;

    for (mt_bulk_job *j = jobs; j; j = j->next) {
        mt_error err = {0};

        if (j->result == MT_BULK_AGAIN)
            mt_batches_pause(j->batch);
        else if (!record(j->batch, j->line, j->result, &j->text, &err)) {
            j->result = MT_BULK_AGAIN;
            mt_batches_retry_later(j->batch, &err);
        }
    }
    for (mt_bulk *b = jobs ? mt_batches_newest(all) : NULL; b; b = b->next) {
        mt_error err = {0};

        if (b->unsynced == 0)
            continue;
        if (sync_results(b, &err)) {
            b->failing = false;
            continue;
        }
        mt_batches_retry_later(b, &err);
        for (mt_bulk_job *j = jobs; j; j = j->next)
            if (j->batch == b)
                j->result = MT_BULK_AGAIN;
    }
    pthread_mutex_lock(&all->lock);
    for (mt_bulk_job *j = jobs; j; j = next) {
        next = j->next;
        j->batch->running--;
        all->running--;
        if (j->result == MT_BULK_AGAIN) {
            requeue(j->batch, j->line);
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

void mt_batches_close_lines(mt_batches *all, mt_bulk *b, mt_bulk_result result)
{
    mt_buf text = {.limit = MT_LIMIT_ERROR_TEXT + 8 * MT_LIMIT_BATCH_NAME};
    mt_error err = {0};
    const char *custom;
    const json_t *body;
    mt_failure why;
    size_t given = 0;
    bool ok = true, synced;

    if (!b->active && !mt_batches_activate(all, b))
        return;
    for (size_t i = 0; ok && i < b->total && !atomic_load(&all->stop); i++) {
        json_t *line = b->lines[i].state == MT_LINE_WAITS ? mt_bulk_load(b, i, &err) : NULL;

        if (b->lines[i].state != MT_LINE_WAITS)
            continue;
        text.len = 0;
        ok = line && mt_bulk_line_read(b, line, &custom, &body, &why);
        if (ok)
            mt_bulk_tell_none(&text, b, custom, result);
        ok = ok && record(b, (uint32_t)i, result, &text, &err);
        if (ok)
            b->lines[i].state = MT_LINE_CLOSED;
        json_decref(line);
    }
    synced = sync_results(b, &err);
    for (size_t i = 0; i < b->total; i++)
        if (b->lines[i].state == MT_LINE_CLOSED) {
            b->lines[i].state = synced ? MT_LINE_DONE : MT_LINE_WAITS;
            given += synced;
        }
    pthread_mutex_lock(&all->lock);
    b->counts[result] += given;
    all->stats.lines[result] += given;
    pthread_mutex_unlock(&all->lock);
    if (!ok || !synced) {
        mt_batches_retry_later(b, &err);
        if (b->running == 0) /* its lines need no memory meanwhile */
            mt_batches_deactivate(b);
    }
    mt_buf_free(&text);
}
