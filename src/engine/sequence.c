/* One answer in the making (sequence.h): its text, its end, and the events it sends. */
#include "engine/sequence.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "constraint/constraint.h"
#include "sample/thought.h"

#define PIECE_LIMIT (1u << 20) /* most bytes of text that one token may give */

static mt_counts *counts_of(const mt_request *r, size_t max_tokens, size_t vocab)
{
    if (!mt_sample_settings_penalise(&r->sampling))
        return NULL;
    const size_t prompt = mt_sample_settings_penalise_prompt(&r->sampling) ? r->prompt_len : 0;
    const size_t window = r->sampling.penalty_window;
    return mt_counts_make(mt_alloc(mt_counts_bytes(prompt, max_tokens, vocab, window)), r->prompt, prompt, max_tokens,
                          vocab, window);
}

mt_sequence *mt_sequences_new(mt_request *r, size_t groups, size_t context, size_t vocab, const mt_tokenizer *tokenizer)
{
    mt_sequence *all = mt_arena_alloc(r->arena, r->choices * sizeof(*all));
    const size_t most = context - r->prompt_len, max_tokens = r->max_tokens < most ? r->max_tokens : most;
    for (uint32_t c = 0; c < r->choices; c++) {
        mt_sequence *s = &all[c];
        s->request = r;
        s->choice = c;
        s->stop_met = -1;
        mt_draft_init(&s->draft, r->expected, r->expected_count);
        s->stop_token = MT_TOKEN_NONE;
        mt_seq_init(&s->seq, groups, r->prompt_len + max_tokens);
        mt_seq_prompt(&s->seq, r->prompt, r->prompt_len, r->figures, r->figure_count);
        s->seq.cuts = r->cuts;
        s->seq.cut_count = r->cut_count;
        s->counts = counts_of(r, max_tokens, vocab);
        s->thought.thinking = r->thinking && r->thinking->opened;
        mt_buf_init(&s->piece, PIECE_LIMIT);
        mt_buf_init(&s->text, PIECE_LIMIT);
        if (tokenizer)
            mt_detokenizer_init(&s->detokenizer, tokenizer, r->skip_special);
    }
    r->sequences = all;
    r->live = r->choices;
    return all;
}

void mt_sequence_close(mt_sequence *s)
{
    mt_kept_free(&s->kept);
    mt_run_end(&s->run);
    mt_seq_free(&s->seq);
    mt_free(s->counts);
    mt_buf_free(&s->piece);
    mt_buf_free(&s->text);
}

static void tell(mt_sequence *s, const mt_event *event)
{
    s->request->event(s->request->ctx, event);
}

void mt_sequence_begin(mt_sequence *s)
{
    s->begun = true;
    s->began = mt_clock_ns();
    tell(s, &(mt_event){.kind = MT_EVENT_BEGUN, .choice = s->choice, .cached = s->cached});
}

void mt_sequence_prompt(mt_sequence *s, uint32_t token, const mt_logprob *chosen, size_t rank, const mt_logprob *top,
                        size_t count)
{
    tell(s, &(mt_event){.kind = MT_EVENT_PROMPT,
                        .choice = s->choice,
                        .token = token,
                        .has_logprob = chosen != NULL,
                        .logprob = chosen ? chosen->logprob : 0,
                        .rank = rank,
                        .top = top,
                        .top_count = count});
}

/* Puts the text that the token makes certain into s->text. Returns the index of the stop string that is complete, or
   -1. */
static int add_text(mt_sequence *s, uint32_t token)
{
    const mt_request *r = s->request;
    if (!s->detokenizer.tokenizer)
        return -1;
    s->piece.len = 0;
    if (!mt_detokenizer_add(&s->detokenizer, token, &s->piece))
        return -1;
    if (r->stop && s->generated > r->sampling.min_tokens)
        return mt_stop_feed(r->stop, &s->stop_state, s->piece.data, s->piece.len, &s->text);
    mt_buf_add(&s->text, s->piece.data, s->piece.len);
    return -1;
}

