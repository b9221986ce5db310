/* Guesses by the model's drafting head or by a drafter model, made after a step for the next one. All sequences are
   guessed for together, in rounds: the first guess of each, then the second, which assumes that the first is right. */
#include "engine/inside.h"

#include "base/clock.h"

#define LEARNED 0.1 /* weight of the newest round in the average time of a round */

/* Whether, where each of `answers` sequences has `depth` guesses, one more guess leaves the step below the knee
   (cost.h). Where the answers alone are beyond it, that does not matter. */
static bool has_room(const mt_engine *e, size_t answers, size_t depth)
{
    const size_t knee = e->past.cost.knee;
    return knee == 0 || answers > knee || answers * (1 + depth) < knee;
}

/* How many guesses for s are worth making. A guess costs a row of the next step and a part of a round of the head; it
   saves one of `answers` sequences its part of a step, if it and all guesses before it are right. */
static size_t depth_of(const mt_engine *e, const mt_sequence *s, size_t answers)
{
    const double step = mt_cost_predict(&e->past.cost, answers, 0);
    const double cost = mt_cost_row(&e->past.cost, answers, 0) + e->past.guess_seconds;
    const size_t left = mt_sequence_left(s);
    size_t most = e->params.draft < MT_LIMIT_MEMO_ROWS ? e->params.draft : MT_LIMIT_MEMO_ROWS, depth = 0;
    double chance = s->draft.chance;
    if (left < 2 || s->place >= e->memos)
        return 0;
    most = most < left - 1 ? most : left - 1;
    for (; depth < most &&
           (e->params.draft_all || (has_room(e, answers, depth) && chance * step / (double)answers > cost));
         depth++)
        chance *= s->draft.chance;
    return depth;
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

/* Fills step->guessers, those with the most guesses first, and returns their number. A sequence that follows what its
   client expects needs no guesses of the head. */
static size_t list(mt_engine *e, mt_step *step)
{
    const size_t answers = count_answers(step);
    size_t count = 0;
    for (size_t i = 0; i < step->parts && count < step->max_wanted; i++) {
        mt_sequence *s = step->part[i].s;
        if (!goes_on(&step->part[i]))
            continue;
        s->draft.depth = depth_of(e, s, answers);
        if (s->draft.depth == 0)
            mt_draft_learn(&s->draft, 0, 0);
        if (s->draft.depth == 0 || mt_draft_follow(&s->draft, s->seq.text.key, s->seq.known, s->draft.depth) ||
            !mt_seq_grow(&s->seq, s->seq.done + s->draft.depth))
            continue;
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
