/* checkdevice: every operation of a device against the CPU device with portable kernels on one thread, which is the
   definition, on random shapes, tails, page layouts and batches; and against itself, with other neighbours.

   A check computes with rows or sequences, its units, that are known by number: what unit 7 holds is the same whoever
   stands beside it. It is run on the definition and on the device with all units, which must agree by its rule; and
   once more on the device with some of them in another order, which must give the same bits (R1). */
#ifndef DEVICE_CHECK_H
#define DEVICE_CHECK_H

#include "../kernels/check.h"
#include "device/device.h"

#define MOST_UNITS 300
#define USUAL_UNITS 80         /* at most, where a check names no other number */
#define MOST_FLOATS (1u << 21) /* that all units of a check give */
#define USUAL_TRIALS 60
#define QUICK_TRIALS 8

typedef enum rule {
    BITS, /* equal */
    NEAR, /* each within 2^-9 of the largest number of its unit: sums of bf16 products in another order (R5) */
    NEXT  /* within 2^-7: the same, of what was such a sum before it was rounded, to this bf16 or the one beside it */
} rule;

typedef struct run {
    mt_device *dev;
    mt_set *set;               /* of this run */
    uint64_t seed;             /* of the trial: decides shapes and what is the same for all units; % 256: its number */
    uint64_t rng;              /* drawn from in the same order in each run of a trial */
    size_t units;              /* in this run */
    uint32_t unit[MOST_UNITS]; /* their numbers, all different */
    bool quick;                /* nothing large: under a sanitizer that takes minutes */
    check *memory;             /* of matrices */
    rule rule;                 /* what the check asks for, BITS until it says otherwise */
    float *out;                /* [units][each]: what they give */
    size_t each, filled;
    char shape[160]; /* for who reads of a failure */
} run;

typedef void check_fn(run *r);

typedef struct device_check {
    const char *name; /* the operations it is about, a blank between */
    check_fn *fn;
    size_t units; /* at most; 0: USUAL_UNITS */
    size_t quick; /* trials with --quick, as many as launch all of its kernels; 0: QUICK_TRIALS */
    bool latent;  /* it is about latent attention, which a device may refuse */
    bool choice;  /* it is about the choice of positions, which a device may refuse */
    bool plain;   /* it is about Mamba2, which a device may refuse */
} device_check;

extern const device_check row_checks[], product_checks[], attention_checks[], recurrent_checks[], object_checks[],
    together_checks[];

/* Has a GPU fail and opens it anew; says how that went. */
bool check_fault(const char *name);

/* ---- random numbers: from the trial's stream, or of a thing that has a number ---- */

size_t below(run *r, size_t n);                             /* 0 .. n - 1 */
size_t pick(run *r, const size_t *from, size_t n);          /* one of them */
size_t in_turn(const run *r, const size_t *from, size_t n); /* another one in each trial */
float real(run *r, float low, float high);
void fill(const run *r, unsigned thing, uint64_t number, float *x, size_t n); /* near 1, some of them 0 */

/* ---- objects ---- */

/* A row for each unit, holding what its number says, or a row that all share. thing tells tensors of a check apart. */
mt_tensor *unit_rows(run *r, unsigned thing, size_t cols);
mt_tensor *row_of(run *r, unsigned thing, size_t cols);
/* Rows from `at` on hold what positions [from, from + rows) of a unit say. */
void write_positions(run *r, mt_tensor *t, size_t at, unsigned thing, uint32_t unit, size_t from, size_t rows,
                     size_t cols);
mt_mat matrix(run *r, mt_format format, size_t n, size_t k);

/* Whether products with such weights may add in an order of the device's own (R5). */
bool adds_freely(const run *r, mt_format f);

/* A format that models have, with what the check's rule becomes for products with it. */
mt_format draw_format(run *r, size_t k);

/* What the units give: rows of a tensor, `rows` a unit. */
void give(run *r, const mt_tensor *t, size_t rows, size_t cols);
void give_floats(run *r, const float *x, size_t n);
void say(run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* After the last weight and page. */
void plan(run *r, size_t rows);

/* How gate and up meet: any activation, half of the time with a limit. */
mt_glu draw_glu(run *r);

/* A batch of one row a unit, for operations that only look at rows. */
void begin_rows(run *r, mt_batch *batch);

#endif
