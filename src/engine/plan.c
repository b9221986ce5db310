/* Plans a step: which sequences take part, with how many rows, on which pages. Calls the scheduler (schedule.h) with
   all candidates, then seats the sequences that were given rows. */
#include "engine/inside.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "engine/limits.h"

#define UNNOTICED 0.005 /* seconds: delays below this are not noticed */
/* nanoseconds: after this time a waiting request comes before smaller ones that would fit, and a running answer whose
   client does not read loses its seat to a waiting one */
#define PATIENCE_NS 2000000000u
/* nanoseconds: requests that were present together within this time are expected to be so again */
#define CONCURRENT_NS 10000000000u
/* A step of prompts alone takes TOGETHER times as long as a step of one row while requests meet, and ALONE times or
   ALONE_SECONDS while they do not: a request that comes during the step waits for its end. Short steps cost little: at
   four times, an eighth of the speed. */
#define TOGETHER 4
#define ALONE 6
#define ALONE_SECONDS 0.12
#define SLICES 8 /* least rows of prompts in a step on a GPU: one part of so many of the rows that keep the GPU busy */

/* Whether s has begun its answer and its next row gives a token. */
static bool answering(const mt_sequence *s)
{
    return s->generated > 0 && s->seq.known - s->seq.done == 1;
}

/* The sequence whose candidate c is; c must not be a job's. */
static mt_sequence *owner(mt_candidate *c)
{
    return (mt_sequence *)(void *)((char *)c - offsetof(mt_sequence, candidate));
}

/* Whether every position of the prompt has to be computed, even if it is cached. */
static bool needs_all(const mt_sequence *s)
{
    const mt_pool pool = s->request->pool;
    return (s->request->prompt_logprobs && s->generated == 0) || pool == MT_POOL_MEAN || pool == MT_POOL_FIRST ||
           pool == MT_POOL_EACH;
}

/* Sets the range of rows that must be computed in one step (a picture whose positions see each other), and the most
   rows of the step so that it does not end inside the next such range. */
static void keep_solid(mt_candidate *c, const mt_request *r)
{
    if (c->answering)
        return;
    for (size_t i = 0; i < r->span_count; i++) {
        const size_t first = r->spans[i].first, end = first + r->spans[i].count;
        if (!r->spans[i].block || end <= c->depth)
            continue;
        if (c->solid_end > 0) { /* the second such range */
            c->most = first - c->depth < c->most ? first - c->depth : c->most;
            return;
        }
        c->solid = first > c->depth ? first - c->depth : 0;
        c->solid_end = end - c->depth;
        if (c->most > c->solid && c->most < c->solid_end)
            c->most = c->solid > 0 ? c->solid : c->solid_end;
        if (c->most < c->solid_end)
            return;
    }
}

/* Fills the candidate of s. False where s lacks features; then the step may encode for it. */
static bool describe(mt_engine *e, mt_sequence *s, bool running, size_t done, uint64_t now)
{
    const mt_request *r = s->request;
    const size_t chunk = e->params.chunk ? e->params.chunk : e->params.rows;
    const size_t reach = mt_engine_media_reach(e, s, done, running);
    s->candidate =
        (mt_candidate){.left = s->seq.known - done,
                       .depth = done,
                       .most = r->prompt_logprobs && chunk > e->step.max_wanted / 2 ? e->step.max_wanted / 2 : chunk,
                       .answering = running && answering(s),
                       .running = running,
                       .last = r->client_record->client.last,
                       .priority = r->priority,
                       .debt = mt_client_record_debt(r->client_record, now),
                       .order = r->order * MT_LIMIT_SEQUENCES + s->choice,
                       .places = running ? NULL : &r->client_record->places,
                       .owed = s->candidate.owed};
    if (s->candidate.answering) {
        s->candidate.drafts = mt_engine_drafts(e, s);
        s->candidate.chance = s->draft.chance[s->draft.source];
    }
    if (s->candidate.most == 0)
        s->candidate.most = 1;
    keep_solid(&s->candidate, r);
    if (s->lacks_features && (e->job.count == 0 ? !mt_engine_expects(e, s) : mt_engine_awaits(e, s)) &&
        (!e->step.encode_for || mt_sequence_before(s, e->step.encode_for)))
        e->step.encode_for = s;
    if (reach > 0 && s->candidate.left > reach)
        s->candidate.left = reach;
    return !s->lacks_features;
}

