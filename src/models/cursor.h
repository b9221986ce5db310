/* A cursor: a job on the device that the engine runs in slices between steps, such as a vision tower over pictures or
   an encoder over texts. A job is some rows that go through one pass after the other (a pass is, for example, one
   layer's keys and values). A slice is some rows of a pass; between two slices the device may do other work, and no
   result depends on where slices end (R1 of docs/numerics.md). Used by the device's thread. */
#ifndef MT_MODELS_CURSOR_H
#define MT_MODELS_CURSOR_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mt_cursor mt_cursor;

/* The functions of one kind of job. */
typedef struct mt_cursor_kind {
    /* Computes rows [cursor->row, cursor->row + rows) of the present pass. */
    void (*slice)(mt_cursor *cursor, size_t rows);
    /* Multiplications that rows [first, first + rows) of the present pass take. */
    double (*cost)(const mt_cursor *cursor, size_t first, size_t rows);
    /* Goes on to the next pass, which may have fewer rows. False when the present pass was the last. */
    bool (*next)(mt_cursor *cursor);
} mt_cursor_kind;

/* The first member of the object that runs the job. Rows [0, row) of the present pass are done, and all passes
   before. */
struct mt_cursor {
    const mt_cursor_kind *kind;
    size_t most;  /* most rows of a slice */
    size_t whole; /* slices are multiples of so many rows */

    /* the job */
    size_t rows, row;   /* rows of the present pass; those that are done */
    size_t pass, layer; /* the present pass and layer, counted from 0 as `kind` defines them */
    double left;        /* multiplications left */
    bool busy;          /* a job is under way */
};

/* Starts a job of `rows` rows, a multiple of cursor->whole; gives the job up. */
void mt_cursor_begin(mt_cursor *cursor, size_t rows);
void mt_cursor_drop(mt_cursor *cursor);

/* Multiplications that are left; 0: no job is under way, or it is done. */
double mt_cursor_left(const mt_cursor *cursor);

/* Runs slices of at most `budget` multiplications together, but at least one slice of a few rows. Returns the
   multiplications done. Allocates nothing. */
double mt_cursor_run(mt_cursor *cursor, double budget);

#endif
