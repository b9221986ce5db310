/* The engine's thread, and the functions by which other threads reach it.

   The thread owns the model, the prefix tree and every sequence, from the moment a request is taken from the inbox to
   its last event.
   1. Requests come through the inbox. Each choice has a place (places.h) until it ends, which bounds the queue.
   2. Events are sent on this thread, between steps, while no lock is held.
   3. What other threads may see (counters, the list of sequences, the step under way) is a copy made around each
   step. */
#include "engine/engine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/inside.h"
#include "engine/limits.h"
#include "engine/media_parts.h"
#include "sample/limits.h"

void mt_engine_params_init(mt_engine_params *params)
{
    *params = (mt_engine_params){.sequences = 64,
                                 .queue = 256,
                                 .rows = 512,
                                 .turn_ms = 2000,
                                 .renew_ms = 2000,
                                 .speculate = MT_SPECULATE_MTP,
                                 .draft = MT_LIMIT_DRAFT,
                                 .masks = MT_LIMIT_CONSTRAINT_MASKS};
}

/* ---- requests ---- */

/* Refuses a part of a picture that is too large for any job: it would wait for ever. */
static bool cut_pictures(const mt_engine *e, mt_request *r, mt_error *err)
{
    if (!e->tower.cursor)
        return true;
    if (!mt_media_parts_make(r, e->features.count, err))
        return false;
    for (size_t i = 0; i < r->media_part_count; i++)
        if (!e->tower.fits(e->tower.cursor, (const mt_picture *[]){&r->media_parts[i].picture}, 1))
            return mt_fail(err, MT_E_TOO_LARGE,
                           "a picture has %zu patches, more than the encoder takes; send a smaller one",
                           mt_picture_patches(&r->media_parts[i].picture));
    return true;
}

/* Refuses pictures that this model, or the size of a step, does not allow. */
static bool check_pictures(const mt_engine *e, const mt_request *r, mt_error *err)
{
    if (r->picture_count > 0 && !e->tower.cursor)
        return mt_fail(err, MT_E_INVALID, "this model takes no pictures; send text");
    for (size_t i = 0; i < r->span_count; i++) {
        if (!r->spans[i].block)
            continue;
        if (r->spans[i].count > e->params.rows - e->params.sequences)
            return mt_fail(err, MT_E_TOO_LARGE,
                           "a picture of %u tokens goes into one step, which has room for %zu; raise --batch-tokens",
                           r->spans[i].count, e->params.rows - e->params.sequences);
        if (r->prompt_logprobs)
            return mt_fail(err, MT_E_INVALID,
                           "\"prompt_logprobs\" are not given for prompts with pictures by this model") ||
                   mt_fail_about(err, "prompt_logprobs");
    }
    return true;
}

/* Refuses a request that could never be computed. */
static bool check(const mt_engine *e, const mt_request *r, mt_error *err)
{
    const size_t vocab = e->spec->vocab;
    if (r->prompt_len == 0)
        return mt_fail(err, MT_E_INVALID, "the prompt is empty; give at least one token");
    if (r->choices > e->places.all) {
        mt_fail(err, MT_E_INVALID,
                "\"n\" is %u, and only %zu answers may wait or run: send at most as many, or raise "
                "--max-queue",
                r->choices, e->places.all);
        return mt_fail_about(err, "n");
    }
    if (r->prompt_len >= e->context)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "the prompt has %zu tokens and the context is %zu, which the answer needs a part of; shorten it",
                       r->prompt_len, e->context);
    for (size_t i = 0; i < r->prompt_len; i++)
        if (r->prompt[i] >= vocab)
            return mt_fail(err, MT_E_INVALID, "token %u is outside the vocabulary of %zu", r->prompt[i], vocab);
    assert(r->choices > 0);
    assert(!r->pool || (r->choices == 1 && r->max_tokens == 0 && r->pool != MT_POOL_CLASSES));
    assert(!r->constraint || mt_constraint_vocabulary(r->constraint)->size == vocab);
    return check_pictures(e, r, err) && mt_sample_settings_check(&r->sampling, vocab, err);
}

