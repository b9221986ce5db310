#include "engine/schedule.h"

/* The sum over `rows` rows from `depth` on of the positions before each. */
static double positions_before(size_t depth, size_t rows)
{
    return (double)rows * (double)depth + (double)rows * (double)(rows - (rows > 0)) / 2;
}

/* Seconds that rows add to a step. */
static double cost_of(const mt_cost *cost, size_t depth, size_t rows)
{
    return mt_cost_predict(cost, rows, positions_before(depth, rows)) - mt_cost_predict(cost, 0, 0);
}

static int compare(const mt_candidate *a, const mt_candidate *b)
{
    if (a->answering != b->answering)
        return a->answering ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Insertion sort: the order hardly changes from one step to the next, and it needs no memory. */
static void sort(mt_candidate *const *candidates, size_t count, const mt_cost *cost, mt_candidate **order)
{
    for (size_t i = 0; i < count; i++) {
        mt_candidate *c = candidates[i];
        c->score = cost_of(cost, c->depth, c->left) + c->debt - c->waited;
        size_t at = i;
        for (; at > 0 && compare(c, order[at - 1]) < 0; at--)
            order[at] = order[at - 1];
        order[at] = c;
    }
}

/* Most rows of c that take no longer than `seconds`, at most `most`. */
static size_t rows_within(const mt_candidate *c, const mt_cost *cost, double seconds, size_t most)
{
    size_t low = 0, high = most;
    while (low < high) {
        const size_t middle = low + (high - low + 1) / 2;
        if (cost_of(cost, c->depth, middle) <= seconds)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

double mt_schedule(mt_candidate *const *candidates, size_t count, const mt_cost *cost, const mt_budget *budget,
                   mt_candidate **order)
{
    size_t rows = budget->rows, places = budget->places, i = 0;
    double taken = mt_cost_predict(cost, 0, 0);
    sort(candidates, count, cost, order);
    for (size_t k = 0; k < count; k++)
        order[k]->rows = 0;
    for (; i < count && order[i]->answering && rows > 0; i++, rows--) {
        order[i]->rows = 1;
        taken += cost_of(cost, order[i]->depth, 1);
    }
    const bool answers = i > 0;
    double limit = answers ? budget->seconds : budget->alone;
    if (answers && limit <= 0)
        limit = taken * (1 + budget->share) > budget->least ? taken * (1 + budget->share) : budget->least;
    for (bool first = true; i < count && rows > 0; i++) {
        mt_candidate *c = order[i];
        if (c->answering || (!c->running && places == 0))
            continue;
        const size_t most = least(least(c->left, c->most), rows);
        size_t now = rows_within(c, cost, limit - taken, most);
        if (now == 0 && first)
            now = most > 0;
        if (now == 0)
            continue;
        first = false;
        c->rows = now;
        rows -= now;
        places -= !c->running;
        taken += cost_of(cost, c->depth, now);
    }
    return taken;
}
