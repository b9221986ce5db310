/* Runs a planned step: fills the batch, runs the model, has tokens chosen, and updates each sequence with the
   result. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/inside.h"
#include "engine/media_parts.h"
#include "kernels/kernels.h"
#include "sample/limits.h"
#include "sample/thought.h"

void mt_step_init(mt_step *step, mt_set *set, size_t rows, size_t sequences, size_t listed, size_t vocab)
{
    step->max_wanted = mt_step_most_wanted(sequences);
    step->candidates = mt_alloc_array(listed, sizeof(mt_candidate *));
    step->order = mt_alloc_array(listed, sizeof(mt_candidate *));
    step->part = mt_alloc_array(sequences, sizeof(*step->part));
    step->tokens = mt_alloc_array(rows, sizeof(*step->tokens));
    step->positions = mt_alloc_array(rows, sizeof(*step->positions));
    step->spans = mt_alloc_array(sequences, sizeof(*step->spans));
    step->feature_of = mt_alloc_array(rows, sizeof(*step->feature_of));
    step->seen = mt_alloc_array(rows, sizeof(*step->seen));
    step->chosen = mt_alloc_array(rows, sizeof(*step->chosen));
    step->pooled = mt_alloc_array(rows, sizeof(*step->pooled));
    step->wanted = mt_alloc_array(step->max_wanted, sizeof(*step->wanted));
    step->chains = mt_alloc_array(sequences, sizeof(mt_chain *));
    step->guessers = mt_alloc_array(step->max_wanted, sizeof(mt_sequence *));
    step->guessed = mt_alloc_array(step->max_wanted, sizeof(*step->guessed));
    if (vocab == 0)
        return;
    step->chooser = mt_chooser_new(set, vocab);
    step->logits_reading = mt_reading_new(set, step->max_wanted * vocab * sizeof(float));
}

void mt_step_init_next(mt_step *next, const mt_step *step, size_t rows, size_t sequences, size_t listed)
{
    mt_step_init(next, NULL, rows, sequences, listed, 0);
    next->chooser = step->chooser;
    next->logits_reading = step->logits_reading;
}

void mt_step_free(mt_step *step)
{
    void *const arrays[] = {step->candidates, step->order,      step->part,     step->tokens, step->positions,
                            step->spans,      step->feature_of, step->seen,     step->chosen, step->pooled,
                            step->wanted,     step->chains,     step->guessers, step->guessed};
    for (size_t i = 0; i < MT_COUNT(arrays); i++)
        mt_free(arrays[i]);
}

/* How many of a part's rows are guesses. */
static size_t guesses_of(const mt_part *p)
{
    const size_t end = p->s->seq.done + p->rows;
    return end > p->s->seq.known ? end - p->s->seq.known : 0;
}

/* How many rows' logits are wanted of s: for the next token, for the tokens after right guesses, and for the prompt's
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

/* Sets which row of features replaces the embedding of row `row` of the batch, which is position `at` of s, and how far
   that row sees. */
static void point_at_features(mt_engine *e, mt_step *step, const mt_sequence *s, size_t row, size_t at)
{
    const mt_request *r = s->request;
    const mt_media_span *span = r->span_count ? mt_media_span_at(r->spans, r->span_count, at) : NULL;
    step->feature_of[row] = MT_NO_PAGE;
    step->seen[row] = (uint32_t)at + 1;
    if (!span)
        return;
    const size_t which = mt_media_parts_after(r, at);
    const mt_media_part *part = &r->media_parts[which];
    const uint32_t *features = mt_feature_cache_features(e->feature_cache, part->medium);
    assert(features);
    e->stats.media_hits += at == part->first && which >= s->waited_for;
    step->feature_of[row] = features[span->row + (at - span->first) - part->row];
    step->batch.features = step->feature_of;
    if (!span->block)
        return;
    step->seen[row] = span->first + span->count;
    step->batch.seen = step->seen;
}

