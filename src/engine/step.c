/* A step: the batch, the model, the sampler, and what becomes of each sequence. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/inside.h"
#include "kernels/kernels.h"

/* Rows of s in this step that are guesses. */
static size_t guesses(const mt_sequence *s)
{
    const size_t end = s->seq.done + s->rows;
    return end > s->seq.known ? end - s->seq.known : 0;
}

/* Positions of s whose logits are wanted: for the next token, for those after right guesses, and for the prompt's
   logprobs. */
static size_t wants(const mt_sequence *s, size_t rows)
{
    const bool samples = s->seq.done + rows >= s->seq.known;
    if (s->request->pool)
        return 0;
    if (s->seq.done + rows > s->seq.known)
        return rows;
    if (!s->request->prompt_logprobs || s->generated > 0)
        return samples;
    return rows;
}

/* What row `row` of the batch has in place of its token's embedding, and how far it sees: position `at` of s. */
static void show_row(mt_engine *e, const mt_sequence *s, size_t row, size_t at)
{
    const mt_request *r = s->request;
    const mt_media_span *span = r->span_count ? mt_media_span_at(r->spans, r->span_count, at) : NULL;
    e->feature_of[row] = MT_NO_PAGE;
    e->seen[row] = (uint32_t)at + 1;
    if (!span)
        return;
    const size_t which = mt_sights_after(r, at);
    const mt_sight *sight = &r->sights[which];
    const uint32_t *features = mt_gallery_features(e->gallery, sight->medium);
    assert(features);
    e->stats.media_hits += at == sight->first && which >= s->waited_for;
    e->feature_of[row] = features[span->row + (at - span->first) - sight->row];
    e->batch.features = e->feature_of;
    if (!span->block)
        return;
    e->seen[row] = span->first + span->count;
    e->batch.seen = e->seen;
}

static void add_rows(mt_engine *e, mt_sequence *s)
{
    mt_batch *b = &e->batch;
    mt_span *span = &e->spans[b->spans++];
    s->row = (uint32_t)b->rows;
    *span = (mt_span){.row = s->row, .rows = (uint32_t)s->rows, .position = (uint32_t)s->seq.done};
    for (size_t g = 0; g < s->seq.groups; g++)
        span->pages[g] = s->seq.page[g];
    if (e->spec->state.layers)
        mt_seq_cut(&s->seq, s->rows, guesses(s), span);
    span->memo = s->place;
    for (size_t i = 0; i < s->rows; i++) {
        const size_t at = s->seq.done + i;
        e->tokens[b->rows + i] = at < s->seq.known ? mt_key_token(s->seq.key[at]) : s->draft.token[at - s->seq.known];
        e->positions[b->rows + i] = mt_media_position(s->request->spans, s->request->span_count, at);
        show_row(e, s, b->rows + i, at);
    }
    b->rows += s->rows;
    s->samples = !s->request->pool && s->seq.done + s->rows >= s->seq.known;
    s->wanted = (uint32_t)e->wanted_count;
    s->wanted_count = (uint32_t)wants(s, s->rows);
    for (size_t i = s->rows - s->wanted_count; i < s->rows; i++)
        e->wanted[e->wanted_count++] = s->row + (uint32_t)i;
}

/* Sequences that want many logits share what the others leave. Returns the sum of positions before all rows. */
static double build(mt_engine *e)
{
    double positions = 0;
    size_t kept = 0;
    e->batch = (mt_batch){.tokens = e->tokens, .positions = e->positions, .span = e->spans};
    e->wanted_count = 0;
    for (size_t i = 0; i < e->chosen_count; i++) {
        mt_sequence *s = e->chosen[i];
        const size_t room = e->max_logits - e->wanted_count - (e->chosen_count - i - 1);
        if (wants(s, s->rows) > room)
            s->rows = room;
        if (s->rows == 0)
            continue;
        add_rows(e, s);
        e->chosen[kept++] = s;
        positions += (double)s->rows * ((double)s->seq.done + (double)(s->rows - 1) / 2);
    }
    e->chosen_count = kept;
    return positions;
}

