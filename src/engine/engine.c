/* The engine's thread, and the doors to it.

   Owns the model, the tree and every sequence from the moment it is taken from the inbox to its last event.
   1. Requests come in through the inbox; each of their choices has a place until it ends, which bounds them.
   2. Events go out on this thread, between steps; nothing is locked then.
   3. What other threads may see (stats, the list of sequences) is a copy made after each step. */
#include "engine/engine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/inside.h"

#define TOWER_PATCHES 16384 /* of a picture that a request may ask for, beyond what the checkpoint has */
#define TOWER_SHARE 16      /* the tower's working memory is at most this part of all */

static char poke; /* its address in the inbox wakes the engine and means nothing else */

void mt_engine_params_init(mt_engine_params *params)
{
    *params = (mt_engine_params){.sequences = 64,
                                 .queue = 256,
                                 .rows = 512,
                                 .turn_ms = 2000,
                                 .speculate = MT_SPECULATE_MTP,
                                 .draft = MT_LIMIT_DRAFT,
                                 .masks = MT_LIMIT_CONSTRAINT_MASKS};
}

/* ---- requests ---- */

/* What no job could take must not wait for one. */
static bool cut_pictures(const mt_engine *e, mt_request *r, mt_error *err)
{
    if (!e->tower.cursor)
        return true;
    if (!mt_sights_make(r, e->features.count, err))
        return false;
    for (size_t i = 0; i < r->sight_count; i++)
        if (!e->tower.fits(e->tower.cursor, (const mt_picture *[]){&r->sights[i].picture}, 1))
            return mt_fail(err, MT_E_TOO_LARGE,
                           "a picture has %zu patches, more than the encoder takes; send a smaller one",
                           mt_picture_patches(&r->sights[i].picture));
    return true;
}

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
                           "\"prompt_logprobs\" are not given for prompts with pictures by this model");
    }
    return true;
}

static bool check(const mt_engine *e, const mt_request *r, mt_error *err)
{
    const size_t vocab = e->spec->vocab;
    if (r->prompt_len == 0)
        return mt_fail(err, MT_E_INVALID, "the prompt is empty; give at least one token");
    if (r->choices == 0 || r->choices > e->params.sequences)
        return mt_fail(err, MT_E_INVALID, "\"n\" is %u; give between 1 and %zu", r->choices, e->params.sequences);
    if (r->prompt_len >= e->context)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "the prompt has %zu tokens and the context is %zu, which the answer needs a part of; shorten it",
                       r->prompt_len, e->context);
    for (size_t i = 0; i < r->prompt_len; i++)
        if (r->prompt[i] >= vocab)
            return mt_fail(err, MT_E_INVALID, "token %u is outside the vocabulary of %zu", r->prompt[i], vocab);
    assert(!r->pool || (r->choices == 1 && r->max_tokens == 0 && r->pool != MT_POOL_SCORE));
    assert(!r->constraint || mt_constraint_vocabulary(r->constraint)->size == vocab);
    return check_pictures(e, r, err) && mt_sample_settings_check(&r->sampling, vocab, err);
}

mt_places *mt_engine_places(mt_engine *e, size_t encoder)
{
    assert(encoder <= e->desk_count);
    return encoder ? &e->desks[encoder - 1].places : &e->places;
}

bool mt_engine_submit(mt_engine *e, mt_request *r, mt_error *err)
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
        r->vector_len = !r->encoder ? e->spec->hidden : mt_bert_width(&e->desks[r->encoder - 1].encoder->spec);
        r->vector = mt_arena_alloc(r->arena, r->vector_len * sizeof *r->vector);
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

void mt_engine_poke(mt_engine *e)
{
    /* one at a time: the inbox has a place for each request that may come, and for this */
    const bool pushed = e && !atomic_exchange(&e->poked, true) && mt_queue_push(e->inbox, &poke);
    (void)pushed;
}

uint64_t mt_engine_turn(const mt_engine *e)
{
    return atomic_load_explicit(&e->turn, memory_order_relaxed);
}

size_t mt_engine_context(const mt_engine *e)
{
    return e->context;
}

void mt_engine_stats(mt_engine *e, mt_stats *out)
{
    pthread_mutex_lock(&e->lock);
    *out = e->shown;
    pthread_mutex_unlock(&e->lock);
}