/* Adds a sequence's rows to the batch: its span, tokens, positions and features, and which logits are wanted. */
static void add_rows(mt_engine *e, mt_step *step, mt_part *p)
{
    mt_sequence *s = p->s;
    mt_batch *b = &step->batch;
    mt_span *span = &step->spans[b->spans++];
    assert(guesses_of(p) <= s->draft.count);
    p->row = (uint32_t)b->rows;
    *span = (mt_span){.row = p->row, .rows = (uint32_t)p->rows, .position = (uint32_t)s->seq.done};
    for (size_t g = 0; g < s->seq.groups; g++)
        span->pages[g] = s->seq.page[g];
    if (e->spec->state.layers)
        mt_seq_cut(&s->seq, p->rows, guesses_of(p), span);
    span->memo = s->place;
    for (size_t i = 0; i < p->rows; i++) {
        const size_t at = s->seq.done + i;
        step->tokens[b->rows + i] =
            at < s->seq.known ? mt_key_token(s->seq.text.key[at]) : s->draft.token[at - s->seq.known];
        step->positions[b->rows + i] = mt_media_position(s->request->spans, s->request->span_count, at);
        point_at_features(e, step, s, b->rows + i, at);
    }
    b->rows += p->rows;
    p->samples = !s->request->pool && s->seq.done + p->rows >= s->seq.known;
    p->wanted = (uint32_t)step->wanted_count;
    p->wanted_count = (uint32_t)wants(s, p->rows);
    for (size_t i = p->rows - p->wanted_count; i < p->rows; i++)
        step->wanted[step->wanted_count++] = p->row + (uint32_t)i;
}

/* Builds the batch from the parts. Sequences that want many logits share what the others leave of step->wanted. */
static void build(mt_engine *e, mt_step *step)
{
    size_t kept = 0;
    step->batch = (mt_batch){.tokens = step->tokens, .positions = step->positions, .span = step->spans};
    step->ahead = false;
    step->wanted_count = 0;
    step->positions_before = 0;
    for (size_t i = 0; i < step->parts; i++) {
        mt_part *p = &step->part[i];
        const size_t room = step->max_wanted - step->wanted_count - (step->parts - i - 1);
        if (wants(p->s, p->rows) > room)
            p->rows = room;
        if (p->rows == 0)
            continue;
        if (kept < i)
            step->part[kept] = *p;
        p = &step->part[kept++];
        add_rows(e, step, p);
        step->positions_before += (double)p->rows * ((double)p->s->seq.done + (double)(p->rows - 1) / 2);
    }
    step->parts = kept;
}

/* Sets the token mask of a part's first token; or, where after_guesses, those of the tokens after its guesses, as far
   as the constraint allows the guesses and there is room. */
static void allow(mt_engine *e, mt_part *p, bool after_guesses)
{
    mt_sequence *s = p->s;
    mt_chain *c = &p->chain;
    if (!p->samples || !s->run.constraint)
        return;
    if (!after_guesses) {
        c->allowed[0] = mt_masks_get(e->masks, &s->run);
        c->allowed_count = c->allowed[0] != NULL;
        return;
    }
    mt_run ahead;
    mt_run_copy(&ahead, &s->run);
    for (size_t i = 0; i < guesses_of(p) && c->allowed_count == i + 1 && mt_masks_room(e->masks); i++) {
        if (!mt_run_token(&ahead, s->draft.token[i]) || ahead.over)
            break;
        c->allowed[i + 1] = mt_masks_get(e->masks, &ahead);
        c->allowed_count += c->allowed[i + 1] != NULL;
    }
    mt_run_end(&ahead);
}

/* Copies the last tokens of the answer, for sampling settings that depend on them. Returns how many. */
static size_t copy_tail(const mt_sequence *s, uint32_t tail[MT_LIMIT_BAD_TOKENS])
{
    const size_t said = s->generated, count = said < MT_LIMIT_BAD_TOKENS ? said : MT_LIMIT_BAD_TOKENS;
    for (size_t i = 0; i < count; i++)
        tail[i] = mt_key_token(s->seq.text.key[s->request->prompt_len + said - count + i]);
    return count;
}