/* Takes over pages that others have computed of the same text meanwhile. */
static void advance(mt_engine *e, mt_sequence *s, uint64_t now)
{
    if (needs_all(s) || s->seq.known - s->seq.done <= MT_PAGE_TOKENS)
        return;
    const size_t got = mt_seq_advance(&s->seq);
    if (s->generated > 0)
        return;
    s->cached += got;
    e->stats.cached_tokens += got;
    mt_voices_cached(e->voices, s->voice, got, now);
}

/* Whether `leader`, which has computed `done` positions, is going to compute page `page` of s. */
static bool leads(const mt_sequence *leader, size_t done, const mt_sequence *s, size_t page)
{
    const size_t end = (page + 1) * MT_PAGE_TOKENS;
    return leader->seq.root == s->seq.root && leader->candidate.priority <= s->request->priority && done < end &&
           leader->seq.known >= end && leader->seq.text.hash[page] == s->seq.text.hash[page];
}

/* The same where the model has recurrent layers: the leader has to keep a state at the end of the text that both share,
   more than a page beyond what is cached. If so, tells the leader to keep it. */
static bool leads_to_state(mt_sequence *leader, size_t done, const mt_sequence *s, size_t positions)
{
    if (leader->seq.root != s->seq.root || leader->candidate.priority > s->request->priority)
        return false;
    const size_t common = mt_seq_common(&leader->seq, &s->seq), most = s->seq.known - 1;
    const size_t place = common < most ? common : most;
    if (place <= positions + MT_PAGE_TOKENS || done >= place)
        return false;
    mt_seq_stop_at(&leader->seq, place);
    return true;
}

/* Whether another sequence, running or listed before s, is about to compute what s needs next: then s waits for it, and
   a beginning that several share is computed once. No sequence waits for a less important one. */
static bool follows(const mt_engine *e, size_t listed, const mt_sequence *s, const mt_hit *hit)
{
    const bool state = e->spec->state.layers > 0;
    if (!state && (hit->pages + 1) * MT_PAGE_TOKENS > s->seq.known - 1)
        return false;
    for (size_t i = 0; i < listed; i++) {
        mt_sequence *leader = owner(e->step.candidates[i]);
        const size_t done = e->step.candidates[i]->depth;
        if (state ? leads_to_state(leader, done, s, hit->positions) : leads(leader, done, s, hit->pages))
            return true;
    }
    return false;
}

/* s loses its seat to another client's sequence, and its place among the `count` candidates. */
static size_t yield(mt_engine *e, mt_sequence *s, size_t count)
{
    size_t kept = 0;
    mt_engine_preempt(e, s);
    e->stats.yields++;
    for (size_t i = 0; i < count; i++)
        if (e->step.candidates[i] != &s->candidate)
            e->step.candidates[kept++] = e->step.candidates[i];
    return kept;
}

/* Begins the list of candidates with the running sequences that can do something; returns how many there are. */
static size_t list_running(mt_engine *e, uint64_t now)
{
    size_t count = 0;
    for (size_t i = 0; i < e->running_count; i++) {
        mt_sequence *s = e->running[i];
        s->candidate.rows = 0;
        if (mt_sequence_paused(s)) {
            mt_engine_unpin(e, s);
            continue;
        }
        if (mt_kept_waits(&s->kept)) /* its pages are being read from a tier */
            continue;
        mt_engine_announce(e, s);
        if (s->answering == 0 && answering(s))
            s->answering = now;
        advance(e, s, now);
        if (describe(e, s, true, s->seq.done, now))
            e->step.candidates[count++] = &s->candidate;
    }
    return count;
}