mt_places *mt_engine_places(mt_engine *e, size_t encoder)
{
    assert(encoder <= e->text_queue_count);
    return encoder ? &e->text_queues[encoder - 1].places : &e->places;
}

/* Checks a request, takes places for it and puts it into the inbox. */
static bool submit(mt_engine *e, mt_request *r, mt_error *err)
{
    mt_places *places = mt_engine_places(e, r->encoder);
    if (!(r->encoder || (check(e, r, err) && cut_pictures(e, r, err))) ||
        (!r->placed && !mt_places_take(places, &r->client, r->choices, r->choices, err)))
        return false;
    if (r->received == 0)
        r->received = mt_clock_ns();
    if (!r->encoder)
        mt_sequences_new(r, e->spec->group_count, e->context, e->spec->vocab, e->tokenizer);
    if (r->pool) {
        const mt_encoder *n = r->encoder ? e->text_queues[r->encoder - 1].encoder : NULL;
        if (r->pool == MT_POOL_EACH)
            r->vector_len = (n ? mt_bert_width(&n->spec) : e->spec->hidden) * r->prompt_len;
        else
            r->vector_len = n ? mt_bert_vector(&n->spec, &n->weights) : e->spec->hidden;
        r->vector = mt_arena_alloc(r->arena, r->vector_len * sizeof(*r->vector));
    }
    r->order = atomic_fetch_add(&e->order_next, 1);
    if (mt_queue_push(e->inbox, r))
        return true;
    if (!r->placed)
        mt_places_give(places, &r->client, r->choices);
    for (uint32_t c = 0; c < r->choices && r->sequences; c++)
        mt_sequence_close(&r->sequences[c]);
    return mt_fail(err, MT_E_BUSY, "the server is shutting down; try again later");
}

uint64_t mt_engine_turn(const mt_engine *e)
{
    return atomic_load_explicit(&e->turn, memory_order_relaxed);
}

/* Fails with MT_E_BUSY while the device is reopened. */
bool mt_engine_submit(mt_engine *e, mt_request *r, mt_error *err)
{
    if (pthread_rwlock_tryrdlock(&e->door))
        return mt_fail(err, MT_E_AWAY, "the device has failed and is being reopened; try again soon");
    const bool lost = e->lost.code != MT_OK;
    const bool ok = lost ? mt_fail(err, MT_E_AWAY, "%s", e->lost.text) : submit(e, r, err);
    pthread_rwlock_unlock(&e->door);
    if (lost)
        mt_engine_poke(e);
    return ok;
}

size_t mt_engine_context(const mt_engine *e)
{
    return e->context;
}

uint32_t mt_engine_fingerprint(const mt_engine *e)
{
    return e->fingerprint;
}

void mt_engine_stats(mt_engine *e, mt_stats *out)
{
    pthread_mutex_lock(&e->lock);
    *out = e->shown;
    pthread_mutex_unlock(&e->lock);
}

uint64_t mt_engine_used(mt_engine *e)
{
    pthread_mutex_lock(&e->lock);
    const mt_stats *s = &e->shown;
    const uint64_t bytes = s->bytes_weights + s->bytes_working + s->bytes_filled + s->media_bytes;
    pthread_mutex_unlock(&e->lock);
    return bytes;
}

mt_encoder_stats mt_engine_encoder_stats(mt_engine *e, size_t encoder)
{
    pthread_mutex_lock(&e->lock);
    const mt_encoder_stats stats = e->text_queues[encoder - 1].stats;
    pthread_mutex_unlock(&e->lock);
    return stats;
}

mt_voices *mt_engine_voices(mt_engine *e)
{
    return e->voices;
}

void mt_engine_look(mt_engine *e, mt_engine_batch *out, size_t most)
{
    mt_engine_part *part = out->part;
    pthread_mutex_lock(&e->lock);
    *out = e->batch;
    if (out->began)
        memcpy(part, e->batch.part, (out->parts < most ? out->parts : most) * sizeof(*part));
    pthread_mutex_unlock(&e->lock);
    out->part = part;
}

