/* Which guesses go with the next row of an answer: those of the model's drafting head or of a drafter model, or those
   from the text (draft.h). The model's are made after a step for the next one, for all sequences together, in rounds:
   the first guess of each, then the second, which assumes that the first is right.

   Each answer learns how often the guesses of either source are right. Where the model's have been right less often
   than those from the text, or are not worth a round, the text is asked first, and the model only where the text has
   nothing to say, or where it was not asked for long. */
#include "engine/inside.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "device/limits.h"

#define LEARNED 0.1 /* weight of the newest round in the average time of a round */

/* Whether, where each of `answers` sequences has `depth` guesses, one more guess leaves the step below the knee
   (cost.h). Where the answers alone are beyond it, that does not matter. */
static bool has_room(const mt_engine *e, size_t answers, size_t depth)
{
    const size_t knee = e->past.cost.knee;
    return knee == 0 || answers > knee || answers * (1 + depth) < knee;
}

/* Most guesses that may go with the next row of s. The last token of an answer needs no guess after it. */
static size_t most_of(const mt_engine *e, const mt_sequence *s)
{
    const size_t left = mt_sequence_left(s), most = MT_MIN(e->params.draft, left > 0 ? left - 1 : 0);
    if (e->params.speculate == MT_SPECULATE_OFF || (e->spec->state.layers && s->place >= e->memos))
        return 0;
    return e->spec->state.layers ? MT_MIN(most, MT_LIMIT_MEMO_ROWS) : most;
}

size_t mt_engine_drafts(mt_engine *e, mt_sequence *s)
{
    const size_t most = most_of(e, s);
    if (s->draft.count == 0)
        mt_draft_guess(&s->draft, s->seq.text.key, s->seq.known, most);
    return MT_MIN(s->draft.count, most);
}

/* How many guesses of the model for s are worth making. A guess costs a row of the next step and a part of a round of
   the head; it saves one of `answers` sequences its part of a step, if it and all guesses before it are right. */
static size_t depth_of(const mt_engine *e, const mt_sequence *s, size_t answers)
{
    const double step = mt_cost_predict(&e->past.cost, answers, 0);
    const double cost = mt_cost_row(&e->past.cost, answers, 0) + e->past.guess_seconds;
    const size_t most = s->place < e->memos ? MT_MIN(most_of(e, s), MT_LIMIT_MEMO_ROWS) : 0;
    double chance = s->draft.chance[MT_DRAFT_MODEL];
    size_t depth = 0;
    for (; depth < most &&
           (e->params.draft_all || (has_room(e, answers, depth) && chance * step / (double)answers > cost));
         depth++)
        chance *= s->draft.chance[MT_DRAFT_MODEL];
    return depth;
}

/* Whether the guesses for s come from the text; if so, makes them. They do where s follows what its client expects, and
   where the text comes before the model and has guesses. */
static bool text_guesses(mt_engine *e, mt_sequence *s)
{
    mt_draft *d = &s->draft;
    if (mt_draft_follow(d, s->seq.text.key, s->seq.known, most_of(e, s)))
        return true;
    return (d->depth == 0 || mt_draft_prefers_text(d)) && mt_engine_drafts(e, s) > 0;
}

/* Whether the sequence took part in the step, has not ended, and goes on with exactly one known token. */
static bool goes_on(const mt_part *p)
{
    return p->s && p->s->generated > 0 && p->s->seq.known - p->s->seq.done == 1;
}

static size_t count_answers(const mt_step *step)
{
    size_t count = 0;
    for (size_t i = 0; i < step->parts; i++)
        count += goes_on(&step->part[i]);
    return count;
}

/* Fills step->guessers, those with the most guesses first, and returns their number. */
static size_t list(mt_engine *e, mt_step *step)
{
    const size_t answers = count_answers(step);
    size_t count = 0;
    for (size_t i = 0; i < step->parts && count < step->max_wanted; i++) {
        mt_sequence *s = step->part[i].s;
        if (!goes_on(&step->part[i]))
            continue;
        s->draft.depth = depth_of(e, s, answers);
        if (text_guesses(e, s) || s->draft.depth == 0 || !mt_seq_grow(&s->seq, s->seq.done + s->draft.depth))
            continue;
        s->draft.source = MT_DRAFT_MODEL;
        s->draft.unasked = 0;
        size_t at = count++;
        for (; at > 0 && step->guessers[at - 1]->draft.depth < s->draft.depth; at--)
            step->guessers[at] = step->guessers[at - 1];
        step->guessers[at] = s;
    }
    return count;
}

/* Round `ahead` (from 0 on) for the first `count` guessers. */
static void guess_round(mt_engine *e, mt_step *step, size_t count, size_t ahead)
{
    mt_batch b = {
        .rows = count, .tokens = step->tokens, .positions = step->positions, .spans = count, .span = step->spans};
    for (size_t i = 0; i < count; i++) {
        const mt_sequence *s = step->guessers[i];
        /* a drafter model keeps the position it began at */
        const size_t at = s->seq.done + (e->spec->drafter ? 0 : ahead);
        step->tokens[i] = ahead ? s->draft.token[ahead - 1] : mt_key_token(s->seq.text.key[at]);
        step->positions[i] = mt_media_position(s->request->spans, s->request->span_count, at);
        step->spans[i] = (mt_span){.row = (uint32_t)i, .rows = 1, .position = (uint32_t)at, .memo = s->place};
        for (size_t g = 0; g < s->seq.groups; g++)
            step->spans[i].pages[g] = s->seq.page[g];
    }
    mt_model_guess(e->model, &b, ahead > 0, step->guessed);
    for (size_t i = 0; i < count; i++)
        step->guessers[i]->draft.token[step->guessers[i]->draft.count++] = step->guessed[i];
}

void mt_engine_guess(mt_engine *e, mt_step *step)
{
    if (!mt_model_guesses(e->spec))
        return;
    size_t count = list(e, step);
    for (size_t ahead = 0; count > 0; ahead++) {
        const uint64_t begin = mt_clock_ns();
        guess_round(e, step, count, ahead);
        const double seconds = (double)(mt_clock_ns() - begin) * 1e-9 / (double)count;
        e->past.guess_seconds += (e->past.guess_seconds > 0 ? LEARNED : 1) * (seconds - e->past.guess_seconds);
        while (count > 0 && step->guessers[count - 1]->draft.depth == ahead + 1)
            count--;
    }
}