/* Adds the waiting sequences that may begin to the candidates; returns how many there are then. */
static size_t list_waiting(mt_engine *e, size_t count, uint64_t now)
{
    mt_sequence *yields = mt_engine_share_seats(e, now);
    const size_t running = count;
    for (size_t i = 0; i < e->waiting_count; i++) {
        mt_sequence *s = e->waiting[i];
        if (mt_sequence_paused(s) || s->request->client_record->looks == 0)
            continue;
        s->request->client_record->looks--;
        const mt_hit hit = needs_all(s) ? (mt_hit){0} : mt_seq_look(&s->seq);
        if (!needs_all(s) && follows(e, count, s, &hit))
            continue;
        if (describe(e, s, false, hit.positions, now))
            e->step.candidates[count++] = &s->candidate;
    }
    return yields && count > running ? yield(e, yields, count) : count;
}

/* Pages that running sequences still need for the tokens they know. */
static size_t promised(const mt_engine *e)
{
    size_t pages = 0;
    for (size_t i = 0; i < e->running_count; i++)
        pages += mt_seq_wants(&e->running[i]->seq, e->running[i]->seq.known);
    return pages;
}

/* Counts a lookup in the prefix tree, and what it found. */
static void note_lookup(mt_engine *e, mt_sequence *s, const mt_hit *hit, uint64_t now)
{
    e->stats.lookups++;
    e->stats.misses[hit->miss]++;
    if (s->generated > 0) /* it had a seat before: finding its own pages is no cache hit */
        return;
    s->cached = hit->positions;
    e->stats.cached_tokens += hit->positions;
    mt_voices_cached(e->voices, s->voice, hit->positions, now);
    mt_log_debug("cache.lookup", "%s: %zu of %zu tokens, %s", s->request->name, hit->positions, s->request->prompt_len,
                 mt_miss_name(hit->miss));
}

/* The lowest number that no running sequence has. */
static uint32_t free_place(const mt_engine *e)
{
    bool taken[MT_LIMIT_SEQUENCES] = {0};
    uint32_t place = 0;
    for (size_t i = 0; i < e->running_count; i++)
        taken[e->running[i]->place] = true;
    while (taken[place])
        place++;
    return place;
}

/* Makes sure that there are pages for the known tokens of s and one more for its first token; where there are not,
   takes seats from clients that have more of them. False when s does not fit. */
static bool find_pages(mt_engine *e, mt_sequence *s)
{
    for (;;) {
        const size_t needed = mt_seq_wants(&s->seq, s->seq.known) + promised(e) + (e->running_count > 0);
        const size_t there = mt_tree_available(e->tree, 0);
        if (needed > there && mt_keep_yield(e, false))
            continue;
        mt_sequence *yields = needed > there ? mt_engine_yields_pages(e, s, needed - there) : NULL;
        if (!yields)
            return needed <= there;
        mt_engine_preempt(e, yields);
        e->stats.yields++;
    }
}

/* Gives a waiting sequence its seat. False when there are too few pages beside those of the others. */
static bool admit(mt_engine *e, mt_sequence *s, uint64_t now)
{
    mt_page_copy copy = {0};
    mt_hit hit = {0};
    if (!needs_all(s))
        mt_seq_resume(&s->seq, &copy, &hit);
    if (copy.needed) /* the tree already treats the copy as done */
        mt_model_copy_pages(e->model, copy.to, copy.from);
    if (!find_pages(e, s)) {
        mt_seq_suspend(&s->seq);
        return false;
    }
    mt_voices_seat(e->voices, s->voice, now);
    note_lookup(e, s, &hit, now);
    /* The cache may have changed since s was listed: pages were evicted for others, or sequences that lost their seats
       left some. With pictures, s is planned anew in the next step, as it may need other features; else only its rows
       are capped. */
    if (s->request->media_part_count > 0 && s->seq.done != s->candidate.depth)
        s->candidate.rows = 0;
    if (s->candidate.rows > s->seq.known - s->seq.done)
        s->candidate.rows = s->seq.known - s->seq.done;
    mt_engine_leave(e->waiting, &e->waiting_count, s);
    s->request->client_record->running++;
    s->seated = now;
    s->answering = 0;
    s->place = free_place(e);
    if (mt_model_guesses(e->spec))
        mt_model_carry(e->model, s->place, MT_NO_PAGE);
    if (s->request->pool)
        mt_model_pool_begin(e->model, s->place);
    e->running[e->running_count++] = s;
    if (!needs_all(s) && mt_keep_begin(e, s))
        s->candidate.rows = 0;
    else
        mt_engine_announce(e, s);
    return true;
}