void mt_engine_batch_name(const mt_engine_batch *b, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "%zu rows of %zu answers", b->rows, b->parts);
    if (b->jobs)
        len += (size_t)snprintf(out + len, size - len, ", %zu of pictures or texts", b->jobs);
    for (size_t i = 0; i < b->parts && i < MT_LIMIT_STEP_NAMED && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s %zu behind %zu", i ? ", " : ": ", b->part[i].name,
                                b->part[i].rows, b->part[i].computed);
    if (b->parts > MT_LIMIT_STEP_NAMED && len < size)
        snprintf(out + len, size - len, ", and more");
}

size_t mt_engine_list(mt_engine *e, const mt_client *client, mt_engine_row *rows, size_t most)
{
    size_t count = 0;
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < e->row_count; i++)
        if (!client || e->rows[i].client == client->id) {
            if (count < most)
                rows[count] = e->rows[i];
            count++;
        }
    pthread_mutex_unlock(&e->lock);
    return count;
}

/* ---- the thread ---- */

/* Has a recurrent state kept behind the last two pictures: later requests with the same pictures and another question
   can continue there. */
static void stop_behind_pictures(mt_sequence *s)
{
    const mt_media_span *spans = s->request->spans;
    const size_t count = s->request->span_count;
    size_t stops = 0;
    for (size_t i = count; i-- > 0 && stops < 2;)
        if (i + 1 == count || spans[i].picture != spans[i + 1].picture) {
            mt_seq_stop_at(&s->seq, spans[i].first + spans[i].count);
            stops++;
        }
}

/* A request from the inbox becomes the engine's: its sequences are queued, or its text waits at an encoder's queue. */
static void take(mt_engine *e, mt_request *r)
{
    if (r->constraint && !e->masks)
        e->masks = mt_masks_new((e->spec->vocab + 31) / 32, e->params.sequences, (size_t)e->params.masks);
    const uint64_t now = mt_clock_ns();
    r->client_record = mt_clients_enter(&e->clients, &r->client, r->choices, now);
    mt_client_record_charge(r->client_record, r->spent, now);
    if (r->encoder) {
        r->voice = mt_voices_enter(e->voices, r, e->params.model, 0, now);
        mt_text_queue *q = &e->text_queues[r->encoder - 1];
        q->waiting[q->waiting_count++] = r;
        return;
    }
    if (e->feature_cache)
        mt_media_parts_take(r, e->feature_cache);
    for (uint32_t c = 0; c < r->choices; c++) {
        r->sequences[c].voice = mt_voices_enter(e->voices, r, e->params.model, c, now);
        mt_seq_attach(&r->sequences[c].seq, e->tree, r->salt);
        if (r->salt_name && e->params.events)
            mt_tree_name_root(r->sequences[c].seq.root, r->salt_name);
        if (e->spec->state.layers)
            stop_behind_pictures(&r->sequences[c]);
        if (r->constraint)
            mt_run_begin(&r->sequences[c].run, r->constraint);
        mt_engine_queue(e, &r->sequences[c]);
    }
    e->stats.prompt_tokens += r->prompt_len * r->choices;
    mt_histogram_count(&e->stats.wanted_choices, r->choices);
    if (!r->pool)
        mt_histogram_count(&e->stats.wanted_tokens, r->max_tokens);
}

/* Takes all requests from the inbox; where there is nothing to compute (idle), waits for the first. */
static void receive(mt_engine *e, bool idle)
{
    /* milliseconds: paused sequences are looked at again */
    const int wait = e->running_count + e->waiting_count ? 1000 : -1;
    for (mt_request *r = mt_inbox_next(e, idle ? wait : 0); r; r = mt_inbox_next(e, 0))
        take(e, r);
}

/* Ends the cancelled sequences of a list, or all. */
static void sweep(mt_engine *e, mt_sequence **list, const size_t *count, bool all)
{
    for (size_t i = *count; i-- > 0;)
        if (i < *count && (all || atomic_load_explicit(&list[i]->request->cancelled, memory_order_relaxed)))
            mt_engine_end(e, list[i], MT_FINISH_CANCELLED, NULL);
}

static mt_engine_row describe(const mt_sequence *s, mt_phase phase, uint64_t now)
{
    mt_engine_row row = {.choice = s->choice,
                         .phase = phase,
                         .client = s->request->client.id,
                         .prompt_tokens = s->request->prompt_len,
                         .cached = s->cached,
                         .computed = s->seq.done,
                         .tokens = s->generated,
                         .seconds = (double)(now - s->request->received) * 1e-9};
    snprintf(row.name, sizeof(row.name), "%s", s->request->name);
    return row;
}

