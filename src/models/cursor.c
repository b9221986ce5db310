/* Runs jobs in slices (cursor.h). Called by engine/job.c. */
#include "models/cursor.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"

#define FEW_ROWS 16 /* rows of the smallest slice */

void mt_cursor_begin(mt_cursor *c, size_t rows)
{
    assert(!c->busy && rows > 0);
    c->rows = rows;
    c->row = c->pass = c->layer = 0;
    c->left = 0;
    do
        c->left += c->kind->cost(c, 0, c->rows);
    while (c->kind->next(c));
    c->rows = rows;
    c->pass = c->layer = 0;
    c->busy = true;
}

void mt_cursor_drop(mt_cursor *c)
{
    c->busy = false;
}

double mt_cursor_left(const mt_cursor *c)
{
    return c->busy ? fmax(c->left, 1) : 0;
}

/* Rows of the next slice: as many as `budget` multiplications allow, but at least a few where `must`. */
static size_t slice_rows(const mt_cursor *c, double budget, bool must)
{
    const size_t left = c->rows - c->row, most = left < c->most ? left : c->most;
    size_t few = (FEW_ROWS + c->whole - 1) / c->whole * c->whole;
    few = few < most ? few : most;
    const double fit = budget * (double)few / c->kind->cost(c, c->row, few);
    if (fit >= (double)most)
        return most;
    if (fit < (double)few)
        return must ? few : 0;
    return (size_t)fit / c->whole * c->whole;
}

double mt_cursor_run(mt_cursor *c, double budget)
{
    double spent = 0;
    mt_alloc_forbid();
    while (c->busy) {
        const size_t rows = slice_rows(c, budget - spent, spent == 0);
        if (rows == 0)
            break;
        spent += c->kind->cost(c, c->row, rows);
        c->kind->slice(c, rows);
        c->row += rows;
        if (c->row < c->rows)
            continue;
        c->row = 0;
        c->busy = c->kind->next(c);
    }
    mt_alloc_permit();
    c->left -= spent;
    return spent;
}
