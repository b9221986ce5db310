/* Texts for encoders (models/bert.h), which become vectors or scores. An encoder has no cache, and its texts have no
   answers: each text waits at its encoder's queue until a job takes it, and its request ends when the job is done.

   1. A text is at a queue or in the queue's job from the moment it is taken from the inbox to its last event.
   2. A job takes the next text of the client with the least debt, counting what the client has in this job already; so
      a client with many texts does not crowd out the others.
   3. A job reads tokens of its texts: a cancelled text ends with the job, and a job of which no text is wanted ends.
   4. Memory is reserved at the start: a job has at most queue->rows rows. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/inside.h"

#define JOB_ROWS 2048  /* most rows of a job, or the longest text where that is more */
#define SLICE_ROWS 128 /* most rows of a slice */

_Static_assert(MT_BERT_TEXTS <= MT_JOB_PARTS, "a job has a part for each text");

static void end(mt_engine *e, mt_text_queue *q, mt_request *r, mt_finish finish, const mt_error *err)
{
    const bool done = finish == MT_FINISH_STOP;
    mt_voices_end(e->voices, r->voice, finish, mt_clock_ns());
    r->client_record->here--;
    if (!r->placed)
        /* before the last event, so that its receiver can already use the place */
        mt_places_give(&q->places, &r->client, 1);
    r->event(r->ctx, &(mt_event){.kind = MT_EVENT_DONE,
                                 .finish = finish,
                                 .error = err,
                                 .stop_token = MT_TOKEN_NONE,
                                 .prompt_tokens = r->prompt_len,
                                 .vector = done ? r->vector : NULL,
                                 .vector_len = done ? r->vector_len : 0,
                                 .last = true});
    mt_request_free(r);
}

static bool cancelled(const mt_request *r)
{
    return atomic_load_explicit(&r->cancelled, memory_order_relaxed); /* relaxed: no other data depends on it */
}

/* ---- beginning a job ---- */

static bool comes_before(const mt_request *a, const mt_request *b)
{
    if (a->client_record->debt != b->client_record->debt)
        return a->client_record->debt < b->client_record->debt;
    return a->priority != b->priority ? a->priority < b->priority : a->order < b->order;
}

/* Takes the next text from the queue; NULL when there is none, or it does not fit into the job any more. */
static mt_request *take(mt_text_queue *q)
{
    size_t first = 0;
    for (size_t i = 1; i < q->waiting_count; i++)
        if (comes_before(q->waiting[i], q->waiting[first]))
            first = i;
    if (q->waiting_count == 0 || q->job.count == MT_BERT_TEXTS ||
        q->job.whole + (double)q->waiting[first]->prompt_len > (double)q->rows)
        return NULL;
    mt_request *r = q->waiting[first];
    memmove(q->waiting + first, q->waiting + first + 1, (--q->waiting_count - first) * sizeof(*q->waiting));
    return r;
}

/* Begins a job with as many waiting texts as fit. */
static void begin(mt_engine *e, mt_text_queue *q, uint64_t now)
{
    mt_bert_text texts[MT_BERT_TEXTS];
    const double token = (q->job.seconds + 1e-6) / (double)(q->stats.tokens + 1);
    for (size_t i = 0; i < e->clients.count; i++)
        e->clients.client_record[i].debt = mt_client_record_debt(&e->clients.client_record[i], now);
    for (mt_request *r; (r = take(q));) {
        texts[q->job.count] = (mt_bert_text){.tokens = r->prompt, .count = r->prompt_len, .second = r->second};
        mt_job_add(&q->job, r, (double)r->prompt_len);
        r->client_record->debt += token * (double)r->prompt_len / r->client_record->client.share;
        mt_voices_seat(e->voices, r->voice, now);
        r->event(r->ctx, &(mt_event){.kind = MT_EVENT_BEGUN});
    }
    mt_bert_begin(q->bert, texts, q->job.count);
    if (q->job.count + e->running_count + e->waiting_count > 1)
        e->past.concurrent = now;
}

/* ---- ending a job ---- */

/* Computes the vector or score of a text. */
static void pool(mt_text_queue *q, mt_request *r, size_t text)
{
    const size_t first = r->pool == MT_POOL_LAST ? r->prompt_len - 1 : 0;
    const size_t last = r->pool == MT_POOL_FIRST ? 1 : r->prompt_len;
    const size_t width = mt_bert_width(&q->encoder->spec);
    float *sum = r->vector;
    if (r->pool == MT_POOL_CLASSES) {
        memcpy(r->vector, mt_bert_classes(q->bert, text), width * sizeof(*r->vector));
        return;
    }
    if (r->pool == MT_POOL_EACH) {
        for (size_t row = 0; row < r->prompt_len; row++)
            memcpy(r->vector + row * width, mt_bert_hidden(q->bert, text, row), width * sizeof(*r->vector));
        return;
    }
    if (q->pooled) {
        sum = q->pooled;
        memset(sum, 0, width * sizeof(*sum));
    }
    for (size_t row = first; row < last; row++) {
        const float *hidden = mt_bert_hidden(q->bert, text, row);
        for (size_t k = 0; k < width; k++)
            sum[k] += hidden[k];
    }
    for (size_t k = 0; k < width; k++)
        sum[k] /= (float)(last - first);
    if (q->pooled)
        memcpy(r->vector, mt_bert_densed(q->bert, sum), r->vector_len * sizeof(*r->vector));
}

