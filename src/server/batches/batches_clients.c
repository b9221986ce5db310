/* What clients ask of batches: to keep, describe, cancel, delete and list them, and to send their results. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_write.h"
#include "server/batches/batches_inside.h"
#include "server/limits.h"

/* How many batches the owner may still add. With the lock. Where there are keys, an account leaves half to others. */
static size_t room_of(const mt_batches *all, const char *owner)
{
    size_t own = 0, left = MT_LIMIT_BATCHES - all->count;

    for (const mt_bulk *b = all->newest; b; b = b->next)
        own += strcmp(b->owner, owner) == 0;
    return *owner && own >= MT_LIMIT_BATCHES_EACH ? 0 : left;
}

bool mt_batches_add(mt_batches *all, mt_bulk *b, mt_buf *out, mt_failure *why)
{
    mt_error err = {0};
    bool full;

    pthread_mutex_lock(&all->lock);
    full = room_of(all, b->owner) == 0;
    all->count += !full;
    pthread_mutex_unlock(&all->lock);
    if (full)
        mt_failure_set(why, 429, "too_many_batches", NULL,
                       "no more batches are kept here: at most %d, and %d of one account; delete some, or let them "
                       "expire",
                       MT_LIMIT_BATCHES, MT_LIMIT_BATCHES_EACH);
    else if (!mt_batches_save_head(all, b, &err))
        mt_failure_from_files(why, &err, NULL, NULL);
    pthread_mutex_lock(&all->lock);
    if (!full && !err.code) {
        b->counted = true;
        b->next = all->newest;
        all->newest = b;
        mt_bulk_tell(out, b);
        mt_batches_wake(all);
        b = NULL;
    } else
        all->count -= !full;
    pthread_mutex_unlock(&all->lock);
    if (!b)
        return true;
    mt_batches_remove_file(all, b, MT_BULK_LINES);
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
            b->cancel = mt_batches_now();
        mt_bulk_head_write(&head, b);
        mt_bulk_tell(out, b);
        mt_batches_wake(all);
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
        mt_batches_wake(all);
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