/* Whether the masks of a chain let a token be chosen of row `ahead`. */
static bool is_allowed(const mt_chain *c, size_t ahead, uint32_t token)
{
    return !c->constrained || (ahead < c->allowed_count && c->allowed[ahead][token / 32] >> token % 32 & 1);
}

/* Sets the tokens that have to be chosen of the part's rows, where the budget of thinking is spent. A constraint may
   delay them until it allows them. */
static void end_thinking(mt_part *p)
{
    mt_sequence *s = p->s;
    mt_chain *c = &p->chain;
    mt_thought ahead = s->thought;
    for (size_t i = 0; i <= c->guessed; i++) {
        const uint32_t next = mt_thought_next(&ahead, s->request->thinking);
        c->forced[i] = next != MT_SAMPLE_ANY && is_allowed(c, i, next) ? next : MT_SAMPLE_ANY;
        c->forces = c->forces || c->forced[i] != MT_SAMPLE_ANY;
        if (i < c->guessed)
            mt_sequence_think(s, &ahead, s->draft.token[i]);
    }
}

/* Fills the part's chain with what the sampler needs. before: tokens of the answer that are not known yet. */
static void ask(mt_part *p, uint32_t before)
{
    const mt_sequence *s = p->s;
    mt_chain *c = &p->chain;
    c->guessed = guesses_of(p);
    c->first = p->wanted + p->wanted_count - 1 - c->guessed;
    c->settings = &s->request->sampling;
    c->counts = s->counts;
    c->choice = s->choice;
    c->index = (uint32_t)s->generated + before;
    c->tail_count = s->request->sampling.bad_count ? copy_tail(s, c->tail) : 0;
    c->constrained = s->run.constraint != NULL;
    c->guess = s->draft.token;
    c->forces = false;
    if (s->request->thinking && before == 0)
        end_thinking(p);
}

/* A row whose numbers are not finite gives no token, nor do the rows behind it: shortens the chain. */
static void cut_unsound(mt_engine *e, mt_part *p)
{
    const uint32_t first = p->row + (uint32_t)(p->rows - 1 - guesses_of(p));
    size_t sound = 1;
    while (sound < p->chain.sampled_count && mt_model_sound(e->model, e->ahead, first + sound))
        sound++;
    if (p->chain.sampled_count > sound)
        p->chain.sampled_count = sound;
}

/* Fills step->chains with the chains of all parts that give a token and have not ended; returns how many. */
static size_t list_chains(mt_step *step)
{
    size_t count = 0;
    for (size_t i = 0; i < step->parts; i++)
        if (step->part[i].s && step->part[i].samples)
            step->chains[count++] = &step->part[i].chain;
    return count;
}

/* Has tokens chosen for all that give one. */
static void choose(mt_engine *e, mt_step *step)
{
    for (size_t i = 0; i < step->parts; i++)
        if (step->part[i].samples)
            ask(&step->part[i], step->ahead);
    mt_step_choose(e->dev, step->chooser, step->logits, step->chains, list_chains(step));
}

static void take_choice(mt_engine *e, mt_step *step)
{
    mt_step_chosen(e->dev, step->chooser, step->logits, step->chains, list_chains(step));
    for (size_t i = 0; i < step->parts; i++)
        if (step->part[i].s && step->part[i].samples)
            cut_unsound(e, &step->part[i]);
}

/* Sets all token masks. Done here because masks belong to this thread; choosing, on other threads, only reads them. */
static void allow_all(mt_engine *e, mt_step *step)
{
    if (!e->masks)
        return;
    mt_alloc_forbid();
    mt_masks_round(e->masks);
    for (size_t i = 0; i < step->parts; i++)
        allow(e, &step->part[i], false);
    for (size_t i = 0; i < step->parts; i++)
        allow(e, &step->part[i], true);
    mt_alloc_permit();
    e->stats.masks = *mt_masks_stats_of(e->masks);
}

/* Whether logits of a part become logprobs of a prompt. */
static bool tells_prompt(const mt_part *p)
{
    return p->wanted_count > 0 && p->s->request->prompt_logprobs && p->s->generated == 0;
}