/* The mask for the first token of s, or those after its guesses as far as they may follow and there is room. */
static void allow(mt_engine *e, mt_sequence *s, bool after_guesses)
{
    if (!s->samples || !s->run.constraint)
        return;
    if (!after_guesses) {
        s->chain.allowed[0] = mt_masks_get(e->masks, &s->run);
        s->chain.allowed_count = s->chain.allowed[0] != NULL;
        return;
    }
    mt_run ahead;
    mt_run_copy(&ahead, &s->run);
    for (size_t i = 0; i < guesses(s) && s->chain.allowed_count == i + 1 && mt_masks_room(e->masks); i++) {
        if (!mt_run_token(&ahead, s->draft.token[i]) || ahead.over)
            break;
        s->chain.allowed[i + 1] = mt_masks_get(e->masks, &ahead);
        s->chain.allowed_count += s->chain.allowed[i + 1] != NULL;
    }
    mt_run_end(&ahead);
}

/* The last tokens of the answer, for settings that look at them. */
static size_t copy_tail(const mt_sequence *s, uint32_t tail[MT_LIMIT_BAD_TOKENS])
{
    const size_t said = s->generated, count = said < MT_LIMIT_BAD_TOKENS ? said : MT_LIMIT_BAD_TOKENS;
    for (size_t i = 0; i < count; i++)
        tail[i] = mt_key_token(s->seq.key[s->request->prompt_len + said - count + i]);
    return count;
}

/* What is to be chosen for s. */
static void ask(mt_sequence *s)
{
    mt_chain *c = &s->chain;
    c->first = s->wanted + s->wanted_count - 1 - guesses(s);
    c->settings = &s->request->sampling;
    c->counts = s->counts;
    c->choice = s->choice;
    c->index = (uint32_t)s->generated;
    c->tail_count = s->request->sampling.bad_count ? copy_tail(s, c->tail) : 0;
    c->constrained = s->run.constraint != NULL;
    c->guessed = guesses(s);
    c->guess = s->draft.token;
}

/* Has tokens chosen for all that give one. A row whose numbers are not finite gives none, nor do those behind it. */
static void choose(mt_engine *e)
{
    size_t count = 0;
    for (size_t i = 0; i < e->chosen_count; i++)
        if (e->chosen[i]->samples) {
            ask(e->chosen[i]);
            e->chains[count++] = &e->chosen[i]->chain;
        }
    mt_step_choose(e->dev, e->chooser, e->logits, e->chains, count);
    mt_device_wait(e->dev);
    for (size_t i = 0; i < e->chosen_count; i++) {
        mt_sequence *s = e->chosen[i];
        size_t sound = 1;
        while (s->samples && sound < s->chain.sampled_count &&
               mt_model_sound(e->model, s->row + s->rows - 1 - guesses(s) + sound))
            sound++;
        if (s->samples && s->chain.sampled_count > sound)
            s->chain.sampled_count = sound;
    }
}

/* Masks are this thread's: choosing only reads them. */
static void allow_all(mt_engine *e)
{
    if (!e->masks)
        return;
    mt_alloc_forbid();
    mt_masks_round(e->masks);
    for (size_t i = 0; i < e->chosen_count; i++)
        allow(e, e->chosen[i], false);
    for (size_t i = 0; i < e->chosen_count; i++)
        allow(e, e->chosen[i], true);
    mt_alloc_permit();
    e->stats.masks = *mt_masks_stats_of(e->masks);
}