void mt_sequence_think(mt_sequence *s, mt_thought *thought, uint32_t token)
{
    s->piece.len = 0;
    if (s->detokenizer.tokenizer && !thought->over)
        mt_tokenizer_bytes(s->detokenizer.tokenizer, token, &s->piece);
    mt_thought_token(thought, s->request->thinking, token, s->piece.data, s->piece.len);
}

bool mt_sequence_token(mt_sequence *s, const mt_sampled *sampled, mt_finish *finish)
{
    mt_request *r = s->request;
    const uint32_t token = sampled->chosen.id;
    const bool ends = mt_sample_settings_ends(&r->sampling, token);
    const bool complete = s->run.constraint && mt_run_token(&s->run, token) && s->run.over;
    s->generated++;
    if (r->thinking)
        mt_sequence_think(s, &s->thought, token);
    if (s->counts)
        mt_counts_push(s->counts, token);
    s->text.len = 0;
    if (ends)
        s->stop_token = token;
    if (!ends || r->include_stop)
        s->stop_met = add_text(s, token);
    const bool stops = ends || complete || s->stop_met >= 0;
    s->repeated = r->repeat_limit && mt_repeat_add(&s->repeat, token, r->repeat_limit) &&
                  s->generated >= r->sampling.min_tokens && !stops;
    const bool ending = stops || s->repeated || mt_sequence_left(s) == 0;
    tell(s, &(mt_event){.kind = MT_EVENT_TOKEN,
                        .choice = s->choice,
                        .token = token,
                        .has_logprob = r->sampling.logprobs >= 0,
                        .logprob = sampled->chosen.logprob,
                        .top = sampled->top,
                        .top_count = sampled->top_count,
                        .text = s->text.data,
                        .text_len = s->text.len,
                        .ending = ending});
    *finish = stops ? MT_FINISH_STOP : MT_FINISH_LENGTH;
    return ending;
}

/* Puts the text that was held back into s->text: the answer ends. */
static void last_text(mt_sequence *s)
{
    const mt_request *r = s->request;
    s->text.len = 0;
    if (s->stop_met >= 0) {
        const mt_stop_string *met = &r->stop_strings[s->stop_met];
        if (r->include_stop)
            mt_buf_add(&s->text, met->str, met->len);
        return;
    }
    if (!s->detokenizer.tokenizer)
        return;
    s->piece.len = 0;
    if (!mt_detokenizer_finish(&s->detokenizer, &s->piece))
        return;
    if (r->stop) {
        s->stop_met = mt_stop_feed(r->stop, &s->stop_state, s->piece.data, s->piece.len, &s->text);
        if (s->stop_met < 0)
            mt_stop_finish(r->stop, &s->stop_state, &s->text);
    } else {
        mt_buf_add(&s->text, s->piece.data, s->piece.len);
    }
}

void mt_sequence_finish(mt_sequence *s, mt_finish finish, const mt_error *err)
{
    mt_request *r = s->request;
    last_text(s);
    const bool last = --r->live == 0;
    tell(s, &(mt_event){.kind = MT_EVENT_DONE,
                        .choice = s->choice,
                        .text = s->text.data,
                        .text_len = s->text.len,
                        .finish = finish,
                        .error = err,
                        .stop = s->stop_met >= 0 ? r->stop_strings[s->stop_met] : (mt_stop_string){0},
                        .stop_token = s->stop_token,
                        .repeated = s->repeated && finish == MT_FINISH_LENGTH,
                        .cached = s->cached,
                        .prompt_tokens = r->prompt_len,
                        .tokens = s->generated,
                        .waited = s->generated > 0 ? s->first - r->received : 0,
                        .spoke = s->generated > 0 ? s->last - s->first : 0,
                        .guessed = s->guessed,
                        .taken = s->taken,
                        .vector = finish == MT_FINISH_STOP ? r->vector : NULL,
                        .vector_len = finish == MT_FINISH_STOP ? r->vector_len : 0,
                        .last = last});
    mt_sequence_close(s);
    if (last)
        mt_request_free(r);
}
