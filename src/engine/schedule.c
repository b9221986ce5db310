/* The scheduler (schedule.h): a pure function that divides the time of a step among candidates. */
#include "engine/schedule.h"

#include "base/compiler.h"

/* of the time for prompts: what belongs to the oldest candidate */
#define OLDEST_SHARE 0.25
#define LEAST_WORK 1e-6 /* least part of a job's work that is given where something must be given */

/* The sum, over `rows` rows that begin at position `depth`, of the positions before each. */
static double positions_before(size_t depth, size_t rows)
{
    return (double)rows * (double)depth + (double)rows * ((double)rows - 1) / 2;
}

/* Seconds that rows add to a step that has `before` rows. */
static double cost_of(const mt_cost *cost, size_t before, size_t depth, size_t rows)
{
    return mt_cost_predict(cost, before + rows, positions_before(depth, rows)) - mt_cost_predict(cost, before, 0);
}

static bool comes_before(const mt_candidate *a, const mt_candidate *b)
{
    if (a->held != b->held)
        return b->held;
    if (a->answering != b->answering)
        return a->answering;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->score != b->score)
        return a->score < b->score;
    return a->order < b->order;
}

/* Insertion sort: the order hardly changes from one step to the next, and the sort needs no memory. */
static void sort(mt_candidate *const *candidates, size_t count, const mt_cost *cost, mt_candidate **order)
{
    for (size_t i = 0; i < count; i++) {
        mt_candidate *c = candidates[i];
        c->score = cost_of(cost, 0, c->depth, c->left) + c->work + c->debt;
        size_t at = i;
        for (; at > 0 && comes_before(c, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = c;
    }
}

/* The part of the step's budget that is left. */
typedef struct rest {
    const mt_cost *cost;
    size_t used, rows, places; /* used: rows that are given already; rows: that may still be given; places: seats */
    double seconds;
} rest;

/* Most rows, from position `depth` on, that take no longer than `seconds`; at most `most`. */
static size_t rows_within(const rest *r, size_t depth, double seconds, size_t most)
{
    size_t low = 0, high = most;
    while (low < high) {
        const size_t middle = low + (high - low + 1) / 2;
        if (cost_of(r->cost, r->used, depth, middle) <= seconds)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Gives a job as much work as `seconds` allow; where `any`, a little in any case. A job needs no seat. */
static void give_work(mt_candidate *c, rest *r, double seconds, bool any)
{
    const double left = c->work - c->worked, fits = MT_MAX(seconds, 0);
    double now = fits < left ? fits : left;
    if (now <= 0 && any && c->worked <= 0)
        now = c->work * LEAST_WORK;
    c->worked += now;
    r->seconds -= now;
}

/* How many of the next `rows` rows may be computed without cutting the range that must stay whole. */
static size_t uncut(const mt_candidate *c, size_t rows)
{
    const size_t end = c->rows + rows;
    return end > c->solid && end < c->solid_end ? c->solid - c->rows : rows;
}

static bool may_begin(const mt_candidate *c, size_t places)
{
    return places > 0 && (!c->places || *c->places > 0);
}

/* Gives c so many rows, and counts them. */
static void take(mt_candidate *c, rest *r, size_t rows)
{
    c->rows += rows;
    r->used += rows;
    r->rows -= rows;
}

/* Gives c as many more rows, or as much more work, as `seconds` allow; where `any`, some in any case. */
static void give(mt_candidate *c, rest *r, double seconds, bool any)
{
    const size_t depth = c->depth + c->rows;
    const bool begins = !c->running && c->rows == 0;
    const size_t most = uncut(c, MT_MIN(MT_MIN(c->left, c->most) - c->rows, r->rows));
    if (c->work > 0) {
        give_work(c, r, seconds, any);
        return;
    }
    if (begins && !may_begin(c, r->places))
        return;
    size_t now = uncut(c, rows_within(r, depth, seconds, most));
    if (now == 0 && any && most > 0)
        now = c->rows == c->solid && c->solid < c->solid_end ? c->solid_end - c->solid : 1;
    if (now == 0)
        return;
    r->seconds -= cost_of(r->cost, r->used, depth, now);
    take(c, r, now);
    r->places -= begins;
    if (begins && c->places)
        --*c->places;
}

/* Gives c its share; what it cannot use yet it saves up in c->owed. */
static void give_share(mt_candidate *c, rest *r)
{
    const double before = r->seconds;
    c->owed += OLDEST_SHARE * MT_MAX(r->seconds, 0);
    give(c, r, c->owed, false);
    c->owed = MT_MAX(c->owed - (before - r->seconds), 0);
}

/* The candidate of the highest priority that came first and can go on. */
static mt_candidate *oldest(mt_candidate *const *order, size_t begin, size_t count, size_t places)
{
    mt_candidate *first = NULL;
    for (size_t i = begin; i < count; i++) {
        mt_candidate *c = order[i];
        if (c->answering || (!c->running && !may_begin(c, places)))
            continue;
        if (!first || c->priority < first->priority || (c->priority == first->priority && c->order < first->order))
            first = c;
    }
    return first;
}

static bool gained(const mt_candidate *c)
{
    return c->rows > 0 || c->worked > 0;
}

/* How likely the next guess of an answer and all guesses before it are right. */
static double chance_of(const mt_candidate *c)
{
    double chance = 1;
    for (size_t i = 0; i < c->rows; i++)
        chance *= c->chance;
    return chance;
}

/* A step of answers and their guesses. */
typedef struct guessing {
    double seconds, tokens; /* what it takes, and how many tokens it is expected to give */
    size_t rows;            /* most rows that further guesses may have */
} guessing;

/* Whether `tokens` more in `seconds` more raise the tokens per second. */
static bool pays(const guessing *g, double tokens, double seconds)
{
    return tokens * g->seconds > seconds * g->tokens;
}

bool mt_schedule_worth(const mt_cost *cost, double chance, size_t depth, size_t answers, double seconds)
{
    const guessing g = {.seconds = seconds, .tokens = (double)answers};
    return answers != cost->knee && pays(&g, chance, mt_cost_row(cost, answers, depth + 1));
}

/* Gives up to `most` rows to guesses that are worth them: the first guess of every answer, then the second. */
static void give_guesses(mt_candidate **order, size_t answers, rest *r, guessing *g, size_t most, bool all)
{
    size_t left = MT_MIN(MT_MIN(most, g->rows), r->rows);
    for (bool more = true; more && left > 0;) {
        more = false;
        for (size_t i = 0; i < answers && left > 0; i++) {
            mt_candidate *c = order[i];
            const double chance = chance_of(c);
            if (c->rows > c->drafts || !(all || pays(g, chance, mt_cost_row(r->cost, r->used, c->depth + c->rows))))
                continue;
            g->seconds += cost_of(r->cost, r->used, c->depth + c->rows, 1);
            g->tokens += chance;
            g->rows--;
            take(c, r, 1);
            left--;
            more = true;
        }
    }
}

/* Gives rows to guesses beyond the knee, to many or to none: the first of them makes the step longer by far more than
   it can save, and the others must pay for that. */
static void give_beyond(mt_candidate **order, size_t answers, rest *r, guessing *g)
{
    const rest before = *r;
    const guessing below = *g;
    for (size_t i = 0; i < answers; i++)
        order[i]->sure = order[i]->rows;
    give_guesses(order, answers, r, g, SIZE_MAX, false);
    if (pays(&below, g->tokens - below.tokens, g->seconds - below.seconds))
        return;
    for (size_t i = 0; i < answers; i++)
        order[i]->rows = order[i]->sure;
    *r = before;
    *g = below;
}

/* Gives rows to guesses of answers that take `seconds` alone. Returns the seconds of all. */
static double give_drafts(mt_candidate **order, size_t answers, rest *r, const mt_budget *budget, double seconds)
{
    const size_t knee = r->cost->knee;
    const bool below = knee > 0 && r->used <= knee && !budget->draft_all;
    guessing g = {
        .seconds = seconds, .tokens = (double)answers, .rows = budget->guesses > 0 ? budget->guesses : SIZE_MAX};
    give_guesses(order, answers, r, &g, below ? knee - r->used : SIZE_MAX, budget->draft_all);
    if (below && r->used == knee)
        give_beyond(order, answers, r, &g);
    return g.seconds;
}

/* The time limit of a step of prompts: up to twice `limit` where the prompt that is soonest complete is complete with
   it. Otherwise that prompt would wait for another step, and for a newcomer two short steps are no better than one
   long. */
static double stretched(const mt_candidate *c, const mt_cost *cost, double taken, double limit)
{
    const double wanted = taken + cost_of(cost, 0, c->depth, c->left) / (1 - OLDEST_SHARE);
    return c->left <= c->most && wanted > limit && wanted <= 2 * limit ? wanted : limit;
}

/* How long a step may take beside answers that have `rows` rows and need `needed` seconds alone. See
   MT_STEP_SECONDS. */
static double beside_answers(const mt_cost *cost, double needed, size_t rows)
{
    return MT_MAX(MT_MIN(needed * MT_STEP_TIMES, MT_MAX(needed * MT_STEP_HALF, MT_STEP_SMOOTH)),
                  MT_STEP_SECONDS + mt_cost_row(cost, rows, 0) * MT_COST_BLOCK / 2);
}

/* The limit where `engines` engines share the device, each with a step in turn: together they take as long as one alone
   would, but each gets at least one and a half times what its answers need. */
static double shared(const mt_cost *cost, double needed, double limit, size_t engines)
{
    return MT_MAX(MT_MIN(limit, beside_answers(cost, needed, 0)) / (double)engines, needed * 1.5);
}

/* Seconds that `slice` rows of the prompt that is soonest complete take, plus one block of rows, as the slice may be
   given in two parts; 0 where no prompt waits. */
static double slice_of(mt_candidate *const *order, size_t begin, size_t count, const rest *r, size_t slice)
{
    for (size_t i = begin; slice > 0 && i < count; i++)
        if (!order[i]->answering && order[i]->work <= 0)
            return cost_of(r->cost, r->used, order[i]->depth, MT_MIN(slice, order[i]->left) + MT_COST_BLOCK);
    return 0;
}

/* Decides who is held. Returns whether no candidate but lines of batches is there. */
static bool hold_last(mt_candidate *const *candidates, size_t count, const mt_budget *budget)
{
    bool prompts = false, alone = true;
    for (size_t i = 0; i < count; i++) {
        const mt_candidate *c = candidates[i];
        alone = alone && c->last;
        prompts |= !c->last && !c->answering && c->work <= 0 && (c->running || may_begin(c, budget->places));
    }
    for (size_t i = 0; i < count; i++)
        candidates[i]->held = prompts && candidates[i]->last && !budget->together;
    return alone;
}

double mt_schedule(mt_candidate *const *candidates, size_t count, const mt_cost *cost, const mt_budget *budget,
                   mt_candidate **order)
{
    rest r = {.cost = cost, .rows = budget->rows, .places = budget->places};
    double taken = mt_cost_predict(cost, 0, 0);
    size_t answers = 0;
    const bool alone = hold_last(candidates, count, budget);
    sort(candidates, count, cost, order);
    for (size_t i = 0; i < count; i++) {
        order[i]->rows = 0;
        order[i]->worked = 0;
    }
    while (count > 0 && order[count - 1]->held)
        count--;
    for (; answers < count && order[answers]->answering && r.rows > 0; answers++) {
        taken += cost_of(cost, r.used, order[answers]->depth, 1);
        take(order[answers], &r, 1);
    }
    taken = give_drafts(order, answers, &r, budget, taken);
    double limit = answers ? budget->seconds : budget->alone;
    if (answers && limit <= 0)
        limit = beside_answers(cost, taken, r.used);
    if (budget->others > 0)
        limit = shared(cost, answers ? taken : mt_cost_predict(cost, 1, 0), limit, budget->others + 1);
    else if (answers == 0 && budget->seconds <= 0 && count > 0)
        limit = stretched(order[0], cost, taken, limit);
    if (alone)
        limit = MT_MIN(limit, MT_STEP_LAST * MT_MAX(taken, mt_cost_predict(cost, 1, 0)));
    limit = MT_MAX(limit, taken + slice_of(order, answers, count, &r, budget->slice));
    r.seconds = limit - taken;
    mt_candidate *first = oldest(order, answers, count, r.places);
    if (first)
        give_share(first, &r);
    bool any = first && gained(first);
    for (size_t i = answers; i < count; i++) {
        if (order[i]->answering)
            continue;
        give(order[i], &r, r.seconds, !any);
        any |= gained(order[i]);
    }
    return limit - r.seconds;
}