/* Logprobs of the prompt positions that this step's rows predict, each once. */
static void tell_prompt(mt_engine *e, mt_sequence *s)
{
    const mt_kernels *k = mt_host_kernels(mt_device_host(e->dev));
    const mt_request *r = s->request;
    if (s->wanted_count == 0 || !r->prompt_logprobs || s->generated > 0)
        return;
    if (s->told == 0) {
        mt_sequence_prompt(s, r->prompt[0], NULL, NULL, 0);
        s->told = 1;
    }
    for (size_t i = 0; i < s->wanted_count; i++) {
        const size_t position = s->seq.done + i + 1;
        if (position < s->told || position >= r->prompt_len)
            continue;
        mt_logprob top[MT_LIMIT_TOP_LOGPROBS];
        const float *logits = mt_reading_row(e->dev, e->logits_reading, s->wanted + i);
        const float sum = mt_logprobs_sum(k, logits, e->spec->vocab, k->max(logits, e->spec->vocab));
        const size_t count =
            r->prompt_top > 0 ? mt_logprobs_top(logits, e->spec->vocab, sum, (size_t)r->prompt_top, top) : 0;
        const mt_logprob chosen = {.id = r->prompt[position], .logprob = logits[r->prompt[position]] - sum};
        mt_sequence_prompt(s, chosen.id, &chosen, top, count);
        s->told++;
    }
}

static bool sound(const mt_engine *e, const mt_sequence *s)
{
    for (size_t i = 0; i < s->rows - guesses(s); i++)
        if (!mt_model_sound(e->model, s->row + i))
            return false;
    return !s->samples || s->chain.status != MT_SAMPLE_NOT_FINITE;
}

static void note_token(mt_engine *e, mt_sequence *s)
{
    const uint64_t now = mt_clock_ns();
    e->stats.generated_tokens++;
    if (s->generated == 1) {
        s->first = now;
        mt_histogram_add(&e->stats.first_token, (double)(now - s->request->received) * 1e-9);
        mt_histogram_add(&e->stats.prefill, (double)(now - s->began) * 1e-9);
    } else {
        mt_histogram_add(&e->stats.inter_token, (double)(now - s->last) * 1e-9);
    }
    s->last = now;
}

static void note_drafts(mt_engine *e, mt_sequence *s, size_t tried)
{
    if (s->draft.count == 0)
        return;
    mt_draft_learn(&s->draft, tried, s->chain.sampled_count - 1);
    e->stats.drafts += tried > 0;
    e->stats.draft_tokens += tried;
    e->stats.draft_accepted += s->chain.sampled_count - 1;
    s->draft.count = 0;
}

/* Hands out the tokens that were chosen. The row of a guess that was right is the token's own. */
static void take_tokens(mt_engine *e, mt_sequence *s, size_t tried)
{
    mt_error err = {0};
    mt_finish finish;
    note_drafts(e, s, tried);
    e->stats.answer_steps++;
    for (size_t i = 0; i < s->chain.sampled_count; i++) {
        if (i > 0)
            mt_seq_commit(&s->seq, 1);
        mt_seq_add(&s->seq, s->chain.sampled[i].chosen.id);
        const bool ends = mt_sequence_token(s, &s->chain.sampled[i], &finish);
        note_token(e, s);
        if (ends || s->run.failed) {
            mt_fail(&err, MT_E_INTERNAL, "the constraint takes more memory than it may have; make it simpler");
            mt_engine_end(e, s, s->run.failed ? MT_FINISH_ERROR : finish, s->run.failed ? &err : NULL);
            return;
        }
    }
}

/* Guesses that were right. */
static size_t taken(const mt_sequence *s)
{
    return s->samples && s->chain.sampled_count > 0 ? s->chain.sampled_count - 1 : 0;
}

/* Adds what this step's rows mean for the vectors that are wanted. */
static void pool(mt_engine *e)
{
    bool any = false;
    for (size_t i = 0; i < e->chosen_count; i++) {
        const mt_sequence *s = e->chosen[i];
        const mt_request *r = s->request;
        const size_t wanted = r->pool == MT_POOL_FIRST ? 0 : r->prompt_len - 1;
        any = any || r->pool;
        for (size_t row = 0; row < s->rows; row++) {
            const bool counts = r->pool == MT_POOL_MEAN || (r->pool && s->seq.done + row == wanted);
            e->pooled[s->row + row] = counts ? s->place : MT_NO_PAGE;
        }
    }
    if (any)
        mt_model_pool(e->model, e->pooled, e->batch.rows);
}

