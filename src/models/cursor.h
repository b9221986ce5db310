/* Work that is done before an event: a tower's for pictures, an encoder's for texts. A job is some rows that go through
   one pass after the other. It goes in slices of rows of a pass, and between any two slices the device may do other
   work; no row depends on where slices end (R1). Owned by the device's thread. */
#ifndef MT_MODELS_CURSOR_H
#define MT_MODELS_CURSOR_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mt_cursor mt_cursor;

/* What a kind of job brings. */
typedef struct mt_cursor_kind {
    /* Computes rows [cursor->row, cursor->row + rows) of the pass. */
    void (*slice)(mt_cursor *cursor, size_t rows);
    /* Multiplications of rows [first, first + rows) in the pass. */
    double (*cost)(const mt_cursor *cursor, size_t first, size_t rows);
    /* Goes on to the next pass, which may have fewer rows. False when there is none. */
    bool (*next)(mt_cursor *cursor);
} mt_cursor_kind;

/* The first member of whose cursor it is. Rows [0, row) of the pass are done, and those of all passes before. */
struct mt_cursor {
    const mt_cursor_kind *kind;
    size_t most;  /* rows of a slice */
    size_t whole; /* rows that belong together: slices are multiples of it */

    /* the job */
    size_t rows, row;
    size_t pass, layer; /* as the kind counts them, from 0 on */
    double left;
    bool busy;
};

/* Starts a job of so many rows, a multiple of what belongs together. */
void mt_cursor_begin(mt_cursor *cursor, size_t rows);
void mt_cursor_drop(mt_cursor *cursor);

/* What is left of the job, in multiplications; 0: there is none, or it is done. */
double mt_cursor_left(const mt_cursor *cursor);

/* Runs slices of together at most `budget` multiplications, at least one of at least a few rows. Returns how many
   that were. Allocates nothing. */
double mt_cursor_run(mt_cursor *cursor, double budget);

#endif