static mt_phase phase_of(const mt_sequence *s, bool running)
{
    if (s->lacks_features)
        return MT_PHASE_ENCODE;
    return !running ? MT_PHASE_WAITING : s->generated ? MT_PHASE_DECODE : MT_PHASE_PREFILL;
}

static void publish_media(mt_engine *e)
{
    const mt_feature_cache_stats media =
        e->feature_cache ? mt_feature_cache_look(e->feature_cache) : (mt_feature_cache_stats){0};
    const size_t width = e->tower.width * sizeof(float);
    e->stats.media_known = media.known;
    e->stats.media_bytes = media.rows * width;
    e->stats.media_total = media.total * width;
    e->stats.media_evictions = media.evictions;
    e->stats.encode_seconds = e->job.seconds;
    e->stats.encode_work = e->job.work;
}

/* Fills the counters that describe the cache now. */
static void publish_cache(const mt_engine *e, mt_stats *st)
{
    st->bytes_filled = 0;
    for (size_t g = 0; g < e->spec->group_count; g++) {
        st->pages_total[g] = mt_tree_total(e->tree, g);
        st->pages_held[g] = st->pages_total[g] - mt_tree_available(e->tree, g);
        st->bytes_filled += mt_tree_filled(e->tree, g) * e->page_bytes[g];
    }
    st->pages_known = mt_tree_nodes(e->tree);
    st->evictions = mt_tree_evictions(e->tree);
    const mt_anchors *anchors = mt_tree_anchors(e->tree);
    st->bytes_filled += (anchors->slots.total - anchors->slots.free) * e->state_bytes;
    st->states_total = anchors->slots.total;
    st->states_held = mt_anchors_held(anchors);
    st->states_known = anchors->count;
    st->state_evictions = anchors->evictions;
    if (e->host_store)
        st->host_store = mt_host_store_look(e->host_store);
}

/* Updates the copies for other threads. */
static void publish(mt_engine *e)
{
    const uint64_t now = mt_clock_ns();
    e->stats.running = e->running_count;
    e->stats.waiting = e->waiting_count;
    e->stats.device_lost = e->lost.code != MT_OK;
    if (e->model)
        publish_cache(e, &e->stats);
    publish_media(e);
    pthread_mutex_lock(&e->lock);
    e->shown = e->stats;
    for (size_t i = 0; i < e->text_queue_count; i++) {
        e->text_queues[i].stats.seconds = e->text_queues[i].job.seconds;
        e->text_queues[i].stats.waiting = e->text_queues[i].waiting_count;
    }
    e->row_count = 0;
    for (size_t i = 0; i < e->running_count; i++)
        e->rows[e->row_count++] = describe(e->running[i], phase_of(e->running[i], true), now);
    for (size_t i = 0; i < e->waiting_count; i++)
        e->rows[e->row_count++] = describe(e->waiting[i], phase_of(e->waiting[i], false), now);
    pthread_mutex_unlock(&e->lock);
}

/* Publishes the step that is about to run, so that other threads can name its requests if the device hangs. */
static void publish_batch(mt_engine *e)
{
    mt_engine_batch *b = &e->batch;
    pthread_mutex_lock(&e->lock);
    *b = (mt_engine_batch){.began = mt_clock_ns(), .part = b->part};
    for (size_t i = 0; i < e->step.parts; i++) {
        const mt_part *p = &e->step.part[i];
        if (!p->s)
            continue;
        mt_engine_part *to = &b->part[b->parts++];
        *to = (mt_engine_part){.choice = p->s->choice, .rows = p->rows, .computed = p->s->seq.done};
        snprintf(to->name, sizeof(to->name), "%s", p->s->request->name ? p->s->request->name : "");
        b->rows += p->rows;
    }
    for (size_t i = 0; i < e->job_count; i++)
        b->jobs += mt_job_planned(e->jobs[i]);
    pthread_mutex_unlock(&e->lock);
}

