/* Chooses a chain of tokens (chain.h). */
#include "sample/chain.h"

#include <string.h>

#include "sample/limits.h"
#include "sample/steer.h"

/* Copies the last tokens of the answer, including guesses that are taken to be right; returns how many. */
static size_t copy_tail(const mt_chain *c, size_t ahead, uint32_t tail[MT_LIMIT_BAD_TOKENS])
{
    const size_t said = c->tail_count + ahead, count = said < MT_LIMIT_BAD_TOKENS ? said : MT_LIMIT_BAD_TOKENS;
    for (size_t i = 0; i < count; i++) {
        const size_t at = said - count + i;
        tail[i] = at < c->tail_count ? c->tail[at] : c->guess[at - c->tail_count];
    }
    return count;
}

mt_sample_row mt_chain_row(const mt_chain *c, size_t ahead, uint32_t tail[MT_LIMIT_BAD_TOKENS])
{
    return (mt_sample_row){.settings = c->settings,
                           .counts = c->counts,
                           .tail = tail,
                           .tail_count = c->settings->bad_count ? copy_tail(c, ahead, tail) : 0,
                           .allowed = c->constrained ? c->allowed[ahead] : NULL,
                           .forced = c->forces && c->forced[ahead] != MT_SAMPLE_ANY ? &c->forced[ahead] : NULL,
                           .choice = c->choice,
                           .index = c->index + (uint32_t)ahead};
}

/* Whether the token chosen last is the one that was guessed: then the next row's logits, which were computed behind the
   guess, are valid. */
static bool goes_on(const mt_chain *c)
{
    const size_t ahead = c->sampled_count - 1;
    const uint32_t token = c->sampled[ahead].chosen.id;
    return c->guessed > ahead && c->guess[ahead] == token && (!c->constrained || c->allowed_count > ahead + 1) &&
           !mt_sample_settings_ends(c->settings, token);
}

static mt_sample_status choose(mt_chain *c, const mt_kernels *k, const float *logits, size_t vocab, void *scratch)
{
    uint32_t tail[MT_LIMIT_BAD_TOKENS];
    mt_sample_row row = mt_chain_row(c, c->sampled_count, tail);
    row.logits = logits;
    row.vocab = vocab;
    return mt_sample(k, &row, scratch, &c->sampled[c->sampled_count]);
}

void mt_chain_choose(mt_chain *c, const mt_kernels *k, const float *logits, size_t stride, size_t vocab, void *scratch)
{
    size_t pushed = 0;
    c->sampled_count = 0;
    c->status = c->constrained && c->allowed_count == 0 ? MT_SAMPLE_NOTHING : choose(c, k, logits, vocab, scratch);
    c->sampled_count = c->status == MT_SAMPLE_OK;
    for (bool ok = c->sampled_count > 0; ok && goes_on(c);) {
        if (c->counts) {
            mt_counts_push(c->counts, c->sampled[c->sampled_count - 1].chosen.id);
            pushed++;
        }
        ok = choose(c, k, logits + c->sampled_count * stride, vocab, scratch) == MT_SAMPLE_OK;
        c->sampled_count += ok;
    }
    if (c->counts)
        mt_counts_roll_back(c->counts, pushed);
}

bool mt_chain_greedy(const mt_chain *c)
{
    const mt_sample_row row = {.settings = c->settings, .counts = c->counts, .index = c->index};
    return !c->constrained && !c->forces && c->settings->logprobs < 0 && mt_sample_settings_greedy(c->settings) &&
           !mt_steer_needed(&row);
}

void mt_chain_take(mt_chain *c, const mt_best *best, const mt_tops *tops)
{
    c->sampled_count = 0;
    c->status = c->constrained && c->allowed_count == 0 ? MT_SAMPLE_NOTHING : mt_sample_status_of(best->logit);
    for (bool ok = c->status == MT_SAMPLE_OK; ok;) {
        const size_t ahead = c->sampled_count++;
        mt_sampled *s = &c->sampled[ahead];
        *s = (mt_sampled){.chosen.id = best[ahead].id};
        if (tops) {
            s->chosen.logprob = tops[ahead].logprob;
            s->top_count = tops[ahead].count;
            memcpy(s->top, tops[ahead].top, s->top_count * sizeof(*s->top));
        }
        ok = goes_on(c) && mt_sample_status_of(best[ahead + 1].logit) == MT_SAMPLE_OK;
    }
}