mt_encoder_stats mt_engine_encoder_stats(mt_engine *e, size_t encoder)
{
    pthread_mutex_lock(&e->lock);
    const mt_encoder_stats stats = e->desks[encoder - 1].stats;
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
        memcpy(part, e->batch.part, (out->parts < most ? out->parts : most) * sizeof *part);
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

/* Whoever asks something else about the same picture continues behind it: the last two. */
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

static void take(mt_engine *e, mt_request *r)
{
    if (r->constraint && !e->masks)
        e->masks = mt_masks_new((e->spec->vocab + 31) / 32, e->params.sequences, (size_t)e->params.masks);
    const uint64_t now = mt_clock_ns();
    r->guest = mt_clients_enter(&e->clients, &r->client, r->choices, now);
    if (r->encoder) {
        r->voice = mt_voices_enter(e->voices, r, e->params.model, 0, now);
        mt_desk *d = &e->desks[r->encoder - 1];
        d->waiting[d->waiting_count++] = r;
        return;
    }
    if (e->gallery)
        mt_sights_take(r, e->gallery);
    for (uint32_t c = 0; c < r->choices; c++) {
        r->sequences[c].voice = mt_voices_enter(e->voices, r, e->params.model, c, now);
        mt_seq_attach(&r->sequences[c].seq, e->tree, r->salt);
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

/* Takes what is in the inbox; waits for something where there is nothing to do. */
static void receive(mt_engine *e, bool idle)
{
    const int wait = e->running_count + e->waiting_count ? 1000 : -1; /* paused ones are looked at again */
    void *item = idle ? mt_queue_wait(e->inbox, wait) : mt_queue_pop(e->inbox);
    for (; item; item = mt_queue_pop(e->inbox))
        if (item != &poke)
            take(e, item);
        else
            (void)atomic_exchange(&e->poked, false); /* flags that were set before it are seen from here on */
}

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
    snprintf(row.name, sizeof row.name, "%s", s->request->name);
    return row;
}

static mt_phase phase_of(const mt_sequence *s, bool running)
{
    if (s->blind)
        return MT_PHASE_ENCODE;
    return !running ? MT_PHASE_WAITING : s->generated ? MT_PHASE_DECODE : MT_PHASE_PREFILL;
}

static void show_media(mt_engine *e)
{
    const mt_gallery_stats media = e->gallery ? mt_gallery_look(e->gallery) : (mt_gallery_stats){0};
    const size_t width = e->tower.width * sizeof(float);
    e->stats.media_known = media.known;
    e->stats.media_bytes = media.rows * width;
    e->stats.media_total = media.total * width;
    e->stats.media_evictions = media.evictions;
    e->stats.encode_seconds = e->job.seconds;
    e->stats.encode_work = e->job.work;
}

static void show_cache(const mt_engine *e, mt_stats *st)
{
    for (size_t g = 0; g < e->spec->group_count; g++) {
        st->pages_total[g] = mt_tree_total(e->tree, g);
        st->pages_held[g] = st->pages_total[g] - mt_tree_available(e->tree, g);
    }
    st->pages_known = mt_tree_nodes(e->tree);
    st->evictions = mt_tree_evictions(e->tree);
    const mt_anchors *anchors = mt_tree_anchors(e->tree);
    st->states_total = anchors->slots.total;
    st->states_held = st->states_total - mt_anchors_available(anchors);
    st->states_known = anchors->count;
    st->state_evictions = anchors->evictions;
}

/* Copies what others may see. */
static void show(mt_engine *e)
{
    const uint64_t now = mt_clock_ns();
    e->stats.running = e->running_count;
    e->stats.waiting = e->waiting_count;
    if (e->model)
        show_cache(e, &e->stats);
    show_media(e);
    pthread_mutex_lock(&e->lock);
    e->shown = e->stats;
    for (size_t i = 0; i < e->desk_count; i++) {
        e->desks[i].stats.seconds = e->desks[i].job.seconds;
        e->desks[i].stats.waiting = e->desks[i].waiting_count;
    }
    e->row_count = 0;
    for (size_t i = 0; i < e->running_count; i++)
        e->rows[e->row_count++] = describe(e->running[i], phase_of(e->running[i], true), now);
    for (size_t i = 0; i < e->waiting_count; i++)
        e->rows[e->row_count++] = describe(e->waiting[i], phase_of(e->waiting[i], false), now);
    pthread_mutex_unlock(&e->lock);
}

/* What is about to run, so that others can tell if it does not come back. */
static void show_batch(mt_engine *e)
{
    mt_engine_batch *b = &e->batch;
    pthread_mutex_lock(&e->lock);
    *b = (mt_engine_batch){.began = mt_clock_ns(), .part = b->part};
    for (size_t i = 0; i < e->step.parts; i++) {
        const mt_part *p = &e->step.part[i];
        mt_engine_part *to = &b->part[b->parts++];
        *to = (mt_engine_part){.choice = p->s->choice, .rows = p->rows, .computed = p->s->seq.done};
        snprintf(to->name, sizeof to->name, "%s", p->s->request->name ? p->s->request->name : "");
        b->rows += p->rows;
    }
    for (size_t i = 0; i < e->job_count; i++)
        b->jobs += mt_job_planned(e->jobs[i]);
    pthread_mutex_unlock(&e->lock);
}

/* It has come back. One that took too long is named, be it that nobody saw it hang. */
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
    mt_engine_batch_name(&e->batch, who, sizeof who);
    mt_log_warn("engine.slow_step", "a step took %.1f s: %s", seconds, who);
}

static void take_turn(mt_engine *e)
{
    if (e->params.rota)
        mt_rota_begin(e->params.rota, &e->place);
    if (e->params.turn)
        e->params.turn(e->params.turn_ctx, true);
    show_batch(e);
    mt_engine_run(e, &e->step);
    look_back(e);
    mt_engine_settle(e, &e->step);
    if (e->params.turn)
        e->params.turn(e->params.turn_ctx, false);
    if (e->params.rota)
        mt_rota_end(e->params.rota, &e->place);
}

static void *run(void *ctx)
{
    mt_engine *e = ctx;
    bool idle = true;
    for (;;) {
        if (idle)
            atomic_store_explicit(&e->turn, 0, memory_order_relaxed);
        receive(e, idle);
        atomic_store_explicit(&e->turn, mt_clock_ns(), memory_order_relaxed);
        const bool stopping = atomic_load(&e->stopping);
        sweep(e, e->running, &e->running_count, stopping);
        sweep(e, e->waiting, &e->waiting_count, stopping);
        for (mt_sequence *back; (back = mt_keep_turn(e));)
            mt_engine_preempt(e, back);
        mt_texts_look(e, stopping);
        idle = stopping || !mt_engine_plan(e, &e->step);
        if (!idle)
            take_turn(e);
        show(e);
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
    e->rows = mt_alloc_array(all, sizeof *e->rows);
    e->batch.part = mt_alloc_array(sequences, sizeof *e->batch.part);
    mt_clients_init(&e->clients, all + e->text_places);
    e->voices =
        e->params.voices ? e->params.voices : mt_voices_new(mt_engine_memory(&e->params, e->dev), all + e->text_places);
    mt_step_init(&e->step, e->set, e->params.rows, sequences, all + e->job_count, e->spec->vocab);
}

static void free_engine(mt_engine *e)
{
    mt_keep_free(e->keep);
    mt_set_free(e->set);
    mt_texts_close(e);
    mt_model_free(e->model);
    mt_vision_free(e->vision);
    mt_tree_free(e->tree);
    mt_gallery_free(e->gallery);
    mt_masks_free(e->masks);
    mt_clients_free(&e->clients);
    mt_voices_free(e->params.voices ? NULL : e->voices);
    mt_places_free(&e->places);
    mt_queue_free(e->inbox);
    mt_step_free(&e->step);
    mt_free(e->running);
    mt_free(e->waiting);
    mt_free(e->rows);
    mt_free(e->batch.part);
    pthread_mutex_destroy(&e->lock);
    mt_free(e);
}

/* The model's tower, with room for the largest picture that takes no more than a share of the memory. */
static bool make_tower(mt_engine *e, const mt_opened *o, mt_error *err)
{
    const mt_vision_spec *spec = o->spec.vision;
    if (e->params.tower)
        e->tower = *e->params.tower;
    if (e->params.tower || !spec || !o->processor)
        return true;
    const uint64_t each = 8 * (uint64_t)spec->hidden; /* bytes of a patch: residual stream, key and value */
    const uint64_t most = mt_engine_memory(&e->params, e->dev) / TOWER_SHARE / each;
    const size_t given = mt_processor_patches(o->processor), patches = given > TOWER_PATCHES ? given : TOWER_PATCHES;
    const mt_vision_params params = {.patches = patches < most ? patches : (size_t)most, .rows = e->params.rows};
    e->vision = mt_vision_new(e->dev, spec, o->weights.vision, &params, err);
    if (!e->vision)
        return false;
    e->tower = mt_vision_tower(e->vision);
    return true;
}

/* Every answer has its row, a block of an image fits beside all of them, and the tower has the patches of a token. */
static size_t least_rows(const mt_engine *e)
{
    const mt_vision_spec *v = e->spec->vision;
    const size_t beside = e->params.sequences + (v ? v->block : 0), token = v ? (size_t)v->merge * v->merge : 0;
    return beside > token ? beside : token;
}

static bool make_model(mt_engine *e, mt_opened *o, mt_error *err)
{
    e->memos = e->params.sequences < MT_LIMIT_MEMOS ? e->params.sequences : MT_LIMIT_MEMOS;
    if (e->params.speculate == MT_SPECULATE_OFF)
        e->memos = 0;
    o->spec.mtp = o->spec.mtp && e->params.speculate == MT_SPECULATE_MTP;
    const mt_model_params model = {.rows = e->params.rows,
                                   .logits = mt_step_most_wanted(e->params.sequences),
                                   .places = e->params.sequences,
                                   .memos = e->memos};
    e->model = mt_model_new(e->dev, e->spec, &o->weights, &model, err);
    return e->model != NULL;
}

/* Encoders, the tower and the model, which plans the device for all of them. */
static bool load(mt_engine *e, mt_opened *o, mt_error *err)
{
    uint64_t weights = o->checkpoint ? mt_checkpoint_bytes(o->checkpoint) + o->weights.cost.copied_bytes : 0;
    mt_cost_init(&e->past.cost, (double)weights, (double)weights);
    if (!mt_texts_open(e, err) || !make_tower(e, o, err) ||
        !(o->checkpoint ? make_model(e, o, err) : mt_device_plan(e->dev, e->params.rows, err)))
        return false;
    mt_job_init(&e->job, e->tower.cursor, mt_engine_encoded);
    for (size_t i = 0; i < e->desk_count; i++)
        weights += mt_encoder_weights(e->desks[i].encoder);
    return mt_engine_reserve(e, weights, err);
}

static bool start(mt_engine *e, mt_error *err)
{
    e->inbox = mt_queue_new(e->places.all + e->text_places + 1); /* one: see mt_engine_poke */
    if (!e->inbox)
        return mt_fail(err, MT_E_IO, "no file descriptor is left; raise the limit (ulimit -n)");
    allot(e);
    if (e->params.disk && e->model &&
        !(e->keep = mt_keep_new(e, e->params.disk, e->params.identity, mt_engine_poke, err)))
        return false;
    if (e->params.canary && e->model)
        mt_engine_canary(e);
    show(e);
    return pthread_create(&e->thread, NULL, run, e) == 0 ||
           mt_fail(err, MT_E_IO, "the engine's thread could not be started; raise the limit (ulimit -u)");
}

mt_engine *mt_engine_start(mt_opened *o, const mt_tokenizer *tokenizer, const mt_engine_params *params, mt_error *err)
{
    mt_engine *e = mt_alloc(sizeof *e);
    e->dev = o->dev;
    e->set = mt_set_new(e->dev);
    e->spec = &o->spec;
    e->tokenizer = tokenizer;
    e->params = *params;
    if (e->params.rows < least_rows(e))
        e->params.rows = least_rows(e);
    mt_places_init(&e->places, e->params.sequences + e->params.queue);
    pthread_mutex_init(&e->lock, NULL);
    if (load(e, o, err) && start(e, err))
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
    if (e)
        free_engine(e);
}
