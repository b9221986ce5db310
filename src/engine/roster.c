/* The lists of running and waiting sequences, and what happens when a sequence leaves them. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/inside.h"

void mt_engine_leave(mt_sequence **list, size_t *count, const mt_sequence *s)
{
    size_t at = 0;
    while (at < *count && list[at] != s)
        at++;
    assert(at < *count);
    memmove(list + at, list + at + 1, (*count - at - 1) * sizeof(*list));
    --*count;
}

void mt_engine_queue(mt_engine *e, mt_sequence *s)
{
    size_t at = e->waiting_count++;
    for (; at > 0 && mt_sequence_before(s, e->waiting[at - 1]); at--)
        e->waiting[at] = e->waiting[at - 1];
    e->waiting[at] = s;
}

/* Adds an answer that ended to the histograms. */
static void note_answer(mt_stats *stats, const mt_sequence *s, uint64_t now)
{
    const mt_request *r = s->request;
    const double decode = s->generated > 0 ? (double)(s->last - s->first) * 1e-9 : 0;
    mt_histogram_add(&stats->end_to_end, (double)(now - r->received) * 1e-9);
    mt_histogram_count(&stats->answer_prompt, r->prompt_len);
    mt_histogram_count(&stats->answer_tokens, s->generated);
    if (!s->begun)
        return;
    mt_histogram_count(&stats->answer_computed, r->prompt_len - s->cached);
    mt_histogram_add(&stats->inference, (double)(now - s->began) * 1e-9);
    mt_histogram_add(&stats->decode, decode);
    if (s->generated > 1)
        mt_histogram_add(&stats->token_pace, decode / (double)(s->generated - 1));
}

void mt_engine_announce(mt_engine *e, mt_sequence *s)
{
    if (s->begun)
        return;
    mt_sequence_begin(s);
    mt_histogram_add(&e->stats.queue, (double)(s->began - s->request->received) * 1e-9);
}

void mt_engine_preempt(mt_engine *e, mt_sequence *s)
{
    mt_voices_unseat(e->voices, s->voice, mt_clock_ns());
    mt_keep_leave(e, s);
    mt_seq_suspend(&s->seq);
    mt_engine_unpin(e, s);
    mt_engine_leave(e->running, &e->running_count, s);
    s->request->client_record->running--;
    mt_engine_queue(e, s);
    s->candidate.rows = 0;
    e->stats.preemptions++;
    mt_log_debug("engine.preempted", "%s after %zu tokens", s->request->name, s->generated);
}

void mt_engine_end(mt_engine *e, mt_sequence *s, mt_finish finish, const mt_error *err)
{
    mt_request *r = s->request;
    size_t *count = &e->waiting_count;
    mt_sequence **list = e->waiting;
    for (size_t i = 0; i < e->running_count; i++)
        if (e->running[i] == s) {
            list = e->running;
            count = &e->running_count;
            r->client_record->running--;
        }
    r->client_record->here--;
    mt_engine_leave(list, count, s);
    mt_keep_leave(e, s);
    mt_engine_unpin(e, s);
    if (e->step.encode_for == s)
        e->step.encode_for = NULL;
    if (r->live == 1)
        mt_engine_forget(e, r);
    const uint64_t now = mt_clock_ns();
    mt_voices_end(e->voices, s->voice, finish, now);
    s->voice = NULL;
    e->stats.finished[finish]++;
    e->stats.repeated += s->repeated;
    e->stats.thinking_cut += s->thought.cut;
    note_answer(&e->stats, s, now);
    if (!r->placed)
        /* before the last event, so that its receiver can already use the place */
        mt_places_give(&e->places, &r->client, 1);
    for (size_t i = 0; i < e->step.parts; i++)
        if (e->step.part[i].s == s)
            e->step.part[i].s = NULL;
    for (size_t i = 0; i < e->next.parts; i++) /* its row is thrown away */
        if (e->next.part[i].s == s)
            e->next.part[i].s = NULL;
    mt_sequence_finish(s, finish, err);
}
