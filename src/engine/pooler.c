/* The thread of an encoder. It takes what waits, as many texts as fit into a job, and runs them slice by slice; for
   each slice it takes the lease, so that the engine's steps come between. An encoder has no cache and no answers to
   schedule, which is why it is not the engine's: all it needs is a queue, a device of its own and turns.

   1. A request is this thread's from the moment it is taken from the queue to its last event.
   2. Memory is reserved at the start: a job has at most so many rows, whatever comes. */
#include "engine/pooler.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"
#include "models/bert.h"

#define JOB_ROWS 2048    /* or the longest text */
#define SLICE_ROWS 128   /* at most */
#define SLICE_WORK 300e6 /* multiplications after which others have their turn: some milliseconds */

struct mt_pooler {
    mt_arena *arena;
    mt_checkpoint *checkpoint;
    mt_device *dev;
    mt_bert_spec spec;
    mt_bert_weights weights;
    mt_bert *bert;
    mt_lease *lease;
    size_t rows; /* of a job */

    mt_request *request[MT_BERT_TEXTS]; /* the job's */
    size_t count;
    mt_request *next; /* what did not fit into it */

    pthread_t thread;
    mt_queue *queue;
    mt_places places;
    atomic_bool stopping;
    atomic_uint_fast64_t texts, tokens, busy_ns;
};

static void tell(mt_pooler *p, mt_request *r, mt_finish finish, const mt_error *err)
{
    const bool done = finish == MT_FINISH_STOP;
    if (!r->placed)
        mt_places_give(&p->places, &r->client, 1); /* before it is told: who hears of the end finds room */
    r->event(r->ctx, &(mt_event){.kind = MT_EVENT_DONE,
                                 .finish = finish,
                                 .error = err,
                                 .stop_token = UINT32_MAX,
                                 .prompt_tokens = r->prompt_len,
                                 .vector = done ? r->vector : NULL,
                                 .vector_len = done ? r->vector_len : 0,
                                 .last = true});
    mt_request_free(r);
}

static bool dropped(const mt_pooler *p, const mt_request *r)
{
    /* relaxed: no data hangs on either */
    return atomic_load_explicit(&p->stopping, memory_order_relaxed) ||
           atomic_load_explicit(&r->cancelled, memory_order_relaxed);
}

/* The next that is still wanted, if it fits behind `rows` rows. */
static mt_request *take(mt_pooler *p, size_t rows)
{
    for (;;) {
        if (!p->next)
            p->next = rows > 0 ? mt_queue_pop(p->queue) : mt_queue_wait(p->queue, -1);
        if (!p->next || !dropped(p, p->next))
            break;
        tell(p, p->next, MT_FINISH_CANCELLED, NULL);
        p->next = NULL;
    }
    mt_request *r = p->next;
    if (r && rows + r->prompt_len > p->rows)
        return NULL;
    p->next = NULL;
    return r;
}

/* Waits for a first one. False at the end. */
static bool gather(mt_pooler *p)
{
    mt_bert_text texts[MT_BERT_TEXTS];
    size_t rows = 0;
    mt_request *r;
    for (p->count = 0; p->count < MT_BERT_TEXTS && (r = take(p, rows)); p->count++) {
        r->event(r->ctx, &(mt_event){.kind = MT_EVENT_BEGUN});
        p->request[p->count] = r;
        texts[p->count] = (mt_bert_text){.tokens = r->prompt, .count = r->prompt_len, .second = r->second};
        rows += r->prompt_len;
    }
    if (p->count > 0)
        mt_bert_begin(p->bert, texts, p->count);
    return p->count > 0;
}

static void pool(mt_pooler *p, size_t text)
{
    mt_request *r = p->request[text];
    const size_t first = r->pool == MT_POOL_LAST ? r->prompt_len - 1 : 0;
    const size_t end = r->pool == MT_POOL_FIRST ? 1 : r->prompt_len;
    if (r->pool == MT_POOL_SCORE) {
        r->vector[0] = mt_bert_score(p->bert, text);
        return;
    }
    for (size_t row = first; row < end; row++) {
        const float *hidden = mt_bert_hidden(p->bert, text, row);
        for (size_t k = 0; k < r->vector_len; k++)
            r->vector[k] += hidden[k];
    }
    for (size_t k = 0; k < r->vector_len; k++)
        r->vector[k] /= (float)(end - first);
}

static void settle(mt_pooler *p, size_t text)
{
    mt_request *r = p->request[text];
    mt_error err = {0};
    bool finite = true;
    pool(p, text);
    for (size_t k = 0; k < r->vector_len; k++)
        finite = finite && isfinite(r->vector[k]);
    if (!finite)
        mt_fail(&err, MT_E_INTERNAL, "the encoder's numbers are not finite; the checkpoint may be damaged");
    tell(p, r, finite ? MT_FINISH_STOP : MT_FINISH_ERROR, finite ? NULL : &err);
}

static bool wanted(const mt_pooler *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (!dropped(p, p->request[i]))
            return true;
    return false;
}

/* False when nobody waits for it any more. */
static bool compute(mt_pooler *p)
{
    mt_cursor *cursor = mt_bert_cursor(p->bert);
    while (mt_cursor_left(cursor) > 0) {
        if (!wanted(p)) {
            mt_cursor_drop(cursor);
            return false;
        }
        mt_lease_take(p->lease);
        const uint64_t begin = mt_clock_ns();
        mt_cursor_run(cursor, p->lease ? SLICE_WORK : INFINITY);
        atomic_fetch_add_explicit(&p->busy_ns, mt_clock_ns() - begin, memory_order_relaxed); /* a statistic */
        mt_lease_give(p->lease);
    }
    return true;
}