/* The step has ended. Logs it where it took longer than slow_seconds. */
static void look_back(mt_engine *e)
{
    pthread_mutex_lock(&e->lock);
    const double seconds = (double)(mt_clock_ns() - e->batch.began) * 1e-9;
    e->batch.began = 0;
    pthread_mutex_unlock(&e->lock);
    if (e->params.slow_seconds <= 0 || seconds < e->params.slow_seconds)
        return;
    char who[MT_LIMIT_STEP_NAMED * 96];
    e->stats.slow_steps++;
    mt_engine_batch_name(&e->batch, who, sizeof(who));
    mt_log_warn("engine.slow_step", "a step took %.1f s: %s", seconds, who);
}

/* The device has failed: ends all requests with this error, those in the inbox too, and reopens the device. Requests
   that come meanwhile, or after that failed, are refused. */
static void start_over(mt_engine *e, const mt_error *fault)
{
    pthread_rwlock_wrlock(&e->door);
    receive(e, false);
    while (e->running_count) {
        mt_sequence *s = e->running[e->running_count - 1];
        mt_seq_spoil(&s->seq);
        mt_engine_end(e, s, MT_FINISH_ERROR, fault);
    }
    while (e->waiting_count)
        mt_engine_end(e, e->waiting[e->waiting_count - 1], MT_FINISH_ERROR, fault);
    mt_texts_end(e, MT_FINISH_ERROR, fault);
    e->stats.device_faults++;
    mt_engine_renew(e);
    pthread_rwlock_unlock(&e->door);
}

/* Where the device could not be reopened: tries again, at most every renew_ms. */
static void try_again(mt_engine *e)
{
    if (!e->lost.code || mt_clock_ns() < e->renewed + (uint64_t)(e->params.renew_ms * 1e6))
        return;
    pthread_rwlock_wrlock(&e->door);
    mt_engine_renew(e);
    pthread_rwlock_unlock(&e->door);
}

/* Tells others, before a step begins. */
static void step_begins(mt_engine *e)
{
    if (e->params.turn)
        e->params.turn(e->params.turn_ctx, true);
    publish_batch(e);
}

/* Waits for the step and hands out what it gave, unless the device has failed. */
static void step_ends(mt_engine *e)
{
    mt_engine_finish(e, &e->step);
    look_back(e);
    if (mt_device_well(e->dev, NULL))
        mt_engine_settle(e, &e->step);
    if (e->params.turn)
        e->params.turn(e->params.turn_ctx, false);
}

/* Between two steps: drops cancelled requests and advances transfers and texts. */
static void look_round(mt_engine *e, bool stopping)
{
    sweep(e, e->running, &e->running_count, stopping);
    sweep(e, e->waiting, &e->waiting_count, stopping);
    mt_engine_clear(e); /* before pages are handed to tiers */
    for (mt_sequence *back; (back = mt_keep_turn(e));)
        mt_engine_preempt(e, back);
    mt_texts_advance(e, stopping);
}

static void tell_others(mt_engine *e)
{
    mt_kv_events_flush(e->params.events, e->tree);
    publish(e);
}

/* A step, and those that are begun behind it while it runs: what the host does for one is done while the next is
   computed. */
static void take_turn(mt_engine *e)
{
    if (e->params.rota)
        mt_rota_begin(e->params.rota, &e->place);
    step_begins(e);
    mt_engine_begin(e, &e->step);
    while (mt_engine_go_ahead(e)) {
        step_ends(e);
        mt_engine_step_on(e);
        step_begins(e);
        if (!mt_device_well(e->dev, NULL))
            break;
        atomic_store_explicit(&e->turn, mt_clock_ns(), memory_order_relaxed);
        receive(e, false);
        look_round(e, false);
        tell_others(e);
    }
    step_ends(e);
    if (e->params.rota)
        mt_rota_end(e->params.rota, &e->place);
}