/* Copies logits to the host where a request needs them there: on a GPU they are some megabytes. */
static void read_logits(mt_engine *e, const mt_step *step)
{
    bool any = false;
    for (size_t i = 0; i < step->parts; i++)
        any = any || tells_prompt(&step->part[i]);
    if (any)
        mt_read_rows(e->dev, step->logits_reading, step->logits, 0, step->wanted_count);
}

/* Sends the logprobs of the prompt positions that this step's rows predict, each once. */
static void tell_prompt(mt_engine *e, const mt_step *step, const mt_part *p)
{
    const mt_kernels *k = mt_host_kernels(mt_device_host(e->dev));
    mt_sequence *s = p->s;
    const mt_request *r = s->request;
    if (!tells_prompt(p))
        return;
    if (s->told == 0) {
        mt_sequence_prompt(s, r->prompt[0], NULL, 0, NULL, 0);
        s->told = 1;
    }
    for (size_t i = 0; i < p->wanted_count; i++) {
        const size_t position = s->seq.done + i + 1;
        if (position < s->told || position >= r->prompt_len)
            continue;
        mt_logprob top[MT_LIMIT_TOP_LOGPROBS];
        const float *logits = mt_reading_row(e->dev, step->logits_reading, p->wanted + i);
        const float sum = mt_logprobs_sum(k, logits, e->spec->vocab, k->max(logits, e->spec->vocab));
        const size_t count =
            r->prompt_top > 0 ? mt_logprobs_top(logits, e->spec->vocab, sum, (size_t)r->prompt_top, top) : 0;
        const mt_logprob chosen = {.id = r->prompt[position], .logprob = logits[r->prompt[position]] - sum};
        mt_sequence_prompt(s, chosen.id, &chosen, mt_logprobs_rank(logits, e->spec->vocab, chosen.id), top, count);
        s->told++;
    }
}

/* Whether all final hidden states of the part's rows are finite. */
static bool sound(const mt_engine *e, const mt_part *p)
{
    for (size_t i = 0; i < p->rows - guesses_of(p); i++)
        if (!mt_model_sound(e->model, e->ahead, p->row + i))
            return false;
    return !p->samples || p->chain.status != MT_SAMPLE_NOT_FINITE;
}

/* Counts a token. pace: nanoseconds for each token of the step; not used for an answer's first token. */
static void note_token(mt_engine *e, mt_sequence *s, uint64_t pace)
{
    const uint64_t now = mt_clock_ns();
    e->stats.generated_tokens++;
    mt_voices_token(e->voices, s->voice, s->generated == 1 ? now - s->request->received : pace, now);
    if (s->generated == 1) {
        s->first = now;
        mt_histogram_add(&e->stats.first_token, (double)(now - s->request->received) * 1e-9);
        mt_histogram_add(&e->stats.prefill, (double)(now - s->began) * 1e-9);
    } else {
        mt_histogram_add(&e->stats.inter_token, (double)(now - s->last) * 1e-9);
    }
    s->last = now;
}

static void note_drafts(mt_engine *e, mt_sequence *s, size_t tried, size_t taken)
{
    const bool model = s->draft.source == MT_DRAFT_MODEL;
    mt_draft_learn(&s->draft, tried, taken);
    s->guessed += tried;
    s->taken += taken;
    e->stats.drafts += tried > 0;
    e->stats.draft_tokens += tried;
    e->stats.draft_accepted += taken;
    e->stats.model_draft_tokens += model ? tried : 0;
    e->stats.model_draft_accepted += model ? taken : 0;
}

/* Sends the chosen tokens. The row of a right guess was computed for the token itself, and stays. */
static void take_tokens(mt_engine *e, mt_sequence *s, const mt_chain *c)
{
    mt_error err = {0};
    mt_finish finish;
    const uint64_t pace = c->sampled_count > 0 ? (mt_clock_ns() - s->last) / c->sampled_count : 0;
    note_drafts(e, s, c->guessed, c->sampled_count - 1);
    e->stats.answer_steps++;
    for (size_t i = 0; i < c->sampled_count; i++) {
        if (i > 0)
            mt_seq_commit(&s->seq, 1);
        mt_seq_add(&s->seq, c->sampled[i].chosen.id);
        const bool ends = mt_sequence_token(s, &c->sampled[i], &finish);
        note_token(e, s, pace);
        if (ends || s->run.failed) {
            mt_fail(&err, MT_E_INTERNAL, "the constraint takes more memory than it may have; make it simpler");
            mt_engine_end(e, s, s->run.failed ? MT_FINISH_ERROR : finish, s->run.failed ? &err : NULL);
            return;
        }
    }
}