static void *run(void *ctx)
{
    mt_pooler *p = ctx;
    while (gather(p)) {
        const bool done = compute(p);
        for (size_t i = 0; i < p->count; i++) {
            atomic_fetch_add_explicit(&p->texts, 1, memory_order_relaxed); /* statistics, both */
            atomic_fetch_add_explicit(&p->tokens, p->request[i]->prompt_len, memory_order_relaxed);
            if (done && !dropped(p, p->request[i]))
                settle(p, i);
            else
                tell(p, p->request[i], MT_FINISH_CANCELLED, NULL);
        }
    }
    return NULL;
}

bool mt_pooler_takes(const char *dir)
{
    char path[MT_LIMIT_PATH];
    const int len = snprintf(path, sizeof path, "%s/config.json", dir);
    mt_config *config = len > 0 && (size_t)len < sizeof path ? mt_config_read(path, NULL) : NULL;
    const bool known = config && mt_bert_known(config);
    mt_config_free(config);
    return known;
}

static bool open_model(mt_pooler *p, const char *dir, const mt_pooler_params *params, mt_error *err)
{
    p->checkpoint = mt_checkpoint_open(dir, err);
    if (!p->checkpoint)
        return false;
    const mt_config *config = mt_checkpoint_config(p->checkpoint);
    if (!mt_bert_known(config))
        return mt_fail(
            err, MT_E_UNSUPPORTED,
            "\"%.200s\" is no encoder but of type \"%.64s\"; known are bert, roberta, xlm-roberta, camembert", dir,
            mt_config_string(config, "model_type", ""));
    if (!mt_bert_spec_read(&p->spec, config, err) || !mt_bert_bind(&p->weights, &p->spec, p->checkpoint, p->arena, err))
        return false;
    p->dev = mt_device_open(&params->device, err);
    if (!p->dev)
        return false;
    p->rows = p->spec.context > JOB_ROWS ? p->spec.context : JOB_ROWS;
    p->bert = mt_bert_new(p->dev, &p->spec, &p->weights, &(mt_bert_params){.rows = p->rows, .slice = SLICE_ROWS}, err);
    return p->bert && mt_device_plan(p->dev, SLICE_ROWS, err);
}

static void free_pooler(mt_pooler *p)
{
    mt_bert_free(p->bert);
    mt_device_close(p->dev);
    mt_checkpoint_close(p->checkpoint);
    mt_queue_free(p->queue);
    mt_places_free(&p->places);
    mt_arena_free(p->arena);
    mt_free(p);
}

mt_pooler *mt_pooler_start(const char *dir, const mt_pooler_params *params, mt_error *err)
{
    mt_pooler *p = mt_alloc(sizeof *p);
    p->arena = mt_arena_new(0);
    p->lease = params->lease;
    mt_places_init(&p->places, params->queue + MT_BERT_TEXTS);
    p->queue = mt_queue_new(p->places.all);
    if (!p->queue)
        mt_fail(err, MT_E_IO, "no file descriptor is left; raise the limit (ulimit -n)");
    if (p->queue && open_model(p, dir, params, err)) {
        if (pthread_create(&p->thread, NULL, run, p) == 0) {
            mt_log_info("encoder.opened", "%s \"%s\" on %s, %.1f MiB", p->spec.roberta ? "roberta" : "bert", dir,
                        mt_device_name(p->dev), (double)mt_pooler_look(p).bytes / (1 << 20));
            return p;
        }
        mt_fail(err, MT_E_IO, "the encoder's thread could not be started; raise the limit (ulimit -u)");
    }
    free_pooler(p);
    return NULL;
}

void mt_pooler_stop(mt_pooler *p)
{
    if (!p)
        return;
    atomic_store(&p->stopping, true);
    mt_queue_close(p->queue);
    pthread_join(p->thread, NULL);
    free_pooler(p);
}

mt_pooler_facts mt_pooler_look(const mt_pooler *p)
{
    return (mt_pooler_facts){.context = p->spec.context,
                             .vocab = p->spec.vocab,
                             .width = p->spec.scores ? 1 : p->spec.hidden,
                             .scores = p->spec.scores,
                             .twice = p->spec.roberta,
                             .bytes = mt_checkpoint_bytes(p->checkpoint) + p->weights.cost.copied_bytes +
                                      mt_device_bytes(p->dev)};
}

mt_pooler_stats mt_pooler_count(mt_pooler *p)
{
    return (mt_pooler_stats){.texts = atomic_load(&p->texts),
                             .tokens = atomic_load(&p->tokens),
                             .seconds = (double)atomic_load(&p->busy_ns) * 1e-9,
                             .waiting = mt_queue_len(p->queue)};
}

bool mt_pooler_submit(mt_pooler *p, mt_request *r, mt_error *err)
{
    if (!r->placed && !mt_places_take(&p->places, &r->client, 1, 1, err))
        return false;
    r->vector_len = p->spec.scores ? 1 : p->spec.hidden;
    r->vector = mt_arena_alloc(r->arena, r->vector_len * sizeof *r->vector);
    if (mt_queue_push(p->queue, r))
        return true;
    if (!r->placed)
        mt_places_give(&p->places, &r->client, 1);
    return mt_fail(err, MT_E_BUSY, "the server is shutting down; try again later");
}

mt_places *mt_pooler_places(mt_pooler *p)
{
    return &p->places;
}