static void take_vector(mt_engine *e, const mt_sequence *s)
{
    mt_request *r = s->request;
    memcpy(r->vector, mt_model_pooled(e->model, s->place), r->vector_len * sizeof *r->vector);
    for (size_t k = 0; r->pool == MT_POOL_MEAN && k < r->vector_len; k++)
        r->vector[k] /= (float)r->prompt_len;
}

/* What the step means for one sequence. It may be gone afterwards. */
static void settle(mt_engine *e, mt_sequence *s)
{
    mt_error err = {0};
    if (!sound(e, s)) {
        mt_seq_spoil(&s->seq);
        mt_fail(&err, MT_E_INTERNAL,
                "the model's numbers are not finite after %zu tokens; the checkpoint may be damaged", s->seq.done);
        mt_engine_end(e, s, MT_FINISH_ERROR, &err);
        return;
    }
    const size_t tried = guesses(s);
    tell_prompt(e, s);
    mt_seq_commit(&s->seq, s->rows - tried);
    if (e->spec->mtp)
        mt_model_carry(e->model, s->place, s->row + (uint32_t)(s->rows - tried + taken(s) - 1));
    if (s->request->pool && s->seq.done == s->seq.known) {
        take_vector(e, s);
        mt_engine_end(e, s, MT_FINISH_STOP, NULL);
        return;
    }
    if (!s->samples)
        return;
    if (s->chain.status != MT_SAMPLE_OK) {
        mt_fail(&err, MT_E_INVALID, "no token is allowed after %zu tokens; loosen \"logit_bias\" or the constraint",
                s->generated);
        mt_engine_end(e, s, MT_FINISH_ERROR, &err);
        return;
    }
    if (mt_sequence_left(s) == 0) { /* max_tokens is 0: only the prompt was wanted */
        mt_engine_end(e, s, MT_FINISH_LENGTH, NULL);
        return;
    }
    take_tokens(e, s, tried);
}

static void charge(mt_engine *e, double seconds)
{
    const uint64_t now = mt_clock_ns();
    for (size_t i = 0; i < e->chosen_count; i++)
        mt_guest_charge(e->chosen[i]->request->guest, seconds * (double)e->chosen[i]->rows / (double)e->batch.rows,
                        now);
}

static void step_rows(mt_engine *e)
{
    const double positions = build(e);
    if (e->batch.rows == 0)
        return;
    const uint64_t begin = mt_clock_ns();
    e->logits = mt_model_step(e->model, &e->batch, e->wanted, e->wanted_count);
    allow_all(e);
    choose(e);
    mt_read_rows(e->dev, e->logits_reading, e->logits, 0, e->wanted_count);
    pool(e);
    const double seconds = (double)(mt_clock_ns() - begin) * 1e-9;
    mt_log_debug("engine.step", "%zu rows of %zu sequences, %.2f ms, %.2f expected", e->batch.rows, e->chosen_count,
                 1e3 * seconds, 1e3 * mt_cost_predict(&e->cost, e->batch.rows, positions));
    mt_cost_learn(&e->cost, e->batch.rows, positions, seconds);
    charge(e, seconds);
    e->stats.steps++;
    e->stats.step_rows += e->batch.rows;
    e->stats.step_seconds += seconds;
    mt_histogram_add(&e->stats.step, seconds);
    for (size_t i = 0; i < e->chosen_count; i++)
        settle(e, e->chosen[i]);
    mt_engine_guess(e);
}

/* Tokens go out before the encoder has its slice. */
void mt_engine_step(mt_engine *e)
{
    if (e->chosen_count > 0)
        step_rows(e);
    if (e->encode > 0 && e->job.count > 0)
        mt_engine_encode(e);
}
