/* The next step, begun while one runs, as if every answer went on by one token.

   Its rows begin with tokens that the device has chosen and the host does not know yet; so nothing waits for the host
   between the two, and what it has to do for a step (text, events, the tree) is done while the next one is computed.

   1. A step is begun ahead only when there is nothing to plan: all running sequences are in the step before and go on
      by one token, none waits, no job is under way, and no other engine wants a turn. All else takes its turn when the
      last that was begun has ended: so a newcomer, or another engine, waits for one step.
   2. At most one is begun ahead. The one before it is settled then, as ever: tokens are added and given out.
   3. An answer that turns out to have ended, or is cancelled, loses its part of the next step (mt_engine_end): its row
      is computed for nothing. It writes to a page that was its own when the row was enqueued; whoever gets the page
      afterwards writes there later.
   4. What a token decides beyond the text waits for it: constraints, penalties, guesses, the end of thinking, settings
      that the device does not choose by.
   5. Of recurrent states, a step that is begun ahead leaves the state before it as it is: there an answer may have
      ended, and others may continue. So it needs a slot more for each answer; where one has none, no step is begun. */
#include "base/clock.h"
#include "engine/inside.h"
#include "sample/thought.h"

static bool is_wanted(const mt_engine *e)
{
    return e->params.ahead == MT_AHEAD_DEVICE ? mt_device_ahead(e->dev) : e->params.ahead == MT_AHEAD_ALWAYS;
}

bool mt_engine_can_go_ahead(const mt_engine *e)
{
    return is_wanted(e) && e->model && mt_model_follows(e->spec) && !mt_model_guesses(e->spec) &&
           !mt_device_ranks(e->dev);
}

/* Whether something is to be planned first. */
static bool others_want(mt_engine *e)
{
    if (e->waiting_count > 0 || mt_queue_len(e->inbox) > 0 || atomic_load(&e->stopping) ||
        (e->params.rota && mt_rota_wanting(e->params.rota) > 1))
        return true;
    for (size_t i = 0; i < e->job_count; i++)
        if (e->jobs[i]->count > 0)
            return true;
    for (size_t i = 0; i < e->text_queue_count; i++)
        if (e->text_queues[i].waiting_count > 0)
            return true;
    return false;
}

/* Whether guesses for s would save more than a step that is begun ahead. Of a planned step the plan has said no. */
static bool wants_guesses(mt_engine *e, const mt_step *step, mt_sequence *s)
{
    if (!step->ahead || mt_engine_drafts(e, s) == 0)
        return false;
    const size_t answers = step->batch.spans;
    return e->params.draft_all ||
           mt_schedule_worth(&e->past.cost, s->draft.chance[s->draft.source], s->seq.done, answers,
                             mt_cost_predict(&e->past.cost, answers, step->positions_before));
}

/* Whether the token chosen now may decide that the next one has to end the answer's thinking. */
static bool ends_thinking(const mt_sequence *s)
{
    return s->request->thinking && mt_thought_ends_soon(&s->thought, s->request->thinking);
}

/* Whether s goes on by one token that the device alone chooses, unless it ends with it. */
static bool goes_on(mt_engine *e, const mt_step *step, const mt_part *p)
{
    mt_request *r = p->s->request;
    return p->samples && p->chain.guessed == 0 && p->wanted_count == 1 && mt_chooses(e->dev, &p->chain) &&
           !ends_thinking(p->s) && !atomic_load_explicit(&r->paused, memory_order_relaxed) &&
           !atomic_load_explicit(&r->cancelled, memory_order_relaxed) && !wants_guesses(e, step, p->s);
}

/* The row behind part p of the step before. False where there is no page for it, or no slot for its state. */
static bool add_row(mt_step *next, const mt_part *p)
{
    mt_sequence *s = p->s;
    mt_batch *b = &next->batch;
    const size_t at = s->seq.done + p->rows, row = b->rows;
    mt_span *span = &next->spans[b->spans];
    *span = (mt_span){.row = (uint32_t)row, .rows = 1, .position = (uint32_t)at, .memo = s->place};
    if (!mt_seq_grow(&s->seq, at + 1) || !mt_seq_follow(&s->seq, span))
        return false;
    b->spans++;
    next->part[next->parts++] = (mt_part){.s = s,
                                          .rows = 1,
                                          .row = (uint32_t)row,
                                          .wanted = (uint32_t)next->wanted_count,
                                          .wanted_count = 1,
                                          .samples = true};
    for (size_t g = 0; g < s->seq.groups; g++)
        span->pages[g] = s->seq.page[g];
    next->tokens[row] = 0;
    next->chosen[row] = (uint32_t)p->chain.first;
    next->positions[row] = mt_media_position(s->request->spans, s->request->span_count, at);
    next->wanted[next->wanted_count++] = (uint32_t)row;
    next->positions_before += (double)at;
    b->rows++;
    return true;
}

static bool build(const mt_step *step, mt_step *next)
{
    next->batch = (mt_batch){.tokens = next->tokens,
                             .positions = next->positions,
                             .span = next->spans,
                             .chooser = next->chooser,
                             .chosen = next->chosen};
    next->parts = next->wanted_count = 0;
    next->positions_before = 0;
    next->ahead = true;
    for (size_t i = 0; i < step->parts; i++) {
        const mt_part *p = &step->part[i];
        if (p->s && mt_sequence_left(p->s) > 1 && !add_row(next, p))
            return false;
    }
    return next->parts > 0;
}

/* The step is not begun after all. */
static void drop(mt_step *next)
{
    for (size_t i = 0; i < next->parts; i++)
        mt_seq_unfollow(&next->part[i].s->seq);
    next->parts = 0;
}

bool mt_engine_go_ahead(mt_engine *e)
{
    const mt_step *step = &e->step;
    size_t live = 0;
    if (!mt_engine_can_go_ahead(e) || step->batch.rows == 0 || others_want(e) || !mt_device_well(e->dev, NULL))
        return false;
    for (size_t i = 0; i < step->parts; i++) {
        if (!step->part[i].s)
            continue;
        if (!goes_on(e, step, &step->part[i]))
            return false;
        live++;
    }
    if (live < e->running_count)
        return false;
    if (!build(step, &e->next)) {
        drop(&e->next);
        return false;
    }
    mt_engine_launch(e, &e->next);
    e->ahead = true;
    e->stats.ahead_steps++;
    return true;
}

void mt_engine_step_on(mt_engine *e)
{
    const mt_step done = e->step;
    e->step = e->next;
    e->next = done;
    e->next.parts = 0;
    e->ahead = false;
}
