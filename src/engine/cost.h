/* What a step will take, learned from the steps before it. Predictions decide how much goes into a step, never what
   comes out of it. */
#ifndef MT_ENGINE_COST_H
#define MT_ENGINE_COST_H

#include <stddef.h>

/* Kernels multiply a few rows one by one or in pairs while they wait for the weights, and more of them in blocks: the
   ninth row costs what the twelfth does. Where that is not so, predictions are off by a part of a block. */
#define MT_COST_FEW 8
#define MT_COST_BLOCK 4
#define MT_COST_TERMS 4

/* Seconds: of any step; of each of the first few rows; of each of the others; of a row and 1024 positions before it. */
typedef struct mt_cost {
    double term[MT_COST_TERMS];
    /* private: the first guess, and what was measured, older steps counting less */
    double guess[MT_COST_TERMS];
    double xx[MT_COST_TERMS][MT_COST_TERMS], xy[MT_COST_TERMS];
} mt_cost;

/* A first guess from the bytes of weights that a step reads and the products of a row. */
void mt_cost_init(mt_cost *cost, double weight_bytes, double row_products);

/* positions: the sum over all rows of the positions before each. */
double mt_cost_predict(const mt_cost *cost, size_t rows, double positions);

/* What one more row with `depth` positions before it adds to a step of `rows`: its part of a block. */
double mt_cost_row(const mt_cost *cost, size_t rows, size_t depth);

void mt_cost_learn(mt_cost *cost, size_t rows, double positions, double seconds);

/* What a cursor's work takes (models/cursor.h), each by itself. */
typedef struct mt_rate {
    double seconds; /* of a multiplication */
    double xx, xy;  /* private: what was measured, older slices counting less */
} mt_rate;

void mt_rate_init(mt_rate *rate);
void mt_rate_learn(mt_rate *rate, double work, double seconds);

#endif