/* Whether the first waiting sequence that could go on lacks a seat, or perhaps pages. */
static bool crowded(const mt_engine *e)
{
    size_t first = 0;
    while (first < e->waiting_count && mt_sequence_paused(e->waiting[first]))
        first++;
    if (first == e->waiting_count)
        return false;
    const mt_seq *seq = &e->waiting[first]->seq;
    return e->running_count == e->params.sequences ||
           mt_seq_wants(seq, seq->known) + promised(e) + 1 > mt_tree_available(e->tree, 0);
}

/* Where others wait, answers that their clients do not read go back to the queue when their last token is more than
   PATIENCE_NS old: a slow reader slows down its own answers only. Where none of those that wait is read either, no
   answer makes way. */
static void make_way(mt_engine *e, uint64_t now)
{
    if (!crowded(e))
        return;
    for (size_t i = e->running_count; i-- > 0;)
        if (mt_sequence_paused(e->running[i]) && now - e->running[i]->last > PATIENCE_NS)
            mt_engine_preempt(e, e->running[i]);
}

/* Takes pages and a slot for the rows of s; where there are none, at the cost of its guesses, of what waits to be
   stored, of other sequences' seats, or of its own. */
static void make_room(mt_engine *e, mt_sequence *s)
{
    const size_t sure = s->seq.known - s->seq.done;
    if (s->candidate.rows > sure && !mt_seq_grow(&s->seq, s->seq.done + s->candidate.rows))
        s->candidate.rows = sure;
    while (!mt_seq_grow(&s->seq, s->seq.done + s->candidate.rows)) {
        if (mt_keep_yield(e, false))
            continue;
        mt_sequence *v = mt_engine_victim(e);
        if (v == s && e->running_count == 1) {
            if (mt_keep_yield(e, true))
                continue;
            mt_error err = {0};
            mt_fail(&err, MT_E_MEMORY, "the cache has no room for one more token; raise --memory or lower --context");
            mt_engine_end(e, s, MT_FINISH_ERROR, &err);
            return;
        }
        mt_engine_preempt(e, v);
        if (v == s)
            return;
    }
}

/* The budget of a step, by the parameters, the device and whether requests met lately. */
static mt_budget budget_of(const mt_engine *e, uint64_t now)
{
    const double least = mt_cost_predict(&e->past.cost, 1, 0), given = e->params.step_ms * 1e-3;
    const bool concurrent = now - e->past.concurrent < CONCURRENT_NS;
    mt_budget b = {.rows = e->params.rows,
                   .places = e->params.sequences - e->running_count,
                   .guesses = e->step.max_wanted - MT_MIN(e->step.max_wanted, e->running_count),
                   .seconds = given,
                   .slice = mt_device_apart(e->dev) ? mt_device_rows(e->dev) / SLICES : 0,
                   .others = e->params.rota ? mt_rota_wanting(e->params.rota) : 0,
                   .draft_all = e->params.draft_all,
                   .alone = concurrent ? TOGETHER * MT_MAX(least, UNNOTICED) : MT_MAX(ALONE * least, ALONE_SECONDS)};
    if (given > 0 && b.alone > given)
        b.alone = given;
    return b;
}

/* The sequence that came first of those that may begin now, if it has waited longer than PATIENCE_NS; else NULL. */
static mt_sequence *impatient(const mt_engine *e, size_t count, uint64_t now)
{
    mt_sequence *first = NULL;
    for (size_t i = 0; i < count; i++) {
        mt_candidate *c = e->step.order[i];
        if (c->rows > 0 && !c->running && (!first || mt_sequence_before(owner(c), first)))
            first = owner(c);
    }
    return first && now - first->request->received > PATIENCE_NS ? first : NULL;
}

/* Of the sequences that were given rows and have no seat yet, one of the client with the fewest seats: `first`, or the
   first in step->order, which puts those that will be done soonest in front. */