/* Copies the states of a part's rows. */
static void take_rows(mt_engine *e, const mt_part *p)
{
    const mt_request *r = p->s->request;
    const size_t width = e->spec->hidden;
    for (size_t row = 0; row < p->rows; row++)
        memcpy(r->vector + (p->s->seq.done + row) * width, mt_model_state(e->model, p->row + row),
               width * sizeof(*r->vector));
}

/* Adds the step's rows to the vectors of the requests that pool. */
static void pool(mt_engine *e, mt_step *step)
{
    bool any = false;
    for (size_t i = 0; i < step->parts; i++) {
        const mt_part *p = &step->part[i];
        const mt_request *r = p->s->request;
        const size_t wanted = r->pool == MT_POOL_FIRST ? 0 : r->prompt_len - 1;
        any = any || r->pool;
        for (size_t row = 0; row < p->rows; row++) {
            const bool counts = r->pool == MT_POOL_MEAN || (r->pool && p->s->seq.done + row == wanted);
            step->pooled[p->row + row] = counts ? p->s->place : MT_NO_PAGE;
        }
    }
    if (!any)
        return;
    mt_model_pool(e->model, step->pooled, step->batch.rows);
    for (size_t i = 0; i < step->parts; i++)
        if (step->part[i].s->request->pool == MT_POOL_EACH)
            take_rows(e, &step->part[i]);
}

static void take_vector(mt_engine *e, const mt_sequence *s)
{
    mt_request *r = s->request;
    if (r->pool == MT_POOL_EACH)
        return; /* they were taken step by step */
    memcpy(r->vector, mt_model_pooled(e->model, s->place), r->vector_len * sizeof(*r->vector));
    for (size_t k = 0; r->pool == MT_POOL_MEAN && k < r->vector_len; k++)
        r->vector[k] /= (float)r->prompt_len;
}

static void record(mt_engine *e, const mt_step *step, const mt_part *p)
{
    const mt_sequence *s = p->s;
    const bool answers = s->generated > 0 && s->seq.known - s->seq.done == 1;
    const size_t tokens = p->samples ? p->chain.sampled_count : 0;
    mt_voices_play(e->voices, s->voice,
                   &(mt_sounding){.kind = answers ? MT_NOTE_ANSWER : MT_NOTE_PROMPT,
                                  .begin = step->began,
                                  .end = step->ended,
                                  .count = answers ? tokens : p->rows,
                                  .guessed = p->samples ? p->chain.guessed : 0,
                                  .taken = tokens > 1 ? tokens - 1 : 0});
}

/* Updates one sequence with the step's result. The sequence may have ended, and be freed, afterwards. */
static void settle(mt_engine *e, mt_step *step, mt_part *p)
{
    mt_sequence *s = p->s;
    mt_error err = {0};
    record(e, step, p);
    if (!sound(e, p)) {
        mt_seq_spoil(&s->seq);
        mt_fail(&err, MT_E_INTERNAL,
                "the model's numbers are not finite after %zu tokens; the checkpoint may be damaged", s->seq.done);
        mt_engine_end(e, s, MT_FINISH_ERROR, &err);
        return;
    }
    const size_t sure = p->rows - guesses_of(p);
    const size_t taken = p->samples && p->chain.sampled_count > 0 ? p->chain.sampled_count - 1 : 0; /* right guesses */
    tell_prompt(e, step, p);
    mt_seq_commit(&s->seq, sure);
    if (mt_model_guesses(e->spec))
        mt_model_carry(e->model, s->place, p->row + (uint32_t)(sure + taken - 1));
    if (s->request->pool && s->seq.done == s->seq.known) {
        take_vector(e, s);
        mt_engine_end(e, s, MT_FINISH_STOP, NULL);
        return;
    }
    if (!p->samples)
        return;
    if (p->chain.status != MT_SAMPLE_OK) {
        mt_fail(&err, MT_E_INVALID,
                "no token is allowed after %zu tokens; loosen \"allowed_token_ids\", \"bad_words\" or the constraint",
                s->generated);
        mt_engine_end(e, s, MT_FINISH_ERROR, &err);
        return;
    }
    if (mt_sequence_left(s) == 0) { /* max_tokens is 0: only the prompt was to be computed */
        mt_engine_end(e, s, MT_FINISH_LENGTH, NULL);
        return;
    }
    take_tokens(e, s, &p->chain);
}

