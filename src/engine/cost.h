/* The cost model: predicts how long a step will take, learned from earlier steps. Predictions decide how much goes into
   a step, never what comes out of it. */
#ifndef MT_ENGINE_COST_H
#define MT_ENGINE_COST_H

#include <stddef.h>

/* Up to MT_COST_FEW rows cost the same each, since kernels wait for the weights meanwhile; further rows are multiplied
   in blocks of MT_COST_BLOCK, so that nine rows take as long as twelve. On hardware where that is not so, predictions
   are off by a part of a block. */
#define MT_COST_FEW 8
#define MT_COST_BLOCK 4
#define MT_COST_TERMS 6

/* A linear model, in seconds: of any step; of each of the first few rows; of each further row; of a row per 1024
   positions before it; of each row beyond the knee; of a step that has such rows. */
typedef struct mt_cost {
    double term[MT_COST_TERMS];
    /* rows beyond which the device has other kernels and steps take longer (mt_device_few); above MT_COST_FEW, or 0:
       none */
    size_t knee;
    /* private: the first guess, and the sums of weighted least squares over measured steps */
    double guess[MT_COST_TERMS];
    double xx[MT_COST_TERMS][MT_COST_TERMS], xy[MT_COST_TERMS];
} mt_cost;

/* Sets a first guess from the bytes of weights that a step reads and the multiplications of a row. */
void mt_cost_init(mt_cost *cost, double weight_bytes, double row_products, size_t knee);

/* Seconds of a step. positions: the sum over all rows of the positions before each. */
double mt_cost_predict(const mt_cost *cost, size_t rows, double positions);

/* Seconds that one more row with `depth` positions before it adds to a step of `rows` rows, averaged over its block and
   without what a step beyond the knee takes more. */
double mt_cost_row(const mt_cost *cost, size_t rows, size_t depth);

/* Learns that a step took so many seconds. */
void mt_cost_learn(mt_cost *cost, size_t rows, double positions, double seconds);

/* The same for jobs: seconds of one multiplication of a cursor (models/cursor.h), learned from slices. */
typedef struct mt_rate {
    double seconds; /* the prediction, for one multiplication */
    double xx, xy;  /* private: sums over measured slices, older ones counting less */
} mt_rate;

void mt_rate_init(mt_rate *rate);
void mt_rate_learn(mt_rate *rate, double work, double seconds);

#endif