static mt_sequence *next_in(const mt_engine *e, size_t count, const mt_sequence *first)
{
    mt_sequence *next = NULL;
    for (size_t i = 0; i < count; i++) {
        mt_sequence *s = owner(e->step.order[i]);
        if (e->step.order[i]->rows == 0 || e->step.order[i]->running)
            continue;
        const int more =
            next ? mt_client_record_compare(s->request->client_record, 0, next->request->client_record, 0) : -1;
        if (more < 0 || (more == 0 && s == first))
            next = s;
    }
    return next;
}

/* Seats the sequences that were given rows. Where one does not fit, none behind it is seated either, and one that has
   waited too long is tried first: so small requests never keep a large one out for ever. */
static void admit_all(mt_engine *e, size_t count, uint64_t now)
{
    const mt_sequence *first = impatient(e, count, now);
    bool full = false;
    for (mt_sequence *s; (s = next_in(e, count, first));) {
        full = full || !admit(e, s, now);
        s->candidate.running = !full;
        if (full)
            s->candidate.rows = 0;
    }
}

/* Whether lines of batches are held for prompts of which none was seated. */
static bool held_in_vain(const mt_engine *e, size_t count)
{
    bool held = false;
    for (size_t i = 0; i < count; i++) {
        const mt_candidate *c = e->step.order[i];
        if (c->rows > 0 || c->worked > 0)
            return false;
        held |= c->held;
    }
    return held;
}

/* Lists all sequences and jobs that can do something. */
static size_t list(mt_engine *e, uint64_t now)
{
    e->step.encode_for = NULL;
    size_t count = list_waiting(e, list_running(e, now), now);
    const mt_request *encode_for = e->step.encode_for ? e->step.encode_for->request : NULL;
    for (size_t i = 0; i < e->job_count; i++)
        if (e->jobs[i]->count > 0)
            e->step.candidates[count++] = mt_job_offer(e->jobs[i], e->jobs[i] == &e->job ? encode_for : NULL, now);
    return count;
}

/* Starts reading features from tiers, and a job of the tower where one is wanted. Sequences of this step pin the
   features they need first, so that these are not evicted. */
static void begin_job(mt_engine *e, mt_step *step)
{
    if (!(step->encode_for && e->job.count == 0) && !(e->keep && e->tower.cursor))
        return;
    for (size_t i = 0; i < step->parts; i++)
        mt_engine_media_reach(e, step->part[i].s, step->part[i].s->seq.done, true);
    if (e->keep)
        mt_engine_fetch_features(e);
    if (step->encode_for && e->job.count == 0)
        mt_engine_encode_begin(e, step->encode_for);
}

bool mt_engine_plan(mt_engine *e, mt_step *step)
{
    const uint64_t now = mt_clock_ns();
    bool work = false;
    step->parts = 0;
    make_way(e, now);
    size_t count = list(e, now);
    if (e->running_count + e->waiting_count > 1)
        e->past.concurrent = now;
    if (count == 0) { /* all lack features, or there are none */
        begin_job(e, step);
        count = list(e, now);
    }
    if (count == 0)
        return false;
    const size_t before = e->running_count;
    mt_budget budget = budget_of(e, now);
    mt_schedule(step->candidates, count, &e->past.cost, &budget, step->order);
    admit_all(e, count, now);
    if (held_in_vain(e, count)) {
        budget.together = true;
        mt_schedule(step->candidates, count, &e->past.cost, &budget, step->order);
        admit_all(e, count, now);
    }
    for (size_t i = 0; i < count; i++)
        if (step->order[i]->rows > 0)
            make_room(e, owner(step->order[i]));
    for (size_t i = 0; i < e->running_count; i++)
        if (e->running[i]->candidate.rows > 0)
            step->part[step->parts++] = (mt_part){.s = e->running[i], .rows = e->running[i]->candidate.rows};
    begin_job(e, step);
    for (size_t i = 0; i < e->job_count; i++)
        work |= mt_job_planned(e->jobs[i]);
    return step->parts > 0 || work || e->running_count > before;
}