/* Learns from the step's duration, and charges it to the clients that took part. */
static void note_step(mt_engine *e, mt_step *step)
{
    const uint64_t now = step->ended = mt_clock_ns();
    const double seconds = (double)(now - step->began) * 1e-9, rows = (double)step->batch.rows;
    mt_log_debug("engine.step", "%zu rows of %zu sequences, %.2f ms, %.2f expected", step->batch.rows, step->parts,
                 1e3 * seconds, 1e3 * mt_cost_predict(&e->past.cost, step->batch.rows, step->positions_before));
    mt_cost_learn(&e->past.cost, step->batch.rows, step->positions_before, seconds);
    for (size_t i = 0; i < step->parts; i++)
        if (step->part[i].s)
            mt_client_record_charge(step->part[i].s->request->client_record,
                                    seconds * (double)step->part[i].rows / rows, now);
    e->stats.steps++;
    e->stats.step_rows += step->batch.rows;
    e->stats.step_seconds += seconds;
    mt_histogram_add(&e->stats.step, seconds);
    mt_histogram_count(&e->stats.step_tokens, step->batch.rows);
}

void mt_engine_launch(mt_engine *e, mt_step *step)
{
    step->began = mt_clock_ns();
    step->logits = mt_model_step(e->model, &step->batch, step->wanted, step->wanted_count);
    allow_all(e, step);
    choose(e, step);
}

/* Jobs run their slices first: so between two tokens of an answer lies what one plan gave, never slices of two
   plans. */
void mt_engine_begin(mt_engine *e, mt_step *step)
{
    mt_jobs_run(e);
    build(e, step);
    if (step->batch.rows == 0)
        return;
    mt_engine_launch(e, step);
    read_logits(e, step);
    pool(e, step);
}

/* One that was begun ahead began when the one before it had ended. */
void mt_engine_finish(mt_engine *e, mt_step *step)
{
    if (step->batch.rows == 0)
        return;
    take_choice(e, step);
    note_step(e, step);
    if (e->ahead && e->next.began < step->ended)
        e->next.began = step->ended;
}

static void end_unsound(mt_engine *e, const mt_request *r, mt_sequence **list, const size_t *count)
{
    mt_error err = {0};
    mt_fail(&err, MT_E_INTERNAL, "the encoder's numbers for a picture are not finite; the checkpoint may be damaged");
    for (size_t i = *count; i-- > 0;)
        if (i < *count && list[i]->request == r)
            mt_engine_end(e, list[i], MT_FINISH_ERROR, &err);
}

/* Ends the requests whose pictures gave features that are not finite. */
static void end_blind(mt_engine *e, mt_shown *p)
{
    for (; p->unsound_count > 0; p->unsound_count--) {
        const mt_request *r = p->unsound[p->unsound_count - 1];
        end_unsound(e, r, e->running, &e->running_count);
        end_unsound(e, r, e->waiting, &e->waiting_count);
    }
}

/* Tokens are sent before the drafting head guesses, so that they do not wait for it. */
void mt_engine_settle(mt_engine *e, mt_step *step)
{
    for (size_t i = 0; i < step->parts; i++)
        if (step->part[i].s)
            settle(e, step, &step->part[i]);
    if (step->parts > 0)
        mt_engine_guess(e, step);
    end_blind(e, &e->pictures);
}