static void settle(mt_engine *e, mt_text_queue *q, mt_request *r, size_t text)
{
    mt_error err = {0};
    bool finite = true;
    pool(q, r, text);
    for (size_t k = 0; k < r->vector_len; k++)
        finite = finite && isfinite(r->vector[k]);
    if (!finite)
        mt_fail(&err, MT_E_INTERNAL, "the encoder's numbers are not finite; the checkpoint may be damaged");
    end(e, q, r, finite ? MT_FINISH_STOP : MT_FINISH_ERROR, finite ? NULL : &err);
}

static void done(mt_engine *e, mt_job *j)
{
    mt_text_queue *q = (mt_text_queue *)j;
    pthread_mutex_lock(&e->lock);
    q->stats.texts += j->count;
    q->stats.tokens += (uint64_t)j->whole;
    pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; i < j->count; i++)
        if (cancelled(j->request[i]))
            end(e, q, j->request[i], MT_FINISH_CANCELLED, NULL);
        else
            settle(e, q, j->request[i], i);
    mt_job_clear(j);
}

static void end_job(mt_engine *e, mt_text_queue *q, mt_finish finish, const mt_error *err)
{
    mt_cursor_drop(q->job.cursor);
    for (size_t i = 0; i < q->job.count; i++)
        end(e, q, q->job.request[i], finish, err);
    mt_job_clear(&q->job);
}

static void sweep(mt_engine *e, mt_text_queue *q)
{
    size_t kept = 0, wanted = 0;
    for (size_t i = 0; i < q->waiting_count; i++)
        if (cancelled(q->waiting[i]))
            end(e, q, q->waiting[i], MT_FINISH_CANCELLED, NULL);
        else
            q->waiting[kept++] = q->waiting[i];
    q->waiting_count = kept;
    for (size_t i = 0; i < q->job.count; i++)
        wanted += !cancelled(q->job.request[i]);
    if (q->job.count > 0 && wanted == 0)
        end_job(e, q, MT_FINISH_CANCELLED, NULL);
}

void mt_texts_end(mt_engine *e, mt_finish finish, const mt_error *err)
{
    for (size_t i = 0; i < e->text_queue_count; i++) {
        mt_text_queue *q = &e->text_queues[i];
        while (q->waiting_count > 0)
            end(e, q, q->waiting[--q->waiting_count], finish, err);
        if (q->job.count > 0)
            end_job(e, q, finish, err);
    }
}

void mt_texts_advance(mt_engine *e, bool stopping)
{
    if (stopping)
        mt_texts_end(e, MT_FINISH_CANCELLED, NULL);
    for (size_t i = 0; i < e->text_queue_count; i++) {
        mt_text_queue *q = &e->text_queues[i];
        sweep(e, q);
        if (q->job.count == 0 && q->waiting_count > 0)
            begin(e, q, mt_clock_ns());
    }
}

/* ---- queues ---- */

static bool open_text_queue(mt_engine *e, mt_text_queue *q, mt_error *err)
{
    const mt_encoder *n = q->encoder;
    const size_t slice = e->params.rows < SLICE_ROWS ? e->params.rows : SLICE_ROWS;
    const uint64_t before = mt_device_bytes(e->dev);
    q->rows = n->spec.context > JOB_ROWS ? n->spec.context : JOB_ROWS;
    q->bert = mt_bert_new(e->dev, &n->spec, &n->weights, &(mt_bert_params){.rows = q->rows, .slice = slice}, err);
    if (!q->bert)
        return false;
    mt_job_init(&q->job, mt_bert_cursor(q->bert), done);
    mt_log_info("encoder.opened", "%s \"%s\" on %s, %.1f MiB",
                mt_config_string(mt_checkpoint_config(n->checkpoint), "model_type", ""),
                mt_checkpoint_dir(n->checkpoint), mt_device_name(e->dev),
                (double)(mt_encoder_weights(n) + mt_device_bytes(e->dev) - before) / (1 << 20));
    return true;
}

bool mt_texts_load(mt_engine *e, mt_error *err)
{
    for (size_t i = 0; i < e->text_queue_count; i++)
        if (!open_text_queue(e, &e->text_queues[i], err))
            return false;
    return true;
}

void mt_texts_unload(mt_engine *e)
{
    for (size_t i = 0; i < e->text_queue_count; i++) {
        mt_bert_free(e->text_queues[i].bert);
        e->text_queues[i].bert = NULL;
    }
}

void mt_texts_open(mt_engine *e)
{
    e->text_queue_count = e->params.encoder_count;
    e->text_queues = mt_alloc_array(e->text_queue_count, sizeof(*e->text_queues));
    e->jobs = mt_alloc_array(1 + e->text_queue_count, sizeof(mt_job *));
    e->jobs[e->job_count++] = &e->job;
    for (size_t i = 0; i < e->text_queue_count; i++) {
        mt_text_queue *q = &e->text_queues[i];
        /* copied: a device that failed is loaded again when the caller's list may be gone */
        q->encoder = e->params.encoders[i];
        if (q->encoder->weights.after_count)
            q->pooled = mt_alloc_array(q->encoder->spec.hidden, sizeof(*q->pooled));
        e->jobs[e->job_count++] = &q->job;
        mt_places_init(&q->places, e->params.queue + MT_BERT_TEXTS);
        q->waiting = mt_alloc_array(q->places.all, sizeof(mt_request *));
        e->text_places += q->places.all;
    }
}

void mt_texts_close(mt_engine *e)
{
    for (size_t i = 0; i < e->text_queue_count; i++) {
        mt_places_free(&e->text_queues[i].places);
        mt_free(e->text_queues[i].waiting);
        mt_free(e->text_queues[i].pooled);
    }
    mt_free(e->text_queues);
    mt_free(e->jobs);
}