/* The engine's thread. */
static void *run(void *ctx)
{
    mt_engine *e = ctx;
    mt_error fault = {0};
    bool idle = true;
    mt_device_enter(e->dev);
    for (;;) {
        if (idle)
            atomic_store_explicit(&e->turn, 0, memory_order_relaxed);
        receive(e, idle);
        try_again(e);
        atomic_store_explicit(&e->turn, mt_clock_ns(), memory_order_relaxed);
        const bool stopping = atomic_load(&e->stopping);
        look_round(e, stopping);
        idle = stopping || e->lost.code || !mt_engine_plan(e, &e->step);
        if (!idle)
            take_turn(e);
        else if (!stopping && !e->lost.code && mt_keep_rest(e))
            idle = false;
        if (!e->lost.code && !mt_device_well(e->dev, &fault))
            start_over(e, &fault);
        tell_others(e);
        if (stopping && mt_queue_len(e->inbox) == 0)
            return NULL;
    }
}

/* ---- beginning and end ---- */

static void allot(mt_engine *e)
{
    const size_t sequences = e->params.sequences, all = e->places.all;
    e->running = mt_alloc_array(sequences, sizeof(mt_sequence *));
    e->waiting = mt_alloc_array(all, sizeof(mt_sequence *));
    e->rows = mt_alloc_array(all, sizeof(*e->rows));
    e->batch.part = mt_alloc_array(sequences, sizeof(*e->batch.part));
    mt_clients_init(&e->clients, all + e->text_places);
    e->voices = e->params.voices ? e->params.voices
                                 : mt_voices_new(mt_engine_host_memory(&e->params, e->dev), all + e->text_places);
}

static void free_engine(mt_engine *e)
{
    mt_engine_unload(e);
    mt_texts_close(e);
    mt_masks_free(e->masks);
    mt_clients_free(&e->clients);
    mt_voices_free(e->params.voices ? NULL : e->voices);
    mt_places_free(&e->places);
    mt_queue_free(e->inbox);
    mt_free(e->running);
    mt_free(e->waiting);
    mt_free(e->rows);
    mt_free(e->batch.part);
    pthread_mutex_destroy(&e->lock);
    pthread_rwlock_destroy(&e->door);
    mt_free(e);
}

/* The least rows a step must be able to have: one for each answer and beside them a picture whose positions are
   computed together, or the patches that make one token of the tower. */
static size_t least_rows(const mt_engine *e)
{
    const mt_vision_spec *v = e->spec->vision;
    const size_t beside = e->params.sequences + (v ? v->block : 0), token = v ? (size_t)v->merge * v->merge : 0;
    return beside > token ? beside : token;
}

static bool start(mt_engine *e, mt_error *err)
{
    e->inbox = mt_queue_new(e->places.all + e->text_places + 1); /* one more for the wake-up, see inbox.c */
    if (!e->inbox)
        return mt_fail(err, MT_E_IO, "no file descriptor is left; raise the limit (ulimit -n)");
    allot(e);
    publish(e);
    return pthread_create(&e->thread, NULL, run, e) == 0 ||
           mt_fail(err, MT_E_IO, "the engine's thread could not be started; raise the limit (ulimit -u)");
}

mt_engine *mt_engine_start(mt_opened *o, const mt_tokenizer *tokenizer, const mt_engine_params *params, mt_error *err)
{
    mt_engine *e = mt_alloc(sizeof(*e));
    e->dev = o->dev;
    e->opened = o;
    e->spec = &o->spec;
    e->tokenizer = tokenizer;
    e->params = *params;
    if (e->params.rows < least_rows(e))
        e->params.rows = least_rows(e);
    mt_places_init(&e->places, e->params.sequences + e->params.queue);
    pthread_mutex_init(&e->lock, NULL);
    pthread_rwlock_init(&e->door, NULL);
    e->fingerprint = mt_device_fingerprint(e->dev);
    mt_texts_open(e);
    if (mt_engine_load(e, err) && start(e, err))
        return e;
    free_engine(e);
    return NULL;
}

void mt_engine_halt(mt_engine *e)
{
    if (!e || e->halted)
        return;
    atomic_store(&e->stopping, true);
    mt_queue_close(e->inbox);
    pthread_join(e->thread, NULL);
    e->halted = true;
}

void mt_engine_stop(mt_engine *e)
{
    mt_engine_halt(e);
    if (!e)
        return;
    mt_device_enter(e->dev); /* its owner, the engine's thread, has ended */
    free_engine(e);
}
